"""An invented Kafka broker on loopback: it answers what kafka-consumer-groups asks, in old versions of the protocol.

It says of each request which versions it knows: those that need no compact forms, as far as there are any, so that
releases from 0.10 to 4.x speak to it alike.
"""

from __future__ import annotations

import socketserver
import struct
import threading
import uuid
from collections.abc import Sequence

from tests.backlog.tools.clusters import Client, Cluster, Group, Moment, Queue

BROKER = ("127.0.0.11", 9092)
PRODUCE, LIST_OFFSETS, METADATA, OFFSET_FETCH, FIND_COORDINATOR = 0, 2, 3, 9, 10
DESCRIBE_GROUPS, LIST_GROUPS, API_VERSIONS = 15, 16, 18
CONSUMER_GROUP_DESCRIBE, SHARE_GROUP_DESCRIBE, SHARE_GROUP_OFFSETS = 69, 77, 90
# Request -> the oldest and the newest version that is answered.
VERSIONS = {
    PRODUCE: (0, 3),  # never asked; clients of 2017 want to know of it
    LIST_OFFSETS: (0, 5),
    METADATA: (0, 5),
    OFFSET_FETCH: (0, 5),
    FIND_COORDINATOR: (0, 2),
    DESCRIBE_GROUPS: (0, 4),
    LIST_GROUPS: (0, 5),
    API_VERSIONS: (0, 2),
    CONSUMER_GROUP_DESCRIBE: (0, 1),
    SHARE_GROUP_DESCRIBE: (1, 1),
    SHARE_GROUP_OFFSETS: (0, 1),
}
FLEXIBLE = {LIST_GROUPS: 3, CONSUMER_GROUP_DESCRIBE: 0, SHARE_GROUP_DESCRIBE: 0, SHARE_GROUP_OFFSETS: 0}
GROUP_ID_NOT_FOUND, UNSUPPORTED_VERSION = 69, 35
REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
NO_OPERATIONS = -2_147_483_648


class Writer:
    """Big-endian fields, and the compact forms of newer versions if ``flexible``."""

    def __init__(self, flexible: bool = False) -> None:
        self.data = bytearray()
        self.flexible = flexible

    def i8(self, value: int) -> None:
        self.data += struct.pack(">b", value)

    def i16(self, value: int) -> None:
        self.data += struct.pack(">h", value)

    def i32(self, value: int) -> None:
        self.data += struct.pack(">i", value)

    def i64(self, value: int) -> None:
        self.data += struct.pack(">q", value)

    def varint(self, value: int) -> None:
        while value > 127:
            self.data.append(value & 127 | 128)
            value >>= 7
        self.data.append(value)

    def text(self, value: str | None) -> None:
        raw = None if value is None else value.encode()
        if self.flexible:
            self.varint(0 if raw is None else len(raw) + 1)
        else:
            self.i16(-1 if raw is None else len(raw))
        self.data += raw or b""

    def bytes(self, value: bytes) -> None:
        self.i32(len(value))
        self.data += value

    def uuid(self, name: str) -> None:
        self.data += uuid.uuid5(uuid.NAMESPACE_DNS, name).bytes

    def count(self, number: int) -> None:
        if self.flexible:
            self.varint(number + 1)
        else:
            self.i32(number)

    def tags(self) -> None:
        if self.flexible:
            self.data.append(0)


class Reader:
    def __init__(self, data: bytes, flexible: bool) -> None:
        self.data, self.at, self.flexible = data, 0, flexible

    def _take(self, form: str) -> int:
        size = struct.calcsize(form)
        value: int = struct.unpack(form, self.data[self.at : self.at + size])[0]
        self.at += size
        return value

    def i8(self) -> int:
        return self._take(">b")

    def i16(self) -> int:
        return self._take(">h")

    def i32(self) -> int:
        return self._take(">i")

    def i64(self) -> int:
        return self._take(">q")

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def text(self) -> str | None:
        length = self.varint() - 1 if self.flexible else self.i16()
        if length < 0:
            return None
        self.at += length
        return self.data[self.at - length : self.at].decode()

    def count(self) -> int:
        return self.varint() - 1 if self.flexible else self.i32()

    def tags(self) -> None:
        if self.flexible:
            assert self.varint() == 0


class Servers:
    """The broker of one moment of one cluster. ``show`` sets both between two commands."""

    def __init__(self) -> None:
        self.cluster: Cluster | None = None
        self.moment = 0
        servers = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                while (length := self._read(4)) is not None:
                    frame = self._read(struct.unpack(">I", length)[0])
                    if frame is None:
                        return
                    answer = servers.answer(frame)
                    self.request.sendall(struct.pack(">I", len(answer)) + answer)

            def _read(self, count: int) -> bytes | None:
                data = b""
                while len(data) < count:
                    try:
                        more = self.request.recv(count - len(data))
                    except OSError:
                        return None
                    if not more:
                        return None
                    data += more
                return data

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

        self._server = Server(BROKER, Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def show(self, cluster: Cluster, moment: int) -> None:
        self.cluster, self.moment = cluster, moment

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, frame: bytes) -> bytes:
        """A response for a request, both without their lengths."""
        key, version, number = struct.unpack(">hhi", frame[:8])
        head = struct.pack(">i", number)
        if key == API_VERSIONS:
            return head + self._api_versions(version)
        flexible = version >= FLEXIBLE.get(key, 99)
        request = Reader(frame, False)
        request.at = 8
        request.text()
        request.flexible = flexible
        request.tags()
        response = Writer(flexible)
        response.tags()
        {
            METADATA: self._metadata,
            FIND_COORDINATOR: self._coordinator,
            DESCRIBE_GROUPS: self._describe_groups,
            OFFSET_FETCH: self._offsets,
            LIST_OFFSETS: self._ends,
            LIST_GROUPS: self._groups,
            CONSUMER_GROUP_DESCRIBE: self._describe_consumer_groups,
            SHARE_GROUP_DESCRIBE: self._describe_share_groups,
            SHARE_GROUP_OFFSETS: self._share_offsets,
        }[key](version, request, response)
        return head + bytes(response.data)

    def _api_versions(self, version: int) -> bytes:
        known = version <= VERSIONS[API_VERSIONS][1]
        response = Writer()
        response.i16(0 if known else UNSUPPORTED_VERSION)
        response.count(len(VERSIONS))
        for key, (oldest, newest) in VERSIONS.items():
            response.i16(key)
            response.i16(oldest)
            response.i16(newest)
        if known and version:
            response.i32(0)
        return bytes(response.data)

    @property
    def _known(self) -> tuple[Group, ...]:
        assert self.cluster is not None
        return self.cluster.groups

    def _moment(self, name: str | None, *kinds: str) -> Moment | None:
        found = next((each for each in self._known if each.name == name and each.kind in kinds), None)
        return found.moments[self.moment] if found else None

    def _queue(self, topic: str, number: int) -> Queue | None:
        return next(
            (
                queue
                for group in self._known
                for queue in group.moments[self.moment].queues
                if (queue.topic, queue.number) == (topic, number)
            ),
            None,
        )

    def _metadata(self, version: int, request: Reader, response: Writer) -> None:
        count = request.i32()
        names = [request.text() or "" for _ in range(count)] if count > 0 else []
        topics: dict[str, set[int]] = {}
        for group in self._known:
            for queue in group.moments[self.moment].queues:
                topics.setdefault(queue.topic, set()).add(queue.number)
        if count < 0 or (count == 0 and version == 0):
            names = list(topics)
        if version >= 3:
            response.i32(0)
        response.count(1)
        response.i32(1)
        response.text(BROKER[0])
        response.i32(BROKER[1])
        if version >= 1:
            response.text(None)
        if version >= 2:
            response.text("invented")
        if version >= 1:
            response.i32(1)
        response.count(len(names))
        for name in names:
            response.i16(0 if name in topics else 3)
            response.text(name)
            if version >= 1:
                response.i8(0)
            response.count(len(topics.get(name, ())))
            for number in sorted(topics.get(name, ())):
                response.i16(0)
                response.i32(number)
                response.i32(1)
                for _ in range(2):
                    response.count(1)
                    response.i32(1)
                if version >= 5:
                    response.count(0)

    def _coordinator(self, version: int, request: Reader, response: Writer) -> None:
        if version >= 1:
            response.i32(0)
        response.i16(0)
        if version >= 1:
            response.text(None)
        response.i32(1)
        response.text(BROKER[0])
        response.i32(BROKER[1])

    def _describe_groups(self, version: int, request: Reader, response: Writer) -> None:
        names = [request.text() or "" for _ in range(request.i32())]
        if version >= 1:
            response.i32(0)
        response.count(len(names))
        for name in names:
            moment = self._moment(name, "classic")
            state = moment.state if moment else "Dead"
            clients = moment.clients if moment else ()
            response.i16(0)
            response.text(name)
            response.text(state)
            response.text("consumer" if moment else "")
            response.text("range" if clients and state == "Stable" else "")
            response.count(len(clients))
            for client in clients:
                response.text(client.id)
                if version >= 4:
                    response.text(None)
                response.text(client.name)
                response.text(client.address)
                response.bytes(_subscribed(client) if state == "Stable" else b"")
                response.bytes(_assigned(owned(moment, client)) if state == "Stable" and moment else b"")
            if version >= 3:
                response.i32(NO_OPERATIONS)

    def _offsets(self, version: int, request: Reader, response: Writer) -> None:
        moment = self._moment(request.text(), "classic", "consumer")
        count = request.i32()
        asked = None if count < 0 else {
            request.text() or "": [request.i32() for _ in range(request.i32())] for _ in range(count)
        }  # fmt: skip
        found: dict[str, list[Queue]] = {}
        for queue in moment.queues if moment else ():
            if queue.committed is not None if asked is None else queue.number in asked.get(queue.topic, ()):
                found.setdefault(queue.topic, []).append(queue)
        if version >= 3:
            response.i32(0)
        response.count(len(found))
        for topic, queues in found.items():
            response.text(topic)
            response.count(len(queues))
            for queue in queues:
                response.i32(queue.number)
                response.i64(-1 if queue.committed is None else queue.committed)
                if version >= 5:
                    response.i32(-1)
                response.text("")
                response.i16(0)
        if version >= 2:
            response.i16(0)

    def _ends(self, version: int, request: Reader, response: Writer) -> None:
        request.i32()
        if version >= 2:
            request.i8()
        if version >= 2:
            response.i32(0)
        topics = request.i32()
        response.count(topics)
        for _ in range(topics):
            topic = request.text() or ""
            response.text(topic)
            partitions = request.i32()
            response.count(partitions)
            for _ in range(partitions):
                number = request.i32()
                if version >= 4:
                    request.i32()
                when = request.i64()
                if version == 0:
                    request.i32()
                queue = self._queue(topic, number)
                offset = 0 if queue is None else queue.oldest if when == -2 else queue.newest
                response.i32(number)
                response.i16(0)
                if version == 0:
                    response.count(1)
                    response.i64(offset)
                    continue
                response.i64(-1)
                response.i64(offset)
                if version >= 4:
                    response.i32(-1)

    def _groups(self, version: int, request: Reader, response: Writer) -> None:
        states = [request.text() for _ in range(request.count())] if version >= 4 else []
        types = [(request.text() or "").lower() for _ in range(request.count())] if version >= 5 else []
        groups = [each for each in self._known if not types or each.kind in types]
        groups = [each for each in groups if not states or each.moments[self.moment].state in states]
        if version >= 1:
            response.i32(0)
        response.i16(0)
        response.count(len(groups))
        for group in groups:
            response.text(group.name)
            response.text("share" if group.kind == "share" else "consumer")
            if version >= 4:
                response.text(group.moments[self.moment].state)
            if version >= 5:
                response.text(group.kind)
            response.tags()
        response.tags()

    def _not_found(self, response: Writer, name: str) -> None:
        response.i16(GROUP_ID_NOT_FOUND)
        response.text(f"Group {name} not found.")
        response.text(name)
        response.text("")
        response.i32(-1)
        response.i32(-1)
        response.text("")
        response.count(0)
        response.i32(NO_OPERATIONS)
        response.tags()

    def _describe_consumer_groups(self, version: int, request: Reader, response: Writer) -> None:
        self._describe_new(request, response, "consumer", version)

    def _describe_share_groups(self, version: int, request: Reader, response: Writer) -> None:
        self._describe_new(request, response, "share", version)

    def _describe_new(self, request: Reader, response: Writer, kind: str, version: int) -> None:
        names = [request.text() or "" for _ in range(request.count())]
        response.i32(0)
        response.count(len(names))
        for name in names:
            moment = self._moment(name, kind)
            if moment is None:
                self._not_found(response, name)
                continue
            response.i16(0)
            response.text(None)
            response.text(name)
            response.text(moment.state)
            response.i32(7)
            response.i32(7)
            response.text("uniform" if kind == "consumer" else "simple")
            response.count(len(moment.clients))
            for client in moment.clients:
                topics = [topic for topic, _ in client.subscriptions]
                response.text(client.id)
                if kind == "consumer":
                    response.text(None)
                response.text(None)
                response.i32(7)
                response.text(client.name)
                response.text(client.address)
                response.count(len(topics))
                for topic in topics:
                    response.text(topic)
                if kind == "consumer":
                    response.text(None)
                for _ in range(2 if kind == "consumer" else 1):
                    self._topic_partitions(response, owned(moment, client))
                if kind == "consumer" and version >= 1:
                    response.i8(1)
                response.tags()
            response.i32(NO_OPERATIONS)
            response.tags()
        response.tags()

    def _topic_partitions(self, response: Writer, queues: Sequence[Queue]) -> None:
        """An Assignment: topics with their partitions, and the ends of both structures."""
        topics = _by_topic(queues)
        response.count(len(topics))
        for topic, numbers in topics.items():
            response.uuid(topic)
            response.text(topic)
            response.count(len(numbers))
            for number in numbers:
                response.i32(number)
            response.tags()
        response.tags()

    def _share_offsets(self, version: int, request: Reader, response: Writer) -> None:
        asked = []
        for _ in range(request.count()):
            name = request.text() or ""
            topics = request.count()
            for _ in range(max(0, topics)):
                request.text()
                for _ in range(request.count()):
                    request.i32()
                request.tags()
            request.tags()
            asked.append(name)
        response.i32(0)
        response.count(len(asked))
        for name in asked:
            moment = self._moment(name, "share")
            topics_of: dict[str, list[Queue]] = {}
            for queue in moment.queues if moment else ():
                topics_of.setdefault(queue.topic, []).append(queue)
            response.text(name)
            response.count(len(topics_of))
            for topic, queues in topics_of.items():
                response.text(topic)
                response.uuid(topic)
                response.count(len(queues))
                for queue in queues:
                    response.i32(queue.number)
                    response.i64(-1 if queue.committed is None else queue.committed)
                    response.i32(0)
                    if version >= 1:
                        response.i64(queue.lag)
                    response.i16(0)
                    response.text(None)
                    response.tags()
                response.tags()
            response.i16(0)
            response.text(None)
            response.tags()
        response.tags()


def owned(moment: Moment, client: Client) -> list[Queue]:
    """The partitions that a member has."""
    return [each for each in moment.queues if each.owner == client.id]


def _by_topic(queues: Sequence[Queue]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for queue in queues:
        topics.setdefault(queue.topic, []).append(queue.number)
    return topics


def _subscribed(client: Client) -> bytes:
    """A Subscription of the embedded consumer protocol, version 0."""
    data = Writer()
    data.i16(0)
    data.count(len(client.subscriptions))
    for topic, _ in client.subscriptions:
        data.text(topic)
    data.i32(-1)
    return bytes(data.data)


def _assigned(queues: Sequence[Queue]) -> bytes:
    """An Assignment of the embedded consumer protocol, version 0."""
    data = Writer()
    data.i16(0)
    topics = _by_topic(queues)
    data.count(len(topics))
    for topic, numbers in topics.items():
        data.text(topic)
        data.count(len(numbers))
        for number in numbers:
            data.i32(number)
    data.i32(-1)
    return bytes(data.data)
