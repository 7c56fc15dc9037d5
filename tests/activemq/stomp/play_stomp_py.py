"""Plays a script with stomp.py: ``python play_stomp_py.py PORT`` reads it from standard input, as JSON."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from typing import Any

import stomp

PATIENCE = 5.0  # seconds
QUIET = 0.15
# Headers that are another one at each run.
VARYING = {"message-id", "timestamp", "ack"}


class Listener(stomp.ConnectionListener):  # type: ignore[misc]
    """What comes, in the order in which it came."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.messages: list[Any] = []
        self.receipts: set[str] = set()
        self.errors: list[Any] = []

    def _keep(self, into: Any, what: Any) -> None:
        with self.changed:
            into.append(what) if isinstance(into, list) else into.add(what)
            self.changed.notify_all()

    def on_message(self, frame: Any) -> None:
        self._keep(self.messages, frame)

    def on_receipt(self, frame: Any) -> None:
        self._keep(self.receipts, frame.headers["receipt-id"])

    def on_error(self, frame: Any) -> None:
        self._keep(self.errors, frame)

    def until(self, ready: Any, seconds: float = PATIENCE) -> bool:
        with self.changed:
            return self.changed.wait_for(ready, seconds)


class Player:
    """One script at one broker. pause: seconds of a ``quiet``."""

    def __init__(self, make: Any, pause: float = QUIET) -> None:
        self.make = make
        self.pause = pause
        self.connections: dict[str, Any] = {}
        self.listeners: dict[str, Listener] = {}
        self.shown: dict[str, int] = {}
        self.numbers = 0
        self.transcript: list[str] = []

    def say(self, *words: object) -> None:
        self.transcript.append(" ".join(map(str, words)))

    def play(self, steps: list[list[Any]]) -> list[str]:
        for operation, name, given in steps:
            self.say(">", operation, name, json.dumps(given, sort_keys=True))
            getattr(self, operation)(name, **given)
        return self.transcript

    def asked(self, name: str, act: Any) -> None:
        """Do it with a receipt, and say what came of it."""
        self.numbers += 1
        receipt, listener = f"r{self.numbers}", self.listeners[name]
        errors = len(listener.errors)
        act(receipt)
        if not listener.until(lambda: receipt in listener.receipts or len(listener.errors) > errors):
            self.say("no answer")
        self.errors(name, errors)

    def errors(self, name: str, before: int) -> None:
        for frame in self.listeners[name].errors[before:]:
            self.say("ERROR", mask(frame.headers.get("message")))

    def connect(self, name: str, headers: dict[str, str]) -> None:
        listener = self.listeners[name] = Listener()
        connection = self.connections[name] = self.make()
        connection.set_listener("", listener)
        self.shown[name] = 0
        given = {key.replace("_", "-"): value for key, value in headers.items()}
        try:
            connection.connect("user", "secret", wait=True, headers=given)
        except stomp.exception.ConnectFailedException:
            self.say("refused")

    def destination(self, name: str, text: str) -> str:
        found = re.fullmatch(r"\{(\d+)\}", text)
        return text if found is None else self.listeners[name].messages[int(found[1])].headers["reply-to"]

    def send(self, name: str, destination: str, body: str, transaction: str, headers: dict[str, str]) -> None:
        where = self.destination(name, destination)
        extra = {"transaction": transaction} if transaction else {}
        connection = self.connections[name]
        self.asked(name, lambda receipt: connection.send(where, body, headers={**headers, **extra, "receipt": receipt}))

    def subscribe(self, name: str, destination: str, id: str, ack: str, headers: dict[str, str]) -> None:
        connection = self.connections[name]
        self.asked(
            name,
            lambda receipt: connection.subscribe(destination, id, ack, headers={**headers, "receipt": receipt}),
        )

    def unsubscribe(self, name: str, id: str, headers: dict[str, str]) -> None:
        connection = self.connections[name]
        self.asked(name, lambda receipt: connection.unsubscribe(id, headers={**headers, "receipt": receipt}))

    def _acknowledge(self, what: str, name: str, number: int, transaction: str) -> None:
        frame = self.listeners[name].messages[number]
        act = getattr(self.connections[name], what)
        self.asked(
            name,
            lambda receipt: act(frame.headers["ack"], transaction=transaction or None, receipt=receipt),
        )

    def ack(self, name: str, number: int, transaction: str) -> None:
        self._acknowledge("ack", name, number, transaction)

    def nack(self, name: str, number: int, transaction: str) -> None:
        self._acknowledge("nack", name, number, transaction)

    def begin(self, name: str, transaction: str) -> None:
        connection = self.connections[name]
        self.asked(name, lambda receipt: connection.begin(transaction, headers={"receipt": receipt}))

    def commit(self, name: str, transaction: str) -> None:
        connection = self.connections[name]
        self.asked(name, lambda receipt: connection.commit(transaction, headers={"receipt": receipt}))

    def abort(self, name: str, transaction: str) -> None:
        connection = self.connections[name]
        self.asked(name, lambda receipt: connection.abort(transaction, headers={"receipt": receipt}))

    def receive(self, name: str, number: int) -> None:
        listener = self.listeners[name]
        wanted = self.shown[name] + number
        if not listener.until(lambda: len(listener.messages) >= wanted):
            self.say("not all came")
        self.show(name, wanted)

    def show(self, name: str, end: int) -> None:
        came = self.listeners[name].messages[self.shown[name] : end]
        for frame in sorted(came, key=lambda each: each.headers.get("subscription", "")):
            headers = {
                key: mask(value)
                for key, value in sorted(frame.headers.items())
                if key not in VARYING - {"subscription"}
            }
            also = sorted(VARYING & set(frame.headers))
            self.say("MESSAGE", repr(frame.body), json.dumps(headers, sort_keys=True), *also)
        self.shown[name] = min(end, len(self.listeners[name].messages))

    def quiet(self, name: str) -> None:
        time.sleep(self.pause)
        self.show(name, 1_000_000)

    def disconnect(self, name: str) -> None:
        connection = self.connections[name]
        self.asked(name, lambda receipt: connection.disconnect(receipt))

    def drop(self, name: str) -> None:
        self.connections[name].transport.disconnect_socket()
        time.sleep(self.pause)


def mask(text: str | None) -> str:
    """A text without what is another one at each run."""
    return re.sub(r"ID:[\w.:-]+|tcp://[\d.:]+", "ID", text or "")


def main() -> None:
    port = int(sys.argv[1])
    player = Player(lambda: stomp.Connection12([("127.0.0.1", port)], heartbeats=(0, 0)))
    print(json.dumps(player.play(json.load(sys.stdin))))


if __name__ == "__main__":
    main()
