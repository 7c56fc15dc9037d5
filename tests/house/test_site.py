"""The site has every page, in both languages' navigation, and its links are rewritten to pages that it has.

``make site`` builds it and looks at each link of what was built; ``python -m website.look`` looks at it in a browser.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from website.badges import badges
from website.links import broken_links
from website.pages import relinked, staged, with_anchors_of
from website.reference import PACKAGES, as_markdown

ROOT = Path(__file__).parents[2]
CONFIGURATION = (ROOT / "mkdocs.yml").read_text("utf-8")
NAVIGATION = CONFIGURATION.partition("\nnav:\n")[2]


def test_every_page_is_in_the_navigation() -> None:
    shown = re.findall(r": ([\w/.-]+\.md)$", NAVIGATION, re.MULTILINE)
    pages = {page for page in staged().values() if not page.endswith(".zh.md")}
    pages |= {f"reference/{page}" for page in ("index.md", *PACKAGES)}
    assert sorted(shown) == sorted(pages)


def test_every_title_is_in_chinese_too() -> None:
    titles = re.findall(r"^ +- ([^:\n]+):", NAVIGATION, re.MULTILINE)
    chinese = dict(
        re.findall(
            r"^ {12}(.+?): (.+)$", CONFIGURATION.partition("nav_translations:")[2].partition("  - mkdoc")[0], re.M
        )
    )
    names_of_modules = {title for title in titles if re.fullmatch(r"[a-z_.]+", title)}
    assert [title for title in titles if title not in chinese and title not in names_of_modules] == []
    assert [title for title in chinese if title not in titles] == []


@pytest.mark.parametrize("origin", staged())
def test_links_lead_to_pages_of_the_site_or_to_the_sources(origin: str) -> None:
    text = relinked((ROOT / origin).read_text("utf-8"), origin, staged())
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    for to in re.findall(r"\]\(([^)#\s]+)", prose):
        if not re.match(r"[a-z]+:", to):
            target = (ROOT / "docs" / staged()[origin]).parent / to
            assert target.resolve().relative_to(ROOT / "docs").as_posix() in staged().values() or target.is_file(), to


def test_code_is_not_relinked() -> None:
    page = "```python\ncalls[0](x)\n```\n[a](client.md), [b](../Makefile)\n"
    text = relinked(page, "docs/broker.md", staged())
    assert text.startswith("```python\ncalls[0](x)\n```\n[a](client.md), [b](https://")
    assert text.endswith("/blob/main/Makefile)\n")


def test_a_chinese_page_has_the_english_anchors() -> None:
    assert with_anchors_of("## 安装\n", "## Install it\n") == '<a id="install-it"></a>\n\n## 安装\n'


def test_a_rule_in_a_docstring_leads_to_its_section() -> None:
    assert as_markdown("as :meth:`run` (spec activemq 2.2)") == (
        'as `run` (<a href="../spec/activemq.html#22-one-dispatch-round">spec activemq 2.2</a>)'
    )
    absent = " ".join(("spec", "activemq", "99.9"))  # no reference to those who look for references
    assert as_markdown(absent) == absent


def test_broken_links_and_foreign_scripts_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here">b</a><a href="b.html#gone">b</a><a href="c.html">c</a>'
        '<script src="https://cdn.example/x.js"></script><a href="https://elsewhere.example">e</a>'
    )
    (tmp_path / "b.html").write_text('<h2 id="here">here</h2>')
    assert broken_links(tmp_path) == [
        "a.html: loads https://cdn.example/x.js",
        "a.html: b.html#gone has no such anchor",
        "a.html: c.html is not there",
    ]


def test_badges_are_true() -> None:
    """``python -m website.badges`` writes them."""
    written = {path.name: path.read_text("utf-8") for path in (ROOT / "docs/badges").iterdir()}
    assert written == badges()
