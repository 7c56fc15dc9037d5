"""Spring Boot's configuration files: ``application.yml`` and ``application.properties`` as trees of settings.

Documents (``---``, ``#---``) and their profiles, relaxed names (``name-server``, ``nameServer`` and ``NAME_SERVER`` are
one) and ``${placeholders}`` are those of Spring Boot. YAML is read with PyYAML (extra ``lint``), whose YAML 1.1 is that
of Spring's own reader: ``010`` is 8, ``yes`` is true.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any, NoReturn

from pyengine.dataclass import dataclass
from pyengine.errors import InvalidTopologyError, MissingExtraError, shown
from pyengine.topology.properties import parse_properties
from pyengine.topology.spring import Placeholders

MOST_SETTINGS = 100_000  # of a document; aliases of aliases make more of a small file
MOST_PARTS = 100  # of a setting's name
DEEPEST = 500  # brackets within brackets; PyYAML takes the square of it
_SEGMENT = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
_DOCUMENT_LINE = re.compile(r"^[#!]---[ \t]*$", re.MULTILINE)
# What Maven and Gradle put in when they build; YAML knows no value that begins with @.
_BUILD_VALUE = re.compile(r"^(\s*(?:- +)?[^#'\"\n]*?:[ \t]+|\s*- +)(@[\w.-]+@)([ \t]*(?:#.*)?)$", re.MULTILINE)
_PROFILE = (("spring", "config", "activate", "onprofile"), ("spring", "profiles"))
_INDENTED = re.compile(r"^(?:[ \t]+|- )?[\w.\[\]\"'-]+:[ \t]*$|^[ \t]+[\w.\[\]\"'-]+:[ \t]", re.MULTILINE)


class Unresolved(str):
    """A value with an undefined placeholder, as written."""

    __slots__ = ()


def relaxed(name: str) -> str:
    """What the spellings of one name have in common."""
    return name.replace("-", "").replace("_", "").lower()


@dataclass(slots=True)
class Settings:
    """A setting and those below it.

    name: the whole of it as written, ``rocketmq.consumer.group``. value: a string, number or boolean; None: it has
    none. line: 0 of a properties file. below: by the relaxed name of the next part.
    """

    name: str = ""
    value: Any = None
    line: int = 0
    below: dict[str, Settings] = field(default_factory=dict)

    def at(self, *path: str) -> Settings:
        """The setting below this one by relaxed names; an empty one if there is none."""
        found = self
        for part in path:
            found = found.below.get(part) or Settings()
        return found

    def text(self, *path: str) -> str:
        """The value as a string, of a list its values with commas, empty if there is none."""
        found = self.at(*path)
        if found.value is None:
            return ",".join(text_of(each.value) for name, each in found.below.items() if name.isdecimal())
        return found.value if isinstance(found.value, Unresolved) else text_of(found.value)

    def walk(self) -> Iterator[Settings]:
        """This setting and all below it, in the order of the file."""
        yield self
        for each in self.below.values():
            yield from each.walk()


def text_of(value: Any) -> str:
    """A value as Spring hands it on."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class SpringConfiguration:
    """What a file says without a profile (whose name is empty), then with each profile that a document of it is for."""

    file: str
    profiles: tuple[tuple[str, Settings], ...]

    @classmethod
    def from_text(
        cls,
        text: str,
        file: str = "",
        *,
        properties: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> SpringConfiguration:
        """Read YAML or properties. properties: values of placeholders, before those that the file defines itself.
        environment: None is the process's own.

        Raises InvalidTopologyError with the line, MissingExtraError for YAML without PyYAML.
        """
        flat = _yaml(text, file) if is_yaml(text, file) else _properties(text)
        documents = [(_profile_of(document), document) for document in flat]
        names = ["", *dict.fromkeys(name for name, _ in documents if name)]
        found = []
        for name in names:
            merged: dict[tuple[str, ...], Settings] = {}
            for of, document in documents:
                if of in ("", name):
                    _override(merged, document)
            surroundings = os.environ if environment is None else environment
            found.append((name, _tree(_resolved(merged, properties or {}, surroundings), file)))
        return cls(file, tuple(found))


def is_yaml(text: str, file: str) -> bool:
    """By the file's name, otherwise by lines of only a name and a colon."""
    if file.endswith((".yml", ".yaml")):
        return True
    return not file.endswith(".properties") and _INDENTED.search(text) is not None


def from_mapping(given: Mapping[str, Any]) -> Settings:
    """The settings of a TOML or JSON document."""
    return _tree(dict(_items(given, "", 0)))


def _items(value: Any, name: str, depth: int) -> Iterator[tuple[tuple[str, ...], Settings]]:
    if isinstance(value, Mapping | list) and depth < 100:
        for key, inner in value.items() if isinstance(value, Mapping) else ((f"[{n}]", x) for n, x in enumerate(value)):
            yield from _items(inner, _joined(name, str(key)), depth + 1)
    elif not isinstance(value, Mapping | list):
        yield _path(name), Settings(name, value)


def _joined(name: str, key: str) -> str:
    return f"{name}{key}" if key.startswith("[") or not name else f"{name}.{key}"


def _path(name: str) -> tuple[str, ...]:
    return tuple(relaxed(quoted or plain) for quoted, plain in _SEGMENT.findall(name))


def _override(merged: dict[tuple[str, ...], Settings], document: Mapping[tuple[str, ...], Settings]) -> None:
    """Take in a later document: its values replace those of equal names, its lists whole lists."""
    lists = {path[:place] for path in document if (place := _list_at(path))}
    if lists:
        for path in [each for each in merged if (place := _list_at(each)) and each[:place] in lists]:
            del merged[path]
    merged.update(document)


def _list_at(path: tuple[str, ...]) -> int:
    """How many parts stand before the first number of a list; 0 if there is none."""
    return next((place for place, part in enumerate(path) if part.isdecimal()), 0)


def _tree(flat: Mapping[tuple[str, ...], Settings], file: str = "") -> Settings:
    root = Settings()
    for path, setting in flat.items():
        if len(path) > MOST_PARTS:
            raise InvalidTopologyError(
                f"has a name of more than {MOST_PARTS} parts", file=file, line=setting.line,
                key=shown(setting.name, str), hint="a configuration has a few levels",
            )  # fmt: skip
        parts = [match[0] for match in _SEGMENT.finditer(setting.name)]
        level = root
        for depth, part in enumerate(path):
            name = ""
            for each in parts[: depth + 1]:
                name = _joined(name, each)
            level = level.below.setdefault(part, Settings(name, line=setting.line))
        level.value, level.line = setting.value, setting.line
    return root


def _profile_of(document: Mapping[tuple[str, ...], Settings]) -> str:
    """The profiles that a document is for, as written; empty: it always counts."""
    for wanted in _PROFILE:
        said = [
            text_of(each.value)
            for path, each in document.items()
            if path == wanted or (path[:-1] == wanted and path[-1].isdecimal())
        ]
        if said:
            return ",".join(said)
    return ""


class _Names(Mapping[str, str]):
    """The file's own settings as placeholders find them."""

    def __init__(self, given: Mapping[str, str], flat: Mapping[tuple[str, ...], Settings]) -> None:
        self._given = given
        self._flat = {".".join(path): text_of(each.value) for path, each in flat.items() if each.value is not None}

    def __getitem__(self, name: str) -> str:
        return self._given[name] if name in self._given else self._flat[".".join(_path(name))]

    def __iter__(self) -> Iterator[str]:
        return iter((*self._given, *self._flat))

    def __len__(self) -> int:
        return len(self._given) + len(self._flat)


def _resolved(
    flat: Mapping[tuple[str, ...], Settings], properties: Mapping[str, str], environment: Mapping[str, str]
) -> dict[tuple[str, ...], Settings]:
    placeholders = Placeholders(_Names(properties, flat), environment)
    found = {}
    for path, setting in flat.items():
        value = setting.value
        if isinstance(value, str) and "${" in value:
            try:
                value = placeholders.resolve(value)
            except (KeyError, RecursionError):
                value = Unresolved(value)
        found[path] = replace(setting, value=value)
    return found


def _spelled(name: str) -> tuple[bool, int]:
    """Distance of a spelling from the one that Spring Boot prefers, lower case with dashes."""
    return name == name.lower() and "_" not in name, name.count("-")


def _put(settings: dict[tuple[str, ...], Settings], setting: Settings) -> None:
    """Take in a setting of one document: of one name the later, of several spellings that with dashes, else the first,
    where Spring takes any (SpringIterableConfigurationPropertySource)."""
    path = _path(setting.name)
    there = settings.get(path)
    if there is None or there.name == setting.name or _spelled(setting.name) > _spelled(there.name):
        settings[path] = setting


def _properties(text: str) -> list[dict[tuple[str, ...], Settings]]:
    found = []
    for part in _DOCUMENT_LINE.split(text):
        document: dict[tuple[str, ...], Settings] = {}
        for name, value in parse_properties(part).items():
            _put(document, Settings(name, value.strip()))
        found.append(document)
    return found


def _yaml(text: str, file: str) -> list[dict[tuple[str, ...], Settings]]:
    try:
        import yaml
    except ImportError as error:
        raise MissingExtraError("lint", "PyYAML") from error
    found: list[dict[tuple[str, ...], Settings]] = []
    if _depth(text) > DEEPEST:
        raise InvalidTopologyError("is nested too deep", file=file, hint="a configuration has a few levels")
    try:
        loader = yaml.SafeLoader(_BUILD_VALUE.sub(r"\1'\2'\3", text))
        while loader.check_node():
            document = _Document(loader, file)
            node = loader.get_node()
            if node is not None:
                document.add(node, "", ())
            found.append(document.settings)
    except RecursionError as error:
        raise InvalidTopologyError("is nested too deep", file=file, hint="a configuration has a few levels") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
        at = f" at column {mark.column + 1}" if mark else ""
        raise InvalidTopologyError(
            f"not valid YAML{at}: {problem}", file=file, line=mark.line + 1 if mark else 0,
            hint="indent with blanks, and put values with : or # or a leading @ into quotes",
        ) from error  # fmt: skip
    return found


def _depth(text: str) -> int:
    """How many brackets are open at once, at most, counted without looking for quotes."""
    depth = deepest = 0
    for bracket in re.findall(r"[\[\]{}]", text):
        depth = depth + 1 if bracket in "[{" else max(0, depth - 1)
        deepest = max(deepest, depth)
    return deepest


class _Document:
    """One document of YAML, whose nodes become settings."""

    def __init__(self, loader: Any, file: str) -> None:
        self.loader = loader
        self.file = file
        self.settings: dict[tuple[str, ...], Settings] = {}
        self.count = 0

    def add(self, node: Any, name: str, above: tuple[int, ...]) -> None:
        """Take in a node. above: those around it; an alias may lead back to one."""
        self.count += 1
        if self.count > MOST_SETTINGS:
            self._refuse(node, f"has more than {MOST_SETTINGS:,} settings", "a configuration has some hundred")
        if id(node) in above:
            self._refuse(node, "has an alias that leads to itself", "write the value out")
        above = (*above, id(node))
        if node.id == "mapping":
            self._mapping(node, name, above)
        elif node.id == "sequence":
            for place, inner in enumerate(node.value):
                self.add(inner, f"{name}[{place}]", above)
        else:
            _put(self.settings, Settings(name, self._scalar(node), node.start_mark.line + 1))

    def _mapping(self, node: Any, name: str, above: tuple[int, ...]) -> None:
        written: set[str] = set()
        merged = [value for key, value in node.value if key.tag == "tag:yaml.org,2002:merge"]
        for value in merged:  # what stands in the mapping itself comes later and counts
            for each in value.value if value.id == "sequence" else [value]:
                self.add(each, name, above)
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                continue
            if key.id != "scalar":
                self._refuse(key, "has a name that is a list or a mapping", "a setting's name is a text")
            if key.value in written:
                self._refuse(key, f"has {key.value!r} twice", "Spring Boot refuses to start; join the two")
            written.add(key.value)
            self.add(value, _joined(name, key.value), above)

    def _scalar(self, node: Any) -> Any:
        """A boolean, a number or a string; Spring reads timestamps as strings."""
        kind = node.tag.rpartition(":")[2]
        if kind == "null":
            return None
        if kind in ("bool", "int", "float"):
            try:
                return self.loader.construct_object(node)
            except (ValueError, ArithmeticError, IndexError):
                return str(node.value)
        return str(node.value)

    def _refuse(self, node: Any, problem: str, hint: str) -> NoReturn:
        raise InvalidTopologyError(problem, file=self.file, line=node.start_mark.line + 1, hint=hint)
