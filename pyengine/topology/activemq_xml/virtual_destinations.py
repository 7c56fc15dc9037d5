"""Virtual topics and composite destinations of an ``activemq.xml``: destinationInterceptors (spec activemq 4.3-4.5)."""

from __future__ import annotations

from typing import Any

from pyengine._engine.selector.parser import parse as parse_selector
from pyengine.errors import InvalidSelectorError
from pyengine.topology import keys, schema
from pyengine.topology.activemq_xml.element_reader import ElementReader, as_text
from pyengine.topology.policy import (
    CompositeQueue,
    CompositeTopic,
    FilteredDestination,
    VirtualDestination,
    VirtualTopic,
)
from pyengine.topology.spring import Element, Property, Value


def interceptors(reader: ElementReader, element: Element, prop: Property) -> tuple[VirtualDestination, ...]:
    """The virtual destinations of every interceptor; interceptors of other classes are listed."""
    found: list[VirtualDestination] = []
    for value in prop.values:
        interceptor = reader.element(element, prop, value, "virtualDestinationInterceptor", foreign=True)
        if interceptor.kind != "virtualDestinationInterceptor":
            reason, changes = schema.INTERCEPTORS.get(interceptor.kind, schema.OWN_CLASS)
            reader.note(interceptor, "", "", reason, changes_answers=changes)
            continue
        reader.used.add(id(interceptor))
        for name, inner in reader.context.properties(interceptor).items():
            if name != "virtualDestinations":
                reader.leave(interceptor, inner, {}, known=["virtualDestinations"])
                continue
            for each in inner.values:
                kinds = ("virtualTopic", "compositeQueue", "compositeTopic")
                found.append(_virtual(reader, reader.element(interceptor, inner, each, *kinds)))
    return tuple(found)


def _virtual(reader: ElementReader, element: Element) -> VirtualDestination:
    if element.kind == "virtualTopic":
        topic: VirtualTopic = reader.fields(element, VirtualTopic)
        return topic
    kind = CompositeTopic if element.kind == "compositeTopic" else CompositeQueue
    reader.used.add(id(element))
    types = keys.types_of(kind)
    by_name = {schema.java_name(key): key for key in types}
    given: dict[str, Any] = {}
    for name, prop in reader.context.properties(element).items():
        if name == "forwardTo":
            given["forward_to"] = tuple(
                target for value in prop.values for target in _forward(reader, element, prop, value)
            )
        elif name in by_name:
            given[by_name[name]] = reader.plain(element, prop, by_name[name], types[by_name[name]])
        else:
            reader.leave(element, prop, schema.VIRTUAL, known=[*by_name, "forwardTo"])
    if not given.get("name", "").strip():
        reader.refuse(element, "", None, "has no name", 'add name="..."')
    composite: CompositeQueue = reader.build(element, kind, given)
    return composite


def _forward(reader: ElementReader, element: Element, prop: Property, value: Value) -> list[FilteredDestination | str]:
    if not (isinstance(value, Element) and value.kind == "filteredDestination"):
        return [*map(as_text, reader.destination(element, prop, value))]
    reader.used.add(id(value))
    where, rest = reader.covered_destination(value)
    selector = ""
    for inner in rest:
        if inner.name == "selector":
            selector = reader.text(value, inner)
            try:
                parse_selector(selector, "activemq")
            except InvalidSelectorError as error:
                reader.refuse(value, "selector", selector, str(error), "")
        else:
            reader.leave(value, inner, {}, known=["selector", "queue", "topic", "destination"])
    if not where:
        reader.refuse(value, "", None, "has no destination", 'add queue="..." or topic="..."')
    return [FilteredDestination(where, selector)]
