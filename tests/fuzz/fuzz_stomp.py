"""``python -m tests.fuzz.fuzz_stomp [--frames N] [--seed S]``: hostile bytes for the STOMP reader and for a session.

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
from pyengine._engine.wire.stomp import StompReader, write_frame
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


def hostile(corpus: list[bytes], chance: random.Random) -> bytes:
    """A few frames, mostly damaged."""
    number, most = chance.random, len(corpus)
    data = bytearray(b"".join([corpus[int(number() * most)] for _ in range(1 + int(number() * 4))]))
    for _ in range((0, 1, 1, 3)[int(number() * 4)]):
        campaign.damage(chance, data)
    return bytes(data)


def check_reader(data: bytes, chance: random.Random) -> tuple[int, bool]:
    """The same whatever the pieces are, and what was read can be written. How many frames; whether one was refused."""
    version, nio = ("1.0", "1.1", "1.2")[int(chance.random() * 3)], chance.random() < 0.3
    found, error = campaign.read_alike(
        lambda: StompReader(version, max_data_length=1000, max_frame_size=3000, nio=nio),
        data, chance, (ProtocolError, EOFError),
    )  # fmt: skip
    for each in found:
        write_frame(each, version)
    return len(found), error is not None


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


def run(frames: int, seed: int) -> Counter[str]:
    """Fuzz until so many frames were read or refused; every twentieth input goes to a session too."""
    chance = random.Random(seed)
    counts: Counter[str] = Counter()
    number = read = refused = 0
    with Broker(name=f"fuzz-{seed}", clock=ManualClock()) as broker:
        while read + refused < frames:
            if number % campaign.BLOCK == 0:
                corpus = [frame(chance) for _ in range(min(frames, campaign.BLOCK))]
            data = hostile(corpus, chance)
            found, ended = check_reader(data, chance)
            read += found
            refused += ended
            if number % 20 == 0:
                peer = Peer(broker, number)
                peer.play(data)
                assert broker.subscriptions() == () or all(not each.active for each in broker.subscriptions())
                counts["answers"] += len(peer.written)
            number += 1
    counts.update({"inputs": number, "frames": read, "refused": refused})
    return counts


if __name__ == "__main__":
    logging.getLogger("pyengine.activemq").setLevel(logging.CRITICAL)
    campaign.main("fuzz_stomp", __doc__, run)
