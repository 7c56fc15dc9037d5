"""The recorded bytes of the real codecs that are kept with the tests, and what no recording can hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyengine._engine.wire.stomp import StompFrame, StompReader, write_frame
from pyengine.errors import ProtocolError
from tests.conformance.__main__ import replay_file

DATA = Path(__file__).parent / "data" / "wire"
NAMES = st.text(st.characters(exclude_characters="\n\r:\\", exclude_categories=["Cs"]), min_size=1, max_size=8)
VALUES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def test_recorded_stomp_frames() -> None:
    counts = replay_file("wire/stomp", DATA / "stomp_frames.jsonl", show=5)
    assert counts == {"agree": 83}


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
