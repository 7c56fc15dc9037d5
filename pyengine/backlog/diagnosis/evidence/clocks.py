"""Times without a day above a table, as ``date +%T``, prompts and people write them: the day put in where it is clear.

It is clear where they only grow, or fall once from the evening to the morning. The day is that of the date in front of
them, or else the last one on which the file can have been written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from pyengine.backlog.diagnosis.evidence.transcript import moment_of

_CLOCK = r"(?P<clock>(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d{1,6})?)?(?:\s*[AaPp][Mm])?)"
# Alone on a line, or behind a few words; within the brackets of a prompt.
_LINE = re.compile(rf"^(?P<before>[^\w:#]*(?:[^\W\d_][^\d:#|$]{{0,24}}?[^\w:#]*)?){_CLOCK}(?P<after>[^\w:]*)$")
_PROMPT = re.compile(rf"^(?P<before>[^\w]*[\[(]){_CLOCK}(?P<after>[\])].*?[$#>%] )")
# What a time stands above: a command, a table, or what the tools say before one. The end of a row that a terminal cut
# is a time too.
_BEGINS = re.compile(
    r"^\s*(?:#|GROUP\b|TOPIC\b|Group\b|Name\b|[`{\[]|Every |(?:Warning: |Error: |The )?[Cc]onsumer group|Note: |001 )"
    r"|mqadmin|kafka-|activemq|^\S*[$#>] |^\[\S+ \S+\][$#] "
)
HALF_A_DAY = timedelta(hours=12)
LATER = timedelta(minutes=10)  # clocks of two machines differ


def with_days(text: str, modified: int | None) -> str:
    """The text with a day in front of such times; as it is where none stands there or the days are not clear.

    modified: ms, when the file was written; None: now.
    """
    lines = text.split("\n")
    found = list(_clocks(lines))
    if not found:
        return text
    days = _days(lines, found, modified)
    for (number, match), moment in zip(found, days, strict=False):
        line = lines[number]
        rest = line[match.end("after") :]
        alone = match.re is _LINE
        lines[number] = f"{moment:%Y-%m-%d %H:%M:%S}" if alone else (
            f"{match['before']}{moment:%Y-%m-%d %H:%M:%S}{match['after']}{rest}"
        )  # fmt: skip
    return "\n".join(lines)


def _clocks(lines: list[str]) -> Iterator[tuple[int, re.Match[str]]]:
    for number, line in enumerate(lines):
        if ":" not in line:
            continue
        if match := _PROMPT.match(line):
            yield number, match
        elif len(line) < 80 and (match := _LINE.match(line.strip())):
            below = [each for each in lines[number + 1 : number + 6] if each.strip()]
            # A chat has words between who wrote when and what was pasted.
            if any(map(_BEGINS.search, below[:3])):
                yield number, match


def _days(lines: list[str], found: list[tuple[int, re.Match[str]]], modified: int | None) -> list[datetime]:
    """The moment of each, or nothing where the days are not clear."""
    dated = [(number, at) for number, line in enumerate(lines) if ":" in line and (at := moment_of(line)) is not None]
    before = [at for number, at in dated if number < found[0][0]]
    if dated and not before:
        return []
    day = datetime.fromtimestamp(before[-1] / 1000) if before else datetime(2000, 1, 1)
    last, crossed = day, 0
    moments = []
    for _, match in found:
        moment = _at(last, match["clock"])
        if moment < last:
            if last - moment < HALF_A_DAY or crossed:
                return []
            moment += timedelta(days=1)
            crossed += 1
        moments.append(moment)
        last = moment
    if before:
        return moments
    end = datetime.now() if modified is None else datetime.fromtimestamp(modified / 1000)
    shift = timedelta(days=(end + LATER - last).days)
    return [moment + shift for moment in moments]


def _at(day: datetime, clock: str) -> datetime:
    half = re.search(r"[AaPp][Mm]$", clock)
    hour, minute, *rest = re.findall(r"\d+", clock)
    hours = int(hour) % 12 + (12 if half[0].upper() == "PM" else 0) if half else int(hour)
    return day.replace(hour=hours, minute=int(minute), second=int(rest[0]) if rest else 0, microsecond=0)
