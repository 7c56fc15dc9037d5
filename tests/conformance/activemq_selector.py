"""activemq/selector: matches() and evaluate() of a text on a typed message, in every shape that can carry it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy

import pyengine
from tests.conformance.verdict import Verdict, compare

WIDTHS: dict[str, Callable[[Any], Any]] = {
    "byte": numpy.int8,
    "short": numpy.int16,
    "int": numpy.int32,
    "long": numpy.int64,
    "float": numpy.float32,
    "double": float,
    "boolean": bool,
    "string": str,
    "char": pyengine.Char,
    "null": lambda value: None,
    "list": lambda value: [typed(item) for item in value],
    "map": lambda value: {key: typed(item) for key, item in value.items()},
}
ATTRIBUTES = {
    "JMSDestination": "destination",
    "originalDestination": "original_destination",
    "JMSReplyTo": "reply_to",
    "JMSType": "type",
    "JMSPriority": "priority",
    "JMSTimestamp": "timestamp",
    "JMSExpiration": "expiration",
    "JMSCorrelationID": "correlation_id",
    "JMSMessageID": "message_id",
    "JMSDeliveryMode": "delivery_mode",
    "redeliveryCounter": "redelivery_counter",
    "JMSXGroupID": "group_id",
    "JMSXGroupSeq": "group_sequence",
    "JMSXUserID": "user_id",
    "JMSXGroupFirstForConsumer": "group_first_for_consumer",
    "JMSActiveMQBrokerInTime": "broker_in_time",
    "JMSActiveMQBrokerOutTime": "broker_out_time",
    "JMSXProducerTXID": "producer_transaction_id",
}
WORDS = {True: "TRUE", False: "FALSE", None: "NULL"}
CODES = {1: "TRUE", 0: "FALSE", -1: "NULL", -2: "ERROR-eval"}


def typed(recorded: Mapping[str, Any]) -> Any:
    """A recorded ``{"t", "v"}`` as the Python value of that Java type."""
    value = recorded["v"]
    if recorded["t"] in ("float", "double"):
        value = float(value)
    return WIDTHS[recorded["t"]](value)


def message_of(recorded: Mapping[str, Any]) -> pyengine.Message:
    """The recorded message; headers that are not recorded are those of an empty message of the broker."""
    attributes: dict[str, Any] = {"priority": 0, "delivery_mode": "NON_PERSISTENT"}
    redelivered = None
    for name, value in recorded.get("headers", {}).items():
        if name == "JMSRedelivered":
            redelivered = value
        elif name == "JMSXProducerTXID":  # recorded as the connection of a local transaction, whose number was 7
            attributes[ATTRIBUTES[name]] = f"TX:{value}:7"
        else:
            attributes[ATTRIBUTES[name]] = value
    body = recorded.get("body")
    if body:
        attributes["body"] = body["text"] if "text" in body else body["bytes"].encode()
    message = pyengine.Message(None, **attributes)
    if redelivered is not None:
        message.redelivered = redelivered
    for name, value in recorded.get("props", {}).items():
        message.set_object_property(name, typed(value))
    return message


def mapping_of(recorded: Mapping[str, Any], message: pyengine.Message) -> dict[str, Any] | None:
    """The same as a mapping, or None where it cannot be one: bodies, lists, maps, headers set by a property."""
    if recorded.get("body"):
        return None
    values = {name: value for name, value in message.headers().items() if value is not None}
    for name, value in recorded.get("props", {}).items():
        if value["t"] in ("list", "map") or name in message.headers():
            return None
        values[name] = typed(value)
    return values


class Proxy(Mapping[str, Any]):
    """A mapping that is no dict."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values_by_name = values

    def __getitem__(self, name: str) -> Any:
        return self.values_by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)


def asked(question: Callable[[Any], Any], message: Any) -> str:
    """The answer to one message in the words of the record."""
    try:
        return WORDS[question(message)]
    except pyengine.SelectorEvaluationError:
        return "ERROR-eval"


def batch_answers(selector: pyengine.Selector, batch: Any) -> tuple[str, str, bool]:
    """matches() and evaluate() of the first of a batch, and whether mask rejects what it does not take."""
    try:
        matched = WORDS[bool(selector.mask(batch)[0])]
    except pyengine.SelectorEvaluationError:
        matched = "ERROR-eval"
    rejecting = bool(selector.mask(batch, on_error="reject")[0]) == (matched == "TRUE")
    return matched, CODES[int(selector.truth(batch)[0])], rejecting


def answers(selector: pyengine.Selector, message: pyengine.Message, mapping: dict[str, Any] | None) -> dict[str, Any]:
    """(matches, evaluate) on each shape."""
    found: dict[str, Any] = {
        "Message": (asked(selector.matches, message), asked(selector.evaluate, message)),
        "list of Message": batch_answers(selector, [message]),
    }
    if mapping is not None:
        for shape, same in (("dict", mapping), ("Mapping", Proxy(mapping))):
            found[shape] = (asked(selector.matches, same), asked(selector.evaluate, same))
            found[f"list of {shape}"] = batch_answers(selector, [same])
    return found


def identify(case: Mapping[str, Any]) -> str:
    return str(case["id"])


def replay(case: Mapping[str, Any]) -> Verdict:
    """Compare every shape's answer with the record."""
    text = f"{case['selector']!r} on {case['message']}"
    try:
        selector = pyengine.Selector(case["selector"])
    except pyengine.InvalidSelectorError:
        return compare(text, case["expected"], "ERROR-parse")
    if case["expected"] == "ERROR-parse":
        return compare(text, "ERROR-parse", "accepted")
    selector._check()
    message = message_of(case["message"])
    expected = (case["expected"], case["value"])
    for shape, got in answers(selector, message, mapping_of(case["message"], message)).items():
        if got[:2] != expected:
            return compare(f"{shape}: {text}", expected, got[:2])
        if not all(got[2:]):
            return compare(f"{shape}: {text}: mask(on_error='reject')", case["expected"], "differs")
    return Verdict("agree")
