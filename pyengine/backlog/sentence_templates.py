"""Sentences that come without their template, from the core and from errors, found again in the catalogue."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from string import Formatter

from pyengine.backlog.findings import Said


def heard(text: str) -> Said:
    """An error's words as a sentence with the template that gives it; words that the catalogue lacks stay as they
    are."""
    for template, pattern in _patterns():
        if match := pattern.fullmatch(text):
            return Said(template, dict(match.groupdict()))
    return Said("{words}", {"words": text})


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    table = tomllib.loads((files("pyengine.backlog.pages") / "sentence_templates.zh.toml").read_text("utf-8"))
    return tuple((template, re.compile(_pattern(template), re.DOTALL)) for template in table)


def _pattern(template: str) -> str:
    """A regular expression for what a template gives; a field that comes again has the same value."""
    parts: list[str] = []
    names: set[str] = set()
    for literal, name, form, _ in Formatter().parse(template):
        parts.append(re.escape(literal))
        if name and form and "|" in form:
            parts.append(f"(?P<{name}>[0-9,]+) (?:{'|'.join(map(re.escape, form.split('|')))})")
        elif name:
            parts.append(f"(?P={name})" if name in names else f"(?P<{name}>.+?)")
            names.add(name)
    return "".join(parts)
