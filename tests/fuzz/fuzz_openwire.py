"""``python -m tests.fuzz.fuzz_openwire [--inputs N] [--seed S]``: random commands and hostile bytes for OpenWire.

Checked: what was written is read again, in any version and encoding, with and without cache, however the bytes are cut;
of damaged frames a reader raises nothing but ProtocolError, the same commands and the same error come out however the
bytes are cut, it keeps no more bytes than were fed, and what it read can be written; what a message means is refused,
or written again with the same meaning. The seed decides every input.
"""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from typing import Any

from pyengine._engine.wire.data_structure import VERSIONS, DataStructure, JavaThrowable, StructureType
from pyengine._engine.wire.openwire import OpenWireReader, OpenWireWriter
from pyengine._engine.wire.openwire_messages import command_of, message_of
from pyengine._engine.wire.openwire_types import TYPES
from pyengine._engine.wire.primitives import read_primitive_map, read_primitives, write_primitive_map
from pyengine.errors import ProtocolError, PyengineError
from tests.fuzz import campaign

CONCRETE = [kind for kind in TYPES.values() if kind.number > 0]
STRINGS = (None, "", "a", "ID:host-1:1", "queue.A", "é你", "\0", "\U0001f680", "x" * 200)
NUMBERS = (0, 1, -1, 127, 128, 255, 65535, 65536, 2**31 - 1, -(2**31), 2**40, 2**63 - 1, -(2**63))
LIMIT = 5000
ENTRIES: tuple[tuple[str, Any], ...] = (
    ("int", -5), ("long", 1 << 40), ("string", "é"), ("boolean", True), ("float", 0.5), ("double", 1.5), ("byte", -1),
    ("short", 300), ("char", "c"), ("null", None), ("map", [("a", "list", [("int", 1)])]), ("bytes", b"1"),
)  # fmt: skip


def number(chance: random.Random, bits: int) -> int:
    """A number that fits."""
    top = 1 << (bits - 1)
    return (chance.choice(NUMBERS) + top) % (2 * top) - top


def throwable(chance: random.Random, stack_trace: bool) -> JavaThrowable | None:
    """An exception, with what an end without stack traces would not say only if it says it."""
    if chance.random() < 0.4:
        return None
    stack = ()
    cause = None
    if stack_trace:
        stack = tuple(("C", "m", chance.choice(STRINGS[:3]), number(chance, 32)) for _ in range(chance.randrange(3)))
        cause = throwable(chance, stack_trace)
    return JavaThrowable("java.lang.Exception", chance.choice(("", "why")), stack, cause)


def value(chance: random.Random, form: str, version: int, stack_trace: bool, depth: int) -> Any:
    """A value of a field's form, as the table says it."""
    bare = form.partition("@")[0].rstrip("*[]")
    plain = {"boolean": 1, "byte": 8, "int": 32, "long": 64}.get(bare)
    if plain is not None:
        return bool(chance.randrange(2)) if plain == 1 else number(chance, plain)
    if bare == "string":
        return chance.choice(STRINGS)
    if bare in ("bytes", "bytes8"):
        return chance.randbytes(8) if bare == "bytes8" else chance.choice((None, b"", chance.randbytes(9)))
    if bare == "throwable":
        return throwable(chance, stack_trace)
    if chance.random() < 0.3 or depth > 3:
        return None
    fitting = [kind for kind in CONCRETE if version >= kind.since and fits(kind, bare)]
    made = [structure(chance, chance.choice(fitting), version, stack_trace, depth + 1)]
    return made * chance.randrange(3) if "[]" in form else made[0]


def fits(kind: StructureType, name: str) -> bool:
    """Whether a field of that type may hold it."""
    if name == "BooleanExpression":
        return kind.name == "NetworkBridgeFilter"
    return name == "DataStructure" or kind.extends(TYPES[name])


def structure(
    chance: random.Random, kind: StructureType, version: int, stack_trace: bool, depth: int = 0
) -> DataStructure:
    """A structure of that type, with fields that the version has."""
    fields = {}
    for name, form in kind.forms(version):
        fields[name] = value(chance, form, version, stack_trace, depth)
    if kind.extends(TYPES["ActiveMQDestination"]):
        fields["physical_name"] = chance.choice(("A", "A.B.>", "a,b", "é"))
    return kind(**fields)


def read(data: bytes, pieces: list[int], version: int, settings: dict[str, bool]) -> tuple[list[DataStructure], str]:
    """The commands, and the words with which reading ended."""
    return campaign.read(OpenWireReader(version, max_frame_size=LIMIT, **settings), data, pieces)


def damaged(chance: random.Random, data: bytes) -> bytes:
    """With bytes changed, added or gone, mostly within what a size prefix says."""
    hostile = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(len(hostile))
        what = chance.randrange(5)
        if what == 0:
            hostile[at:at] = chance.randbytes(chance.randrange(1, 4))
        elif what == 1:
            del hostile[at : at + chance.randrange(1, 4)]
        else:
            hostile[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        if not hostile:
            return b"\0"
    if chance.random() < 0.7 and len(hostile) > 4:
        hostile[:4] = (len(hostile) - 4).to_bytes(4)
    return bytes(hostile)


def check(chance: random.Random) -> Counter[str]:
    """A few commands on one wire, whole and damaged."""
    version = chance.choice(VERSIONS)
    settings = {name: bool(chance.randrange(2)) for name in ("tight", "cache", "stack_trace")}
    sent = [structure(chance, chance.choice([each for each in CONCRETE if version >= each.since]), version,
                      settings["stack_trace"]) for _ in range(chance.randrange(1, 4))]  # fmt: skip
    writer = OpenWireWriter(version, **settings)
    frames = [writer.write(each) for each in sent]
    data = b"".join(frames)
    if max(map(len, frames)) <= LIMIT:
        pieces = campaign.cut(chance, len(data), 40)
        assert read(data, pieces, version, settings) == (sent, ""), (data, version, settings)
    hostile = damaged(chance, frames[0])
    whole = read(hostile, [len(hostile)], version, settings)
    pieces = campaign.cut(chance, len(hostile), 40)
    assert whole == read(hostile, pieces, version, settings), (hostile, version, settings)
    for each in whole[0]:
        rewrite(each, version, settings)
        read_message(each)
    read_message(message(chance))
    body = chance.randbytes(chance.randrange(30))
    for function in (read_primitive_map, read_primitives):
        with contextlib.suppress(ProtocolError):
            function(body)
    return Counter({"commands": len(sent), "hostile": len(whole[0]), "refused": bool(whole[1])})


def message(chance: random.Random) -> DataStructure:
    """A message whose properties and body are sometimes damaged."""
    items = [(f"n{place}", *chance.choice(ENTRIES)) for place in range(chance.randrange(4))]
    parts = [write_primitive_map(items), chance.choice((b"", b"\0\0\0\2ab", write_primitive_map(items)))]
    kind = chance.choice([each for each in CONCRETE if each.extends(TYPES["Message"])])
    return kind(
        message_id=TYPES["MessageId"](producer_id=TYPES["ProducerId"](connection_id="ID:a-1:1")),
        **dict(
            zip(
                ("marshalled_properties", "content"),
                [damaged(chance, part) if part and chance.randrange(2) else part for part in parts],
                strict=True,
            )
        ),
    )


def read_message(command: DataStructure) -> None:
    """What a message means is refused, or can be said again and means the same."""
    if command.kind.extends(TYPES["Message"]):
        with contextlib.suppress(PyengineError):
            found = message_of(command)
            again = message_of(command_of(found))
            assert again.properties() == found.properties() or "nan" in str(found.properties()), command


def rewrite(command: DataStructure, version: int, settings: dict[str, bool]) -> None:
    """Write a command that was read, if ActiveMQ can write it."""
    try:
        OpenWireWriter(version, **settings).write(command)
    except ValueError as refused:
        if not any(words in str(refused) for words in ("version 10 cannot say so", "which is too long")):
            raise


def run(inputs: int, seed: int) -> Counter[str]:
    """Fuzz ``inputs`` wires."""
    chance = random.Random(seed)
    counts: Counter[str] = Counter()
    for _ in range(inputs):
        counts += check(chance)
    return counts


if __name__ == "__main__":
    campaign.main("fuzz_openwire", __doc__, run)
