"""activemq/scenarios that the core alone can express: one queue, receiving clients, every acknowledgement mode.

The client's half of the prefetch window (DELIVERED acknowledgements at half of the prefetch, ActiveMQMessageConsumer's
counters) is simulated here; listeners, dead letters, topics and option texts are reported as unsupported.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import pyengine
from pyengine.activemq import AckKind, Delivery, Queue
from tests.conformance.activemq_selector import typed
from tests.conformance.verdict import Verdict, compare, unsupported

Step = dict[str, Any]
SETTINGS = {
    "strictOrderDispatch": "strict_order_dispatch",
    "useConsumerPriority": "use_consumer_priority",
    "prioritizedMessages": "prioritized_messages",
    "lazyDispatch": "lazy_dispatch",
    "maxPageSize": "max_page_size",
    "maxBrowsePageSize": "max_browse_page_size",
    "usePrefetchExtension": "use_prefetch_extension",
    "allConsumersExclusiveByDefault": "all_consumers_exclusive_by_default",
    "messageGroupMapFactoryType": "message_group_map_factory_type",
    "consumersBeforeDispatchStarts": "consumers_before_dispatch_starts",
    "timeBeforeDispatchStarts": "time_before_dispatch_starts",
}
OPERATIONS = {
    "consumer", "send", "recv", "ack", "commit", "rollback", "close", "closeSession", "closeConnection", "kill",
    "browse", "sleep",
}  # fmt: skip
CONSUMER_KEYS = {
    "op", "name", "selector", "exclusive", "priority", "prefetch", "ack", "conn", "noLocal", "dispatched", "redelivery",
}  # fmt: skip


@dataclass
class Client:
    """One consumer with its session, as the client library counts."""

    name: str
    id: int
    mode: str
    prefetch: int
    connection: str
    buffer: deque[Delivery] = field(default_factory=deque)
    delivered: list[Delivery] = field(default_factory=list)
    counter: int = 0
    last: int | None = None
    rolled_back: dict[int, int] = field(default_factory=dict)
    closing: bool = False


class Replay:
    """One scenario: its queue, its clients, its clock."""

    def __init__(self, case: dict[str, Any]) -> None:
        policy = dict(case.get("policy", {}))
        self.queue_prefetch = policy.pop("queuePrefetch", 1000)
        settings = {SETTINGS[name]: value for name, value in policy.items()}
        if not case.get("policy"):
            settings["max_browse_page_size"] = None
        self.queue = Queue(**settings)
        self.clients: dict[str, Client] = {}
        self.names: dict[int, str] = {}
        self.browsed: dict[int, list[int]] = {}
        self.totals: dict[str, list[int]] = {}
        self.now = 1_000_000
        self.step_log: list[dict[str, Any]] = []

    def take(self, deliveries: list[Delivery]) -> None:
        """Hand what the broker dispatched to the clients' buffers."""
        for delivery in deliveries:
            if delivery.consumer in self.browsed:
                if delivery.message is not None:
                    self.browsed[delivery.consumer].append(delivery.body["n"])
                continue
            if delivery.message is None:
                continue
            name = self.names[delivery.consumer]
            entry: dict[str, Any] = {"to": name, "n": delivery.body["n"]}
            if delivery.redeliveries:
                entry["redelivery"] = delivery.redeliveries
            if delivery.group_first:
                entry["groupFirst"] = True
            self.step_log.append(entry)
            self.totals.setdefault(name, []).append(delivery.body["n"])
            self.clients[name].buffer.append(delivery)

    def run(self) -> None:
        self.take(self.queue.run(self.now))

    def consumer(self, step: Step) -> None:
        name = step["name"]
        prefetch = step.get("prefetch", self.queue_prefetch)
        selector = step.get("selector")
        connection = step.get("conn", f"connection of {name}")
        number = self.queue.add_consumer(
            selector=None if selector is None or not selector.strip() else pyengine.Selector(selector),
            exclusive=step.get("exclusive", False),
            priority=step.get("priority", 0),
            prefetch=prefetch,
            no_local=step.get("noLocal", False),
            connection=connection,
        )
        self.clients[name] = Client(name, number, step.get("ack", "individual"), prefetch, connection)
        self.names[number] = name
        self.run()

    def send(self, step: Step) -> None:
        for n in range(step["n"], step["n"] + step.get("count", 1)):
            properties = {name: typed(value) for name, value in step.get("props", {}).items()}
            self.queue.send(
                {"n": n, **properties},
                group=step.get("group"),
                group_sequence=step.get("seq", 0),
                priority=step.get("priority", 4),
                expiration=self.now + step["ttl"] if step.get("ttl") else 0,
                connection=step.get("conn", "producer"),
            )
            self.run()

    def receive(self, client: Client, step: Step) -> dict[str, Any]:
        if not client.buffer and client.prefetch == 0:
            timeout = step.get("timeout", 1000)
            self.take(self.queue.pull(client.id, timeout=timeout, now=self.now))
            self.run()
        if not client.buffer and client.prefetch == 0:
            self.take(self.queue.pull_timeout(client.id))
        if not client.buffer:
            self.now += step.get("timeout", 0)
            return {"none": True}
        delivery = client.buffer.popleft()
        client.last = delivery.message
        client.delivered.append(delivery)
        assert delivery.message is not None
        counter = delivery.redeliveries + client.rolled_back.get(delivery.message, 0)
        if client.mode in ("auto", "dups"):
            self.queue.acknowledge(client.id, delivery.message, kind=AckKind.STANDARD)
            client.delivered.clear()
        else:
            # Half of the prefetch is delivered: the client says so, and the window widens by as much.
            client.counter += 1
            if 0.5 * client.prefetch <= client.counter:
                self.queue.acknowledge(client.id, delivery.message, kind=AckKind.DELIVERED, count=client.counter)
                client.counter = 0
        self.run()
        received: dict[str, Any] = {"n": delivery.body["n"]}
        if counter:
            received.update(redelivered=True, deliveryCount=counter + 1)
        if delivery.group_first:
            received["groupFirst"] = True
        return received

    def acknowledge(self, client: Client, n: int) -> None:
        found = next(delivery for delivery in client.delivered if delivery.body["n"] == n)
        assert found.message is not None
        if client.mode == "individual":
            client.delivered.remove(found)
            self.queue.acknowledge(client.id, found.message)
        else:
            last = client.delivered[-1].message
            assert last is not None
            client.counter = max(0, client.counter - len(client.delivered))
            client.delivered.clear()
            self.queue.acknowledge(client.id, last, kind=AckKind.STANDARD)
        self.run()

    def commit(self, client: Client) -> None:
        if client.delivered:
            last, first = client.delivered[-1].message, client.delivered[0].message
            assert last is not None
            client.counter = max(0, client.counter - len(client.delivered))
            client.delivered.clear()
            self.queue.acknowledge(client.id, last, kind=AckKind.STANDARD, first=first, transaction=client.name)
            self.run()
            self.queue.commit(client.name)
        self.run()
        if client.closing:
            self.close(client)

    def rollback(self, client: Client) -> None:
        for delivery in client.delivered:
            assert delivery.message is not None
            client.rolled_back[delivery.message] = client.rolled_back.get(delivery.message, 0) + 1
        client.counter -= len(client.delivered)
        client.buffer.extendleft(reversed(client.delivered))
        client.delivered.clear()
        if client.closing:
            self.close(client)

    def close(self, client: Client, last: int | None = None, *, lost: bool = False) -> None:
        if client.mode == "transacted" and client.delivered and not client.closing and not lost:
            client.closing = True  # the client waits for the end of its transaction
            return
        del self.clients[client.name]
        self.take(
            self.queue.close(client.id, last_delivered=client.last if last is None else last, lost=lost, now=self.now)
        )
        self.run()

    def browse(self, step: Step) -> list[int]:
        selector = step.get("selector")
        number = self.queue.add_consumer(
            selector=None if selector is None else pyengine.Selector(selector), browser=True, prefetch=500
        )
        self.browsed[number] = []
        self.run()
        self.take(self.queue.close(number, now=self.now))
        self.run()
        return self.browsed[number]

    def step(self, step: Step) -> dict[str, Any]:
        """Play one step; return what it shows."""
        self.step_log = []
        self.now += 10
        shown: dict[str, Any] = {}
        client = self.clients.get(step.get("name", ""))
        match step["op"]:
            case "consumer":
                self.consumer(step)
            case "send":
                self.send(step)
            case "browse":
                shown["browsed"] = self.browse(step)
            case "sleep":
                self.now += step["ms"]
                self.run()
            case "closeConnection" | "kill":
                gone = [
                    other
                    for other in list(self.clients.values())
                    if other is client or (client is not None and other.connection == client.connection)
                ]
                for other in gone:
                    self.close(other, lost=step["op"] == "kill")
            case operation:
                assert client is not None
                if operation == "recv":
                    shown["received"] = self.receive(client, step)
                elif operation == "ack":
                    self.acknowledge(client, step["n"])
                elif operation == "commit":
                    self.commit(client)
                elif operation == "rollback":
                    self.rollback(client)
                else:
                    self.close(client)
        if self.step_log:
            shown["dispatched"] = self.step_log
        return shown

    def final(self) -> dict[str, Any]:
        statistics = self.queue.statistics
        live = {client.id: client.name for client in self.clients.values()}
        owners = {group: live[consumer] for group, consumer in self.queue.group_owners.items()}
        counts = {name: self.queue.assigned_groups(number) for number, name in live.items()}
        return {
            "queueSize": statistics["size"],
            "inflight": statistics["in_flight"],
            "groupOwners": owners,
            "assignedGroupCount": {name: count for name, count in counts.items() if count},
            "totals": self.totals,
        }


def missing(case: dict[str, Any]) -> str:
    """Why the core alone cannot express a case, or an empty string."""
    if case.get("dest") == "topic":
        return "topics"
    unknown = set(case.get("policy", {})) - set(SETTINGS) - {"queuePrefetch"}
    if unknown:
        return f"policy {', '.join(sorted(unknown))}"
    for step in case["steps"]:
        if step["op"] not in OPERATIONS:
            return f"operation {step['op']}"
        if step.get("error"):
            return "errors of the client"
        if any(entry.keys() & {"dlq", "onMessage", "slow", "discarded"} for entry in step.get("other", ())):
            return "dead letters, listeners, advisories"
        if step["op"] == "consumer" and set(step) - CONSUMER_KEYS:
            return f"consumer option {', '.join(sorted(set(step) - CONSUMER_KEYS))}"
        if step["op"] == "send" and "to" in step:
            return "several destinations"
    return ""


def identify(case: dict[str, Any]) -> str:
    return str(case["id"])


def replay(case: dict[str, Any]) -> Verdict:
    """Play the steps and compare what each shows, then the final state; of a loose case the totals."""
    reason = missing(case)
    if reason:
        return unsupported(reason)
    player = Replay(case)
    got: list[Any] = []
    expected: list[Any] = []
    for number, step in enumerate(case["steps"]):
        shown = player.step(step)
        recorded = {key: step[key] for key in ("dispatched", "received", "browsed") if key in step}
        if not case.get("loose") and shown != recorded:
            got.append((number, step["op"], shown))
            expected.append((number, step["op"], recorded))
    final = player.final()
    keys = ["totals"] if case.get("loose") else list(final)
    wanted = {key: case["final"].get(key, {}) for key in keys}
    return compare(
        f"{case.get('note', '')} {case['steps']}", [*expected, wanted], [*got, {key: final[key] for key in keys}]
    )
