"""What people paste: commands, dates and tables one after the other, cut into blocks of one table each.

A table rarely has its group and its moment; the command line and the date in front of it have them.
"""

from __future__ import annotations

import calendar
import re
import time as clock
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

from pyengine.dataclass import dataclass

# mqadmin SUBCOMMAND, kafka-consumer-groups(.sh), activemq-admin SUBCOMMAND
_COMMAND = re.compile(
    r"(?:\bmqadmin(?:\.sh|\.cmd)?\s+(?P<sub>[A-Za-z]\w+)|\b(?P<kafka>kafka-[a-z-]+groups)(?:\.sh|\.bat)?\b"
    r"|\b(?P<activemq>activemq-admin|activemq)\s+\w+)(?P<rest>.*)"
)
_GROUP = re.compile(r"""(?:^|\s)(?:-g|--group(?:Name)?|--consumerGroup)(?:\s+|=)["']?(?P<name>[^\s"']+)""")
_TOPIC = re.compile(r"""(?:^|\s)(?:-t|--topic(?:Name)?)(?:\s+|=)["']?(?P<name>[^\s"']+)""")
_SHOWN = re.compile(r"(?:^|\s)(?:-s|--showClientIP)(?:\s+|=)[\"']?true\b", re.IGNORECASE)
_NAMED = re.compile(r"Consumer group ['\"`](?P<name>[^'\"`]+)['\"`]")

MOST_PIECES = 6  # lines that a header was broken into
LAST_COLUMNS = (
    "#LastTime", "#Diff", "#Diff Total", "#Last Updated", "#OutMsg24Hour", "#SPACE", "#ACTIVATED", "#Version",
    "#ConsumerRunningInfoFile", "#OutTotalToday",
)  # fmt: skip
LONGEST = 80  # characters of a line that is a date: rows of tables are longer
_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}
_CLOCK = r"(?P<hour>\d\d?):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,]\d+)?(?:\s*(?P<half>[AP]M))?"
_ZONE = r"(?:\s*(?P<zone>Z|UTC|GMT|[A-Z]{3,5}|[+-]\d\d:?\d\d))?"
_YEAR = r"(?P<year>\d{4})"
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:[a-z]{{3}},?\s+)?(?P<name>[a-z]{{3}})\s+(?P<day>\d\d?)\s+{_CLOCK}{_ZONE}\s+{_YEAR}",  # date in C
        rf"(?:[a-z]{{3,9}},?\s+)?(?P<day>\d\d?)\s+(?P<name>[a-z]{{3}})[a-z]*\s+{_YEAR},?\s+{_CLOCK}{_ZONE}",  # en_US
        rf"{_YEAR}[-/](?P<month>\d\d?)[-/](?P<day>\d\d?)[T ]\s*{_CLOCK}{_ZONE}",
        rf"(?P<day>\d\d?)\.(?P<month>\d\d?)\.{_YEAR},?\s+{_CLOCK}{_ZONE}",  # de_DE
        rf"(?P<one>\d\d?)/(?P<other>\d\d?)/{_YEAR},?\s+{_CLOCK}{_ZONE}",  # en_US or en_GB
        rf"{_YEAR}(?P<month>\d\d)(?P<day>\d\d)[-_T ]?(?P<hour>\d\d):?(?P<minute>\d\d):?(?P<second>\d\d)",
        rf"{_YEAR}年\s*(?P<month>\d\d?)月\s*(?P<day>\d\d?)日\s*(?:星期.|周.)?\s*{_CLOCK}{_ZONE}",
    )
)
# Words of a person in front of a date.
_LEAD = re.compile(r"[^\d#|]{1,24}?[\s:\uff1a(\uff08]\s*(?=\d{4}[-/年]|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )")
# A prompt with the moment in it, in front of a command.
_PROMPT = re.compile(r"[\[(](?P<date>[^\])]*\d\d?:\d\d:\d\d[^\])]*)[\])].*?[$#>%] ")
# Lines that a mail quotes, one below the other: one alone may be anything.
_QUOTED = re.compile(r"^ {0,3}>.*\n {0,3}>", re.MULTILINE)
_QUOTE = re.compile(r"^ {0,3}(?:>[ \t]?)+", re.MULTILINE)
_SERVICE = re.compile(r"[\w.-]+ +\| ?")  # `docker compose logs`, in front of every line
# Blanks that a browser or an editor puts in: not to be broken, of no width, as wide as a Chinese character.
_BLANKS = str.maketrans({"\u00a0": " ", "\u3000": " ", "\u200b": None, "\ufeff": None})
# What stands in front of a table's titles.
_TITLED = re.compile(
    r"[^#\n]{0,80}?(?=#(?:Topic|Group|Broker Name|Cluster Name|Index|ClientId)\b|(?:GROUP|TOPIC)[, ]+\S|"
    r"(?:Group|Name) {2,}\S|(?<!\d)001 {1,2}\S+ +\S)"
)
# What kubectl logs --prefix, docker compose and docker logs -t put in front of a log's lines and of dumps.
_LOGGED = tuple(
    map(
        re.compile,
        (r"\[pod/[\w./-]+\] ", r"[\w.-]+[-_]\d+ +\| ", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,9}Z (?=[\s\S])"),
    )
)
_TITLES = (
    "#Topic",
    "#Group",
    "#Broker",
    "#Cluster",
    "#Index",
    "#ClientId",
    "GROUP",
    "TOPIC",
    "Group ",
    "Name ",
    "001 ",
)
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?")
_EPOCH = re.compile(r"(1[0-9]{9})(\d{3})?")
# `watch` writes the interval and the command in front of the host and the date.
_WATCH = re.compile(r"^Every [\d.,]+\s*s(?:econds)?: (?P<command>.*?)(?:\s{2,}|\s+\S+:\s+)(?P<date>[A-Z][a-z]{2} .*)$")


@dataclass(frozen=True, slots=True)
class Block:
    """The lines from one table's header to the next, with what stands in front of them.

    first: 1-based number of the first line. sight: number of the block in the text. command: the tool's command, or
    empty. group, topic: which the command names. shows_clients: the command has ``-s true``, None: no command is there.
    time: ms, the date in front of it.
    """

    first: int
    sight: int
    lines: tuple[str, ...]
    command: str = ""
    group: str = ""
    topic: str = ""
    shows_clients: bool | None = None
    time: int | None = None

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def blocks(text: str, begins: Callable[[str], bool]) -> Iterator[Block]:
    """The blocks of a file. begins: tells a line with which a table begins."""
    block = Block(1, 0, ())
    lines: list[str] = []
    group = ""
    for number, line in enumerate(text.splitlines(), 1):
        moment, command = moment_of(line), _command(line)
        if watched := _WATCH.match(line.strip()):
            command = _command(watched["command"])
        if moment is None and command is None and not begins(line):
            if named := _NAMED.search(line):
                group = named["name"]
            lines.append(line)
            continue
        if any(each.strip() for each in lines):
            yield replace(block, lines=tuple(lines))
        block = replace(block, sight=block.sight + 1, group=group or block.group)
        lines, group = [], ""
        if moment is not None:
            block = replace(block, time=moment)
        if command is not None:
            block = _of_command(block, command)
        if moment is None and command is None:
            lines.append(line)
        block = replace(block, first=number if lines else number + 1)
    if any(each.strip() for each in lines):
        yield replace(block, lines=tuple(lines))


def unwrapped(text: str, begins: Callable[[str], bool]) -> str:
    """The text with mqadmin's tables as they were before a terminal or a mail broke their lines.

    A header that is one only together with the next lines tells that they are broken; so are the rows below it then, up
    to an empty line: each ends where it has as many cells as the header, except the date, which has two.
    """
    lines = text.splitlines()
    found: list[str] = []
    at = 0
    while at < len(lines):
        count = _broken_header(lines[at : at + MOST_PIECES], begins)
        if not count:
            found.append(lines[at])
            at += 1
            continue
        wide = _width(lines, at, count)
        header = _together(lines[at : at + count], wide)
        found.append(header)
        at += count
        cells = len(re.findall(r"#\w+(?: \w+)*", header))
        row: list[str] = []
        while at < len(lines) and lines[at].strip():
            row.append(lines[at])
            at += 1
            whole = _together(row, wide)
            dated = re.search(r"\d{4}-\d\d-\d\d( |$)", whole)
            # The list of all groups has neither type nor model of a group that is away, and no model of one that pulls.
            away = 2 * ("OFFLINE" in whole.split()) + ("PULL" in whole.split()) if header.startswith("#Group") else 0
            if len(whole.split()) == cells + (dated is not None) - away:
                found.append(whole)
                row = []
        found.extend(row)
    return "\n".join(found)


def _broken_header(lines: list[str], begins: Callable[[str], bool]) -> int:
    """Of how many lines a header is, 0 if the first line is one by itself or begins none."""
    if not lines[0].lstrip().startswith("#"):
        return 0
    known = 0
    for count in range(1, len(lines) + 1):
        if count > 1 and begins(lines[count - 1]):  # a whole header: what stands above it is a comment or root's prompt
            break
        header = _together(lines[:count], len(lines[0]))
        if begins(header):
            known = known or count
            if header.endswith(LAST_COLUMNS) and not (count < len(lines) and lines[count].lstrip().startswith("#")):
                return count if count > 1 else 0
    return known if known > 1 else 0


def _width(lines: list[str], at: int, count: int) -> int:
    """The column at which a terminal broke the lines, within words; 0 for a mail, which breaks at blanks."""
    wide = len(lines[at])
    lengths = [len(line) for line in lines]
    within = any(not line.lstrip().startswith("#") for line in lines[at + 1 : at + count])
    return wide if within or (max(lengths) == wide and lengths.count(wide) > 1) else 0


def _together(lines: list[str], wide: int) -> str:
    pieces = [line if len(line) == wide else f"{line} " for line in lines]
    return "".join(f" {piece}" if piece.startswith("#") else piece for piece in pieces).strip()


def without_margin(text: str) -> str:
    """The text without what a mail, docker, kubectl, journald, grep or an editor puts in front of each line.

    A date in it stays, in front of the commands and tables behind it: it tells their moment.
    """
    text = text.translate(_BLANKS)
    if _QUOTED.search(text):
        text = _QUOTE.sub("", text)
    if service := _SERVICE.match(text):
        lines = text.splitlines()
        if len(lines) > 1 and all(line.startswith(service[0].rstrip()) for line in lines if line.strip()):
            return "\n".join(line[len(service[0]) :] for line in lines)
    lines = text.splitlines()
    filled = sum(bool(line.strip()) for line in lines)
    for logged in _LOGGED:
        if filled and sum(logged.match(line) is not None for line in lines) * 2 > filled:
            bare = [logged.sub("", line, count=1) for line in lines]
            # The moment of a line of a log stands in it once more; that of a table nowhere else.
            if not (_ISO.match(text.lstrip()) and any(_TITLED.match(line) for line in bare)):
                return "\n".join(bare)
    if not any(word in text for word in _TITLES):
        return text
    margins = [
        margin
        for line in lines
        if any(word in line for word in _TITLES) and (margin := _TITLED.match(line)) and margin[0].strip(" \t|")
    ]
    for like in dict.fromkeys(_like(each[0]) for each in margins):
        matches = [re.match(like, line) for line in lines]
        if sum(match is not None for match in matches) * 2 > filled > 1:
            return "\n".join(
                line if match is None else _behind(line, match[0]) for line, match in zip(lines, matches, strict=True)
            )
    return text


def _like(margin: str) -> str:
    """A pattern of what stands in front of other lines too: numbers and blanks differ."""
    words = margin.strip()
    pieces = re.split(r"(\d+|\s+)", words)
    like = "".join(r"\d+" if each[:1].isdigit() else r"\s+" if each.isspace() else re.escape(each) for each in pieces)
    blanks = len(margin) - len(margin.rstrip())
    return rf"\s*{like}[ \t]{{0,{blanks}}}"


def _behind(line: str, margin: str) -> str:
    """The line without its margin, behind the date in that, if a command or a table begins there."""
    rest = line[len(margin) :].rstrip(" │") if margin.strip() == "│" else line[len(margin) :]
    dated = _ISO.search(margin)
    return f"{dated[0]}\n{rest}" if dated and (_TITLED.match(rest) or _command(rest)) else rest


def without_bars(line: str) -> str:
    """A row of a table with bars between its cells, as a wiki has it, with blanks instead."""
    return line.replace("|", " ").strip() if line.lstrip().startswith("|") else line


def groups_named(text: str) -> set[str]:
    """Every group that a command line or a sentence of the tools names."""
    found = {each["name"] for each in _NAMED.finditer(text)}
    for line in text.splitlines():
        command = _command(line)
        group = _GROUP.search(command["rest"]) if command else None
        if group:
            found.add(group["name"])
    return found


def commands_in(text: str) -> list[str]:
    """The commands that stand in the text, each once: ``mqadmin topicRoute``."""
    found = []
    for line in text.splitlines():
        command = _command(line)
        if command and command["sub"]:
            found.append(f"mqadmin {command['sub']}")
    return list(dict.fromkeys(found))


def moment_of(line: str) -> int | None:
    """The moment (ms) if the line is a date and nothing else, as `date` and people write it; else None.

    A zone that is not UTC and no number counts as this machine's: CST is China's and Chicago's.
    """
    text = line.strip()
    if len(text) > LONGEST and not text.startswith(("Every ", "[", "(")):
        return None
    if watched := _WATCH.match(text):
        text = watched["date"]
    if prompt := _PROMPT.match(text):
        text = prompt["date"]
    text = re.sub(
        r"^(?:[$>]\s*|date\s*[:=]\s*)", "", text.strip("#=*-[]()\uff08\uff09\uff1a:。, \t"), flags=re.IGNORECASE
    ).strip()
    if whole := _EPOCH.fullmatch(text):
        return int(whole[1]) * 1000 + int(whole[2] or 0)
    if lead := _LEAD.match(text):
        text = text[lead.end() :]
    for pattern in _DATES:
        if match := pattern.fullmatch(text):
            try:
                return _moment(match.groupdict())
            except (ValueError, OverflowError, KeyError):  # no such day, or an unknown month
                return None
    return None


def _moment(parts: dict[str, str | None]) -> int:
    parts = _month_told(parts)
    month = int(parts["month"] or 0) if parts.get("month") else _MONTHS[str(parts["name"]).lower()[:3]]
    hour = int(parts["hour"] or 0)
    if half := parts.get("half"):
        hour = hour % 12 + (12 if half.upper() == "PM" else 0)
    day, minute, second = (int(parts[name] or 0) for name in ("day", "minute", "second"))
    numbers = (int(parts["year"] or 0), month, day, hour, minute, second)
    datetime(*numbers)  # raises for what no calendar has
    zone = (parts.get("zone") or "").upper()
    if zone in ("Z", "UTC", "GMT"):
        return calendar.timegm((*numbers, 0, 0, 0)) * 1000
    if zone[:1] in ("+", "-"):
        east = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
        return (calendar.timegm((*numbers, 0, 0, 0)) - (east if zone[0] == "+" else -east)) * 1000
    return int(clock.mktime((*numbers, 0, 0, -1))) * 1000


def _month_told(parts: dict[str, str | None]) -> dict[str, str | None]:
    """With slashes the month stands first beside AM and PM; else whichever number is above 12 is the day.

    Raises ValueError if neither tells.
    """
    if not parts.get("one"):
        return parts
    one, other = int(parts["one"] or 0), int(parts["other"] or 0)
    if parts.get("half") or other > 12:
        return parts | {"month": str(one), "day": str(other)}
    if one > 12:
        return parts | {"month": str(other), "day": str(one)}
    raise ValueError("the day or the month may stand first")


def _command(line: str) -> re.Match[str] | None:
    known = "mqadmin" in line or "kafka-" in line or "activemq" in line
    return _COMMAND.search(line) if known else None


def _of_command(block: Block, command: re.Match[str]) -> Block:
    name = command["sub"] or command["kafka"] or command["activemq"]
    rest = command["rest"]
    group, topic = _GROUP.search(rest), _TOPIC.search(rest)
    return replace(
        block,
        command=name,
        group=group["name"] if group else "",
        topic=topic["name"] if topic else "",
        shows_clients=_SHOWN.search(rest) is not None,
    )
