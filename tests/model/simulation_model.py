"""Virtual time the slow way: the queue's public methods and a list of things to come."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyengine.activemq import Delivery, Queue

MILLISECOND = 1_000_000


@dataclass
class Client:
    threads: int
    factor: float
    line: list[tuple[int, int]] = field(default_factory=list)
    working: dict[int, int] = field(default_factory=dict)
    dead: bool = False


@dataclass
class SlowRun:
    """The same as QueueRun, one message and one Python object at a time."""

    queue: Queue
    arrivals: list[int]
    services: list[int]
    groups: list[str | None]
    lifetimes: list[int]
    look_period: int
    look_limit: int
    now: int = 0
    bodies: list[dict[str, Any]] | None = None  # each with its "row"; None: the row is the message
    clients: dict[int, Client] = field(default_factory=dict)
    todo: list[tuple[int, int, str, Any]] = field(default_factory=list)
    order: int = 0

    def __post_init__(self) -> None:
        size = len(self.arrivals)
        self.who, self.started, self.finished, self.times = [-1] * size, [-1] * size, [-1] * size, [0] * size
        self.dispatched = [-1] * size
        self.arrived = 0
        self.look_at = self.now + self.look_period

    def wake(self) -> None:
        self.take(self.queue.run(self.now // MILLISECOND))

    def take(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            assert delivery.message is not None
            row = delivery.body if isinstance(delivery.body, int) else delivery.body["row"]
            self.who[row], self.dispatched[row], self.started[row] = delivery.consumer, self.now, -1
            self.times[row] += 1
            self.clients[delivery.consumer].line.append((row, delivery.message))
            self.begin(delivery.consumer)

    def begin(self, consumer: int) -> None:
        client = self.clients[consumer]
        while client.line and len(client.working) < client.threads and not client.dead:
            row, handle = client.line.pop(0)
            client.working[row] = handle
            self.started[row] = self.now
            self.todo.append((self.now + int(self.services[row] * client.factor), self.order, "done", (consumer, row)))
            self.order += 1

    def add_consumer(self, threads: int, factor: float, **options: Any) -> int:
        consumer = self.queue.add_consumer(**options)
        self.clients[consumer] = Client(threads, factor)
        self.wake()
        return consumer

    def kill(self, consumer: int) -> None:
        self.clients[consumer].dead = True

    def remove_consumer(self, consumer: int, *, lost: bool) -> None:
        self.clients[consumer].dead = True
        self.take(self.queue.close(consumer, lost=lost, now=self.now // MILLISECOND))
        self.wake()

    def run(self, until: int) -> None:
        while True:
            done = min(self.todo, default=None)
            coming = [each[0] for each in self.todo] + self.arrivals[self.arrived : self.arrived + 1]
            if self.look_at < min(coming, default=until + 1) and self.look_at <= until:
                self.now = self.look_at
                self.look_at += self.look_period
                self.take(self.queue.expire(self.now // MILLISECOND, limit=self.look_limit))
                self.wake()
            elif (
                done is not None
                and done[0] <= until
                and (self.arrived == len(self.arrivals) or done[0] <= self.arrivals[self.arrived])
            ):
                self.todo.remove(done)
                self.now = done[0]
                consumer, row = done[3]
                client = self.clients[consumer]
                if not client.dead:
                    self.finished[row] = self.now
                    self.queue.acknowledge(consumer, client.working.pop(row))
                    self.begin(consumer)
                    self.wake()
            elif self.arrived < len(self.arrivals) and self.arrivals[self.arrived] <= until:
                self.now = self.arrivals[self.arrived]
                lifetime = self.lifetimes[self.arrived]
                expiration = self.now // MILLISECOND + lifetime if lifetime else 0
                body: Any = self.arrived if self.bodies is None else self.bodies[self.arrived]
                self.queue.send(body, group=self.groups[self.arrived], expiration=expiration)
                self.arrived += 1
                self.wake()
            else:
                break
        self.now = until
