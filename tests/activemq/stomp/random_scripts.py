"""``python -m tests.activemq.stomp.random_scripts [--scripts N] [--seed S]``: what STOMP clients ask of bodies, of the
scheduler and of plugins, drawn at random, asked of the real broker and of ours; what differs is printed.

A script is a case: plugins, and frames that one connection sends, each with a receipt; what is called STREAM among them
is a stream message that a JMS client sends, as STOMP cannot. The answers are compared in their order, and the messages
of each subscription in theirs. Times are compared by what they are relative to.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import socket
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy

from pyengine import Message, StreamBody
from pyengine._engine.wire.stomp import StompFrame, StompReader, write_frame
from pyengine.activemq import Broker, ConnectionFactory
from pyengine.activemq.broker.broker import AuthorizationPlugin
from pyengine.errors import ProtocolError
from pyengine.topology.authorization import AuthorizationEntry
from pyengine.topology.policy import DiscardingPlugin, ForcePersistencyModePlugin, TimeStampingPlugin
from tests.activemq.stomp.real import RELEASES, RealBroker

Case = dict[str, Any]
LATER = 32_503_680_000_000  # ms, the year 3000
PATIENCE = 10.0  # seconds
SCHEDULED = 1.6  # seconds after which every drawn delay is over
SETTLED = 0.3  # seconds after which messages are acknowledged
QUEUES = ("/queue/Q", "/queue/Q", "/queue/R", "/topic/T")
BODIES = (
    "", "tea", "é\u2603", '{"map":{"entry":{"string":["name","Dejan"]}}}', '{"map":{"entry":[{"string":"i","int":5}]}}',
    "<map><entry><string>a</string><int>7</int></entry><entry><string>b</string><null/></entry></map>",
    "<map><entry><string>f</string><double>1.5</double></entry></map>", "<map/>", "<string>x</string>", "<int>5</int>",
    "<byte-array>AQL/</byte-array>", "<list><int>1</int><int>2</int></list>", '{"map":{"entry":{"string":["a","b"]}}}',
    '{"string":"x"}', "{", "<map>", "<map><entry><string>l</string><list><int>1</int></list></entry></map>",
)  # fmt: skip
TRANSFORMATIONS = ("jms-map-json", "jms-map-xml", "jms-object-json", "jms-object-xml", "jms-json", "jms-xml",
                   "jms-byte", "jms-nothing")  # fmt: skip
HEADERS = (
    ("priority", ("0", "7", "12", "-3", "x", "4294967297")), ("expires", (str(LATER), "1000", "0", "-5", "soon")),
    ("timestamp", ("5", "1000000000000", "later")),
    ("type", ("ty", "")), ("correlation-id", ("c", "")), ("JMSXGroupID", ("g", "")), ("JMSXGroupSeq", ("2", "x")),
    ("JMSXDeliveryCount", ("3", "0")), ("JMSPriority", ("8", "x")),
    ("JMSType", ("z",)), ("JMSXUserID", ("u",)), ("reply-to", ("/queue/S", "S", "")), ("price", ("150", "")),
    ("amq-msg-type", ("text", "bytes", "BYTES", "map")), ("JMSExpiration", (str(LATER),)), ("redelivered", ("true",)),
    ("JMSReplyTo", ("queue://S", "S")), ("JMSTimestamp", ("9",)), ("transformation-error", ("e",)),
)  # fmt: skip
UNLIKE_ON_TOPICS = ("JMSXDeliveryCount",)  # listed in docs/differences.md
SCHEDULES: tuple[dict[str, str], ...] = (
    {"AMQ_SCHEDULED_DELAY": "200"}, {"AMQ_SCHEDULED_DELAY": "0"}, {"AMQ_SCHEDULED_DELAY": "-1"},
    {"AMQ_SCHEDULED_DELAY": "x"}, {"AMQ_SCHEDULED_PERIOD": "150"}, {"AMQ_SCHEDULED_PERIOD": "0"},
    {"AMQ_SCHEDULED_DELAY": "100", "AMQ_SCHEDULED_PERIOD": "200", "AMQ_SCHEDULED_REPEAT": "2"},
    {"AMQ_SCHEDULED_DELAY": "100", "AMQ_SCHEDULED_REPEAT": "2"}, {"AMQ_SCHEDULED_REPEAT": "1"},
    {"AMQ_SCHEDULED_PERIOD": "100", "AMQ_SCHEDULED_REPEAT": "1001"}, {"AMQ_SCHEDULED_CRON": ""},
    {"AMQ_SCHEDULED_CRON": "x"}, {"AMQ_SCHEDULED_CRON": "0 0 1 1 *"}, {"AMQ_SCHEDULED_PERIOD": "-5"},
    {"AMQ_SCHEDULED_DELAY": "50", "AMQ_SCHEDULED_PERIOD": "100", "AMQ_SCHEDULED_REPEAT": "-1"},
)  # fmt: skip
# Values of a stream, and what stands in front of them: a property or a header, whose name begins with "#".
VALUES = ("int=5", "int=-1", "long=9", "double=1.5", "boolean=true", "bytes=tea", "null=", "string=x", "string=",
          "string=<map/>")  # fmt: skip
PROPERTIES = ("#int=150", "#group=g", "#type=ty", "#correlation=c")
STATISTICS = ("ActiveMQ.Statistics.Broker", "ActiveMQ.Statistics.Destination.Q", "ActiveMQ.Statistics.DestinationQ",
              "ActiveMQ.Statistics.Destination.>", "ActiveMQ.Statistics.Subscription",
              "ActiveMQ.Statistics.Destination.none")  # fmt: skip
# Entries of a statistics answer that two brokers have in common.
COUNTED = re.compile(r"(size|dequeueCount|dispatchCount|expiredCount|inflightCount|consumerCount"
                     r"|destinationName|subscriptionName|selector|prefetchSize|isExclusive|isBrowser)$")  # fmt: skip


def drawn(chance: random.Random) -> Case:
    """A script."""
    kind = chance.choice(("bodies", "bodies", "scheduler", "plugins", "plugins", "statistics", "rights"))
    plugins = {
        "plugins": lambda: chance.sample(
            [f"stamp={chance.choice((0, 60_000))},{chance.choice((0, 5000))},{chance.choice(('true', 'false'))}",
             f"force={chance.choice(('true', 'false'))}", "discard"], chance.randrange(1, 4)),
        "statistics": lambda: ["statistics"],
        "rights": lambda: [f"rights={where},{chance.choice(('users', 'admins', '*'))},"
                           f"{chance.choice(('users', 'admins'))},{chance.choice(('users', 'users', 'admins'))}"
                           for where in ("Q", "R", ">", "topic://T")]
        + ["rights=topic://ActiveMQ.Advisory.>,users,users,users"],
    }.get(kind, list)()  # fmt: skip
    frames = [_subscribe(chance, number, where) for number, where in enumerate(("/queue/Q", "/queue/R", "/topic/T"))]
    frames += [["SUBSCRIBE", {"id": "dlq", "destination": "/queue/ActiveMQ.DLQ"}, ""]]
    if kind == "statistics":
        frames += [["SUBSCRIBE", {"id": "s", "destination": "/queue/S", "transformation": "jms-map-json"}, ""]]
    # Of both kinds in one queue, which come first is chance, as there is one cursor for each.
    persistent = chance.choice(({"persistent": "true"}, {"persistent": "false"}, {"JMSDeliveryMode": "PERSISTENT"}, {}))
    for _ in range(chance.randrange(2, 7)):
        if kind == "statistics" and chance.random() < 0.5:
            frames.append(["SEND", {"destination": f"/queue/{chance.choice(STATISTICS)}", "reply-to": "/queue/S"}, ""])
        else:
            frames.append(_send(chance, kind, persistent))
    if kind in ("bodies", "scheduler", "plugins") and chance.random() < 0.6:
        for _ in range(chance.randrange(1, 3)):
            frames.insert(chance.randrange(4, len(frames) + 1), _stream(chance, kind, persistent))
    return {"kind": kind, "plugins": sorted(plugins, key=lambda each: each.partition("=")[0]), "frames": frames}


def _subscribe(chance: random.Random, number: int, where: str) -> list[Any]:
    headers = {"id": str(number), "destination": where}
    if chance.random() < 0.6:
        headers["transformation"] = chance.choice(TRANSFORMATIONS)
    if chance.random() < 0.3:
        headers["ack"] = "client-individual"
    return ["SUBSCRIBE", headers, ""]


def _send(chance: random.Random, kind: str, persistent: dict[str, str]) -> list[Any]:
    headers = {"destination": chance.choice(QUEUES), **persistent}
    body = chance.choice(BODIES)
    known = [each for each in HEADERS if "topic" not in headers["destination"] or each[0] not in UNLIKE_ON_TOPICS]
    if chance.random() < (0.6 if kind == "bodies" else 0.1):
        headers["transformation"] = chance.choice(TRANSFORMATIONS)
    if chance.random() < 0.3:
        headers["content-length"] = str(len(body.encode()))
    for name, values in chance.sample(known, chance.randrange(4)):
        headers[name] = chance.choice(values)
    if kind == "scheduler" and chance.random() < 0.6:
        headers |= chance.choice(SCHEDULES)
    return ["SEND", headers, body]


def _stream(chance: random.Random, kind: str, persistent: dict[str, str]) -> list[Any]:
    destination = chance.choice(QUEUES)
    where = destination.removeprefix("/").replace("/", "://")
    mode = 2 if set(persistent.values()) & {"true", "PERSISTENT"} else 1
    words = chance.sample(PROPERTIES, chance.randrange(3)) + chance.choices(VALUES, k=chance.randrange(4))
    if kind == "scheduler" and chance.random() < 0.4:
        words.append("#long=200")
    return ["STREAM", {"destination": destination}, " ".join([where, str(mode), chance.choice("0479"), *words])]


class Played:
    """A script at one broker. stream: sends a stream message. answers: to its frames; messages: subscription -> what
    came.
    """

    def __init__(self, port: int, stream: Callable[[str], str]) -> None:
        self._stream = stream
        self.answers: list[Any] = []
        self.messages: dict[str, list[Any]] = {}
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self._reader = StompReader("1.2")
        self._receipts: set[str] = set()
        self._failed = False
        self.open = True

    def play(self, case: Case) -> None:
        with self._socket:
            self._write("CONNECT", {"accept-version": "1.2", "login": "user", "passcode": "secret"}, "")
            self._until(lambda: bool(self.answers))
            names = []
            for number, (action, headers, body) in enumerate(case["frames"]):
                if "Statistics" in headers["destination"]:
                    self._until(lambda: False, SETTLED)
                if action == "STREAM":
                    self._until(lambda: False, SETTLED)  # two connections have no order between them
                    self.answers.append(self._stream(body))
                    self._until(lambda: False, SETTLED)
                    continue
                self._ask(action, headers | {"receipt": str(number)}, body)
                if action == "SUBSCRIBE" and self.answers[-1] == "receipt":
                    names.append((headers["id"], headers["destination"]))
            if case["kind"] == "scheduler":
                self._until(lambda: False, SCHEDULED)
            for name, where in names:
                if case["kind"] == "rights" or not self.open:
                    self._until(lambda: False, 0.3)
                    break
                self._ask("SEND", {"destination": where, "end": "1", "receipt": f"end {name}"}, "")
                self._until(lambda name=name: "end" in self.messages.get(name, ()))

    def _write(self, action: str, headers: dict[str, str], body: str) -> None:
        try:
            self._socket.sendall(write_frame(StompFrame(action, headers, body.encode()), "1.2"))
        except OSError:
            self.open = False

    def _ask(self, action: str, headers: dict[str, str], body: str) -> None:
        if not self.open:
            return
        number, receipt = len(self.answers), headers["receipt"]
        self._write(action, headers, body)
        self._until(lambda: receipt in self._receipts or len(self.answers) > number)
        if len(self.answers) == number:
            self.answers.append("receipt" if receipt in self._receipts else "closed" if not self.open else "nothing")

    def _until(self, ready: Any, seconds: float = PATIENCE) -> None:
        end = time.monotonic() + seconds
        while self.open and not ready() and (left := end - time.monotonic()) > 0:
            self._socket.settimeout(left)
            try:
                data = self._socket.recv(1 << 16)
            except TimeoutError:
                return
            except OSError:
                data = b""
            self.open = bool(data)
            self._reader.feed(data)
            for frame in self._reader:
                self._came(frame)

    def _came(self, frame: StompFrame) -> None:
        headers = frame.headers
        if frame.action == "RECEIPT":
            self._receipts.add(headers["receipt-id"])
        elif frame.action == "MESSAGE":
            shown = "end" if "end" in headers else [_shown(headers), _body(frame)]
            self.messages.setdefault(headers["subscription"], []).append(shown)
            if "ack" in headers:
                refused = shown != "end" and len(frame.body) % 2 == 0
                self._write("NACK" if refused else "ACK", {"id": headers["ack"]}, "")
        else:
            self.answers.append([frame.action, mask(headers.get("message", ""))])


def _shown(headers: dict[str, str]) -> dict[str, str]:
    """Headers without what is another at each run: a time of the broker's is ``now``, an end after it how long."""
    found = {name: mask(text) for name, text in sorted(headers.items())}
    for name in ("message-id", "ack"):
        found.pop(name, None)
    sent, expires = int(headers.get("timestamp", "0")), int(headers.get("expires", "0"))
    if sent > 1_500_000_000_000:
        found["timestamp"] = "now"
    if expires > LATER:
        found["expires"] = "after LATER"  # as the broker's clock was ahead of the timestamp
    for name in ("expires", "originalExpiration"):
        if 1_500_000_000_000 < int(headers.get(name, "0")) < LATER - 10_000_000_000:
            found[name] = f"now + {expires - sent}" if name == "expires" else "then"
    if headers["subscription"] == "dlq":
        found.pop("transformation", None)  # of the consumer before: listed in docs/differences.md
    return found


def _body(frame: StompFrame) -> Any:
    text = mask(frame.text)
    if frame.headers.get("subscription") != "s" or not text.startswith("{"):
        return text
    entries = json.loads(text).get("map", {})
    entries = entries.get("entry", []) if isinstance(entries, dict) else []
    pairs = sorted(json.dumps(each, sort_keys=True) for each in (entries if isinstance(entries, list) else [entries]))
    if any("queue://S" in each for each in pairs):  # the answers before are in flight, or not
        return "S"
    return [each for each in pairs if COUNTED.search(re.sub(r'.*?"string": (?:\[)?"(\w+)".*', r"\1", each))]


def mask(text: str) -> str:
    """The text without the parts that differ at each run."""
    text = re.sub(r"class (\S+) cannot be cast to class .*", r"\1", text)  # once HotSpot has compiled it
    return re.sub(r"\n---- Debugging information.*|ID:[\w.:-]+|tcp://[\d.:]+", "", text, flags=re.DOTALL)


def settings(plugins: list[str]) -> dict[str, Any]:
    """The arguments of our broker."""
    found: dict[str, Any] = {}
    entries = []
    for text in plugins:
        kind, _, given = text.partition("=")
        values = given.split(",")
        if kind == "stamp":
            found["time_stamping_plugin"] = TimeStampingPlugin(int(values[0]), int(values[1]), values[2] == "true")
        elif kind == "force":
            found["force_persistency_mode_plugin"] = ForcePersistencyModePlugin(given == "true")
        elif kind == "discard":
            found["discarding_plugin"] = DiscardingPlugin()
        elif kind == "statistics":
            found["statistics_plugin"] = True
        else:
            entries.append(AuthorizationEntry(values[0], *((each,) for each in values[1:])))
    if entries:
        found |= {"users": {"user": "secret"}, "groups": {"user": ("users",)},
                  "authorization_plugin": AuthorizationPlugin(tuple(entries))}  # fmt: skip
    return found


def streamed(broker: Broker, words: str) -> str:
    """A stream message of a JMS client of ours, as StompBroker's."""
    where, mode, priority, *values = words.split(" ")
    kinds: dict[str, Callable[[str], Any]] = {
        "int": int, "long": numpy.int64, "double": float, "boolean": lambda text: text == "true", "bytes": str.encode,
        "null": lambda _: None, "string": str,
    }  # fmt: skip
    named = {"#int": "price", "#long": "AMQ_SCHEDULED_DELAY", "#group": "JMSXGroupID"}
    body, properties, headers = StreamBody(), {}, {}
    for each in values:
        kind, _, text = each.partition("=")
        if kind in kinds:
            body.write_object(kinds[kind](text))
        elif kind in named:
            properties[named[kind]] = {"#int": int, "#long": numpy.int64}.get(kind, str)(text)
        else:
            headers[{"#type": "type", "#correlation": "correlation_id"}[kind]] = text
    with ConnectionFactory("vm://random", broker=broker).create_connection() as connection:
        producer = connection.create_session().create_producer(where)
        producer.delivery_mode = "PERSISTENT" if mode == "2" else "NON_PERSISTENT"
        producer.priority = int(priority)
        producer.send(Message(body=body, properties=properties, **headers))
    return "sent"


def played(port: int, case: Case, stream: Callable[[str], str]) -> dict[str, Any]:
    """What a script shows of the broker at a port."""
    one = Played(port, stream)
    try:
        one.play(case)
    except ProtocolError as error:
        one.answers.append(["broken", str(error)])
    if "s" in one.messages:  # several answers come in the order of a set of objects
        one.messages["s"].sort(key=json.dumps)
    if not one.open:  # how much had been written when it was closed is chance
        one.messages.clear()
        while one.answers and one.answers[-1] in ("closed", "receipt"):
            one.answers.pop()
        one.answers.append("closed")
    return {"answers": one.answers, "messages": dict(sorted(one.messages.items()))}


def played_here(case: Case) -> dict[str, Any]:
    """What a script shows of our broker."""
    with Broker(
        name="random", transport_connectors=["stomp://127.0.0.1:0"], scheduler_support=True, **settings(case["plugins"])
    ) as broker:
        return played(broker.transport_connectors[0].port, case, partial(streamed, broker))


def difference(real: RealBroker, case: Case) -> dict[str, Any] | None:
    """What both show; None if it is the same."""
    real.renew(" ".join(case["plugins"]))
    with ThreadPoolExecutor(2) as pool:
        theirs = pool.submit(played, real.port, case, real.stream)
        ours = pool.submit(played_here, case)
        return None if ours.result() == theirs.result() else {"ours": ours.result(), "real": theirs.result()}


def shrunk(real: RealBroker, case: Case) -> Case:
    """The case with as few frames as show a difference."""
    for number in reversed(range(len(case["frames"]))):
        less = case | {"frames": case["frames"][:number] + case["frames"][number + 1 :]}
        if difference(real, less) is not None:
            case = less
    return case


def run(real: RealBroker, scripts: int, seed: int) -> tuple[Counter[str], list[tuple[Case, dict[str, Any]]]]:
    """How many agreed, by kind, and what differed twice, shrunk."""
    counts: Counter[str] = Counter()
    found = []
    for number in range(seed, seed + scripts):
        case = drawn(random.Random(number))
        if difference(real, case) is None:
            counts[case["kind"]] += 1
        elif (again := difference(real, less := shrunk(real, case))) is None:
            counts["unstable"] += 1
        else:
            counts["differ"] += 1
            found.append((less, again))
            print(json.dumps({"seed": number, "case": less, **again}, ensure_ascii=False), flush=True)
    return counts, found


def main() -> int:
    """Play them."""
    parser = argparse.ArgumentParser(prog="python -m tests.activemq.stomp.random_scripts", description=__doc__)
    parser.add_argument("--scripts", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1, help="of the first")
    parser.add_argument("--release", default=RELEASES[0], choices=RELEASES)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        real = RealBroker(options.release, Path(folder) / "jvm.log")
        try:
            counts, found = run(real, options.scripts, options.seed)
        finally:
            real.close()
    print(dict(counts))
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
