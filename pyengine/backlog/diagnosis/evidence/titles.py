"""Rows of offsets without the titles above them, as `grep`, `sort` and people leave them: the titles put back.

A row is recognised by its numbers: the lag is the difference of the two offsets.
"""

from __future__ import annotations

import re

_TIME = r"(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|N/A)"
_CLIENT = r"(?:\d{1,3}(?:\.\d{1,3}){3}\S*|NA|N/A|\S*[@:]\S*)"
_OFFSETS = r"(?P<qid>\d+)\s+(?P<end>-?\d+)\s+(?P<reached>-?\d+)"
_QUEUE = "#Broker Name  #QID  #Broker Offset  #Consumer Offset"
_PARTITION = "TOPIC  PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG"
_OF_KAFKA = r"(?P<partition>\d+)\s+(?P<reached>\d+|-)\s+(?P<end>\d+|-)\s+(?P<lag>-?\d+|-)"
# Titles -> a row below them.
FORMS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (titles, re.compile(rf"\s*{row}\s*$"))
    for titles, row in (
        (f"#Topic  {_QUEUE}  #Client IP  #Diff  #Inflight  #LastTime",
         rf"\S+\s+\S+\s+{_OFFSETS}\s+{_CLIENT}\s+(?P<lag>-?\d+)\s+-?\d+\s+{_TIME}"),
        (f"#Topic  {_QUEUE}  #Diff  #Inflight  #LastTime",
         rf"\S+\s+\S+\s+{_OFFSETS}\s+(?P<lag>-?\d+)\s+-?\d+\s+{_TIME}"),
        (f"#Topic  {_QUEUE}  #Client IP  #Diff  #LastTime",
         rf"\S+\s+\S+\s+{_OFFSETS}\s+{_CLIENT}\s+(?P<lag>-?\d+)\s+{_TIME}"),
        (f"#Topic  {_QUEUE}  #Diff  #LastTime", rf"\S+\s+\S+\s+{_OFFSETS}\s+(?P<lag>-?\d+)\s+{_TIME}"),
        (f"#Topic  {_QUEUE}  #Diff", rf"\S+\s+\S+\s+{_OFFSETS}\s+(?P<lag>-?\d+)"),
        (f"#Topic  #Group  {_QUEUE}  #Diff  #LastTime",
         rf"\S+\s+\S+\s+\S+\s+{_OFFSETS}\s+(?P<lag>-?\d+)\s+{_TIME}"),
        (f"GROUP  {_PARTITION}  CONSUMER-ID  HOST  CLIENT-ID",
         rf"\S.*?\s+\S+\s+{_OF_KAFKA}\s+\S.*?\s+(?:/\S+|-)\s+\S.*"),
        (f"{_PARTITION}  CONSUMER-ID  HOST  CLIENT-ID", rf"\S+\s+{_OF_KAFKA}\s+\S+\s+(?:/\S+|-)\s+\S+"),
    )
)  # fmt: skip
_NUMBERS = re.compile(r"\s\d+\s+-?\d*\s+-?\d*(?:\s|$)")
_TITLED = re.compile(r"#(?:Topic|Group)\b|^[\s|]*(?:GROUP|TOPIC|Group)\b")


def with_titles(text: str) -> str:
    """The text with titles in front of each run of such rows that has none."""
    if not _NUMBERS.search(text):
        return text
    found: list[str] = []
    titled = False
    for line in text.splitlines():
        if _TITLED.search(line):
            titled = True
        elif not line.strip():
            titled = False
        elif not titled and (titles := _form(line)):
            found.append(titles)
            titled = True
        found.append(line)
    return "\n".join(found)


def _form(line: str) -> str:
    """The titles that a row belongs under, or nothing for another line."""
    if not _NUMBERS.search(line):
        return ""
    return next((titles for titles, row in FORMS if (match := row.match(line)) and _adds_up(match)), "")


def _adds_up(row: re.Match[str]) -> bool:
    numbers = [row["end"], row["reached"], row["lag"]]
    if "-" in numbers:
        return True
    end, reached, lag = map(int, numbers)
    return end - reached == lag
