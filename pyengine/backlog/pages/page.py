"""Offline HTML pages: no script, nothing from outside, light and dark, in English and Chinese."""

from __future__ import annotations

import importlib.util
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyengine.backlog.findings import Language, Said, word
from pyengine.backlog.sentence_templates import heard
from pyengine.backlog.tables.output import written
from pyengine.errors import MissingExtraError, OutputError
from pyengine.visible import visible

if TYPE_CHECKING:
    import jinja2

LANGUAGES: tuple[Language, ...] = ("en", "zh")
CHART_WIDTH, CHART_HEIGHT = 720, 120


def check_installed() -> None:
    """Raise MissingExtraError if a page cannot be made, before a long run rather than after it."""
    if importlib.util.find_spec("jinja2") is None:
        raise MissingExtraError("report", "jinja2")


def environment(language: Language = "en") -> jinja2.Environment:
    """Templates with ``t("English words")`` and ``said("a sentence of {number}", number=1)`` in the page's language;
    all is escaped, and what in a name would turn the text around it is shown as its number."""
    check_installed()
    import jinja2
    import markupsafe

    def finalized(value: object) -> object:
        return type(value)(visible(value)) if isinstance(value, str) else value

    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("pyengine.backlog", "pages"),
        autoescape=True,
        finalize=finalized,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )

    def t(text: str) -> str:
        return text.in_language(language) if isinstance(text, Said) else word(text, language)

    def said(template: str, /, **fields: object) -> str:
        return Said(template, fields).in_language(language)

    def code(text: str) -> str:
        """What stands between backticks, as code."""
        return markupsafe.Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(markupsafe.escape(text))))

    templates.filters.update(code=code, dated=dated)
    templates.filters["breaks"] = lambda text: markupsafe.Markup("_<wbr>").join(text.split("_"))
    templates.globals.update(t=t, said=said, heard=heard, language=language, width=CHART_WIDTH, height=CHART_HEIGHT)
    return templates


def dated(name: str) -> str:
    """A file with the minute of its last change, in UTC: ``consumers.toml (2026-11-27 03:12 UTC)``; the name alone
    where that is not a file, as for standard input."""
    if not name:
        return name
    try:
        changed = datetime.fromtimestamp(Path(name).stat().st_mtime, UTC)
    except (OSError, ValueError, OverflowError):
        return name
    return f"{name} ({changed:%Y-%m-%d %H:%M} UTC)"


def check_target(path: Path | None) -> None:
    """Raise before the work what would stop its page: MissingExtraError, or OutputError if there is no such folder,
    or a file that is no page, as with ``--report *.json``, where the shell gives a snapshot as the page's name."""
    if path is None:
        return
    check_installed()
    with written(path):
        if path.is_file() and (head := _head(path)) and not head.startswith("<!doctype html"):
            raise OutputError(str(path), "a file that is not a page is there; --report is followed by the page's name")
        if not path.parent.is_dir():
            raise OutputError(str(path), f"there is no folder {path.parent}")


def _head(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(64).decode("latin-1").strip().lower()


def write(text: str, path: Path) -> None:
    """Write a page. Raises OutputError."""
    with written(path):
        path.write_text(text, encoding="utf-8", errors="backslashreplace")


def points(values: list[float] | list[int], top: float, width: float = 1.0) -> str:
    """An SVG polyline of values from 0 to ``top`` in a box of CHART_WIDTH x CHART_HEIGHT; width: its share of it."""
    step = width * CHART_WIDTH / max(len(values) - 1, 1)
    heights = (CHART_HEIGHT * (1 - value / top) for value in values)
    return " ".join(f"{index * step:.1f},{height:.1f}" for index, height in enumerate(heights))


def render(template: str, language: Language = "en", **values: Any) -> str:
    """A page as text."""
    return environment(language).get_template(template).render(**values)
