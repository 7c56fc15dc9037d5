"""One program in any corner of the square: our client or the real Java client, on our broker or on the real one.

A corner has a client (:class:`PythonClient`, :class:`JavaClient`) with the same few calls, and the address of a name
server. What a scenario needs is there in both; what the Python client refuses raises :class:`NotThereError`.
"""

from __future__ import annotations

import base64
import functools
import json
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from bench.contest import RivalMissingError
from bench.jvm import end, harness
from pyengine import rocketmq
from pyengine.rocketmq import ConsumeConcurrentlyStatus, ConsumeFromWhere, ConsumeOrderlyStatus, MessageExt
from tests.rocketmq.live.real import BUILD, OPENED

HERE = Path(__file__).parent
FIRST = "CONSUME_FROM_FIRST_OFFSET"
LAST = "CONSUME_FROM_LAST_OFFSET"
TIMESTAMP = "CONSUME_FROM_TIMESTAMP"

Received = dict[str, Any]


class RefusedError(Exception):
    """What a client says of a call that fails: ``client`` or ``broker`` and the code."""


class NotThereError(Exception):
    """A client has no such call."""


class Client(Protocol):
    """A program with producers and consumers. names: the name server."""

    names: str

    def send(self, message: Mapping[str, Any], **how: Any) -> Any: ...
    def consume(self, name: str, group: str, topic: str, wanted: str = "*", **how: Any) -> None: ...
    def decide(self, body: str, decision: str) -> None: ...
    def received(self, name: str) -> list[Received]: ...
    def query(self, topic: str, key: str) -> list[Received]: ...
    def view(self, topic: str, id: str) -> Received: ...
    def request(self, message: Mapping[str, Any]) -> Received: ...
    def lite(self, name: str, group: str, **how: Any) -> None: ...
    def lite_call(self, name: str, op: str, **request: Any) -> Any: ...
    def stop(self, name: str) -> None: ...
    def close(self) -> None: ...


class PipeClient:
    """A program in a process of its own: one JSON request a line, one JSON reply. errors: the file of what it says."""

    def __init__(self, command: Sequence[str], errors: Path) -> None:
        errors.parent.mkdir(parents=True, exist_ok=True)
        self.names = ""
        self._errors = errors.open("w")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, encoding="utf-8",
            cwd=errors.parent,  # mqadmin consumerStatus writes files where it runs
        )  # fmt: skip
        self._lock = threading.Lock()

    def ask(self, op: str, **request: Any) -> Any:
        """The reply's value. Raises RefusedError with what the client said."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps({"op": op, "names": self.names, **request}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        assert line, f"the JVM ended while asked {op}: see {self._errors.name}"
        reply = json.loads(line)
        if "error" in reply:
            if reply["text"].startswith("not there"):
                raise NotThereError(reply["text"])
            refused = RefusedError(reply["error"])
            refused.add_note(reply["text"])
            raise refused
        return reply.get("value")

    def send(self, message: Mapping[str, Any], **how: Any) -> Any:
        if "messages" in how:
            how["messages"] = [_on_wire(each) for each in how["messages"]]
        return self.ask("send", message=_on_wire(message), **{"group": "senders", **how})

    def decide(self, body: str, decision: str) -> None:
        self.ask("decide", body=body, decision=decision)

    def consume(self, name: str, group: str, topic: str, wanted: str = "*", **how: Any) -> None:
        request = {"from": FIRST, **how}
        self.ask("consume", name=name, group=group, topic=topic, wanted=wanted, **request)

    def received(self, name: str) -> list[Received]:
        found: list[Received] = self.ask("received", name=name)
        for each in found:
            each["body"] = base64.b64decode(each["body"])
        return found

    def query(self, topic: str, key: str) -> list[Received]:
        found: list[Received] = self.ask("query", group="senders", topic=topic, key=key)
        return found

    def view(self, topic: str, id: str) -> Received:
        found: Received = self.ask("view", group="senders", topic=topic, id=id)
        return found

    def request(self, message: Mapping[str, Any]) -> Received:
        found: Received = self.ask("request", group="askers", message=_on_wire(message))
        return found

    def lite(self, name: str, group: str, **how: Any) -> None:
        self.ask("lite", name=name, group=group, **how)

    def lite_call(self, name: str, op: str, **request: Any) -> Any:
        return self.ask(op, name=name, **request)

    def stop(self, name: str) -> None:
        self.ask("stop", name=name)

    def close(self) -> None:
        end(self._process)
        self._errors.close()


class JavaClient(PipeClient):
    """The real client of a release, in a JVM of its own. properties: of the system, ``name=value``."""

    def __init__(self, release: str, home: Path, properties: Sequence[str] = ()) -> None:
        folder = BUILD.with_name(f"rocketmq-client-{release}")
        path = harness(
            HERE / "client", folder / "jars", folder / "classes", "rocketmq-client", [f"-Drelease={release}"]
        )
        options = (
            f"-Duser.home={home}", f"-Drocketmq.client.logRoot={home}/logs",
            f"-Drocketmq.client.localOffsetStoreDir={home}/offsets", "-Drocketmq.client.logUseSlf4j=false",
        )  # fmt: skip
        command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx300m", *OPENED, *options, "-cp", path]
        command[1:1] = [f"-D{each}" for each in properties]
        super().__init__([*command, "Client"], home / "client.log")


class GoClient(PipeClient):
    """rocketmq-client-go v2. Raises RivalMissingError where it cannot be built."""

    def __init__(self, home: Path) -> None:
        program = BUILD.with_name("rocketmq-go") / "client"
        home.mkdir(parents=True, exist_ok=True)
        built = (
            subprocess.run(
                ["go", "build", "-o", str(program), "."], cwd=HERE / "go", capture_output=True, text=True, check=False
            )
            if shutil.which("go")
            else None
        )
        if built is None or built.returncode:
            raise RivalMissingError(f"no Go client: {'no go on PATH' if built is None else built.stderr[:200]}")
        super().__init__([str(program), str(home / "go.log")], home / "client.log")


def _on_wire(message: Mapping[str, Any]) -> dict[str, Any]:
    return {**message, "body": base64.b64encode(message.get("body", b"")).decode()}


class PythonClient:
    """Ours. network: how it reaches a cluster, beside its name server."""

    def __init__(self, home: Path, **network: Any) -> None:
        self.names = ""
        self._network = network
        self._home = home
        self._producers: dict[str, rocketmq.Producer] = {}
        self._transactions: dict[str, rocketmq.TransactionMQProducer] = {}
        self.decisions: dict[str, rocketmq.LocalTransactionState] = {}
        self._consumers: dict[str, tuple[rocketmq.DefaultMQPushConsumer, list[Received]]] = {}
        self._lite: dict[str, rocketmq.DefaultLitePullConsumer] = {}
        self._lock = threading.Lock()

    def _producer(self, group: str, namespace: str | None) -> rocketmq.Producer:
        known = group if namespace is None else f"{namespace}/{group}"
        if known not in self._producers:
            self._producers[known] = rocketmq.Producer(
                namesrv_addr=self.names, group=group, namespace=namespace, **self._network
            )
        return self._producers[known]

    def send(self, message: Mapping[str, Any], **how: Any) -> Any:
        manner, number, selector = how.get("how", "sync"), how.get("queue"), None
        if manner == "transaction":
            return self._in_transaction(message, how)
        if number is not None:

            def selector(queues: Sequence[rocketmq.MessageQueue], _: object, at: int) -> Any:
                return next((queue for queue in queues if queue.queue_id == at), None)

        producer = self._producer(how.get("group", "senders"), how.get("namespace"))
        try:
            if manner == "batch":
                result = producer.send_batch([_message(each) for each in how["messages"]])
            elif manner == "oneway":
                producer.send_one_way(_message(message), selector=selector, arg=number)
                return None
            elif manner == "async":
                result = producer.send_async(_message(message), selector=selector, arg=number).result(20)
            else:
                result = producer.send(_message(message), selector=selector, arg=number)
        except rocketmq.MQBrokerError as error:
            raise RefusedError(f"broker {error.code}") from error
        except rocketmq.MQClientError as error:
            raise RefusedError(f"client {error.code}") from error
        return {
            "status": result.status.name, "topic": result.queue.topic, "queue": result.queue.queue_id,
            "offset": result.queue_offset, "id": result.msg_id, "offsetId": result.offset_msg_id,
        }  # fmt: skip

    def _in_transaction(self, message: Mapping[str, Any], how: Mapping[str, Any]) -> str:
        group = how["group"]
        if group not in self._transactions:
            self._transactions[group] = rocketmq.TransactionMQProducer(
                group, namesrv_addr=self.names, **self._network,
                execute=lambda message, decision: rocketmq.LocalTransactionState[decision],
                check=lambda message: self.decisions[bytes(message.body or b"").decode()],
            )  # fmt: skip
        return self._transactions[group].send_in_transaction(_message(message), how["decision"]).state.name

    def decide(self, body: str, decision: str) -> None:
        self.decisions[body] = rocketmq.LocalTransactionState[decision]

    def consume(self, name: str, group: str, topic: str, wanted: str = "*", **how: Any) -> None:
        messages: list[Received] = []
        failures, orderly = how.get("failures", 0), how.get("orderly", False)

        def took(listed: list[MessageExt], context: Any) -> bool:
            time.sleep(how.get("slow", 0) / 1000)
            if "answers" in how:
                reply = rocketmq.create_reply_message(listed[0], how["answers"].encode())
                self._producer(group, None).send(reply)
            if "level" in how:
                context.delay_level_when_next_consume = how["level"]
            shown = _shown(listed[0])
            with self._lock:
                before = sum(each["key"] == shown["key"] for each in messages)
                messages.append(shown)
            return 0 <= failures <= before

        def concurrently(listed: list[MessageExt], context: Any) -> ConsumeConcurrentlyStatus:
            status = ConsumeConcurrentlyStatus
            return status.CONSUME_SUCCESS if took(listed, context) else status.RECONSUME_LATER

        def in_order(listed: list[MessageExt], context: Any) -> ConsumeOrderlyStatus:
            status = ConsumeOrderlyStatus
            return status.SUCCESS if took(listed, context) else status.SUSPEND_CURRENT_QUEUE_A_MOMENT

        options: dict[str, Any] = {"namespace": how.get("namespace")}
        if "most" in how:
            options["max_reconsume_times"] = how["most"]
        if how.get("broadcasting"):
            options |= {
                "message_model": rocketmq.MessageModel.BROADCASTING, "local_offset_store_dir": self._home,
                "instance_name": how.get("instance", f"{name}-{id(messages)}"),
            }  # fmt: skip
        if "timestamp" in how:
            options["consume_timestamp"] = how["timestamp"]
        consumer = rocketmq.DefaultMQPushConsumer(
            group, namesrv_addr=how.get("names", self.names),
            consume_from_where=ConsumeFromWhere[how.get("from", FIRST)],
            poll_name_server_interval=500, persist_consumer_offset_interval=500, suspend_current_queue_time_millis=200,
            **self._network, **options,
        )  # fmt: skip
        expression: Any = rocketmq.sql(wanted) if how.get("kind") == "sql" else wanted
        consumer.subscribe(topic, expression)
        consumer.register_message_listener(rocketmq.MessageListenerOrderly(in_order) if orderly else concurrently)
        try:
            consumer.start()
        except rocketmq.MQClientError as error:
            raise RefusedError(f"client {error.code}") from error
        self._consumers[name] = consumer, messages

    def received(self, name: str) -> list[Received]:
        with self._lock:
            return list(self._consumers[name][1])

    def query(self, topic: str, key: str) -> list[Received]:
        try:
            return [_shown(each) for each in self._producer("senders", None).query_message(topic, key)]
        except rocketmq.MQClientError as error:
            raise RefusedError(f"client {error.code}") from error

    def view(self, topic: str, id: str) -> Received:
        return _shown(self._producer("senders", None).view_message(topic, id))

    def request(self, message: Mapping[str, Any]) -> Received:
        return _shown(self._producer("askers", None).request(_message(message), 15_000))

    def lite(self, name: str, group: str, **how: Any) -> None:
        made = rocketmq.DefaultLitePullConsumer(
            group, namesrv_addr=self.names, namespace=how.get("namespace"), **self._network, auto_commit=False,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        )  # fmt: skip
        if "topic" in how:
            made.subscribe(how["topic"], how.get("wanted", "*"))
        made.start()
        self._lite[name] = made

    def lite_call(self, name: str, op: str, **request: Any) -> Any:
        consumer, queue = self._lite[name], None
        if "queue" in request:
            queues = consumer.fetch_message_queues(request["topic"])
            (queue,) = (each for each in queues if each.queue_id == request["queue"])
        try:
            if op == "poll":
                return [_shown(each) for each in consumer.poll(request["timeout"])]
            if op == "assign":
                queues = consumer.fetch_message_queues(request["topic"])
                wanted = [each for each in queues if each.queue_id in request["queues"]]
                consumer.assign(wanted)
                return len(wanted)
            if op == "assignment":
                return sorted(each.queue_id for each in consumer.assignment())
            if op == "commit":
                return consumer.commit_sync() or True
            if op in ("pause", "resume"):
                getattr(consumer, op)([queue])
                return True
            assert queue is not None, op
            if op == "committed":
                return consumer.committed(queue)
            if op == "offsetForTimestamp":
                return consumer.offset_for_timestamp(queue, request["timestamp"])
            return consumer.seek(queue, request["offset"]) or True
        except rocketmq.MQClientError as error:
            raise RefusedError(f"client {error.code}") from error

    def stop(self, name: str) -> None:
        if name in self._lite:
            self._lite.pop(name).shutdown()
        else:
            self._consumers.pop(name)[0].shutdown()

    def close(self) -> None:
        for name in [*self._lite, *self._consumers]:
            self.stop(name)
        for producer in (*self._producers.values(), *self._transactions.values()):
            producer.shutdown()


def _message(given: Mapping[str, Any]) -> rocketmq.Message:
    made = rocketmq.Message(
        given["topic"], given.get("body", b""), tags=given.get("tags"), keys=given.get("keys"),
        properties=given.get("properties"), flag=given.get("flag", 0),
    )  # fmt: skip
    made.properties |= given.get("timers", {})
    if given.get("level"):
        made.delay_time_level = given["level"]
    return made


def _shown(message: MessageExt) -> Received:
    body = bytes(message.body or b"")
    return {
        "key": body[:40].decode("latin-1"), "topic": message.topic, "body": body, "tags": message.tags,
        "keys": message.keys, "flag": message.flag, "queue": message.queue_id, "offset": message.queue_offset,
        "times": message.reconsume_times, "properties": dict(message.properties), "id": message.msg_id,
        "at": time.time_ns() // 1_000_000,
    }  # fmt: skip


@contextmanager
def our_broker(**options: Any) -> Iterator[rocketmq.Broker]:
    """Ours, which listens."""
    with rocketmq.Broker(listen="127.0.0.1:0", **options) as broker:
        yield broker


@functools.cache
def second_levels() -> str:
    """Each delay level is a second."""
    return " ".join(["1s"] * 18)
