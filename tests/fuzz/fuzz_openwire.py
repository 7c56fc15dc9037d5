"""``python -m tests.fuzz.fuzz_openwire [--frames N] [--seed S]``: random commands and hostile bytes for OpenWire.

Checked: what was written is read again, in any version and encoding, with and without cache, however the bytes are cut;
of damaged frames a reader raises nothing but ProtocolError, the same commands and the same error come out however the
bytes are cut, it keeps no more bytes than were fed, and what it read can be written; what a message means is refused,
or written again with the same meaning. The seed decides every input.
"""

from __future__ import annotations

import contextlib
import functools
import math
import random
from collections import Counter
from typing import Any

from pyengine._engine.wire.data_structure import VERSIONS, DataStructure, JavaThrowable, StructureType
from pyengine._engine.wire.openwire import OpenWireReader, OpenWireWriter
from pyengine._engine.wire.openwire_messages import command_of, message_of
from pyengine._engine.wire.openwire_types import TYPES
from pyengine._engine.wire.primitives import (
    TYPE_NAMES,
    read_primitive_map,
    read_primitives,
    write_primitive_map,
    write_primitives,
)
from pyengine.errors import ProtocolError, PyengineError
from tests.fuzz import campaign

CONCRETE = [kind for kind in TYPES.values() if kind.number > 0]
STRINGS = (None, "", "a", "ID:host-1:1", "queue.A", "é你", "\0", "\U0001f680", "x" * 200)
NUMBERS = (0, 1, -1, 127, 128, 255, 65535, 65536, 2**31 - 1, -(2**31), 2**40, 2**63 - 1, -(2**63))
BITS = {"byte": 8, "short": 16, "int": 32, "long": 64}
LIMIT = 5000
ENTRIES: tuple[tuple[str, Any], ...] = (
    ("int", -5), ("long", 1 << 40), ("string", "é"), ("boolean", True), ("float", 0.5), ("double", 1.5), ("byte", -1),
    ("short", 300), ("char", "c"), ("null", None), ("map", [("a", "list", [("int", 1)])]), ("bytes", b"1"),
)  # fmt: skip
BLOCK = 15_000  # inputs of one corpus


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
    made = [structure(chance, chance.choice(fitting(bare, version)), version, stack_trace, depth + 1)]
    return made * chance.randrange(3) if "[]" in form else made[0]


@functools.cache
def fitting(name: str, version: int) -> list[StructureType]:
    """The types that a field of that type may hold, in a version."""
    return [kind for kind in CONCRETE if version >= kind.since and fits(kind, name)]


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


def damaged(chance: random.Random, frame: bytes) -> bytes:
    """With bytes changed, added or gone, mostly within what a size prefix says."""
    number = chance.random
    hostile = bytearray(frame)
    for _ in range((1, 1, 2, 5)[int(number() * 4)]):
        campaign.damage(chance, hostile)
    if number() < 0.7 and len(hostile) > 4:
        hostile[:4] = (len(hostile) - 4).to_bytes(4)
    return bytes(hostile)


class Wire:
    """Commands on one wire, whole, and then damaged."""

    def __init__(self, chance: random.Random, commands: int) -> None:
        self.chance = chance
        self.version = chance.choice(VERSIONS)
        self.settings = {name: bool(chance.randrange(2)) for name in ("tight", "cache", "stack_trace")}
        # A cache as small as can be is full now and then, and a new one is cheap.
        self.cache_size = chance.choice((101, 110, 300))
        kinds = [each for each in CONCRETE if self.version >= each.since]
        self.frames: list[bytes] = []
        for _ in range(commands):
            stack_trace = self.settings["stack_trace"]
            sent = [structure(chance, chance.choice(kinds), self.version, stack_trace)
                    for _ in range(chance.randrange(1, 4))]  # fmt: skip
            writer = OpenWireWriter(self.version, **self.settings)
            frames = [writer.write(each) for each in sent]
            if max(map(len, frames)) <= LIMIT:
                data = b"".join(frames)
                assert campaign.read_alike(
                    lambda: OpenWireReader(self.version, max_frame_size=LIMIT, **self.settings), data, chance
                ) == (sent, None), (data, self.version, self.settings)  # fmt: skip
            self.frames.append(frames[0])

    def reader(self) -> OpenWireReader:
        return OpenWireReader(self.version, max_frame_size=LIMIT, cache_size=self.cache_size, **self.settings)

    def check(self) -> tuple[int, bool]:
        """A frame of these, damaged. How many commands it is; whether it was refused."""
        frame = self.frames[int(self.chance.random() * len(self.frames))]
        found, error = campaign.read_alike(self.reader, damaged(self.chance, frame), self.chance)
        for each in found:
            self.rewrite(each)
            read_message(each)
        return len(found), error is not None

    def rewrite(self, command: DataStructure) -> None:
        """Write a command that was read, if ActiveMQ can write it."""
        try:
            OpenWireWriter(self.version, cache_size=self.cache_size, **self.settings).write(command)
        except (TypeError, ValueError) as refused:
            if not any(words in str(refused) for words in ("version 10 cannot say so", "which is too long")):
                raise


def primitive(chance: random.Random, depth: int = 0) -> tuple[str, Any]:
    """A value of a map or of a stream, with its type."""
    kind = chance.choice(TYPE_NAMES if depth < 3 else TYPE_NAMES[:-2])
    if kind in BITS:
        return kind, number(chance, BITS[kind])
    if kind in ("double", "float"):
        return kind, chance.choice((0.0, -1.5, math.inf))
    inside = chance.randrange(4)
    if kind == "map":
        return kind, [(str(name), *primitive(chance, depth + 1)) for name in range(inside)]
    if kind == "list":
        return kind, [primitive(chance, depth + 1) for _ in range(inside)]
    return kind, {"null": None, "boolean": bool(inside), "char": "é", "bytes": bytes(inside),
                  "string": chance.choice(STRINGS[1:])}[kind]  # fmt: skip


def primitives(chance: random.Random) -> bytes:
    """A map, or a stream."""
    kind, inside = "", None
    while kind not in ("map", "list"):
        kind, inside = primitive(chance)
    return (write_primitive_map if kind == "map" else write_primitives)(inside)


def check_primitives(body: bytes) -> None:
    """A map's and a stream's bytes are read or refused."""
    for function in (read_primitive_map, read_primitives):
        with contextlib.suppress(ProtocolError):
            function(body)


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


def run(frames: int, seed: int) -> Counter[str]:
    """Fuzz until so many damaged frames were read or refused."""
    chance = random.Random(seed)
    number = read = refused = commands = 0
    while read + refused < frames:
        if number % BLOCK == 0:
            wires = [Wire(chance, min(frames, 300) // 12) for _ in range(12)]
            messages = [message(chance) for _ in range(500)]
            marshalled = [primitives(chance) for _ in range(100)]
            commands += sum(len(each.frames) for each in wires)
        found, ended = wires[int(chance.random() * 12)].check()
        read += found
        refused += ended
        if number % 4 == 0:
            body = bytearray(marshalled[int(chance.random() * 100)])
            campaign.damage(chance, body)
            check_primitives(bytes(body))
            read_message(messages[int(chance.random() * 500)])
        number += 1
    return Counter({"inputs": number, "commands": commands, "hostile": read, "refused": refused})


if __name__ == "__main__":
    campaign.main("fuzz_openwire", __doc__, run)
