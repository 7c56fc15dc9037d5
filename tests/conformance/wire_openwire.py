"""wire/openwire: frames written and read by the real OpenWireFormat, and malformed ones that it was given."""

from __future__ import annotations

import base64
import hashlib
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from pyengine._engine.wire.data_structure import DataStructure, JavaThrowable, StructureType
from pyengine._engine.wire.openwire import OpenWireReader, OpenWireWriter
from pyengine._engine.wire.openwire_types import NO_COMMAND, TYPES
from pyengine._engine.wire.primitives import (
    read_primitive_map,
    read_primitives,
    write_primitive_map,
    write_primitives,
)
from pyengine.errors import ProtocolError
from tests.conformance.verdict import Verdict, compare
from tests.conformance.wire_recorded import unpacked

AGREE = Verdict("agree")
# Java's names that are not spelled like those of the table.
SPELLED = {"jmsxgroupfirstforconsumer": "groupfirstforconsumer", "recievedbydfbridge": "receivedbydfbridge",
           "subcriptionname": "subscriptionname", "subscritionname": "subscriptionname"}  # fmt: skip


def identify(case: dict[str, Any]) -> str:
    """The case's id; marked where the real codec read more or fewer bytes than the frame's size prefix says."""
    name: str = case["id"]
    if case["kind"] == "malformed" and "consumed" in case:
        size = int.from_bytes(bytes_of(case)[:4], signed=True)
        return name if case["consumed"] == size + 4 else f"{name} (not as long as its size says)"
    return name


def replay(case: dict[str, Any]) -> Verdict:
    """Write and read what the case says."""
    if case["kind"] == "command":
        return command(case)
    if case["kind"] == "sequence":
        return sequence(case)
    if case["kind"] == "sequence_generated":
        return generated(case)
    return malformed(case)


def fields_of(kind: StructureType) -> dict[str, str]:
    """The fields of a type by their letters."""
    return {name.replace("_", ""): name for name in kind.fields}


def text(value: str) -> str:
    """A Java String's surrogates in pairs."""
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def value_of(value: Any) -> Any:
    """A recorded value as the codec has it."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list):
        return [value_of(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "bytes" in value:
        return bytes.fromhex(value["bytes"])
    if "bytesz" in value:
        return zlib.decompress(base64.b64decode(value["bytesz"]))
    if "throwable" in value:
        return throwable_of(value)
    kind = TYPES[value["class"]]
    known = fields_of(kind)
    fields = {}
    for name, each in value.items():
        letters = name.lower()
        if name != "class":
            fields[known[SPELLED.get(letters, letters)]] = value_of(each)
    return kind(**fields)


def throwable_of(value: dict[str, Any]) -> JavaThrowable:
    """A recorded exception."""
    cause = value["cause"]
    message = value["message"]
    return JavaThrowable(
        value["throwable"],
        None if message is None else text(message),
        tuple(tuple(element) for element in value["stack"]),
        None if cause is None else throwable_of(cause),
    )


def bytes_of(entry: dict[str, Any]) -> bytes:
    """Recorded bytes."""
    if "hexz" in entry:
        return zlib.decompress(base64.b64decode(unpacked(entry["hexz"])))
    return bytes.fromhex(unpacked(entry["hex"]))


def as_said(value: Any, stack_trace: bool, version: int) -> Any:
    """A structure as it comes out at the other end: without what the version lacks, or what is not sent."""
    if isinstance(value, JavaThrowable):
        return value if stack_trace else JavaThrowable(value.class_name, value.message)
    if isinstance(value, (list, tuple)):
        return [as_said(each, stack_trace, version) for each in value]
    if not isinstance(value, DataStructure):
        return value
    fields = {name: as_said(getattr(value, name), stack_trace, version) for name in value.kind.fields}
    for (owner, name), since in SINCE.items():
        if version < since and value.kind.extends(TYPES[owner]):
            del fields[name]
    return value.kind(**fields)


SINCE = {("ConsumerInfo", "client_id"): 10, ("NetworkBridgeFilter", "consumer_ttl"): 10, ("MessageId", "text_view"): 10,
         ("Message", "group_first_for_consumer"): 10, ("SubscriptionInfo", "no_local"): 11}  # fmt: skip


def replaced(value: DataStructure, decoded: dict[str, Any]) -> DataStructure:
    """What the real decoder returns differently. An exception whose class cannot be made again stays what was sent."""
    known = fields_of(value.kind)
    fields = {}
    for name, each in decoded.items():
        letters = name.lower()
        field = known[SPELLED.get(letters, letters)]
        if not isinstance(getattr(value, field), JavaThrowable):
            fields[field] = value_of(each)
    return value.replace(**fields)


def command(case: dict[str, Any]) -> Verdict:
    """One command in every version and encoding."""
    given = value_of(unpacked(case["command"]))
    for verdict in bodies(case, given):
        if verdict.kind != "agree":
            return verdict
    for entry in case["wire"]:
        for version in entry["version"]:
            for cache in entry["cache"]:
                if version < 9:
                    continue
                settings = {"tight": entry["tight"], "cache": cache, "size_prefix": entry["size_prefix"],
                            "stack_trace": entry.get("stack_trace", False)}  # fmt: skip
                asked = f"{case['id']}, version {version}, {settings}"
                verdict = one(asked, given, entry, version, settings)
                if verdict.kind != "agree":
                    return verdict
    return AGREE


def primitive(value: dict[str, Any]) -> tuple[str, Any]:
    """A recorded typed value as the codec has it."""
    kind, said = value["t"], value.get("v")
    if "bits" in value:
        return kind, struct.unpack(">f" if kind == "float" else ">d", bytes.fromhex(value["bits"]))[0]
    if kind == "map":
        return kind, entries(said)
    if kind == "list":
        return kind, [primitive(each) for each in said]
    if kind == "bytes":
        return kind, bytes.fromhex(said["bytes"] if isinstance(said, dict) else said)
    return kind, text(said) if isinstance(said, str) else said


def entries(items: list[Any]) -> list[tuple[str, str, Any]]:
    """A recorded map."""
    return [(text(name), *primitive(value)) for name, value in items]


def bodies(case: dict[str, Any], given: DataStructure) -> Iterator[Verdict]:
    """The properties and the body, to their bytes and back. A NaN equals none, so that values are compared as text."""
    if "properties" in case:
        items = entries(unpacked(case["properties"]))
        yield compare(f"{case['id']}: properties", given.marshalled_properties, write_primitive_map(items))
        yield compare(f"{case['id']}: read", str(items), str(read_primitive_map(given.marshalled_properties)))
    body = unpacked(case.get("body", {}))
    if body.get("map") and not given.compressed:
        items = entries(body["map"])
        yield compare(f"{case['id']}: map", given.content, write_primitive_map(items))
        yield compare(f"{case['id']}: read", str(items), str(read_primitive_map(given.content)))
    if body.get("stream") and not given.compressed:
        values = [primitive(each) for each in body["stream"]]
        yield compare(f"{case['id']}: stream", given.content, write_primitives(values))
        yield compare(f"{case['id']}: read", str(values), str(read_primitives(given.content)))


def one(asked: str, given: DataStructure, entry: dict[str, Any], version: int, settings: dict[str, Any]) -> Verdict:
    """One command in one version and encoding."""
    try:
        written = OpenWireWriter(version, **settings).write(given)
    except ValueError as refused:
        return AGREE if "error" in entry else compare(asked, entry, refused)
    if "error" in entry:
        return compare(asked, entry["error"], written)
    frame = bytes_of(entry)
    if written != frame:
        return compare(asked, frame.hex(), written.hex())
    decoded = entry.get("decoded", {})
    for pieces in ([frame], [frame[at : at + 1] for at in range(len(frame))]):
        if len(pieces) > 5000:
            continue
        reader = OpenWireReader(version, **settings)
        got: list[Any] = []
        try:
            for piece in pieces:
                reader.feed(piece)
                got += reader
        except ProtocolError as refused:
            if "error" in decoded:
                continue
            got.append(refused)
        expected = as_said(given, settings["stack_trace"], version)
        if decoded and "error" not in decoded:
            expected = replaced(expected, decoded)
        if got != [expected]:
            return compare(f"{asked}: read", [expected], got)
    return AGREE


def wires(case: dict[str, Any]) -> Iterator[tuple[dict[str, Any], int, dict[str, Any]]]:
    """Each recorded wire of a sequence, with version and settings."""
    for entry in case.get("wire", [case]):
        for version in entry["version"]:
            caches = entry["cache"] if isinstance(entry["cache"], list) else [entry["cache"]]
            for cache in caches:
                yield entry, version, {"tight": entry["tight"], "cache": cache, "size_prefix": entry["size_prefix"]}


def sequence(case: dict[str, Any]) -> Verdict:
    """Commands one after the other on one wire."""
    for entry, version, settings in wires(case):
        writer, reader = OpenWireWriter(version, **settings), OpenWireReader(version, **settings)
        for at, (each, recorded) in enumerate(zip(case["commands"], entry["hex"], strict=True)):
            given = value_of(unpacked(each))
            frame = bytes.fromhex(unpacked(recorded))
            asked = f"{case['id']}, version {version}, {settings}, command {at}"
            written = writer.write(given)
            if written != frame:
                return compare(asked, frame.hex(), written.hex())
            reader.feed(frame)
            got = list(reader)
            if got != [as_said(given, False, version)]:
                return compare(f"{asked}: read", as_said(given, False, version), got)
    return AGREE


def generated(case: dict[str, Any]) -> Verdict:
    """So many ids that the cache is full, gives old ones up, and begins again."""
    samples = dict(case["samples"])
    for _, version, settings in wires(case):
        writer, reader = OpenWireWriter(version, **settings), OpenWireReader(version, **settings)
        digest = hashlib.sha256()
        for at in range(case["n"]):
            session = TYPES["SessionId"](connection_id="c", value=at % 16600)
            given = TYPES["SessionInfo"](session_id=session)
            frame = writer.write(given)
            digest.update(frame)
            if at in samples and frame.hex() != samples[at]:
                return compare(f"{case['id']}, command {at}", samples[at], frame.hex())
            reader.feed(frame)
            if list(reader) != [given]:
                return compare(f"{case['id']}, command {at}: read", given, "another")
        if digest.hexdigest() != case["sha256"]:
            return compare(case["id"], case["sha256"], digest.hexdigest())
    return AGREE


def malformed(case: dict[str, Any]) -> Verdict:
    """Bytes that the real one refuses are refused, or wait for more; what it reads is read alike, or refused."""
    settings = {name: case[name] for name in ("tight", "cache", "size_prefix")}
    reader = OpenWireReader(case["version"], **settings)
    reader.feed(bytes_of(case))
    try:
        got = next(reader, None)
    except ProtocolError as refused:
        return AGREE if "error" in case else compare(f"{case['id']}: {case['why']}", case["result"], refused)
    if "error" in case:
        return AGREE if got is None else compare(f"{case['id']}: {case['why']}", case["error"], got)
    expected = NO_COMMAND if case["result"] is None else value_of(unpacked(case["result"]))
    asked = f"{case['id']}: {case['why']}"
    if got is None:
        return compare(asked, expected, "more bytes are waited for")
    verdict = compare(asked, expected, as_made_again(got, expected))
    if verdict.kind == "agree" and "properties" in case:
        return compare(f"{asked}: properties", *properties(case, got))
    return verdict


def properties(case: dict[str, Any], got: DataStructure) -> tuple[str, str]:
    """The properties as the real one reads them, and as the codec does, sorted; or that they cannot be read."""
    said = case["properties"]
    refused = "an error"
    expected = refused if isinstance(said, dict) else str(sorted(map(str, entries(unpacked(said)))))
    try:
        return expected, str(sorted(map(str, read_primitive_map(got.marshalled_properties) or ())))
    except ProtocolError:
        return expected, refused


def as_made_again(got: DataStructure, expected: DataStructure) -> DataStructure:
    """With its exception as the real reader makes it: of a class that it cannot make, a Throwable that names it."""
    if "exception" not in got.kind.fields or got.kind is not expected.kind:
        return got
    read, made = got.exception, expected.exception
    if read is None or made is None or made.message != f"{read.class_name}: {read.message}":
        return got
    return got.replace(exception=JavaThrowable("java.lang.Throwable", made.message))
