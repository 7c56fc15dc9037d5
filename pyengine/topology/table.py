"""A TOML table with its place in the file: typed values, and refusals that say file, line, key, value, what to do."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from pyengine._engine.selector.parser import parse as parse_selector
from pyengine.destinations import Destination, parse_destination
from pyengine.errors import InvalidSelectorError, InvalidTopologyError, did_you_mean
from pyengine.topology.limits import Problem, destination_problem, first_twice
from pyengine.topology.lines import KeyPath, line_of


class Table:
    """One TOML table with its place in the file."""

    def __init__(self, values: dict[str, Any], path: KeyPath, source: str, file: str, within: str = "") -> None:
        self.within = within
        self.values = values
        self.path = path
        self.source = source
        self.file = file

    def refuse(self, key: str, problem: str, hint: str) -> NoReturn:
        path = (*self.path, key) if key else self.path
        value = self.values.get(key) if key else None
        if isinstance(value, (dict, list)):
            value = None
        raise InvalidTopologyError(
            problem, file=self.file, line=line_of(self.source, path), key=self._name(key), value=value, hint=hint
        )

    def refuse_if(self, key: str, problem: Problem | None) -> None:
        """Refuse the value of a key if there is a problem with it."""
        if problem is not None:
            self.refuse(key, *problem)

    def only(self, known: Any) -> None:
        """Refuse unknown keys."""
        for key in self.values:
            if key not in known:
                hint = did_you_mean(key, known) or "known: " + ", ".join(sorted(known))
                path = (*self.path, key)
                raise InvalidTopologyError(
                    "unknown key", file=self.file, line=line_of(self.source, path), key=self._name(key), hint=hint
                )

    def text(self, key: str, *, required: bool = False) -> str:
        value = self.values.get(key, "")
        if not isinstance(value, str):
            self.refuse(key, f"must be a string, is {_toml_type(value)}", f'write {key} = "..."')
        if required and not value.strip():
            self.refuse(
                key if key in self.values else "",
                f"needs {key}" if key not in self.values else "is empty",
                f'write {key} = "..."',
            )
        return value

    def selector(self, key: str) -> str:
        """A selector's text, empty if it is blank. Refuses what ActiveMQ refuses."""
        text = self.text(key)
        if not text.strip():
            return ""
        try:
            parse_selector(text, "activemq")
        except InvalidSelectorError as error:
            self.refuse(key, str(error), "")
        return text

    def texts(self, key: str) -> tuple[str, ...] | None:
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.refuse(key, "must be a list of texts", f'write {key} = ["a", "b"]')
        if len(set(value)) != len(value):
            self.refuse(key, "names a column twice", "name each column once")
        return tuple(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            self.refuse(key, f"must be true or false, is {_toml_type(value)}", f"write {key} = true, without quotes")
        return value

    def integer(self, key: str, default: int, low: int, high: int | None = None, hint: str = "") -> int:
        value = self.values.get(key, default)
        limits = f"{low} to {high}" if high is not None else f"{low} or more"
        if type(value) is not int:
            self.refuse(key, f"must be a whole number, is {_toml_type(value)}", hint or f"write a number: {limits}")
        if value < low or (high is not None and value > high):
            self.refuse(key, "is out of range", hint or f"allowed: {limits}")
        return value

    def number(self, key: str, default: float, *, infinite: bool = False) -> float:
        value = self.values.get(key, default)
        if type(value) not in (int, float):
            self.refuse(key, f"must be a number, is {_toml_type(value)}", f"write {key} = 0.5, without quotes")
        if not (math.isfinite(value) or (infinite and math.isinf(value))):
            self.refuse(key, f"is {value}", f"write a number: {key} = 0.5")
        return float(value)

    def choice(self, key: str, known: tuple[str, ...], default: str) -> str:
        value = self.values.get(key, default)
        if value not in known:
            names = [name for name in known if name]
            hint = did_you_mean(value, names) if isinstance(value, str) else ""
            self.refuse(key, "is not a known choice", hint or "known: " + ", ".join(names))
        return str(value)

    def table(self, key: str, *, required: bool = False) -> Table:
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            self.refuse(key, f"must be a table, is {_toml_type(value)}", f"write [{key}]")
        if required and key not in self.values:
            self.refuse("", f"has no [{key}]", f"add a [{key}] table; see docs/topology.md")
        return self.inner(value, key)

    def tables(self, key: str) -> list[Table]:
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.refuse(key, f"must be an array of tables, is {_toml_type(value)}", f"write [[{key}]], two brackets")
        return [self.inner(item, key, index) for index, item in enumerate(value)]

    def destinations(
        self, key: str, *, kinds: Sequence[str], single: bool = False, wildcard: bool = True
    ) -> tuple[Destination, ...]:
        """The destinations that a string names; options, and kinds that are not in ``kinds``, are refused."""
        text = self.text(key, required=True)
        self.refuse_if(key, destination_problem(text, kinds, single=single, wildcard=wildcard))
        return parse_destination(text)

    def inner(self, values: dict[str, Any], *path: str | int) -> Table:
        """A table below this one."""
        return Table(values, (*self.path, *path), self.source, self.file, self._name(""))

    def _name(self, key: str) -> str:
        """The key path as people say it: ``consumer "united", selector``."""
        own, label = "", self.values.get("name") or self.values.get("destination")
        match self.path:
            case [*_, str(kind), int(index)]:
                own = f"{kind} " + (f'"{label}"' if isinstance(label, str) else f"number {index + 1}")
            case [*_, str(kind)]:
                own = kind
        return ", ".join(part for part in (self.within, own, key) if part)


def _toml_type(value: object) -> str:
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", list: "a list",
             dict: "a table"}  # fmt: skip
    return names.get(type(value), "a date or time")


def read_text(path: str | Path) -> str:
    """The text of a TOML file. Raises InvalidTopologyError."""
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        hint = "give the path of a TOML file; examples/flights/flights.toml is one"
        raise InvalidTopologyError(f"cannot be read: {error.strerror}", file=str(path), hint=hint) from error
    except UnicodeDecodeError as error:
        raise InvalidTopologyError(
            f"is not UTF-8 (byte {error.start})", file=str(path), hint="save it as UTF-8"
        ) from error
    except ValueError as error:  # a name with a NUL in it
        raise InvalidTopologyError(f"cannot be read: {error}", file=str(path)) from error


def root_table(text: str, file: str) -> Table:
    """The document of a TOML text. Raises InvalidTopologyError."""
    text = text.removeprefix("\ufeff")  # of a file that the caller read as UTF-8
    try:
        document = tomllib.loads(text)
    except RecursionError as error:
        raise InvalidTopologyError("is nested too deep", file=file, hint="a topology has a few levels") from error
    except ValueError as error:
        place = re.search(r"\s*\(at line (\d+), column (\d+)\)$", str(error))
        line, column = (int(place.group(1)), int(place.group(2))) if place else (len(text.splitlines()), 0)
        problem = str(error)[: place.start()] if place else str(error)
        if not isinstance(error, tomllib.TOMLDecodeError):
            problem = "a number has thousands of digits"
        at = f" at column {column}" if column else ""
        raise InvalidTopologyError(
            f"not valid TOML{at}: {problem}", file=file, line=line, hint="see https://toml.io; texts need quotes"
        ) from error
    return Table(document, (), text, file)


def refuse_twice(root: Table, kind: str, names: list[str], key: str) -> None:
    """Refuse an array of tables in which two have the same name."""
    if places := first_twice(names):
        first = line_of(root.source, (kind, places[0], key))
        table = Table(root.values[kind][places[1]], (kind, places[1]), root.source, root.file)
        table.refuse(key, f"is already used on line {first}", f"every {kind} needs a {key} of its own")
