"""Message: Java types of properties, conversions, headers set by name, and what is refused."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

import pyengine
from pyengine import Char, InvalidMessageError, Message, Selector
from pyengine._engine.message.header import fresh_headers, header_code, settable_headers
from pyengine.destinations import Destination


@pytest.mark.parametrize(
    ("value", "java_type"),
    [
        (True, "boolean"),
        (numpy.bool_(False), "boolean"),
        (numpy.int8(-128), "byte"),
        (numpy.int16(1), "short"),
        (numpy.uint8(255), "short"),
        (numpy.int32(1), "int"),
        (numpy.uint16(65535), "int"),
        (2**31 - 1, "int"),
        (-(2**31), "int"),
        (2**31, "long"),
        (-(2**63), "long"),
        (numpy.int64(1), "long"),
        (numpy.uint32(1), "long"),
        (numpy.uint64(2**63 - 1), "long"),
        (numpy.float16(0.5), "float"),
        (numpy.float32(0.1), "float"),
        (0.1, "double"),
        (numpy.float64(0.1), "double"),
        (float("nan"), "double"),
        ("", "string"),
        ("a\U0001f600", "string"),
        (numpy.str_("a"), "string"),
        (Char("x"), "char"),
    ],
)
def test_python_values_have_a_java_type_and_keep_it(value: Any, java_type: str) -> None:
    message = Message({"x": value})
    message._check()
    assert message.property_types() == {"x": java_type}
    again = Message(message.properties())
    assert again == message
    assert again.property_types() == {"x": java_type}
    assert message.get_object_property("x") == value or value != value


@pytest.mark.parametrize(
    "value", [b"x", 2**63, numpy.uint64(2**63), 1j, object(), [1], (1,), {"a": 1}, {1}, numpy.datetime64("2020-01-01")]
)
def test_other_values_are_refused_by_name(value: object) -> None:
    with pytest.raises(InvalidMessageError) as caught:
        Message({"good": 1, "price": value})
    assert caught.value.field == "price"
    assert "price" in str(caught.value)


@pytest.mark.parametrize("given", ["a body", 5, [("a", 1)]])
def test_properties_are_a_mapping(given: object) -> None:
    with pytest.raises(InvalidMessageError, match="not a mapping of names to values; give a dict") as refused:
        Message(given)  # type: ignore[arg-type]
    assert (refused.value.field, refused.value.value) == ("properties", given)


@pytest.mark.parametrize("name", ["", 1, None, b"x"])
def test_a_name_is_a_str_that_is_not_empty(name: Any) -> None:
    with pytest.raises(InvalidMessageError):
        Message({name: 1})
    with pytest.raises(InvalidMessageError):
        Message().get_object_property(name)


def test_lists_and_maps_are_copied_and_checked_all_the_way_down() -> None:
    message = Message()
    inner: list[Any] = [numpy.int8(3), None]
    message.set_object_property("list", [1, inner, {"k": (True,)}])
    inner.append("later")
    assert message.get_object_property("list") == [1, [3, None], {"k": [True]}]
    message.get_object_property("list").append(1)  # type: ignore[union-attr]
    assert message.properties() == {"list": [1, [3, None], {"k": [True]}]}
    assert message.property_types() == {"list": "object"}
    endless: list[Any] = []
    endless.append(endless)
    for bad in ([b"x"], {"a": object()}, {1: 2}, endless):
        with pytest.raises(InvalidMessageError):
            message.set_object_property("list", bad)
    assert message.get_object_property("list") == [1, [3, None], {"k": [True]}]


@pytest.mark.parametrize(
    ("setter", "good", "java_type", "bad"),
    [
        ("boolean", [True, numpy.bool_(True)], "boolean", [1, "true", None]),
        ("byte", [127, -128, numpy.int64(5)], "byte", [128, -129, 1.0, True, "1", None]),
        ("short", [32767, -32768], "short", [32768, True]),
        ("int", [2**31 - 1, numpy.int8(1)], "int", [2**31, 1.5]),
        ("long", [2**63 - 1, 1, -(2**63)], "long", [2**63, 2**70]),
        ("float", [1.5, 1, numpy.float64(0.25), float("inf")], "float", [1e300, "1", True, None]),
        ("double", [1.5, 1, numpy.float32(0.5)], "double", ["1", None, 10**400]),
        ("string", ["a", ""], "string", [1, b"a"]),
    ],
)
def test_typed_setters_check_type_and_range(setter: str, good: list[Any], java_type: str, bad: list[Any]) -> None:
    message = Message()
    put = getattr(message, f"set_{setter}_property")
    for value in good:
        put("x", value)
        assert message.property_types() == {"x": java_type}
        assert message.get_object_property("x") == value
    before = message.copy()
    for value in bad:
        with pytest.raises((InvalidMessageError, OverflowError)) as caught:
            put("x", value)
        assert isinstance(caught.value, InvalidMessageError), value
        assert caught.value.field == "x"
    assert message == before
    message._check()


# util.TypeConversionSupport: the getters that can read each type; a String is parsed.
READABLE = {
    "boolean": ["boolean", "string"],
    "byte": ["byte", "short", "int", "long", "string"],
    "short": ["short", "int", "long", "string"],
    "int": ["int", "long", "string"],
    "long": ["long", "string"],
    "float": ["float", "double", "string"],
    "double": ["double", "string"],
    "char": [],
    "string": ["boolean", "byte", "short", "int", "long", "float", "double", "string"],
}
SAMPLES = {
    "boolean": True,
    "byte": numpy.int8(7),
    "short": numpy.int16(7),
    "int": 7,
    "long": numpy.int64(7),
    "float": numpy.float32(7),
    "double": 7.0,
    "char": Char("7"),
    "string": "7",
}


@pytest.mark.parametrize("java_type", SAMPLES)
def test_getters_convert_as_jms_does(java_type: str) -> None:
    message = Message({"x": SAMPLES[java_type]})
    assert message.property_types() == {"x": java_type}
    for getter in READABLE["string"]:
        read = getattr(message, f"get_{getter}_property")
        if getter not in READABLE[java_type]:
            with pytest.raises(InvalidMessageError):
                read("x")
        elif getter == "string":
            assert read("x") == {"boolean": "true", "float": "7.0", "double": "7.0"}.get(java_type, "7")
        elif getter == "boolean":
            assert read("x") is (java_type == "boolean")
        else:
            assert read("x") == 7


def test_a_message_is_read_as_a_mapping_is() -> None:
    message = Message({"price": numpy.int16(250), "colour": None}, priority=7, type="t")
    assert (message["price"], type(message["price"])) == (250, numpy.int16)
    assert (message["JMSPriority"], message["JMSType"]) == (7, "t")
    assert (message.get("price"), message.get("colour"), message.get("colour", "none")) == (250, None, "none")
    assert ("price" in message, "colour" in message, "JMSType" in message, 7 in message) == (True, False, True, False)
    assert list(message) == list(message.property_names)
    assert bool(Message())
    for name, hint in (
        ("prize", "did you mean 'price'"),
        ("JMSPrioriti", "did you mean 'JMSPriority'"),
        ("colour", ""),
    ):
        with pytest.raises(KeyError, match=f"the message has no '{name}'.*{hint}"):
            message[name]


def test_getters_of_what_is_absent() -> None:
    message = Message()
    assert message.get_boolean_property("x") is False
    assert message.get_string_property("x") is None
    assert message.get_object_property("x") is None
    assert not message.property_exists("x")
    for getter in ("byte", "short", "int", "long", "float", "double"):
        with pytest.raises(InvalidMessageError, match="absent"):
            getattr(message, f"get_{getter}_property")("x")
    assert Message({"x": "٣٤"}).get_int_property("x") == 34
    assert Message({"x": "TrUe"}).get_boolean_property("x") is True
    for text in ("", " 1", "1L", "0x1", "300"):
        with pytest.raises(InvalidMessageError):
            Message({"x": text}).get_byte_property("x")
    assert Message(priority=3).get_long_property("JMSPriority") == 3


def test_none_is_absent_and_removes() -> None:
    message = Message({"a": 1, "b": None, "c": "x"})
    assert message.property_names == ("a", "c")
    message.set_property("a", None)
    assert message.properties() == {"c": "x"}
    message.clear_properties()
    assert message.property_names == ()
    message._check()


@pytest.mark.parametrize(
    ("name", "value", "attribute", "found"),
    [
        ("JMSPriority", "7", "priority", 7),
        ("JMSPriority", numpy.int8(7), "priority", 7),
        ("JMSPriority", 12, "priority", 9),
        ("JMSPriority", -1, "priority", 0),
        ("JMSPriority", 200, "priority", 0),
        ("JMSPriority", 300, "priority", 9),
        ("JMSXGroupID", "g", "group_id", "g"),
        ("JMSXGroupID", 5, "group_id", "5"),
        ("JMSXGroupID", 1e7, "group_id", "1.0E7"),
        ("JMSXGroupSeq", "-1", "group_sequence", -1),
        ("JMSXDeliveryCount", 3, "redelivery_counter", 2),
        ("JMSCorrelationID", True, "correlation_id", "true"),
        ("JMSType", "car", "type", "car"),
        ("JMSTimestamp", 5, "timestamp", 5),
        ("JMSTimestamp", "5", "timestamp", 5),
        ("JMSExpiration", numpy.int64(2**40), "expiration", 2**40),
        ("JMSReplyTo", "R", "reply_to", "queue://R"),
        ("JMSReplyTo", "temp-topic://R", "reply_to", "temp-topic://R"),
        ("JMSRedelivered", True, "redelivery_counter", 1),
        ("JMSRedelivered", "TRUE", "redelivery_counter", 1),
        ("JMSRedelivered", "yes", "redelivery_counter", 0),
        ("JMSDeliveryMode", 1, "delivery_mode", "NON_PERSISTENT"),
        ("JMSDeliveryMode", 2, "delivery_mode", "PERSISTENT"),
        ("JMSDeliveryMode", 3, "delivery_mode", "NON_PERSISTENT"),
        ("JMSDeliveryMode", "1", "delivery_mode", "NON_PERSISTENT"),
        ("JMSDeliveryMode", "non_Persistent", "delivery_mode", "NON_PERSISTENT"),
        ("JMSDeliveryMode", False, "delivery_mode", "NON_PERSISTENT"),
    ],
)
def test_a_property_of_a_header_name_sets_the_header(name: str, value: Any, attribute: str, found: object) -> None:
    message = Message({name: value, "x": 1})
    assert getattr(message, attribute) == found
    assert message.property_names == ("x",)
    message._check()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("JMSPriority", numpy.int64(7)),
        ("JMSPriority", 7.0),
        ("JMSPriority", True),
        ("JMSPriority", "high"),
        ("JMSTimestamp", 5.0),
        ("JMSXGroupID", Char("g")),
        ("JMSRedelivered", 1),
        ("JMSReplyTo", 5),
        ("JMSReplyTo", ""),
        ("JMSDeliveryMode", "always"),
        ("JMSDeliveryMode", 2.0),
        ("JMSXGroupSeq", "2147483648"),
    ],
)
def test_a_header_refuses_what_the_broker_cannot_convert(name: str, value: object) -> None:
    with pytest.raises(InvalidMessageError) as caught:
        Message({name: value})  # type: ignore[dict-item]
    assert caught.value.value == value


def test_other_reserved_names_are_ordinary_properties_that_selectors_do_not_see() -> None:
    message = Message({"JMSMessageID": "ID:x", "JMSDestination": "queue://A", "JMSXUserID": "bob", "JMSFoo": 1})
    assert message.property_names == ("JMSMessageID", "JMSDestination", "JMSXUserID", "JMSFoo")
    assert message.message_id is None
    assert Selector("JMSMessageID IS NULL AND JMSDestination IS NULL AND JMSFoo = 1").matches(message)
    assert Selector("JMSXUserID = 'bob'").matches(message)
    message.user_id = "alice"
    assert Selector("JMSXUserID = 'alice'").matches(message)


def test_scheduled_delays_are_converted_and_not_negative() -> None:
    message = Message({"AMQ_SCHEDULED_DELAY": 5, "AMQ_SCHEDULED_REPEAT": "3", "AMQ_SCHEDULED_PERIOD": numpy.int16(4)})
    assert message.property_types() == {
        "AMQ_SCHEDULED_DELAY": "long",
        "AMQ_SCHEDULED_REPEAT": "int",
        "AMQ_SCHEDULED_PERIOD": "long",
    }
    for bad in (-1, "-1", "soon"):
        with pytest.raises(InvalidMessageError):
            message.set_property("AMQ_SCHEDULED_DELAY", bad)


@pytest.mark.parametrize(
    ("given", "qualified", "seen"),
    [
        ("A", "queue://A", "queue://A"),
        ("topic://A.B", "topic://A.B", "topic://A.B"),
        ("temp-queue://ID:1", "temp-queue://ID:1", "temp-queue://ID:1"),
        (" A ", "queue://A", "queue://A"),
        ("A?consumer.prefetchSize=1", "queue://A", "queue://A"),
        ("topic://A, B,,A", "topic://A,B", "A,B"),
        ("queue://A,topic://B", "queue://A,topic://B", "A,topic://B"),
        ("é,\U0001f600", "queue://é,\U0001f600", "é,\U0001f600"),
    ],
)
def test_destinations_are_qualified(given: str, qualified: str, seen: str) -> None:
    message = Message(destination=given)
    assert message.destination == qualified
    assert message.headers()["JMSDestination"] == seen
    message.original_destination = "topic://VirtualTopic.X"
    assert message.headers()["JMSDestination"] == "topic://VirtualTopic.X"


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("ID:host-1-2-3:4:5:6:7", "ID:host-1-2-3:4:5:6:7"),
        ("ID:weird", "ID:weird"),
        ("weird", "ID:weird"),
        ("weird:5", "weird:5"),
        ("a:b:5", "ID:a:b:5"),
        ("a:b:4:5", "ID:a:b:4:5"),
        ("a:3:4:5", "a:3:4:5"),
        ("a:b:3:4:5", "a:b:3:4:5"),
    ],
)
def test_foreign_message_ids_get_the_prefix(given: str, found: str) -> None:
    assert Message(message_id=given).message_id == found


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("priority", "high"),
        ("priority", 2**31),
        ("priority", True),
        ("timestamp", 1.5),
        ("expiration", 2**63),
        ("group_id", 5),
        ("group_sequence", 2**31),
        ("group_first_for_consumer", 1),
        ("delivery_mode", 3),
        ("delivery_mode", True),
        ("body", 5),
        ("broker_path", "a"),
        ("broker_path", [1]),
        ("size", -1),
        ("destination", "queue://"),
        ("destination", 5),
        ("persistent", "yes"),
    ],
)
def test_attributes_refuse_by_name(attribute: str, value: Any) -> None:
    message = Message()
    before = message.copy()
    with pytest.raises(InvalidMessageError) as caught:
        setattr(message, attribute, value)
    assert caught.value.field == attribute
    assert message == before


def test_a_misspelled_keyword_is_refused_with_a_hint() -> None:
    with pytest.raises(TypeError, match="group_id"):
        Message(grup_id="g")  # type: ignore[call-arg]


def test_sizes_are_the_brokers() -> None:
    assert Message().size == 1024
    assert Message(body="abc").size == 1030
    assert Message(body="a\U0001f600").size == 1030
    assert Message(body=b"abc").size == 1027
    assert Message(body="abc", size=10).size == 10
    message = Message(size=10)
    message.size = None
    assert message.size == 1024


def test_a_fresh_message_has_the_fresh_headers() -> None:
    fresh = fresh_headers()
    assert Message().headers() == fresh
    assert [header_code(name) for name in fresh] == list(range(1, len(fresh) + 1))
    assert header_code("price") == 0
    assert set(settable_headers()) < set(fresh)
    assert {name: fresh[name] for name in fresh if fresh[name] is not None} == {
        "JMSDeliveryMode": "PERSISTENT",
        "JMSPriority": 4,
        "JMSTimestamp": 0,
        "JMSExpiration": 0,
        "JMSRedelivered": False,
        "JMSXDeliveryCount": 1,
        "JMSXGroupSeq": 0,
        "JMSXGroupFirstForConsumer": False,
        "JMSActiveMQBrokerInTime": 0,
        "JMSActiveMQBrokerOutTime": 0,
        "JMSActiveMQBrokerPath": "null",
    }


FULL: dict[str, Any] = {
    "body": b"x",
    "destination": "topic://T",
    "original_destination": "queue://O",
    "reply_to": "queue://R",
    "type": "car",
    "correlation_id": "c",
    "message_id": "ID:1",
    "delivery_mode": "NON_PERSISTENT",
    "priority": 9,
    "timestamp": 1,
    "expiration": 2,
    "redelivery_counter": 3,
    "group_id": "g",
    "group_sequence": -1,
    "group_first_for_consumer": True,
    "user_id": "u",
    "producer_transaction_id": "TX:1",
    "broker_in_time": 4,
    "broker_out_time": 5,
    "broker_path": ("a", "b"),
    "connection_id": "con",
    "target_consumer_id": "t",
    "size": 77,
}


def test_every_attribute_survives_copies_and_pickles() -> None:
    message = Message({"x": numpy.int8(1), "y": "text"}, **FULL)
    message.set_object_property("z", [1, {"a": None}])
    assert message.attributes() == FULL
    for again in (message.copy(), copy.copy(message), copy.deepcopy(message), pickle.loads(pickle.dumps(message))):
        assert again == message
        assert again.headers() == message.headers()
        assert again.property_types() == message.property_types()
        again._check()
        again.set_property("x", 2)
        assert again != message
    for name in FULL:
        assert Message(**{name: FULL[name]}) != Message()
        assert repr(Message(**{name: FULL[name]})) == f"Message({name}={FULL[name]!r})"
    with pytest.raises(TypeError):
        hash(message)


def test_equality_is_javas_and_ignores_the_order() -> None:
    assert Message({"a": 1, "b": 2}) == Message({"b": 2, "a": 1})
    assert Message({"a": 1}) != Message({"a": numpy.int8(1)})
    assert Message({"a": 1}) != Message({"a": 1.0})
    assert Message({"a": 1}) != Message({"b": 1})
    assert Message({"a": float("nan")}) == Message({"a": float("nan")})
    assert Message({"a": 0.0}) != Message({"a": -0.0})
    assert Message() != {}


def test_from_mapping_sets_headers_by_name() -> None:
    mapping = {
        "JMSDestination": "topic://T",
        "JMSMessageID": "ID:1",
        "JMSPriority": 7,
        "JMSXGroupFirstForConsumer": True,
        "JMSActiveMQBrokerInTime": 5,
        "JMSActiveMQBrokerPath": None,
        "JMSDeliveryMode": "NON_PERSISTENT",
        "JMSRedelivered": True,
        "JMSXDeliveryCount": 4,
        "JMSXUserID": "u",
        "price": 2.5,
    }
    message = Message.from_mapping(mapping)
    assert message.property_names == ("price",)
    for text in (
        "JMSDestination = 'topic://T'",
        "JMSMessageID = 'ID:1'",
        "JMSPriority = 7 AND JMSDeliveryMode = 'NON_PERSISTENT'",
        "JMSXGroupFirstForConsumer AND JMSRedelivered AND JMSXDeliveryCount = 4",
        "JMSActiveMQBrokerPath = 'null'",
        "JMSXUserID = 'u' AND price = 2.5",
    ):
        assert Selector(text).matches(message), text
        assert Selector(text).matches(mapping), text


def test_a_subclass_keeps_its_class() -> None:
    class Order(Message):
        """A message with nothing of its own."""

    order = Order({"a": 1}, priority=5)
    assert type(order.copy()) is Order
    assert type(Order.from_mapping({"a": 1})) is Order
    assert Selector("a = 1 AND JMSPriority = 5").matches(order)
    assert pyengine.Selector("a = 2").evaluate(order) is False


def test_many_properties() -> None:
    message = Message({f"name {index}": index for index in range(300)})
    message._check()
    assert len(message.property_names) == 300
    for index in range(0, 300, 2):
        message.set_property(f"name {index}", None)
    message._check()
    assert message.properties() == {f"name {index}": index for index in range(1, 300, 2)}


@pytest.mark.parametrize("name", ["destination", "original_destination", "reply_to"])
def test_a_destination_is_taken_away_again(name: str) -> None:
    message = Message(**{name: None})
    assert getattr(message, name) is None
    setattr(message, name, "A,B")
    setattr(message, name, None)
    assert getattr(message, name) is None
    assert message == Message()


@pytest.mark.parametrize("name", ["destination", "original_destination", "reply_to"])
def test_a_destination_may_be_the_one_that_a_session_made(name: str) -> None:
    message = Message(**{name: Destination("A.B", "topic")})
    assert getattr(message, name) == "topic://A.B"
    setattr(message, name, Destination("ID:1:1", "temp-queue"))
    assert getattr(message, name) == "temp-queue://ID:1:1"
    for wrong in (Path("A"), SimpleNamespace(name="A", kind="file"), SimpleNamespace(name=5, kind="queue"), 5):
        with pytest.raises(InvalidMessageError, match=f"{name} = .*: not a destination"):
            setattr(message, name, wrong)
    assert getattr(message, name) == "temp-queue://ID:1:1"


def test_a_message_is_made_of_a_mapping() -> None:
    with pytest.raises(TypeError, match="a message is made of a mapping of names to values, not 'int'"):
        Message.from_mapping(5)  # type: ignore[arg-type]


def test_a_list_may_change_the_message_that_it_is_set_in() -> None:
    message = Message()

    class Changing(list[Any]):
        def __iter__(self) -> Any:
            message.clear_properties()
            return iter(["y"])

    for _ in range(50):
        message.set_property("other", "z" * 50)
        message.set_object_property("list", ["x" * 50])
        message.set_object_property("list", Changing())
        message._check()
        assert message.properties() == {"list": ["y"]}


def test_a_derived_class_may_set_properties_in_new() -> None:
    class Marked(Message):
        def __new__(cls, *_: Any, **__: Any) -> Marked:
            made = super().__new__(cls)
            made.set_property("mark", "m")
            return made

    for count in range(12):
        message = Marked({f"p{number}": number for number in range(count)})
        copied = message.copy()
        copied._check()
        assert copied.properties() == message.properties()
        assert type(copied) is Marked


def test_a_derived_class_whose_new_makes_no_message_is_refused() -> None:
    class Nothing(Message):
        def __new__(cls, *_: Any) -> Any:
            return super().__new__(cls) if _ else None

    with pytest.raises(TypeError):
        Nothing({"a": 1}).copy()
