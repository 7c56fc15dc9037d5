"""selector: one question asked of messages, one call each or many in one call, and parsing."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyengine
from bench import jvm
from bench.contest import Contest, Side, speed_test
from bench.floor import floor
from bench.workloads import LAMBDAS, SELECTORS, messages

COUNT = 1000
ACTIVEMQ = "ActiveMQ, warm JVM"
LAMBDA = "Python lambda"

# What physics leaves: no goal, but beside a goal that no call from Python can reach they say how far it is away.
EMPTY = "an empty call of C"
BY_HAND = "C by hand for these messages"

# The constant in each selector that is counted up, so that no text was seen before.
CHANGING = {"S1": "2500", "S2": "500", "S3": "1000"}


@functools.cache
def dicts(matching: str) -> list[dict[str, object]]:
    """Random messages, or only such as one selector matches, so that it must look at all it says."""
    if not matching:
        return messages(COUNT)
    return [message for message in messages(20 * COUNT) if LAMBDAS[matching](message)][:COUNT]


@functools.cache
def native(matching: str) -> list[pyengine.Message]:
    made = []
    for row in dicts(matching):
        properties = dict(row)
        priority = properties.pop("JMSPriority")
        made.append(pyengine.Message(properties, priority=priority))
    return made


@functools.cache
def packed(matching: str) -> pyengine.PackedMessages:
    return pyengine.PackedMessages(native(matching))


def one_call_each(ask: Callable[[object], bool], given: Sequence[object]) -> Side:
    def call() -> None:
        for message in given:
            ask(message)

    return Side(call=call, answer=lambda: [bool(ask(message)) for message in given], units=len(given))


def all_at_once(selector: pyengine.Selector, given: Sequence[object] | pyengine.PackedMessages) -> Side:
    return Side(call=lambda: selector.mask(given), answer=lambda: selector.mask(given).tolist(), units=COUNT)


def ours(name: str, shape: str, matching: str) -> Side:
    selector = pyengine.Selector(SELECTORS[name])
    if shape == "dict":
        return one_call_each(selector.matches, dicts(matching))
    if shape == "Message":
        return one_call_each(selector.matches, native(matching))
    return all_at_once(selector, {"dicts": dicts, "Messages": native, "packed": packed}[shape](matching))


def by_lambda(name: str, at_once: bool, matching: str) -> Side:
    function = LAMBDAS[name]
    if at_once:
        given = dicts(matching)
        return Side(
            call=lambda: [function(message) for message in given],
            answer=lambda: [function(message) for message in given],
            units=COUNT,
        )
    return one_call_each(function, dicts(matching))


def empty_call(name: str, shape: str, matching: str) -> Side:
    """The call alone. It answers nothing, so what it is asked to answer is ours."""
    nothing = floor().nothing
    given: Sequence[object] = dicts(matching) if shape == "dict" else native(matching)

    def call() -> None:
        for message in given:
            nothing(message)

    return Side(call=call, answer=lambda: ours(name, shape, matching).answer(), units=len(given))


def by_hand(name: str, at_once: bool, matching: str) -> Side:
    given = dicts(matching)
    if not at_once:
        return one_call_each(getattr(floor(), name.lower()), given)
    ask = getattr(floor(), f"{name.lower()}_of_all")
    return Side(call=lambda: ask(given), answer=lambda: [bool(byte) for byte in ask(given)], units=len(given))


@functools.cache
def activemq(name: str, matching: str) -> Side:
    return jvm.selector_side(SELECTORS[name], dicts(matching))


def compiling(name: str) -> Side:
    head, tail = SELECTORS[name].rsplit(CHANGING[name], 1)
    numbers = itertools.count(int(CHANGING[name]))

    def call() -> None:
        for _ in range(50):
            pyengine.Selector(f"{head}{next(numbers)}{tail}")

    return Side(call=call, answer=lambda: None, units=50)


def compiled_before(name: str) -> Side:
    text = SELECTORS[name]

    def call() -> None:
        for _ in range(50):
            pyengine.Selector(text)

    return Side(call=call, answer=lambda: None, units=50)


# performance.md, rows 1 to 4. The packed goals there are 4.5 and 10 ns beside 54 and 92 for ActiveMQ: 12x and 9x.
SHAPES: Mapping[str, tuple[str, bool, dict[str, dict[str, float]]]] = {
    "dict": ("one call, dict", False, {LAMBDA: {"S1": 2.0, "S2": 2.4}, ACTIVEMQ: {"S1": 1.5, "S2": 1.5}}),
    "Message": ("one call, Message", False, {ACTIVEMQ: {"S1": 3.0, "S2": 3.0}}),
    "dicts": ("a list of dicts in one call", True, {ACTIVEMQ: {"S1": 3.0, "S2": 3.0}}),
    "Messages": ("a list of Messages in one call", True, {ACTIVEMQ: {}}),
    "packed": ("packed messages in one call", True, {ACTIVEMQ: {"S1": 12.0, "S2": 9.0}}),
}


def contests() -> Iterator[Contest]:
    for (shape, (words, at_once, goals)), name, random in itertools.product(SHAPES.items(), SELECTORS, (False, True)):
        matching = "" if random else name
        sides = {
            "pyengine": functools.partial(ours, name, shape, matching),
            LAMBDA: functools.partial(by_lambda, name, at_once, matching),
            ACTIVEMQ: functools.partial(activemq, name, matching),
        }
        if name in ("S1", "S2") and shape in ("dict", "dicts"):
            sides[BY_HAND] = functools.partial(by_hand, name, at_once, matching)
        if name in ("S1", "S2") and shape in ("dict", "Message"):
            sides[EMPTY] = functools.partial(empty_call, name, shape, matching)
        yield Contest(
            question=f"{name}, {words}, {'random messages' if random else 'messages that match'}",
            unit="message",
            sides=sides,
            goals={rival: bounds[name] for rival, bounds in goals.items() if name in bounds},
        )
    for name, text in SELECTORS.items():
        yield Contest(
            question=f"{name}, parse and compile a text not seen before",
            unit="selector",
            sides={
                "pyengine": functools.partial(compiling, name),
                ACTIVEMQ: functools.partial(jvm.parse_side, text),
            },
            goals={},
            at_most=25e-6,
        )
        yield Contest(
            question=f"{name}, parse and compile a text seen before",
            unit="selector",
            sides={"pyengine": functools.partial(compiled_before, name)},
            goals={},
            at_most=0.1e-6,
        )


test_speed = speed_test(contests)
