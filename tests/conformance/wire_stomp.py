"""wire/stomp: frames read and written by the real StompWireFormat; sessions and live brokers need the connector."""

from __future__ import annotations

from typing import Any

from pyengine._engine.wire.stomp import StompFrame, StompReader, write_frame
from pyengine.errors import ProtocolError
from tests.conformance.verdict import Verdict, compare, unsupported
from tests.conformance.wire_recorded import octets, unpacked


def identify(case: dict[str, Any]) -> str:
    """The case's id."""
    name: str = case["id"]
    return name


def replay(case: dict[str, Any]) -> Verdict:
    """Read or write what the case says."""
    if case["kind"] == "stomp_read":
        return read(case)
    if case["kind"] == "stomp_write":
        return write(case)
    return unsupported(f"{case['kind']}: there is no STOMP connector yet")


def read(case: dict[str, Any]) -> Verdict:
    """The frames, and why reading ended; fed at once and byte by byte."""
    data = octets(case, "in")
    assert data is not None
    expected: list[Any] = []
    for frame in case["frames"]:
        if "protocol_error" in frame:
            expected.append(frame["protocol_error"])
        else:
            expected.append((unpacked(frame["action"]), unpacked(frame["headers"]), octets(frame, "content")))
    error = case.get("error", {}).get("class")
    if error not in (None, "java.io.EOFException"):  # the real code has no check there
        expected.append("Specified content-length may not be negative")
    for pieces in ([data], [data[at : at + 1] for at in range(len(data))]):
        got: list[Any] = []
        reader = StompReader(case["version"])
        try:
            for piece in pieces:
                reader.feed(piece)
                got += [(frame.action, frame.headers, frame.body) for frame in reader]
        except ProtocolError as refused:
            got.append(str(refused))
        if got != expected:
            return compare(case["id"], expected, got)
        if pieces == [data] and error != "java.io.EOFException" and reader.waiting != case["rest"]:
            return compare(f"{case['id']}: what is left", case["rest"], reader.waiting)
    return Verdict("agree")


def write(case: dict[str, Any]) -> Verdict:
    """The bytes of a frame."""
    body = octets(case, "content")
    assert body is not None
    frame = StompFrame(unpacked(case["action"]), [(name, value) for name, value in unpacked(case["headers"])], body)
    try:
        got = write_frame(frame, case["version"])
    except TypeError as refused:
        return Verdict("agree") if "error" in case else compare(case["id"], octets(case, "out"), refused)
    return compare(case["id"], octets(case, "out"), got)
