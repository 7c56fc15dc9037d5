"""Where a property is: a column of the rows, or a key inside one."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyengine.dataclass import dataclass
from pyengine.errors import MissingColumnError, UnsupportedColumnError
from pyengine.topology import Source

NOT_JSON = "is not JSON"
NOT_AN_OBJECT = "is not a JSON object"
NOT_UTF8 = "is not UTF-8"


@dataclass(frozen=True, slots=True)
class Place:
    """column: of the rows. key: inside it; None: the column itself."""

    column: str
    key: str | None = None

    def __str__(self) -> str:
        return self.column if self.key is None else f"{self.column}[{self.key!r}]"


def place_of(text: str, names: Collection[str], properties_from: str, where: str) -> Place:
    """Where an entry of ``columns``, or a column that the source names, leads: to the column of this name, else behind
    the name of a column and a dot to a key in it, else to a key in properties_from. Raises MissingColumnError."""
    if (place := named_place(text, names, properties_from)) is not None:
        return place
    if properties_from in names:
        return Place(properties_from, text)
    raise MissingColumnError(properties_from or text, list(names), where)


def named_place(text: str, names: Collection[str], properties_from: str = "") -> Place | None:
    """The column of this name, else the key behind the name of a column and a dot; None: neither is there."""
    if text in names:
        return Place(text)
    for column in (properties_from, text.partition(".")[0]):
        if column in names and (key := text.removeprefix(f"{column}.")) not in (text, ""):
            return Place(column, key)
    return None


def key_and_value(names: Sequence[str]) -> tuple[str, str] | None:
    """The two fields of a struct that is an entry as Kafka's headers are; None: it has others."""
    of = {name.lower(): name for name in names}
    return (of["key"], of["value"]) if len(names) == 2 and set(of) == {"key", "value"} else None


def fields_to(key: str, names: Collection[str]) -> list[str]:
    """The fields of structs, one inside another, that lead to a key of a struct with these names."""
    return [key] if key in names else key.split(".")


def is_nested(source: Source) -> bool:
    """Whether rows of the source are more than columns with the names of properties."""
    return bool(source.properties_from or source.columns)


def places(source: Source, names: Sequence[str], where: str) -> dict[str, Place]:
    """Where the properties and the columns that a source names lie. Raises MissingColumnError, UnsupportedColumnError
    for a name that is both, in two places."""
    given = dict(source.columns)
    found = {name: Place(name) for name in listed(source, names) if name not in given}
    found |= {name: place_of(text, names, source.properties_from, where) for name, text in given.items()}
    for name in source.mapped_columns:
        place = place_of(name, names, source.properties_from, where)
        if found.setdefault(name, place) != place:
            refuse_two(name, str(found[name]), str(place))
    return found


def listed(source: Source, names: Sequence[str]) -> Sequence[str]:
    """The columns that are properties by themselves."""
    if source.properties is not None:
        return source.properties
    return () if source.properties_from else names


def refuse_two(name: str, *both: str) -> None:
    """Raises UnsupportedColumnError for a name that stands for two places."""
    hint = f"as a property it is {both[0]}, where the source names it {both[1]}; rename the column"
    raise UnsupportedColumnError(name, "ambiguous", hint)
