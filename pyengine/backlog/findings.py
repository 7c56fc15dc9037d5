"""A finding: what is wrong where, what shows it, and what to do."""

from __future__ import annotations

import tomllib
from enum import IntEnum
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import Any, Literal, Self

from pyengine.attributes import frozen
from pyengine.dataclass import dataclass
from pyengine.errors import number_form
from pyengine.visible import one_line

Language = Literal["en", "zh"]


class Severity(IntEnum):
    """How much it matters. INFO: worth knowing, nothing to mend. WARNING: it will hurt. ERROR: it hurts now."""

    INFO = 0
    WARNING = 1
    ERROR = 2


@cache
def chinese() -> dict[str, str]:
    """The catalogue: English words, codes of findings and templates of sentences -> Chinese, with the same fields.

    words.zh.toml has the words of pages and the codes. A room of rules has its sentences in ROOM.zh.toml,
    another package in PACKAGE.zh.toml; shared.zh.toml has what several say, sentence_templates.zh.toml what
    :mod:`pyengine.backlog.sentence_templates` looks for.
    """
    table: dict[str, str] = {}
    for file in files("pyengine.backlog.pages").iterdir():
        if file.name.endswith(".zh.toml"):
            table |= tomllib.loads(file.read_text("utf-8"))
    return table


class Template(Formatter):
    """``{fields}`` as of ``str.format``, and numbers with what they count: ``{rows:row waits|rows wait}``.

    A comma in front (``{rows:,row|rows}``) parts thousands; ``{rows:|it|them}`` is without the number.
    """

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, str) and not isinstance(value, Said):  # a name, or part of a file
            value = one_line(value)
        before, follows, forms = format_spec.rpartition("|")
        if not follows:
            return str(super().format_field(value, format_spec))
        if before.startswith("|"):
            return number_form(value, before[1:], forms)
        comma = "," if before.startswith(",") else ""
        return f"{value:{comma}} {number_form(value, before.removeprefix(','), forms)}"


filled = Template().format


class Said(str):
    """A sentence about something: English as a string, other languages on demand.

    template: the English sentence with its ``{fields}`` (see :class:`Template`), which is also the key of the catalogue
    of other languages.
    """

    __slots__ = ("fields", "template")

    template: str
    fields: dict[str, object]

    def __new__(cls, template: str, fields: dict[str, object]) -> Self:
        said = super().__new__(cls, filled(template, **fields))
        said.template, said.fields = template, fields
        return said

    def __reduce__(self) -> tuple[type[Said], tuple[str, dict[str, object]]]:
        return Said, (self.template, self.fields)

    def in_language(self, language: Language) -> str:
        """The sentence in another language; in English where the catalogue does not have it."""
        if language == "en":
            return str(self)
        fields = {name: translated(value, language) for name, value in self.fields.items()}
        return filled(chinese().get(self.template, self.template), **fields)


def word(text: str, language: Language) -> str:
    """A word of tables and pages in a language; as it is where the catalogue does not have it."""
    return chinese().get(text, text) if language == "zh" else text


def say(template: str, /, **fields: object) -> Said:
    """A sentence made of a template and its fields: numbers, names, other sentences."""
    return Said(template, fields)


def translated(value: object, language: Language) -> object:
    """A sentence, or sentences in a row, in a language; anything else as it is."""
    if isinstance(value, Said):
        return value.in_language(language)
    return value


@frozen
@dataclass(frozen=True, slots=True)
class Finding:
    """code: the rule's name, stable for programs. where: the queue, group, client or thread. evidence: what was seen,
    the file's own numbers and words. advice: what to do. source: of a trap, the class that has the rule, or empty.
    consequences: what was found too and comes of it."""

    code: str
    severity: Severity
    where: str
    evidence: tuple[str, ...]
    advice: str
    source: str = ""
    consequences: tuple[Finding, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """For JSON, in English."""
        found: dict[str, object] = {
            "code": self.code,
            "severity": self.severity.name.lower(),
            "where": str(self.where),
            "evidence": [str(line) for line in self.evidence],
            "advice": str(self.advice),
        }
        if self.source:
            found["source"] = self.source
        if self.consequences:
            found["consequences"] = [each.as_dict() for each in self.consequences]
        return found
