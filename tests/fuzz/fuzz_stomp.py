"""``python -m tests.fuzz.fuzz_stomp [--inputs N] [--seed S]``: hostile bytes for the STOMP reader and for a session.

Checked: a reader raises nothing but ProtocolError (and EOFError as stomp+nio reads), the same frames and the same error
come out however the bytes are cut, and it keeps no more bytes than were fed; a session on a broker of its own answers
every frame or ends, raises nothing but BrokenFrameError, and leaves nothing behind at the broker when it has left. The
seed decides every input.
"""

from __future__ import annotations

import logging
import random
from collections import Counter

from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch
from pyengine._engine.wire.stomp import StompFrame, StompReader, write_frame
from pyengine.activemq import Broker
from pyengine.activemq.transport.stomp_frames import BrokenFrameError
from pyengine.activemq.transport.stomp_session import StompSession
from pyengine.clock import ManualClock
from pyengine.errors import ProtocolError
from tests.fuzz import campaign

ACTIONS = ("CONNECT", "STOMP", "SEND", "SUBSCRIBE", "UNSUBSCRIBE", "ACK", "NACK", "BEGIN", "COMMIT", "ABORT",
           "DISCONNECT", "MESSAGE", "", "NOSUCH", "SUB", "send")  # fmt: skip
NAMES = ("destination", "id", "ack", "content-length", "receipt", "transaction", "selector", "accept-version",
         "heart-beat", "message-id", "subscription", "priority", "expires", "persistent", "reply-to", "browser",
         "transformation", "amq-msg-type", "activemq.prefetchSize", "activemq.subscriptionName", "activemq.priority",
         "client-id", "JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount", "x", "", "JMSType", "timestamp",
         "AMQ_SCHEDULED_DELAY")  # fmt: skip
VALUES = ("/queue/a", "/topic/t.>", "/queue/a,/topic/t", "/temp-queue/m", "/remote-temp-queue/x", "a", "1", "0", "-1",
          "5", "99999999999999999999", "client", "client-individual", "auto", "true", "1.2", "1.0,1.1", "0,0", "-1,5",
          "t", "r", "x = 1", "x ==", "", " ", "\\n\\c\\\\", "text", "bytes", "jms-map-xml", "\x00", "\r", "é",
          "2147483648", "104857601")  # fmt: skip


def frame(chance: random.Random) -> bytes:
    """One that could be sent, or nearly."""
    lines = [chance.choice(ACTIONS)]
    lines += [f"{chance.choice(NAMES)}:{chance.choice(VALUES)}" for _ in range(chance.randrange(6))]
    end = chance.choice(("\n", "\n", "\n", "\r\n"))
    body = chance.choice((b"", b"hello", b"a\0b", chance.randbytes(chance.randrange(20))))
    return end.join(lines).encode() + (end * 2).encode() + body + chance.choice((b"\0", b"\0\n", b"\0\0", b"", b"\n"))


def hostile(chance: random.Random) -> bytes:
    """A few frames, damaged or not."""
    data = bytearray(b"".join(frame(chance) for _ in range(chance.randrange(1, 5))))
    for _ in range(chance.choice((0, 0, 1, 3))):
        at = chance.randrange(len(data) + 1)
        what = chance.randrange(3)
        if what == 0:
            data[at:at] = chance.randbytes(chance.randrange(1, 4))
        elif what == 1:
            del data[at : at + chance.randrange(1, 8)]
        elif at < len(data):
            data[at] = chance.randrange(256)
    return bytes(data)


def read(data: bytes, pieces: list[int], version: str, nio: bool) -> tuple[list[StompFrame], str]:
    """The frames, and the words with which reading ended."""
    reader = StompReader(version, max_data_length=1000, max_frame_size=3000, nio=nio)
    return campaign.read(reader, data, pieces, (ProtocolError, EOFError))


def check_reader(data: bytes, chance: random.Random) -> Counter[str]:
    """The same whatever the pieces are."""
    version, nio = chance.choice(("1.0", "1.1", "1.2")), chance.random() < 0.3
    whole = read(data, [len(data)], version, nio)
    cut = read(data, campaign.cut(chance, len(data), 9), version, nio)
    assert whole == cut, (data, version, nio, whole, cut)
    for each in whole[0]:
        write_frame(each, version)
    return Counter({"frames": len(whole[0]), "refused": bool(whole[1])})


class Peer:
    """A session on a broker that other sessions of the run share."""

    def __init__(self, broker: Broker, number: int) -> None:
        self.written: list[bytes] = []
        self.dispatches: list[MessageDispatch] = []
        self.session = StompSession(
            broker,
            f"ID:fuzz-{number}:1",
            lambda frame, version: self.written.append(write_frame(frame, version)),
            self.dispatches.append,
        )

    def play(self, data: bytes) -> None:
        """Feed it, deliver what comes, and leave."""
        reader = StompReader(max_data_length=1000)
        reader.feed(b"CONNECT\naccept-version:1.2\n\n\0" + data)
        try:
            for each in reader:
                self.session.receive(each)
                if self.session.closing:
                    break
                reader.use(self.session.wire_version)
                while self.dispatches:
                    self.session.deliver(self.dispatches.pop(0))
        except ProtocolError as error:
            self.session.refuse(error)
        except BrokenFrameError:
            pass
        self.session.leave()


def run(inputs: int, seed: int) -> Counter[str]:
    """Fuzz ``inputs`` texts; every tenth goes to a session too."""
    chance = random.Random(seed)
    counts: Counter[str] = Counter()
    with Broker(name=f"fuzz-{seed}", clock=ManualClock()) as broker:
        for number in range(inputs):
            data = hostile(chance)
            counts += check_reader(data, chance)
            if number % 10 == 0:
                peer = Peer(broker, number)
                peer.play(data)
                assert broker.subscriptions() == () or all(not each.active for each in broker.subscriptions())
                counts["answers"] += len(peer.written)
    return counts


if __name__ == "__main__":
    logging.getLogger("pyengine.activemq").setLevel(logging.CRITICAL)
    campaign.main("fuzz_stomp", __doc__, run)
