"""The recorded bytes of the real codecs that are kept with the tests, and what no recording can hold."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyengine._engine.rocketmq.commands.bodies import CLASS_NAMES, read_body, write_body
from pyengine._engine.rocketmq.commands.headers import write_header
from pyengine._engine.rocketmq.commands.origin import Origin
from pyengine._engine.rocketmq.commands.stored_message import (
    BORN_HOST_V6,
    STORE_HOST_V6,
    decode_stored,
    encode_stored,
)
from pyengine._engine.wire.data_structure import JavaThrowable
from pyengine._engine.wire.openwire import OpenWireReader, OpenWireWriter
from pyengine._engine.wire.openwire_types import TYPES as OPENWIRE
from pyengine._engine.wire.remoting import LANGUAGES, RemotingCommand, RemotingReader, write_command
from pyengine._engine.wire.stomp import StompFrame, StompReader, write_frame
from pyengine.errors import ProtocolError
from pyengine.rocketmq.remoting.compression import TYPES, compress, decompress
from tests.conformance.__main__ import cases, replay_file
from tests.conformance.wire_remoting import check_decoded, wire
from tests.fuzz import fuzz_openwire

DATA = Path(__file__).parent / "data" / "wire"
NAMES = st.text(st.characters(exclude_characters="\n\r:\\", exclude_categories=["Cs"]), min_size=1, max_size=8)
VALUES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def test_recorded_stomp_frames() -> None:
    counts = replay_file("wire/stomp", DATA / "stomp_frames.jsonl", show=5)
    assert counts == {"agree": 83}


def test_recorded_stomp_sessions_and_brokers() -> None:
    counts = replay_file("wire/stomp", DATA / "stomp_sessions.jsonl", show=5)
    assert counts == {"agree": 76, "listed": 3}


@given(
    st.lists(st.tuples(st.dictionaries(NAMES, VALUES, max_size=4), st.binary(max_size=40)), max_size=4),
    st.integers(1, 50),
)
def test_stomp_frames_come_back_whatever_the_pieces(frames: list[tuple[dict[str, str], bytes]], piece: int) -> None:
    sent = [StompFrame("SEND", {**headers, "content-length": str(len(body))}, body) for headers, body in frames]
    wire = b"".join(write_frame(frame, "1.2") for frame in sent)
    reader, got = StompReader("1.2"), []
    for at in range(0, len(wire), piece):
        reader.feed(wire[at : at + piece])
        got += list(reader)
    assert got == sent
    assert not list(reader)


@given(st.dictionaries(NAMES, VALUES, max_size=4), st.binary(max_size=20), st.sampled_from(["1.0", "1.1", "1.2"]))
def test_a_header_beyond_ascii_changes_no_other_byte(headers: dict[str, str], body: bytes, version: str) -> None:
    plain = write_frame(StompFrame("MESSAGE", {"first": "e", **headers}, body), version)
    accented = write_frame(StompFrame("MESSAGE", {"first": "é", **headers}, body), version)
    assert accented == plain.replace(b"first:e", "first:é".encode(), 1)


@given(st.binary(max_size=200), st.sampled_from(["1.0", "1.1", "1.2"]))
def test_any_bytes_are_frames_or_refused(data: bytes, version: str) -> None:
    reader = StompReader(version, max_data_length=50)
    reader.feed(b"SEND\n" + data + b"\0")
    try:
        assert all(len(frame.body) <= 51 for frame in reader)
    except ProtocolError as refused:
        with pytest.raises(ProtocolError, match=str(refused)):
            next(reader)


def test_no_memory_is_taken_for_a_length_that_was_only_announced() -> None:
    reader = StompReader("1.2")
    reader.feed(f"SEND\ncontent-length:{100 * 1024 * 1024}\n\nx".encode())
    assert not list(reader)
    assert reader.waiting == 1


def test_a_line_that_does_not_end_is_refused_at_its_limit() -> None:
    reader = StompReader("1.2")
    reader.feed(b"SEND\n" + b"n" * (10 * 1024 + 1))
    assert not list(reader)
    reader.feed(b"n")
    with pytest.raises(ProtocolError, match="The maximum header length was exceeded"):
        next(reader)


def test_recorded_openwire_commands() -> None:
    counts = replay_file("wire/openwire", DATA / "openwire.jsonl.gz", show=5)
    assert counts == {"agree": 279}


def test_recorded_openwire_frames_that_are_malformed() -> None:
    counts = replay_file("wire/openwire", DATA / "openwire_malformed.jsonl.gz", show=5)
    assert counts == {"agree": 496, "listed": 56}


def test_random_openwire_commands_come_back_and_hostile_ones_are_refused() -> None:
    counts = fuzz_openwire.run(1500, seed=1)
    assert counts["refused"] > 500
    assert counts["hostile"] > 200


@pytest.mark.parametrize("codec", [OpenWireReader, OpenWireWriter])
def test_a_version_that_is_not_spoken_is_named(codec: type) -> None:
    with pytest.raises(ValueError, match="version: 13 is not one of 9 to 12"):
        codec(version=13)


def test_a_long_openwire_frame_is_refused_before_it_has_come() -> None:
    reader = OpenWireReader(max_frame_size=1000)
    reader.feed((1000).to_bytes(4))
    assert not list(reader)
    reader = OpenWireReader(max_frame_size=1000)
    reader.feed((1001).to_bytes(4) + b"\x0a")
    with pytest.raises(ProtocolError, match="a frame of 1001 bytes is longer than 1000"):
        next(reader)


@pytest.mark.parametrize(
    ("tight", "body", "problem"),
    [  # what the real reader takes memory for before it looks
        (False, "1700000000000000000000000000000000000000000000000000000000000000017fffffff", "bytes are needed"),
        (False, "2100000000000000000001ffff", "DataArrayResponse.data, byte 13: an array of -1 structures"),
        (False, "21000000000000000000017fff", "32767 bytes are needed, and 0 are left"),
        (True, "21010200000000000000007fff", "more than the 8 bits of the frame are read"),
        (True, "6401030000", "a destination needs a name"),
    ],
)
def test_openwire_lengths_are_looked_at_before_memory_is_taken(tight: bool, body: str, problem: str) -> None:
    data = bytes.fromhex(body)
    reader = OpenWireReader(tight=tight)
    reader.feed(len(data).to_bytes(4) + data)
    with pytest.raises(ProtocolError, match=problem):
        next(reader)


@pytest.mark.parametrize("tight", [False, True])
def test_openwire_structures_and_causes_are_not_nested_without_end(tight: bool) -> None:
    response, error = OPENWIRE["DataResponse"], OPENWIRE["ExceptionResponse"]
    deep, cause = response(), JavaThrowable("E", "m")
    for _ in range(150):
        deep, cause = response(data=deep), JavaThrowable("E", "m", (), cause)
    writer = OpenWireWriter(tight=tight, stack_trace=True)
    with pytest.raises(ValueError, match=r"DataResponse.data: 'DataResponse' is nested deeper than 100"):
        writer.write(deep)
    with pytest.raises(ValueError, match="has more than 100 causes"):
        writer.write(error(exception=cause))
    if not tight:
        for frame, problem in (
            (b"\x20" + bytes(9) + b"\1" + (b"\x20" + bytes(9) + b"\1") * 200, "nested deeper than 100"),
            (b"\x1f" + bytes(9) + (b"\1\0\0\0\0") * 200, "more than 100 causes"),
        ):
            reader = OpenWireReader(stack_trace=True)
            reader.feed(len(frame).to_bytes(4) + frame)
            with pytest.raises(ProtocolError, match=problem):
                next(reader)


def test_values_that_an_openwire_field_cannot_have_are_named() -> None:
    writer = OpenWireWriter()
    for command, kind, problem in (
        (OPENWIRE["MessageAck"](ack_type="x"), ValueError, "MessageAck.ack_type: 'x' is not a whole number"),
        (OPENWIRE["MessageAck"](ack_type=200), ValueError, "MessageAck.ack_type: '200' does not fit into 8 bits"),
        (OPENWIRE["MessagePull"](timeout=1 << 63), ValueError, "MessagePull.timeout: .* does not fit into 64 bits"),
        (OPENWIRE["BrokerInfo"](broker_name=b"b"), TypeError, "BrokerInfo.broker_name: .* is not a text"),
        (OPENWIRE["RemoveInfo"](object_id="c"), ValueError, "RemoveInfo.object_id: 'c' is not a structure"),
        (OPENWIRE["MessageAck"](consumer_id=OPENWIRE["BrokerId"]()), ValueError, "'BrokerId' cannot stand here"),
    ):
        with pytest.raises(kind, match=problem):
            writer.write(command)
    with pytest.raises(TypeError, match="MessageAck has no field kind: it has command_id, response_required"):
        OPENWIRE["MessageAck"](kind=1)
    assert writer.write(OPENWIRE["KeepAliveInfo"]()).hex() == "000000060a0000000000"  # a failure leaves nothing behind


def test_recorded_remoting_commands() -> None:
    counts = replay_file("wire/remoting", DATA / "remoting.jsonl.gz", show=5)
    assert counts == {"agree": 551, "listed": 63}


def test_messages_that_the_older_release_wrote_are_read() -> None:
    # Of a compressed one its reader left the flag.
    old = [case for case in cases(DATA / "remoting.jsonl.gz") if re.match(r"message\.(?!zip).*@4\.9\.8", case["id"])]
    assert len(old) >= 10
    for case in old:
        assert check_decoded(case, wire(case)).kind == "agree", case["id"]


NUMBERS = st.integers(-(2**31), 2**31 - 1)
COMMANDS = st.builds(
    RemotingCommand,
    st.integers(-(2**15), 2**15 - 1),
    language=st.sampled_from(LANGUAGES),
    version=st.integers(0, 2**15 - 1),
    opaque=NUMBERS,
    flag=NUMBERS,
    remark=st.none() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
    ext_fields=st.none() | st.dictionaries(VALUES.filter(bool), VALUES.filter(bool), min_size=1, max_size=5),
    body=st.none() | st.binary(min_size=1, max_size=50),
    serialize_type=st.sampled_from(["JSON", "ROCKETMQ"]),
)


@given(st.lists(COMMANDS, max_size=4), st.integers(1, 80))
def test_commands_come_back_whatever_the_pieces(sent: list[RemotingCommand], piece: int) -> None:
    frames = b"".join(map(write_command, sent))
    reader, got = RemotingReader(), []
    for at in range(0, len(frames), piece):
        reader.feed(frames[at : at + piece])
        got += list(reader)
    assert got == sent
    assert reader.waiting == 0


@given(st.binary(max_size=60), st.sampled_from([0, 1]), st.integers(0, 70))
def test_any_bytes_are_commands_or_refused(data: bytes, kind: int, length: int) -> None:
    reader = RemotingReader()
    reader.feed((len(data) + 4).to_bytes(4, "big") + bytes([kind]) + length.to_bytes(3, "big") + data)
    try:
        assert len(list(reader)) == 1
    except ProtocolError as refused:
        with pytest.raises(ProtocolError, match=re.escape(str(refused))):
            next(reader)


def test_a_frame_that_announces_too_much_is_refused_before_it_has_come() -> None:
    reader = RemotingReader(max_frame_size=1000)
    reader.feed((996).to_bytes(4, "big"))
    assert not list(reader)
    reader = RemotingReader(max_frame_size=1000)
    reader.feed((997).to_bytes(4, "big"))
    with pytest.raises(ProtocolError, match="a frame of 1001 bytes is longer than 1000"):
        next(reader)


@given(st.text(max_size=60), st.sampled_from(CLASS_NAMES))
def test_any_text_is_a_body_or_refused(text: str, name: str) -> None:
    for document in (text, "{" + text + "}", '{"offsetTable":{' + text + "}}"):
        with contextlib.suppress(ProtocolError):
            read_body(name, document.encode("utf-8", "replace"))


def test_a_body_that_is_nested_without_end_is_refused() -> None:
    for document in ("[" * 100_000, '{"brokerDatas":' * 100_000):
        with pytest.raises(ProtocolError, match="nested deeper than 100"):
            read_body("TopicRouteData", document.encode())


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    st.binary(max_size=60),
    st.dictionaries(NAMES, VALUES.filter(lambda text: text and not set(text) & {"\x01", "\x02"}), max_size=4),
    st.booleans(),
    st.integers(0, 200),
)
def test_a_stored_message_comes_back_and_a_damaged_one_is_refused_or_another(
    topic: str, body: bytes, properties: dict[str, str], v6: bool, damage: int
) -> None:
    properties = {name: text for name, text in properties.items() if not set(name) & {"\x01", "\x02"}}
    host = (b"\1" * 16 if v6 else b"\x7f\0\0\1") + (10911).to_bytes(4, "big")
    flag = BORN_HOST_V6 | STORE_HOST_V6 if v6 else 0
    version = 2 if len(topic.encode()) > 127 else 1
    stored = encode_stored(
        topic, body, properties, (7, 0, 0), Origin(0, host, sys_flag=flag), (0, host), version=version
    )
    fields, end = decode_stored(b"x" + stored, 1)
    assert end == len(stored) + 1
    assert fields[:4] == (topic, body, properties, 7)
    assert fields[8:10] == (host, host)
    with pytest.raises(ProtocolError):
        decode_stored(stored[: damage % len(stored)])
    damaged = bytearray(stored)
    damaged[damage % len(stored)] ^= 0x80
    with contextlib.suppress(ProtocolError):
        decode_stored(bytes(damaged))


@pytest.mark.parametrize("kind", ["ZLIB", "LZ4", "ZSTD"])
def test_a_compressed_body_comes_back_and_a_bomb_does_not(kind: str) -> None:
    body = bytes(100_000)
    packed = compress(body, kind)
    assert decompress(packed, TYPES[kind]) == body
    assert len(packed) < 1000
    with pytest.raises(ProtocolError, match="more than 50000 bytes"):
        decompress(packed, TYPES[kind], most=50_000)
    with pytest.raises(ProtocolError, match=r"ends too early|cannot be decompressed"):
        decompress(packed[:-9], TYPES[kind])
    with pytest.raises(ProtocolError, match="cannot be decompressed"):
        decompress(b"not compressed", TYPES[kind])


@pytest.mark.parametrize(
    ("text", "found"),
    [  # as fastjson 1.2.83 reads them
        ('{"orderTopicConf":[null,{1:2}]}', {"orderTopicConf": '[null,{"1":2}]'}),
        ("{orderTopicConf:1e3}", {"orderTopicConf": "1E+3"}),
        ('{"order_Topic-Conf":true}', {"orderTopicConf": "true"}),
        ('{"filterServerTable":{你好:["a"]}}', {"filterServerTable": {"你好": ["a"]}}),
        (
            '{"brokerDatas":[{"isEnableActingMaster":"y","isCluster":"c"}]}',
            {"brokerDatas": [{"enableActingMaster": True, "cluster": None}]},
        ),
    ],
)
def test_what_fastjson_makes_fit_is_made_fit(text: str, found: dict[str, Any]) -> None:
    body = read_body("TopicRouteData", text.encode())
    assert body is not None
    for name, value in found.items():
        got = body[name]
        if isinstance(value, list) and isinstance(value[0], dict):
            got = [{key: each[key] for key in value[0]} for each in got]
        assert got == value


def test_values_that_a_field_cannot_have_are_named() -> None:
    with pytest.raises(TypeError, match=r"PullMessageRequestHeader\.queueId cannot be 'one'"):
        write_header("PullMessageRequestHeader", {"queueId": "one"})
    with pytest.raises(TypeError, match="PullMessageRequestHeader has no field queue"):
        write_header("PullMessageRequestHeader", {"queue": 1})
    with pytest.raises(TypeError, match=r"LockBatchRequestBody\.consumerGroup cannot be '7'"):
        write_body("LockBatchRequestBody", {"consumerGroup": 7})
    with pytest.raises(ProtocolError, match=r"TopicRouteData\.queueDatas\.perm = 'x' is no whole number"):
        read_body("TopicRouteData", b'{"queueDatas":[{"perm":"x"}]}')
