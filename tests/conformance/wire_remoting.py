"""wire/remoting: what RocketMQ's codec of 5.3.3, and 4.9.8 where it differs, wrote and read."""

from __future__ import annotations

import base64
import struct
import zlib
from datetime import UTC, datetime
from typing import Any

from pyengine._engine.rocketmq.commands.bodies import read_body, write_body
from pyengine._engine.rocketmq.commands.headers import CODES, read_header, write_header
from pyengine._engine.rocketmq.commands.origin import Origin
from pyengine._engine.rocketmq.commands.stored_message import (
    COMPRESSED,
    body_crc,
    decode_client_messages,
    decode_stored,
    encode_client_message,
    encode_stored,
    message_id,
    parse_message_id,
    parse_properties,
    parse_unique_id,
    properties_text,
)
from pyengine._engine.wire.remoting import RemotingCommand, RemotingReader, write_command
from pyengine.errors import ProtocolError
from pyengine.rocketmq.remoting.acl import SessionCredentials
from pyengine.rocketmq.remoting.compression import compress, decompress
from pyengine.rocketmq.remoting.stored_message import address_text, pulled_messages
from tests.conformance.verdict import Verdict, compare, unsupported
from tests.conformance.wire_recorded import octets, unpacked

AGREE = Verdict("agree")


class Map(dict[Any, Any]):
    """A recorded map, as opposed to an object."""


def identify(case: dict[str, Any]) -> str:
    """The case's id."""
    name: str = case["id"]
    return name


def replay(case: dict[str, Any]) -> Verdict:
    """Write and read what the case says."""
    play = globals().get(f"play_{case['kind']}")
    verdict: Verdict = play(case) if play is not None else unsupported(case["kind"])
    return verdict


def plain(value: Any) -> Any:
    """A recorded value in the form of ours: maps as dicts, objects as dicts of their fields, bytes as bytes."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "bytes" in value:
        return bytes.fromhex(unpacked(value["bytes"]))
    if "bytesz" in value:
        return zlib.decompress(base64.b64decode(value["bytesz"]))
    if "map" in value:
        return Map({key(name): plain(each) for name, each in value["map"]})
    if "bits" in value:
        return struct.unpack(">d" if value["t"] == "double" else ">f", bytes.fromhex(value["bits"]))[0]
    if value.get("class") == "long[]":
        return None
    if set(value) == {"repeat"}:
        return unpacked(value)
    # The one field whose property has another name.
    return {name.replace("isWithoutSub", "withoutSub"): plain(each) for name, each in value.items() if name != "class"}


def key(name: Any) -> Any:
    """A map's key: an object is a tuple of pairs."""
    return tuple(sorted(plain(name).items())) if isinstance(name, dict) else name


def same(expected: Any, got: Any) -> bool:
    """Equal, whatever the order of sets. The recording has fields that are on no wire."""
    if isinstance(expected, Map) and isinstance(got, dict):
        return set(expected) == set(got) and all(same(expected[name], got[name]) for name in got)
    if isinstance(expected, dict) and isinstance(got, dict):
        return all(name == "next" or (name in expected and same(expected[name], got[name])) for name in got)
    if isinstance(got, list) and isinstance(expected, list):
        left = list(got)
        for each in expected:
            match = next((at for at, other in enumerate(left) if same(each, other)), None)
            if match is None:
                return False
            del left[match]
        return not left
    return bool(expected == got)


def command_of(said: dict[str, Any], serialize_type: str) -> RemotingCommand:
    """The command that a case describes."""
    fields = said["extFields"]
    return RemotingCommand(
        said["code"],
        language=said["language"],
        version=said["version"],
        opaque=said["opaque"],
        flag=said["flag"],
        remark=unpacked(said["remark"]),
        ext_fields=None if fields is None else {unpacked(name): unpacked(text) for name, text in fields},
        body=plain(said["body"]),
        serialize_type=serialize_type,
    )


def fields_of(command: RemotingCommand) -> dict[str, Any]:
    """A command in the form of the cases, with a dict of extFields."""
    return {
        "code": command.code,
        "language": command.language,
        "version": command.version,
        "opaque": command.opaque,
        "flag": command.flag,
        "remark": command.remark,
        "extFields": command.ext_fields,
        "body": command.body,
    }


def wire(case: dict[str, Any]) -> bytes:
    """The bytes under ``hex`` or ``hexz``."""
    data = octets({f"wire_{name}": text for name, text in case.items() if name in ("hex", "hexz")}, "wire")
    assert data is not None
    return data


def written(form: dict[str, Any]) -> bytes:
    """The frame that a case says was written."""
    if "prefix" not in form:
        return wire(form)
    header = octets({"header_hexz": form["headerz"]} if "headerz" in form else form, "header")
    assert header is not None
    return bytes.fromhex(form["prefix"]) + header + (octets(form, "body") or b"")


def read_frame(frame: bytes) -> RemotingCommand:
    """The one command in a frame, fed in two pieces."""
    reader = RemotingReader()
    reader.feed(frame[: len(frame) // 2])
    assert not list(reader) or len(frame) < 2
    reader.feed(frame[len(frame) // 2 :])
    (command,) = reader
    return command


def both_ways(case: dict[str, Any], command: RemotingCommand, form: dict[str, Any]) -> Verdict:
    """Write a command, and read it back."""
    try:
        frame = write_command(command)
    except (ProtocolError, TypeError) as refused:
        return AGREE if "error" in form else compare(f"{case['id']} {command.serialize_type}", written(form), refused)
    if "error" in form:
        return compare(f"{case['id']} {command.serialize_type}", form["error"], frame)
    if frame != written(form):
        return compare(f"{case['id']} {command.serialize_type}", written(form), frame)
    expected = fields_of(command)
    for name, value in form.get("decoded", {}).items():
        expected[name] = dict(value) if name == "extFields" and value is not None else plain(unpacked(value))
    return compare(f"{case['id']} {command.serialize_type} read", expected, fields_of(read_frame(frame)))


def play_frame(case: dict[str, Any]) -> Verdict:
    """A command without a custom header."""
    for serialize_type in ("JSON", "ROCKETMQ"):
        verdict = both_ways(case, command_of(case["command"], serialize_type), case[serialize_type])
        if verdict != AGREE:
            return verdict
    return AGREE


def play_header(case: dict[str, Any]) -> Verdict:
    """A custom header, in both forms and back."""
    name, values = case["class"], plain(case["fields"])
    if not case["response"] and CODES.get(name, case["code"]) != case["code"]:
        return compare(f"{name}: code", case["code"], CODES[name])
    for serialize_type in ("JSON", "ROCKETMQ"):
        form = case[serialize_type]
        command = RemotingCommand(
            0 if case["response"] else case["code"],
            version=case["version"],
            opaque=case["opaque"],
            flag=int(case["response"]),
            ext_fields=write_header(name, values, serialize_type == "ROCKETMQ"),
            serialize_type=serialize_type,
        )
        verdict = both_ways(case, command, form)
        if verdict != AGREE:
            return verdict
        if "error" in form:
            continue
        changed = form.get("header_read", {})
        expected: Any = "refused" if "class" in changed and "message" in changed else {**values, **plain(changed)}
        verdict = compare(
            f"{case['id']} {serialize_type} header", expected, header_of(name, read_frame(written(form)), expected)
        )
        if verdict != AGREE:
            return verdict
    return AGREE


def header_of(name: str, command: RemotingCommand, expected: Any) -> Any:
    """The header that we read, in the fields that a case has."""
    try:
        found = read_header(name, command.ext_fields)
    except ProtocolError:
        return "refused"
    return {field: found[field] for field in expected} if isinstance(expected, dict) else found


def play_header_read(case: dict[str, Any]) -> Verdict:
    """extFields read as a header."""
    expected = plain(case["fast"])
    if set(case["fast"]) == {"class", "message"}:
        expected = "refused"
    try:
        found: Any = read_header(
            case["class"], None if case["extFields"] is None else dict(unpacked(case["extFields"]))
        )
    except ProtocolError:
        found = "refused"
    if isinstance(expected, dict) and isinstance(found, dict):
        found = {field: found[field] for field in expected}
    return compare(case["id"], expected, found)


def play_body(case: dict[str, Any]) -> Verdict:
    """An object as JSON and back."""
    value = plain(case["fields"])
    expected = octets(case, "text")
    assert expected is not None
    got = write_body(case["class"], with_texts(case["class"], dropped(value)))
    if got != expected:
        return compare(case["id"], expected, got)
    decoded = plain(case["decoded"]) if "decoded" in case else value
    found = read_body(case["class"], got)
    return AGREE if same(dropped(decoded), found) else compare(f"{case['id']} read", decoded, found)


def dropped(value: Any) -> Any:
    """A value without the fields whose content the recording does not have."""
    if isinstance(value, dict):
        return type(value)((name, dropped(each)) for name, each in value.items() if name != "next" or each is not None)
    return [dropped(each) for each in value] if isinstance(value, list) else value


def with_texts(name: str, value: dict[str, Any]) -> dict[str, Any]:
    """With the texts of times that QueueTimeSpan makes itself; the recording machine's zone is UTC."""
    if name != "QueryConsumeTimeSpanBody":
        return value

    def text(time: int) -> str:
        return f"{datetime.fromtimestamp(time / 1000, UTC):%Y-%m-%d#%H:%M:%S}:{time % 1000:03}"

    spans = [
        {**span, **{f"{which}Str": text(span[which]) for which in ("consumeTimeStamp", "maxTimeStamp", "minTimeStamp")}}
        for span in value["consumeTimeSpanSet"]
    ]
    return {**value, "consumeTimeSpanSet": spans}


def play_body_read(case: dict[str, Any]) -> Verdict:
    """JSON, good or bad, read as a class."""
    data = octets(case, "text")
    assert data is not None
    try:
        found: Any = read_body(case["class"], data)
    except ProtocolError as refused:
        return AGREE if "error" in case else compare(case["id"], case["result"], refused)
    if "error" in case:
        return compare(case["id"], case["error"], found)
    expected = plain(case["result"])
    return AGREE if same(expected, found) else compare(case["id"], expected, found)


def host(text: str) -> bytes:
    """``address:port`` as bytes."""
    address, _, port = text.rpartition(":")
    parts = address.split(":")
    packed = (
        bytes(map(int, address.split(".")))
        if len(parts) == 1
        else b"".join(int(part, 16).to_bytes(2, "big") for part in parts)
    )
    return packed + int(port).to_bytes(4, "big")


def encoded(said: dict[str, Any], *, compressed: bool, version: int = 1, position: int | None = None) -> bytes:
    """A message of a case as it is stored."""
    body = plain(said["body"])
    if compressed and said["sysFlag"] & COMPRESSED:
        kinds = {0: "ZLIB", 0x100: "LZ4", 0x200: "ZSTD", 0x300: "ZLIB"}
        if said["sysFlag"] & 0x700 not in kinds:
            raise ProtocolError("Unknown compress type")
        body = compress(body, kinds[said["sysFlag"] & 0x700])
    return encode_stored(
        unpacked(said["topic"]),
        body,
        [(unpacked(name), unpacked(text)) for name, text in said["properties"]],
        (said["commitLogOffset"] if position is None else position, said["queueId"], said["queueOffset"]),
        Origin(
            said["bornTimestamp"],
            host(said["bornHost"]),
            said["reconsumeTimes"],
            said["flag"],
            said["sysFlag"],
            prepared_transaction_offset=said["preparedTransactionOffset"],
        ),
        (said["storeTimestamp"], host(said["storeHost"])),
        version=version,
        crc=said["bodyCRC"],
    )


def decoded(data: bytes) -> Any:
    """The first of the stored messages in the form of the cases, None if it cannot be read."""
    try:
        message = next(iter(pulled_messages(data, "")), None)
    except ProtocolError:
        return None
    if message is None:
        return None
    return {
        "topic": message.topic,
        "flag": message.flag,
        "body": message.body or None,
        "properties": message.properties,
        "queueId": message.queue_id,
        "storeSize": message.store_size,
        "queueOffset": message.queue_offset,
        "sysFlag": message.sys_flag,
        "bornTimestamp": message.born_timestamp,
        "bornHost": message.born_host,
        "storeTimestamp": message.store_timestamp,
        "storeHost": message.store_host,
        "commitLogOffset": message.commit_log_offset,
        "bodyCRC": message.body_crc,
        "reconsumeTimes": message.reconsume_times,
        "preparedTransactionOffset": message.prepared_transaction_offset,
    }


def message_said(said: Any) -> Any:
    """A decoded message of a case in the form of :func:`decoded`."""
    if said is None:
        return None
    value = plain(said)
    value["properties"] = dict(unpacked(said["properties"] or []))
    value["body"] = value["body"] or None
    for name in ("transactionId", "brokerName", "msgId"):
        value.pop(name, None)
    return value


def check_decoded(case: dict[str, Any], data: bytes) -> Verdict:
    """Decoded as the server does, and what a client finds beside it."""
    verdict = compare(case["id"], message_said(case["decoded"]), decoded(data))
    said = case.get("client_decoded")
    if verdict != AGREE or case["decoded"] is None or said is None:
        return verdict
    fields, _ = decode_stored(data)
    return compare(f"{case['id']} offsetMsgId", said["offsetMsgId"], message_id(fields[9], fields[3]))


def play_message(case: dict[str, Any]) -> Verdict:
    """MessageDecoder.encode and decode."""
    expected = b"" if "error" in case else wire(case)
    try:
        got = encoded(case["message"], compressed=case["compress"])
    except (ProtocolError, TypeError) as refused:
        return AGREE if "error" in case else compare(case["id"], expected, refused)
    if "error" in case:
        return compare(case["id"], case["error"], got)
    if got != expected:
        raw, ours = decode_stored(expected)[0], decode_stored(got)[0]
        packed = case["compress"] and case["message"]["sysFlag"] & COMPRESSED
        # Compressed bytes may differ, and with them the sizes.
        if not packed or ours[:1] + ours[2:14] != raw[:1] + raw[2:14]:
            return compare(case["id"], expected, got)
        verdict = compare(f"{case['id']} body", decoded(expected)["body"], decoded(got)["body"])
        if verdict != AGREE:
            return verdict
    return check_decoded(case, expected)


def play_store_message(case: dict[str, Any]) -> Verdict:
    """The broker's MessageExtEncoder, whose positions are filled in later."""
    expected = wire(case)
    got = encoded(case["message"], compressed=False, version=case["version"], position=0)
    return check_decoded(case, expected) if got == expected else compare(case["id"], expected, got)


def play_pulled(case: dict[str, Any]) -> Verdict:
    """Several stored messages; those before one that cannot be read count."""
    data = wire(case)
    found = []
    try:
        for message in pulled_messages(data, ""):
            found.append({"queueOffset": message.queue_offset, "body": message.body})
    except ProtocolError:
        pass
    return compare(case["id"], plain(case["result"]), found)


def play_message_bad(case: dict[str, Any]) -> Verdict:
    """A damaged stored message."""
    data = wire(case)
    return compare(case["id"], message_said(case.get("result")), decoded(data))


def client_message(said: dict[str, Any]) -> bytes:
    """A message as a producer sends it in a batch."""
    return encode_client_message(
        plain(said["body"]), [tuple(unpacked(pair)) for pair in said["properties"] or []], said["flag"]
    )


def play_client_message(case: dict[str, Any]) -> Verdict:
    """One message of a batch and back."""
    expected = bytes.fromhex(unpacked(case["hex"]))
    got = client_message(case["message"])
    if got != expected:
        return compare(case["id"], expected, got)
    said = case["decoded"]
    return compare(
        case["id"], [(plain(said["body"]), dict(said["properties"]), said["flag"])], decode_client_messages(got)
    )


def play_client_batch(case: dict[str, Any]) -> Verdict:
    """A batch."""
    return compare(case["id"], bytes.fromhex(unpacked(case["hex"])), b"".join(map(client_message, case["messages"])))


def play_client_batch_read(case: dict[str, Any]) -> Verdict:
    """A batch, good or cut, read."""
    try:
        found: Any = decode_client_messages(bytes.fromhex(unpacked(case["hex"])))
    except ProtocolError:
        return AGREE if "error" in case else compare(case["id"], case["result"], "refused")
    if "error" in case:
        return compare(case["id"], case["error"], found)
    expected = [(plain(said["body"]), dict(said["properties"]), said["flag"]) for said in case["result"]]
    return compare(case["id"], expected, found)


def play_compress(case: dict[str, Any]) -> Verdict:
    """A compressor: its bytes may differ, what comes of them may not; theirs are read too."""
    body = plain(case["body"])
    theirs = wire(case)
    verdict = compare(case["id"], body, decompress(theirs, case["flag"]))
    ours = compress(body, case["type"], case["level"])
    return verdict if verdict != AGREE else compare(case["id"], body, decompress(ours, case["flag"]))


def play_properties_write(case: dict[str, Any]) -> Verdict:
    """Properties as one text."""
    return compare(case["id"], case["text"], properties_text(case["properties"]))


def play_properties_read(case: dict[str, Any]) -> Verdict:
    """The text as properties."""
    return compare(case["id"], dict(unpacked(case["result"])), parse_properties(unpacked(case["text"])))


def play_message_id(case: dict[str, Any]) -> Verdict:
    """The broker's id of a message, and back."""
    address = case["host"]
    if ":" in address:
        head, _, tail = address.partition("::")
        groups = head.split(":") if head else []
        rest = tail.split(":") if tail else []
        address = (
            ":".join([*groups, *["0"] * (8 - len(groups) - len(rest)), *rest]) if "::" in case["host"] else address
        )
    packed = host(f"{address}:{case['port']}")
    got = message_id(packed, case["offset"])
    return compare(case["id"], (case["text"], (packed, case["offset"])), (got, parse_message_id(got)))


def play_message_id_read(case: dict[str, Any]) -> Verdict:
    """A text as the broker's id."""
    try:
        packed, offset = parse_message_id(case["text"])
    except ProtocolError:
        return AGREE if "error" in case else compare(case["id"], case.get("host"), "refused")
    if "error" in case:
        return compare(case["id"], case["error"], (packed, offset))
    address = address_text(packed[:-4])
    said = (case["host"].lstrip("/"), case["port"], case["offset"])
    return compare(case["id"], said, (address, int.from_bytes(packed[-4:], "big"), offset))


def play_client_id_read(case: dict[str, Any]) -> Verdict:
    """A unique id's address and process."""
    packed, pid = parse_unique_id(case["text"])
    address = address_text(packed)
    if ":" in address:
        address = ":".join(f"{int(group, 16):04x}" for group in address.split(":"))
    return compare(case["id"], (case["ip"], case["pid"]), (address, pid))


def play_crc(case: dict[str, Any]) -> Verdict:
    """A body's checksum."""
    return compare(case["id"], case["crc"], body_crc(plain(case["body"])))


def play_acl(case: dict[str, Any]) -> Verdict:
    """A signed request."""
    command = command_of(case["command"], case["command"]["serializeType"])
    SessionCredentials(case["access_key"], case["secret_key"], case["security_token"]).sign(command)
    return compare(case["id"], dict(case["signed"]), command.ext_fields)


def play_frame_bad(case: dict[str, Any]) -> Verdict:
    """Bytes given to the decoder: the commands that come out, and whether the connection is closed."""
    data = wire(case)
    expected = [
        {
            **{
                name: unpacked(each)
                for name, each in command.items()
                if name not in ("serializeType", "body", "extFields")
            },
            "extFields": None if command["extFields"] is None else dict(unpacked(command["extFields"])),
            "body": plain(command["body"]),
        }
        for command in case["commands"]
    ]
    for pieces in ([data], [data[at : at + 1] for at in range(len(data))] if len(data) < 1000 else []):
        reader, found, closed = RemotingReader(), [], False
        try:
            for piece in pieces:
                reader.feed(piece)
                found += [fields_of(command) for command in reader]
        except ProtocolError:
            closed = True
        if b'"opaque"' not in data and data[4:5] == b"\0":  # where none is told, the real one counts on
            found = [{**got, "opaque": said["opaque"]} for got, said in zip(found, expected, strict=False)]
        if pieces and (found, closed) != (expected, case["closed"]):
            return compare(case["id"], (expected, case["closed"]), (found, closed))
    return AGREE
