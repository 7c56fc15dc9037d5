"""What every element of an ``activemq.xml`` is read with: values, destinations, what is listed, what is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any, NoReturn

from pyengine.destinations import KINDS, Destination, parse_destination
from pyengine.errors import ConfigurationError, InvalidTopologyError, did_you_mean
from pyengine.topology import keys, schema
from pyengine.topology.not_modelled import NotModelled
from pyengine.topology.policy import (
    SharedDeadLetterStrategy,
    UniquePropertyMessageEvictionStrategy,
    VirtualTopic,
)
from pyengine.topology.spring import ELEMENT_OF_CLASS, Element, Property, SpringContext, Value

# As Spring reads numbers once it has taken the blanks out.
_WHOLE, _HEX = re.compile(r"[+-]?\d+"), re.compile(r"(-?)(?:0[xX]|#)([0-9a-fA-F]+)")
_FLOAT = re.compile(r"([+-]?)(?:(NaN|Infinity)|((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFdD]?)", re.ASCII)
_TRUE, _FALSE = ("true", "on", "yes", "1"), ("false", "off", "no", "0")
_SIZE = re.compile(r"\s*(\d+)\s*([kmg]?)b?\s*", re.IGNORECASE | re.ASCII)
_SECRET = re.compile(r"passw|secret|credential", re.IGNORECASE)
# Element of a destination -> its kind.
DESTINATIONS = {"queue": "queue", "topic": "topic", "tempQueue": "temp-queue", "tempTopic": "temp-topic"}
_PREFIXES = tuple(f"{kind}://" for kind in KINDS)


class ElementReader:
    """Reads the elements of one file, and keeps the properties that the broker here does not have.

    not_modelled: those properties. used: ids of the beans that were read. places: destination of a policy entry, or
    address of a connector -> its line and element.
    """

    def __init__(self, context: SpringContext) -> None:
        self.context = context
        self.not_modelled: list[NotModelled] = []
        self.used: set[int] = set()
        self.places: dict[str, tuple[int, str]] = {}
        for part in context.unread:
            changes = part.element.name != "bean"
            self.note(part.element, part.name, part.value, part.reason, changes_answers=changes)

    # Values

    def plain(self, element: Element, prop: Property, key: str, kind: type) -> Any:
        """A value of this type: a flag, a string or a number."""
        if kind is bool:
            return self.flag(element, prop)
        if kind is str:
            return self.optional_text(element, prop)
        return self.number(element, prop, kind, schema.smallest(prop.name) if kind is int else None)

    def optional_text(self, element: Element, prop: Property) -> str:
        """A string, empty for an explicit null."""
        return self.text(element, prop) if prop.values else ""

    def text(self, element: Element, prop: Property) -> str:
        """A string with its placeholders resolved."""
        value = prop.values[0] if len(prop.values) == 1 else None
        if not isinstance(value, str):
            self.refuse(element, prop.name, None, "must be a string", f'write {prop.name}="..."')
        return self.context.text(value, prop.element, prop.name)

    def text_at_runtime(self, element: Element, prop: Property, otherwise: str) -> str | None:
        """A string that changes no answer; None, and listed, if only the running broker knows it."""
        try:
            return self.text(element, prop)
        except InvalidTopologyError as error:
            value = prop.values[0] if len(prop.values) == 1 else None
            if not (isinstance(value, str) and ("#{" in value or "${" in value)):
                raise
            reason = f"{error.problem}; {otherwise}"
            self.note(element, prop.name, value, reason, changes_answers=False, line=prop.element.line)
            return None

    def flag(self, element: Element, prop: Property) -> bool:
        """True or false, as Spring reads it."""
        text = self.text(element, prop)
        if (small := text.strip().lower()) not in _TRUE + _FALSE:
            self.refuse(element, prop.name, text, "is neither true nor false", "write true or false")
        return small in _TRUE

    def has_flag(self, prop: Property, wanted: bool) -> bool:
        """Whether the value that is written is this one; placeholders are not resolved."""
        written = [value.strip().lower() for value in prop.values if isinstance(value, str)]
        return len(written) == len(prop.values) == 1 and written[0] in (_TRUE if wanted else _FALSE)

    def number(self, element: Element, prop: Property, kind: type, low: int | None) -> Any:
        """A number as Spring reads it. low: the smallest one that is allowed, None for any."""
        text = self.text(element, prop)
        plain = "".join(text.split())
        value: float
        if kind is float:
            if (real := _FLOAT.fullmatch(plain)) is None:
                self.refuse(element, prop.name, text, "is not a number", "write a number such as 0.5")
            value = float(real[1] + (real[2] or real[3]))
        elif _WHOLE.fullmatch(plain):
            value = int(plain)
        elif hexadecimal := _HEX.fullmatch(plain):
            value = int(hexadecimal[1] + hexadecimal[2], 16)
        elif prop.name in schema.SIZES and (size := _SIZE.fullmatch(plain)):
            value = int(size[1]) << 10 * " kmg".index(size[2].lower() or " ")
        else:
            self.refuse(element, prop.name, text, "is not a whole number", "write digits only")
        if kind is int and not -schema.largest(prop.name) - 1 <= value <= schema.largest(prop.name):
            self.refuse(element, prop.name, text, "is too large for the broker", "give a smaller number")
        if low is not None and value < low:
            self.refuse(element, prop.name, text, "is out of range", f"give {low} or more")
        return value

    # Elements

    def one(self, element: Element, prop: Property, *kinds: str, foreign: bool = False) -> Element | None:
        """The one element inside a property; None for an explicit null or nothing at all."""
        values = [value for value in prop.values if value is not None]
        if not values:
            return None
        if len(values) > 1:
            self.refuse(element, prop.name, None, f"holds {len(values)} values", f"keep one {kinds[0]}")
        return self.element(element, prop, values[0], *kinds, foreign=foreign)

    def element(self, element: Element, prop: Property, value: Value, *kinds: str, foreign: bool = False) -> Element:
        """An element of one of these kinds. foreign: one of a class of the user's own, too."""
        if isinstance(value, Element):
            self.used.add(id(value))
            if value.kind in kinds:
                return value
            if foreign and (is_foreign(value) or value.kind in schema.INTERCEPTORS):
                if prop.name in ("dispatchPolicy", "messageGroupMapFactory", "pendingQueuePolicy"):
                    reason, changes = schema.OWN_CLASS
                    self.note(value, "", "", reason, changes_answers=changes)
                return value
            self.refuse(value, "", None, f"does not belong into {prop.name}", element_hint(value, kinds))
        return self.refuse(element, prop.name, value, f"must hold {kinds[0]}", f"write <{kinds[0]} .../> inside it")

    def choice(
        self, element: Element, prop: Property, known: Mapping[str, str], properties: Mapping[str, tuple[str, bool]]
    ) -> str | None:
        """What the one element inside stands for, by its name; None for a class of the user's own.

        properties: what it may have that changes nothing.
        """
        only = self.one(element, prop, *known, foreign=True)
        if only is None or only.kind not in known:
            return None
        self.used.add(id(only))
        for inner in self.context.properties(only).values():
            self.leave(only, inner, properties, known=[*properties])
        return known[only.kind]

    def covered_destination(self, element: Element) -> tuple[str, list[Property]]:
        """The destination of a map entry as a string, and its other properties."""
        where = ""
        covering: list[Property] = []
        rest: list[Property] = []
        for prop in self.context.properties(element).values():
            (covering if prop.name in (*DESTINATIONS, "destination") else rest).append(prop)
        # The last one counts: attributes are set in the order of the alphabet, then what stands inside.
        covering.sort(key=lambda prop: prop.name if prop.element is element else "~")
        for prop in covering[:-1]:
            text = ", ".join(str(value) for value in prop.values if value is not None)
            reason = f"{covering[-1].name} of the same entry is set after it and counts"
            self.note(element, prop.name, text, reason, changes_answers=False)
        for prop in covering:
            if prop.name in ("queue", "topic"):
                text = self.text(element, prop)
                try:
                    parse_destination(text, prop.name)
                except ValueError:
                    self.refuse(element, prop.name, text, "is empty", "name a destination, or > for all")
                where = qualified(text.partition("?")[0].strip(), prop.name)  # options of an entry count for nothing
            elif prop.name in ("tempQueue", "tempTopic"):
                # Whether it is true or false, the attribute means all temporary destinations of the kind.
                self.flag(element, prop)
                where = f"{DESTINATIONS[prop.name]}://>"
            else:
                where = ",".join(map(as_text, self.destination(element, prop, prop.values[0] if prop.values else None)))
        return where, rest

    def destinations(self, element: Element, prop: Property) -> tuple[Destination, ...]:
        """Every destination a property names."""
        if not prop.values:
            self.refuse(element, prop.name, None, "names no destination", 'write <queue physicalName="..."/> inside it')
        return tuple(part for value in prop.values for part in self.destination(element, prop, value))

    def destination(self, element: Element, prop: Property, value: Value) -> tuple[Destination, ...]:
        """A ``<queue physicalName="..."/>``; a composite is all its parts."""
        hint = 'write <queue physicalName="..."/> or <topic physicalName="..."/>'
        if not isinstance(value, Element):
            self.refuse(element, prop.name, value, "must hold a destination", f"{hint} inside it")
        self.used.add(id(value))
        if value.kind not in DESTINATIONS:
            self.refuse(value, "", None, f"is not a destination for {prop.name}", hint)
        inside = self.context.properties(value)
        name = inside.get("physicalName") or inside.get("constructor-arg")
        text = name.values[0] if name and name.values else None
        if not isinstance(text, str):
            self.refuse(element, prop.name, None, "has no name", hint)
        text = self.context.text(text, prop.element, prop.name)
        kind = DESTINATIONS[value.kind]
        try:
            return parse_destination(qualified(text.strip(), kind), kind)
        except ValueError:
            self.refuse(element, prop.name, text, "has an empty name", "name the destination")

    def fields(self, element: Element, kind: type) -> Any:
        """A strategy or virtual destination whose fields are plain values."""
        self.used.add(id(element))
        types = keys.types_of(kind)
        by_name = {schema.java_name(key): key for key in types}
        given: dict[str, Any] = {}
        for name, prop in self.context.properties(element).items():
            key = by_name.get(name)
            if kind is SharedDeadLetterStrategy and name == "deadLetterQueue":
                given["dead_letter_queue"] = ",".join(map(as_text, self.destinations(element, prop)))
            elif key is not None:
                given[key] = self.plain(element, prop, key, types[key])
            else:
                table = schema.VIRTUAL if kind is VirtualTopic else schema.STRATEGY_PROPERTIES
                self.leave(element, prop, table, known=[*by_name])
        if kind is UniquePropertyMessageEvictionStrategy and "property_name" not in given:
            self.refuse(element, "", None, "has no propertyName", 'add propertyName="..."')
        missing = [part.name for part in fields(kind) if part.default is MISSING and part.name not in given]
        if missing:
            self.refuse(element, "", None, f"has no {schema.java_name(missing[0])}", "add it")
        return self.build(element, kind, given)

    def build(self, element: Element, kind: type, given: dict[str, Any]) -> Any:
        """Call a class with what was read; its ConfigurationError names the element and its line."""
        try:
            return kind(**given)
        except ConfigurationError as error:
            field = error.option.partition(".")[2]
            return self.refuse(element, schema.java_name(field), given[field], error.problem, error.hint)

    # What is listed, and what is refused

    def leave(
        self, element: Element, prop: Property, table: Mapping[str, tuple[str, bool]], known: list[str] | None = None
    ) -> None:
        """List a property that the table explains; refuse one that no release of the broker knows."""
        if prop.name in table:
            reason, changes = table[prop.name]
        elif known is None or prop.name.startswith("{"):
            reason, changes = schema.NOT_MODELLED
        else:
            offer = did_you_mean(prop.name, [*known, *table])
            self.refuse(element, prop.name, next((v for v in prop.values if isinstance(v, str)), None),
                         "is not known to ActiveMQ", offer or "remove it")  # fmt: skip
        said = ", ".join(str(value) for value in prop.values[:3] if value is not None)
        more = f" and {len(prop.values) - 3} more" if len(prop.values) > 3 else ""
        for value in prop.values:
            if isinstance(value, Element):
                self.used.add(id(value))
        self.note(element, prop.name, said + more, reason, changes_answers=changes, line=prop.element.line)

    def note(
        self, element: Element, name: str, value: str, reason: str, *, changes_answers: bool, line: int = 0
    ) -> None:
        """List a property of an element, or the whole element if ``name`` is empty; a secret is not shown."""
        shown = "***" if value and _SECRET.search(name) else value
        self.not_modelled.append(
            NotModelled(element.file, line or element.line, str(element), name, shown, reason, changes_answers)
        )

    def refuse(self, element: Element, name: str, value: object, problem: str, hint: str) -> NoReturn:
        """Raise InvalidTopologyError with the file, the line and the element."""
        key = f"{element}, {name}" if name else str(element)
        at = self.context.properties(element)[name].element if name else element
        raise InvalidTopologyError(problem, file=at.file, line=at.line, key=key, value=value, hint=hint)


def element_hint(element: Element, known: Iterable[str]) -> str:
    """What to write instead of an element: the one of the class that it names, or the nearest known one."""
    names = list(known)
    meant = ELEMENT_OF_CLASS.get(element.name)
    if meant in names:
        return f"the element of this class is <{meant}/>"
    return did_you_mean(element.kind, names) or f"known: {', '.join(names)}"


def is_foreign(element: Element) -> bool:
    """True for a bean of a class that is not ActiveMQ's, and for a reference to a bean that no file read defines."""
    return not element.is_core or element.name.startswith("#") or (element.name == "bean" and "." in element.kind)


def qualified(text: str, kind: str) -> str:
    """The text of a destination given as one of a kind. What looks like a prefix is part of a name that stands alone,
    as in the broker; in a composite it is a prefix."""
    return text if kind == "queue" and ("," in text or not text.startswith(_PREFIXES)) else f"{kind}://{text}"


def as_text(destination: Destination) -> str:
    """A destination as policies name it: a queue by its name, another one with its kind."""
    return qualified(destination.name, "queue") if destination.kind == "queue" else str(destination)
