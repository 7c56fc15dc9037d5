"""The page: every number in it, everything escaped, nothing from outside, small enough."""

from __future__ import annotations

import html
import io
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from pyengine.backlog.pages import report
from pyengine.backlog.tables.explanation import explain
from pyengine.cli import run as running
from pyengine.errors import OutputError
from pyengine.topology import Topology
from tests.backlog.pages import summaries

FLIGHTS = Path(__file__).parents[3] / "examples" / "flights" / "flights.toml"
VOID = {"meta", "br", "wbr", "rect", "polyline", "link", "img"}


class Outline(HTMLParser):
    """Tags must close in order; attributes are collected."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def outline(page: str) -> Outline:
    found = Outline()
    found.feed(page)
    assert found.open == []
    return found


@pytest.fixture
def page() -> str:
    return report.render(summaries.flights(Topology.load(FLIGHTS)))


def test_numbers_and_reasons_are_on_the_page(page: str) -> None:
    words = html.unescape(re.sub(r"<[^>]+>", " ", page))
    for expected in (
        "336,778",
        "46,087",
        "104,391",
        "carrier = 'DL'",
        "tower-standby",
        "2013-01-01 10:00",
        "is not an int",
    ):
        assert expected in words
    assert "'delta' is exclusive and its selector refuses them" in words


def test_nothing_comes_from_outside(page: str) -> None:
    found = outline(page)
    assert not found.tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form", "image", "use"}
    for tag, name, value in found.attributes:
        assert not name.startswith("on"), (tag, name)
        if name in ("href", "src", "xlink:href", "action", "data", "srcset"):
            assert value.startswith("#"), (tag, name, value)
    assert "url(" not in page
    assert "@import" not in page
    assert "//" not in re.sub(r"queue://", "", page)


def test_the_page_is_small_and_knows_the_dark(page: str) -> None:
    assert len(page.encode()) < 150_000
    assert "prefers-color-scheme: dark" in page


def test_everything_from_outside_is_escaped() -> None:
    evil = "<script>alert(1)</script>\"' onload=x"
    topology = Topology.from_text(
        "[source]\npath = 'a.csv'\ndestination = 'a'\n"
        "[[consumer]]\nname = '''" + evil + "'''\ndestination = '>'\nselector = '''x = '<b>' '''\n"
    )
    queue = summaries.destination(topology, "a", {evil: 3}, {("exclusive_selector", evil): 2})
    queue["description"] = queue["policy"] = evil
    queue["held_by_reason"][0]["examples"] = [evil]
    summary = summaries.flights(Topology.load(FLIGHTS))
    summary["title"] = summary["description"] = summary["source"] = summary["topology"] = evil
    summary["destinations"] = {evil: queue}
    summary["rejects"] = [{"column": evil, "reason": evil, "count": 1, "examples": [1], "places": [evil]}]
    summary["versions"] = {evil: evil}
    summary["paths"]["out"] = summary["master"] = evil
    page = report.render(summary)
    found = outline(page)
    assert not found.tags & {"script", "b>"}
    assert not [name for _, name, _ in found.attributes if name == "onload"]
    assert page.count(html.escape("<script>")) >= 12


def test_empty_runs_and_odd_times_have_a_page() -> None:
    topology = Topology.from_text('[source]\npath = "a.csv"\ndestination = "a"\n')
    queue = summaries.destination(topology, "a", {}, {})
    queue["days"], queue["last_timestamp"], queue["first_timestamp"] = [], None, 2**62
    summary = summaries.flights(topology)
    summary["destinations"] = {"a": queue}
    page = report.render(summary)
    outline(page)
    assert "This queue has no consumer." in page
    assert f"{2**62} ms" in page


def test_long_runs_are_summed_into_few_points() -> None:
    chart = report.chart(summaries.days(3, 1, 4000))
    assert chart is not None
    assert len(chart.delivered.split()) == 400
    assert chart.every == 10
    assert report.chart(summaries.days(3, 1, 1)) is None


def test_shares_are_only_round_when_exact() -> None:
    shares = [report.share(*pair) for pair in ((0, 5), (5, 5), (1, 10**6), (10**6 - 1, 10**6), (1, 3), (0, 0))]
    assert shares == ["0%", "100%", "0.1%", "99.9%", "33.3%", "0%"]


def test_a_page_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written: No such file"):
        report.write(summaries.flights(Topology.load(FLIGHTS)), tmp_path / "no" / "report.html")


def test_every_hold_reason_of_the_core_has_words() -> None:
    from pyengine._engine.activemq.queue.hold_reasons import HoldReason

    topology = Topology.load(FLIGHTS)
    for reason in HoldReason:
        name = reason.name.lower()
        if name != "not_held":
            words = explain(name, topology, "flights.LGA", "delta")
            assert words != name.replace("_", " ").capitalize() + ".", name
            assert words.endswith("."), name
            assert re.search("[\u4e00-\u9fff]", words.in_language("zh")), name


def test_a_chinese_page_and_table_have_no_english_sentence() -> None:
    summary = summaries.flights(Topology.load(FLIGHTS))
    summary["rejects"] = [
        {"column": "n", "reason": "is not a byte", "count": 3, "examples": [1, 2], "places": ["a.csv:1", "b.csv:0"]}
    ]
    shown = io.StringIO()
    running.show(summary, Console(file=shown, width=200), "zh")
    page = re.sub(r"<style.*?</style>|<[^>]*>", " ", report.render(summary, "zh"), flags=re.DOTALL)
    given = [summary["title"], summary["description"]]
    given += [each["description"] for each in summary["destinations"].values()]
    for text in (page, shown.getvalue()):
        text = html.unescape(text)
        for each in given:
            text = text.replace(each, "")
        assert not re.findall(r"[A-Za-z]+ [a-z]+ [a-z]+", text)
        assert "不是 byte" in text
        assert "是独占消费者" in text


def test_a_day_that_no_calendar_holds_has_a_place() -> None:
    """Microseconds taken for milliseconds lie beyond the year 9999."""
    summary = summaries.flights(Topology.load(FLIGHTS))
    queue = summary["destinations"]["flights.JFK"]
    queue["days"] = [{"day": f"day {16_000_000 + number}", "delivered": 10, "held": 0} for number in range(4)]
    page = report.render(summary)
    assert "10.0 messages a day, at most 10 (day 16000000)" in page
    assert "<td>day 16000003</td>" in page
    queue["days"][0]["day"] = "1970-01-11"
    assert report.rates(queue)["mean"] == 40 / (16_000_003 - 10 + 1)


def test_a_page_of_thousands_of_queues_stays_small() -> None:
    topology = Topology.from_text('[source]\npath = "x.parquet"\ndestination = "{d}"\n')
    summary = summaries.flights(Topology.load(FLIGHTS))
    for number in range(2000):
        waits = {("selector", ""): number} if number % 10 == 5 else {}
        summary["destinations"][f"q.{number}"] = summaries.destination(topology, f"q.{number}", {}, waits)
    page = report.render(summary)
    assert len(page) < 3_000_000
    found = outline(page)
    links = [value for tag, name, value in found.attributes if (tag, name) == ("a", "href")]
    sections = [f"#{value}" for tag, name, value in found.attributes if (tag, name) == ("section", "id")]
    assert links == sections
    assert len(sections) == report.MAX_SECTIONS
    rows = re.findall(r'<tr><td>(?:<a href="#queue-\d+">)?((?:q|flights)\.\w+)', page)
    assert rows == list(summary["destinations"])  # in the table stand all of them
    assert '">q.1995</a>' in page
    assert "<tr><td>q.1994</td>" in page
    assert f"Below stand the {report.MAX_SECTIONS} queues with the most waiting messages; summary.json has all." in page
