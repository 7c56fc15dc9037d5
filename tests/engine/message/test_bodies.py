"""Map, stream and object bodies: types, conversions, copies."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy
import pytest

import pyengine
from pyengine import MapBody, Message, ObjectBody, StreamBody
from pyengine._engine.wire.openwire_messages import content_of

# What ActiveMQMapMessage and ActiveMQStreamMessage 5.18.6 answer: value -> the getters of GETTERS, "!" for an
# exception, "!lost" for one after which the stream does not give that value any more.
RECORDED: dict[str, dict[str, list[str]]] = json.loads((Path(__file__).parent / "bodies.json").read_text("utf-8"))
GETTERS = ("boolean", "byte", "short", "char", "int", "long", "float", "double", "string", "bytes", "object")
VALUES: dict[str, Any] = {
    "boolean": True, "byte": numpy.int8(3), "short": numpy.int16(4), "char": pyengine.Char("x"), "int": 5,
    "long": numpy.int64(6), "float": numpy.float32(1.5), "double": 2.25, "bytes": b"AB", "null": None,
}  # fmt: skip
EVERY = {**VALUES, "text": "tea", "large": 1 << 40, "NaN": float("nan"), "snow": "\u2603\U0001f600\0"}
NESTED = {**EVERY, "list": [1, numpy.int8(2), b"x", None, {"a": "b"}], "map": {"c": [pyengine.Char("d")]}}
JAVA = {"byte": "byte", "short": "short", "int": "integer", "long": "long", "float": "float", "double": "double"}


def shown(value: Any, getter: str) -> str:
    """As the recorder shows it."""
    if value is None:
        return "null"
    if getter == "object":
        kind = MapBody({"x": value}).entry_types()["x"]
        getter = "bytes" if kind == "bytes" else kind
    if getter == "bytes":
        return f"bytes:{value.decode('latin-1')}"
    kind = {"char": "character"}.get(getter) or JAVA.get(getter, getter)
    text = str(value).lower() if getter == "boolean" else "NaN" if value != value else str(value)
    return f"{kind}:{text}"


def value_of(name: str) -> Any:
    return name[1:] if name.startswith("'") else VALUES[name]


@pytest.mark.parametrize("name", RECORDED)
def test_a_map_converts_as_the_real_one(name: str) -> None:
    body = MapBody({"x": value_of(name)})
    for getter, expected in zip(GETTERS, RECORDED[name]["map"], strict=True):
        try:
            answer = shown(getattr(body, f"get_{getter}")("x"), getter)
        except pyengine.InvalidMessageError:
            answer = "!"
        assert answer == expected, getter


@pytest.mark.parametrize("name", RECORDED)
def test_a_stream_converts_as_the_real_one(name: str) -> None:
    """What cannot be converted stays the next. After read_bytes the real one is out of step."""
    for getter, expected in zip(GETTERS, RECORDED[name]["stream"], strict=True):
        body = StreamBody([value_of(name)])
        body.reset()
        try:
            answer = shown(getattr(body, f"read_{getter}")(), getter)
        except pyengine.InvalidMessageError:
            answer = "!"
            assert StreamBody([body.read_object()]) == StreamBody([value_of(name)])
        assert answer == ("!" if expected.startswith("!") else expected), getter
        with pytest.raises(pyengine.MessageEOFError, match="all of its 1 values are read"):
            body.read_object()


def test_setters_choose_a_type_and_check_it() -> None:
    body = MapBody()
    for kind, value in (("byte", 3), ("short", 3), ("int", 3), ("long", 3), ("float", 3), ("double", 3)):
        getattr(body, f"set_{kind}")(kind, value)
    body.set_char("char", "c")
    body.set_bytes("bytes", b"abcd", 1, 2)
    body.set_string("string", None)
    body.set_boolean("boolean", numpy.True_)
    types = body.entry_types()
    assert types.pop("string") == "null"
    assert types == {kind: kind for kind in types}
    assert body.get_bytes("bytes") == b"bc"
    for wrong in (
        lambda: body.set_byte("x", 128), lambda: body.set_float("x", 1e300), lambda: body.set_boolean("x", 1),
        lambda: body.set_string("x", 1), lambda: body.set_bytes("x", b"ab", 1, 2), lambda: body.set_object("x", object),
        lambda: body.set_object("", 1), lambda: body.set_object("x", {1: 2}), lambda: body.set_char("x", "ab"),
        lambda: StreamBody([[1]]), lambda: StreamBody("ab"), lambda: MapBody([1]), lambda: ObjectBody("x"),
        lambda: StreamBody().write_bytes(None), lambda: Message(body={"a": 1}),
    ):  # fmt: skip
        with pytest.raises(pyengine.InvalidMessageError):
            wrong()
    assert "x" not in body


def test_a_stream_is_written_then_read() -> None:
    body = StreamBody([1])
    with pytest.raises(pyengine.IllegalStateError, match="reset it first"):
        body.read_int()
    body.write_bytes(b"abcdef")
    body.write_object(None)
    body.reset()
    with pytest.raises(pyengine.IllegalStateError, match="clear it first"):
        body.write_int(1)
    assert body.read_int() == 1
    assert [body.read_bytes(4), body.read_bytes(4)] == [b"abcd", b"ef"]
    body.reset()
    body.read_int()
    assert body.read_bytes(3) == b"abc"
    with pytest.raises(pyengine.InvalidMessageError, match="read in part"):
        body.read_object()
    assert [body.read_bytes(3), body.read_bytes(3)] == [b"def", None]
    assert body.read_object() is None
    body.clear()
    body.write_int(2)
    assert body.values() == (2,)


@pytest.mark.parametrize("body", [MapBody(NESTED), MapBody(), StreamBody(EVERY.values()), ObjectBody(b"\xac\xed")])
def test_a_body_goes_with_its_message(body: Any) -> None:
    message = Message({"p": 1}, body=body)
    for again in (message.copy(), pickle.loads(pickle.dumps(message)), Message({"p": 1}, body=body.copy())):
        assert again == message
        assert again.body is not body or isinstance(body, ObjectBody)
    assert message != Message({"p": 1}, body=b"")


def test_a_change_of_a_copy_leaves_the_other_alone() -> None:
    body = MapBody({"a": 1, "b": [1]})
    copy = body.copy()
    copy.set_int("a", 2)
    body.set_int("c", 3)
    copy.get_object("b").append(2)
    assert (body.entries(), copy.entries()) == ({"a": 1, "b": [1], "c": 3}, {"a": 2, "b": [1]})
    stream = StreamBody([1])
    other = stream.copy()
    stream.write_int(2)
    assert other.read_int() == 1
    assert len(other) == 1
    assert other != stream


def test_types_are_part_of_what_is_equal() -> None:
    assert MapBody({"a": 1}) != MapBody({"a": numpy.int64(1)})
    assert MapBody({"a": None}) != MapBody()
    assert MapBody({"a": 1, "b": 2}) == MapBody({"b": 2, "a": 1})
    assert StreamBody([b"a"]) != StreamBody(["a"])
    assert MapBody({"a": [1]}) != MapBody({"a": [numpy.int8(1)]})


def test_size_is_that_of_the_marshalled_content() -> None:
    """As MarshallingSupport writes it: a count, names with two bytes of length, values with their type."""
    assert Message(body=MapBody()).size == 1024
    assert Message(body=MapBody({"ab": 1})).size == 1024 + 4 + 2 + 2 + 5
    assert Message(body=StreamBody(["\u2603\0", b"abc", None, 2.5])).size == 1024 + (3 + 3 + 2) + (5 + 3) + 1 + 9
    assert Message(body=StreamBody(["x" * 8191])).size == 1024 + 5 + 8191
    assert Message(body=ObjectBody(b"1234")).size == 1028


@pytest.mark.parametrize(
    "body",
    [MapBody(NESTED), StreamBody(EVERY.values()), StreamBody(["x" * 8190]), StreamBody(["\U0001f600" * 4096])],
)
def test_size_is_that_of_the_content_in_openwire(body: Any) -> None:
    content = content_of(body)
    assert content is not None
    assert Message(body=body).size == 1024 + len(content)


def test_text_of_lists_and_maps_is_javas() -> None:
    body = MapBody({"l": [1, None, "a", True, 2.0], "m": {"b": 1, "a": [numpy.float32(1)]}})
    assert body.get_string("l") == "[1, null, a, true, 2.0]"
    assert body.get_string("m") == "{a=[1.0], b=1}"
