"""``python -m tests.fuzz.fuzz_remoting [--frames N] [--seed S]``: hostile remoting frames for codec and broker.

Checked: a reader raises nothing but ProtocolError, the same commands and the same error come out however the bytes are
cut, it keeps no more bytes than were fed, and what it read can be written; headers, bodies, stored messages, batches,
properties and compressed bodies are read or refused with a ProtocolError; a broker and its name server answer every
request, or refuse it, without an error of their own. The seed decides every input.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable

from pyengine import rocketmq
from pyengine._engine.rocketmq.commands.bodies import read_body, write_body
from pyengine._engine.rocketmq.commands.headers import CODES, read_header, write_header
from pyengine._engine.rocketmq.commands.origin import Origin
from pyengine._engine.rocketmq.commands.stored_message import (
    COMPRESSED,
    decode_client_messages,
    encode_client_message,
    encode_stored,
    parse_message_id,
    parse_properties,
    parse_unique_id,
    properties_text,
)
from pyengine._engine.wire.remoting import RemotingCommand, RemotingReader, write_command
from pyengine.clock import ManualClock
from pyengine.errors import ProtocolError
from pyengine.rocketmq.remoting.compression import TYPES, compress
from pyengine.rocketmq.remoting.stored_message import pulled_messages
from pyengine.rocketmq.server.broker_requests import BrokerRequests
from pyengine.rocketmq.server.connections import Connection, Service
from pyengine.rocketmq.server.name_server import NameServer
from pyengine.rocketmq.server.served import Served
from tests.fuzz import campaign

VALUES = ("", "0", "1", "-1", "4", "6", "2147483647", "2147483648", "-9223372036854775808", "1e3", "true", "FALSE", "a",
          "orders", "%RETRY%g", "TBW102", "SCHEDULE_TOPIC_XXXX", "g", "*", "a || b", "price > 1", "SQL92", "TAG",
          "TAGS\x01a\x02", "DELAY\x013\x02", "\x01\x02", "TAGS\x01", "é", "😀", "\ud83d", "x" * 200)  # fmt: skip
HEADERS = sorted(CODES)
RENEWED = 4  # corpora after which the brokers are new ones
ASKED = (10, 11, 14, 15, 29, 30, 31, 34, 35, 36, 37, 38, 41, 42, 46, 310, 320, 361, 100, 101, 102, 105, 106, 206, 216,
         219, 224, 304, 311, 901, 17, 25, 202, 203, 208, 215, 300, 307, 315, 222, 3)  # fmt: skip
FIELDS = ("topic", "consumerGroup", "queueId", "b", "e", "i", "a", "queueOffset", "maxMsgNums", "sysFlag", "group",
          "offset", "subscription", "expressionType", "bname", "commitOffset", "clientID", "key", "namespace",
          "suspendTimeoutMillis")  # fmt: skip
HOST = b"\x7f\0\0\1\0\0\x2a\x9f"
BODIES = ("HeartbeatData", "TopicRouteData", "LockBatchRequestBody", "CheckClientRequestBody", "ResetOffsetBody",
          "ClusterInfo", "ConsumerRunningInfo", "ConsumeStats", "TopicConfig", "KVTable")  # fmt: skip
HEARTBEAT = write_body("HeartbeatData", {
    "clientID": "c", "producerDataSet": [{"groupName": "p"}],
    "consumerDataSet": [{"groupName": "g", "subscriptionDataSet": [{"topic": "orders", "subString": "a || b"}]}],
})  # fmt: skip
QUEUES = write_body("LockBatchRequestBody", {
    "consumerGroup": "g", "clientId": "c", "mqSet": [{"topic": "orders", "brokerName": "broker-a", "queueId": 1}],
})  # fmt: skip
JUNK = (b"{}", b"[]", b"null", b'{"a":[1,{"b":2.5}]}', b"{" * 200, b'{"mqSet":[{{"a":1}:2}]}', b"\xff\xfe", b"")


def properties(chance: random.Random) -> dict[str, str]:
    names = ("TAGS", "KEYS", "UNIQ_KEY", "DELAY", "TIMER_DELAY_MS", "TRAN_MSG", "WAIT", "a", "é")
    return {chance.choice(names): chance.choice(VALUES) for _ in range(chance.randrange(4))}


def stored(chance: random.Random) -> bytes:
    """Messages as a pull's answer has them, compressed or not."""
    found = b""
    for _ in range(chance.randrange(1, 4)):
        body, flag = b"tea" * chance.randrange(30), 0
        if chance.random() < 0.5:
            body, flag = compress(body), COMPRESSED | chance.choice(tuple(TYPES.values()))
        found += encode_stored(
            "orders", body, properties(chance), (7, 0, chance.randrange(9)), Origin(0, HOST, sys_flag=flag), (0, HOST),
            version=chance.choice((1, 2)),
        )  # fmt: skip
    return found


def batch(chance: random.Random) -> bytes:
    """Messages as a producer sends several."""
    return b"".join(encode_client_message(b"tea", properties(chance)) for _ in range(chance.randrange(1, 4)))


def body(chance: random.Random) -> bytes:
    made = chance.randrange(6)
    if made == 0:
        return stored(chance)
    if made == 1:
        return batch(chance)
    return chance.choice((HEARTBEAT, QUEUES, *JUNK))


def command(chance: random.Random) -> RemotingCommand:
    """One that could be sent, or nearly."""
    name, fields = chance.choice(HEADERS), None
    code = CODES[name] if chance.random() < 0.5 else chance.choice(ASKED)
    kind = chance.randrange(3)
    if kind == 0:
        fields = {chance.choice(FIELDS): chance.choice(VALUES) for _ in range(chance.randrange(9))}
    elif kind == 1:
        fields = write_header("SendMessageRequestHeaderV2", {
            "a": "p", "b": "orders", "c": "TBW102", "d": 4, "e": chance.randrange(-1, 5), "g": 0, "h": 0, "k": False,
            "f": chance.choice((0, 1, 4, 8)), "i": properties_text(properties(chance)), "j": chance.choice((0, 3)),
            "m": chance.random() < 0.3,
        })  # fmt: skip
        code = chance.choice((310, 320))
    return RemotingCommand(
        code, opaque=chance.randrange(2**31), flag=chance.choice((0, 0, 0, 1, 2)), ext_fields=fields,
        remark=chance.choice((None, "why", "é")), body=chance.choice((None, body(chance))),
        version=chance.choice((0, 399, 479)), serialize_type=chance.choice(("JSON", "ROCKETMQ")),
    )  # fmt: skip


LENGTHS = (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0", b"\1\0\0\xff", b"\0\1\0\0")


def hostile(corpus: list[bytes], chance: random.Random) -> bytes:
    """A few frames, mostly damaged; a length or a count is damaged more often than other bytes."""
    number, most = chance.random, len(corpus)
    frames = [corpus[int(number() * most)] for _ in range(1 + int(number() * 3))]
    data = bytearray(b"".join(frames))
    for _ in range((0, 1, 1, 1, 1, 1, 2, 3)[int(number() * 8)]):
        what = int(number() * 8)
        if what < 5:
            campaign.damage(chance, data)
        elif what == 5:
            data[int(number() * (len(data) + 1)) :] = chance.randbytes(int(number() * 20))
        else:
            at = sum(map(len, frames[: int(number() * len(frames))]))
            at += 4 * int(number() * 2) if what == 6 else 8 + int(number() * 40)
            data[at : at + 4] = LENGTHS[int(number() * 5)]
    return bytes(data)


def refused(call: Callable[[], object]) -> bool:
    """Whether it says that its input is not one; anything else that it raises goes on."""
    try:
        call()
    except ProtocolError:
        return True
    return False


class Codec:
    """What the frames of a corpus, damaged, hold: each body and each header once."""

    def __init__(self, corpus: list[bytes], chance: random.Random) -> None:
        self.corpus, self.chance = corpus, chance
        self.counts: Counter[str] = Counter()
        self.bodies: set[bytes] = set()
        self.texts: set[str] = set()

    def check(self) -> tuple[bytes, int]:
        """An input, which is the same whatever the pieces are, and how many frames were read or refused."""
        chance, counts = self.chance, self.counts
        data = hostile(self.corpus, chance)
        found, error = campaign.read_alike(lambda: RemotingReader(max_frame_size=100_000), data, chance)
        counts["commands"] += len(found)
        counts["refused"] += error is not None
        for each in found:
            counts["unwritable"] += refused(lambda each=each: write_command(each))  # type: ignore[misc]
            name = HEADERS[int(chance.random() * len(HEADERS))]
            counts["headers refused"] += refused(lambda each=each, name=name: read_header(name, each.ext_fields))  # type: ignore[misc]
            inside = each.body or b""
            if inside not in self.bodies:
                self.bodies.add(inside)
                self.check_body(inside)
            for text in each.ext_fields.values() if each.ext_fields else ():
                if text is not None and text not in self.texts:
                    self.texts.add(text)
                    check_text(text)
        return data, len(found) + (error is not None)

    def check_body(self, inside: bytes) -> None:
        """Bodies, stored messages and batches."""
        readers: tuple[Callable[[], object], ...] = (
            lambda: read_body(self.chance.choice(BODIES), inside),
            lambda: list(pulled_messages(inside, "broker-a")),
            lambda: decode_client_messages(inside),
        )
        self.counts["bodies refused"] += sum(map(refused, readers))


def check_text(text: str) -> None:
    """Properties and ids."""
    parse_properties(text)
    refused(lambda: parse_message_id(text))
    refused(lambda: parse_unique_id(text))


class Peer:
    """A connection to a broker or a name server, without a socket (connections.Transport)."""

    remote_address, local_host = "127.0.0.1:20001", "127.0.0.1"

    def __init__(self, service: Service, clock: ManualClock) -> None:
        self.written = 0
        self.connection = Connection(self, service, clock, 100_000)

    def write(self, frame: bytes) -> None:
        """Take an answer, which can be read."""
        reader = RemotingReader()
        reader.feed(frame)
        self.written += len(list(reader))

    def drop_later(self, why: str) -> None:
        """What is not the protocol ends the connection."""

    def play(self, data: bytes, clock: ManualClock) -> None:
        """Send it, let the brokers work, and leave."""
        self.connection.received(data)
        clock.settle()
        self.connection.lost("was closed by the client")
        clock.settle()


class Cluster:
    """An embedded cluster that is asked in place of a socket. A new one now and then, as topics come to be many."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.broker = rocketmq.Broker(clock=self.clock)
        self.broker.create_topic("orders", 4)
        served = Served(self.broker, {"broker-a": 10911}, (), 8)
        self.services = (BrokerRequests(served, self.broker.nodes["broker-a"]), NameServer(served))

    def close(self) -> None:
        self.broker.close()


class Errors(logging.Handler):
    """Raises where a server logs an error of its own."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            raise AssertionError(record.getMessage()) from record.exc_info[1]


def run(frames: int, seed: int) -> Counter[str]:
    """Fuzz until so many frames were read or refused; every twentieth input goes to a broker and a name server."""
    chance = random.Random(seed)
    counts: Counter[str] = Counter()
    logs = logging.getLogger("pyengine.rocketmq.remoting")
    watch, before = Errors(logging.ERROR), logs.level
    logs.addHandler(watch)
    logs.setLevel(logging.ERROR)
    try:
        cluster = Cluster()
        number = reached = answers = 0
        while reached < frames:
            if number % campaign.BLOCK == 0:
                corpus = [write_command(command(chance)) for _ in range(min(frames, campaign.BLOCK // 5))]
                codec = Codec(corpus, chance)
                if number % (RENEWED * campaign.BLOCK) == 0:
                    cluster.close()
                    cluster = Cluster()
            data, came = codec.check()
            reached += came
            if number % 20 == 0:
                for service in cluster.services:
                    peer = Peer(service, cluster.clock)
                    peer.play(data, cluster.clock)
                    answers += peer.written
            number += 1
            if number % campaign.BLOCK == 0 or reached >= frames:
                counts.update(codec.counts)
        cluster.close()
    finally:
        logs.removeHandler(watch)
        logs.setLevel(before)
    counts.update({"inputs": number, "answers": answers})
    return counts


if __name__ == "__main__":
    logging.getLogger("pyengine").setLevel(logging.CRITICAL)
    campaign.main("fuzz_remoting", __doc__, run)
