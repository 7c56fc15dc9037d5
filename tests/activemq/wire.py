"""A client without a client library: commands to a broker as they stand, dispatches into a list."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

import pyengine
from pyengine.activemq import AckKind, MessageConsumer
from pyengine.activemq.broker.broker import Broker
from pyengine.activemq.transport.commands import (
    ConnectionInfo,
    ConnectionSink,
    ConsumerControl,
    ConsumerInfo,
    MessageAck,
    MessageDispatch,
    MessagePull,
)
from pyengine.destinations import KINDS, Destination


def destination(text: str) -> Destination:
    """A destination by its qualified name; a composite stays one."""
    for kind in KINDS:
        if text.startswith(kind + "://"):
            return Destination(text.removeprefix(kind + "://"), kind)
    return Destination(text)


class Wire:
    """One connection. ``got``: (consumer, body) in the order of dispatch; None is the null dispatch."""

    def __init__(self, broker: Broker, name: str = "wire", client_id: str = "") -> None:
        self.broker = broker
        self.name = name
        self.got: list[tuple[str, Any]] = []
        self.dispatched: list[MessageDispatch] = []
        self.controls: list[ConsumerControl] = []
        self.failures: list[str] = []
        self.react: dict[str, AckKind] = {}
        self._sent = 0
        sink = ConnectionSink(self._dispatch, self.controls.append, self.failures.append)
        broker.add_connection(ConnectionInfo(name, client_id), sink)

    def _dispatch(self, command: MessageDispatch) -> None:
        self.dispatched.append(command)
        self.got.append((command.consumer_id, None if command.message is None else command.message.body))
        kind = self.react.get(command.consumer_id)
        if kind is not None and command.message is not None:
            self.acknowledge(command.consumer_id, command.message.body, kind)

    def taken(self) -> list[tuple[str, Any]]:
        """What was dispatched since the last call."""
        got, self.got = self.got, []
        return got

    def consume(self, consumer: str, to: str, *, prefetch: int = 1000, **options: Any) -> None:
        info = ConsumerInfo(consumer, f"{self.name}:1", self.name, destination(to), prefetch,
                            dispatch_async=options.pop("dispatch_async", False), **options)  # fmt: skip
        self.broker.add_consumer(info)

    def send(self, to: str, *bodies: Any, transaction: str | None = None, **headers: Any) -> None:
        for body in bodies:
            self._sent += 1
            message = pyengine.Message(
                headers.get("properties"),
                body=str(body),
                message_id=headers.get("message_id", f"ID:{self.name}-1:1:1:{self._sent}"),
                **{key: value for key, value in headers.items() if key not in ("properties", "message_id")},
            )
            self.broker.send(self.name, destination(to), message, transaction)

    def id_of(self, consumer: str, body: Any) -> str:
        found = [
            command.message.message_id
            for command in self.dispatched
            if command.consumer_id == consumer and command.message is not None and command.message.body == str(body)
        ]
        return found[-1]

    def acknowledge(self, consumer: str, body: Any, kind: AckKind = AckKind.INDIVIDUAL, **fields: Any) -> None:
        failed = fields.pop("failed", None)
        where = next(c.destination for c in self.dispatched if c.consumer_id == consumer and c.destination is not None)
        self.broker.acknowledge(MessageAck(consumer, where, kind, self.id_of(consumer, body), **fields), failed=failed)

    def pull(self, consumer: str, to: str, timeout: int = 0) -> None:
        self.broker.pull(MessagePull(consumer, destination(to), timeout))


def bodies(consumer: MessageConsumer, timeout: float = 0.1) -> list[Any]:
    """What a consumer receives until nothing comes for so many seconds."""
    found = []
    while (message := consumer.receive(timeout)) is not None:
        found.append(message.body)
    return found


def until(true: Callable[[], object]) -> None:
    """Wait for what another thread does."""
    end = monotonic() + 30
    while not true():
        assert monotonic() < end
        sleep(0.001)
