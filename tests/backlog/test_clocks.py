"""Times without a day: the looks are a minute apart where the days are clear, and of unknown distance elsewhere."""

from __future__ import annotations

from datetime import datetime

import pytest

from pyengine.backlog.diagnosis.diagnose import diagnose, seen_too_seldom
from pyengine.backlog.diagnosis.evidence import read_text
from pyengine.backlog.diagnosis.evidence.clocks import with_days
from tests.backlog.diagnosis.kafka_groups import CASES, look
from tests.backlog.diagnosis.mqadmin_text import progress
from tests.backlog.diagnosis.test_mqadmin import NOW, stuck

FIRST, LAST, _ = stuck()
TABLES = (progress("5.3.3", FIRST), progress("5.3.3", LAST))
PAIRS = {
    "alone": ("10:31:02\n", "10:32:02\n"),
    "date +%T": ("$ date +%T\n10:31:02\n", "$ date +%T\n10:32:02\n"),
    "over midnight": ("23:59:32\n", "00:00:32\n"),
    "with words": ("第一次 10:31:02\n", "第二次\uff0810:32:02\uff09\uff1a\n"),
    "in a ruler": ("----- 10:31:02 -----\n", "----- 10:32:02 -----\n"),
    "without seconds": ("10:31\n", "10:32\n"),
    "in a prompt": ("[10:31:02] root@mq-1:~# date\n", "[10:32:02] root@mq-1:~# date\n"),
    "in the afternoon": ("11:59:32 AM\n", "12:00:32 PM\n"),
    "after a date": ("Mon Jun 29 23:59:32 UTC 2020\n", "00:00:32\n"),
    "in a chat": ("maria  [10:31 AM]\nlook at this\n", "maria  [10:32 AM]\nand again\n"),
    "in a comment of a shell": ("# 2020-06-29 10:31:02\n", "# 2020-06-29 10:32:02\n"),
    "a date with words": ("第一次 2020-06-29 10:31:02\n", "第二次\uff1a2020-06-29 10:32:02\n"),
}


@pytest.mark.parametrize("way", PAIRS)
def test_looks_are_as_far_apart_as_their_clocks(way: str) -> None:
    first, last = PAIRS[way]
    (finding,) = diagnose(read_text(f"{first}{TABLES[0]}\n{last}{TABLES[1]}", "looks.txt", NOW))
    assert finding.code == "one_queue_stuck"
    assert "41000 60 s before" in finding.evidence[1]


def test_tables_of_kafka_too() -> None:
    case = CASES["one partition"]
    texts = [look("2.8", states) for states in (case.first, case.last)]
    (finding,) = diagnose(read_text(f"10:31:02\n{texts[0]}\n10:32:02\n{texts[1]}", "looks.txt", NOW))
    assert "60 s before" in finding.evidence[1]


@pytest.mark.parametrize(
    "moments", [("10:32:02", "10:31:02"), ("23:59:02", "00:01:02", "23:59:02", "00:01:02")], ids=["falling", "two days"]
)
def test_days_that_are_not_clear_are_not_made_up(moments: tuple[str, ...]) -> None:
    text = "".join(f"{moment}\n{TABLES[n % 2]}\n" for n, moment in enumerate(moments))
    assert with_days(text, NOW) == text
    found = read_text(text, "looks.txt", NOW)
    assert diagnose(found) == []
    assert seen_too_seldom(found)


def test_the_day_is_the_last_that_the_file_can_be_of() -> None:
    written = int(datetime(2020, 6, 30, 0, 5).timestamp() * 1000)
    assert with_days("23:59:32\n#Topic", written) == "2020-06-29 23:59:32\n#Topic"
    assert with_days("00:04:32\n#Topic", written) == "2020-06-30 00:04:32\n#Topic"


def test_the_end_of_a_row_that_was_cut_is_no_moment() -> None:
    text = "#Topic  #Diff  #LastTime\norders  17  2020-06-30\n10:00:00\norders  17  2020-06-30\n10:00:00\n"
    assert with_days(text, NOW) == text
