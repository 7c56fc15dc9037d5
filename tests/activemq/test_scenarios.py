"""Scenarios of the rules in docs/spec, replayed as the recorded ones are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conformance.activemq_scenarios import play


def got(*entries: Any, **fields: Any) -> list[dict[str, Any]]:
    """Dispatches: "A1" is message 1 to A; "A1+2" with redelivery counter 2."""
    found = []
    for entry in entries:
        name, _, counter = entry.partition("+")
        found.append({"to": name[0], "n": int(name[1:]), **({"redelivery": int(counter)} if counter else {})})
    return found


def consumer(name: str, *dispatched: str, **fields: Any) -> dict[str, Any]:
    return _step("consumer", dispatched, name=name, **fields)


def send(first: int, last: int, *dispatched: str, **fields: Any) -> dict[str, Any]:
    return _step("send", dispatched, n=first, count=last - first + 1, **fields)


def recv(name: str, n: int | None, *dispatched: str, seen: int = 1, **fields: Any) -> dict[str, Any]:
    received: dict[str, Any] = {"none": True} if n is None else {"n": n}
    if seen > 1:
        received |= {"redelivered": True, "deliveryCount": seen}
    return _step("recv", dispatched, name=name, received=received, **fields)


def do(op: str, name: str, *dispatched: str, **fields: Any) -> dict[str, Any]:
    return _step(op, dispatched, name=name, **fields)


def _step(op: str, dispatched: tuple[str, ...], **fields: Any) -> dict[str, Any]:
    return {"op": op, **fields, **({"dispatched": got(*dispatched)} if dispatched else {})}


def heard(n: int, by: str, count: int = 1, threw: bool = False) -> dict[str, Any]:
    return {"onMessage": n, "by": by, "deliveryCount": count, **({"threw": True} if threw else {})}


def letter(n: int, sent: bool = True) -> dict[str, Any]:
    return {"dlq": n, "sent": sent}


P = {"persistent": True}
SCENARIOS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "client acknowledgement widens the window by halves [q-ack-client-pref]": (
        {},
        [
            consumer("A", ack="client", prefetch=4),
            send(1, 10, "A1", "A2", "A3", "A4"),
            recv("A", 1),
            recv("A", 2, "A5", "A6"),
            recv("A", 3),
            recv("A", 4, "A7", "A8"),
            recv("A", 5),
            recv("A", 6, "A9", "A10"),
        ],
    ),
    "so does a transaction [q-ack-tx-pref]": (
        {},
        [
            consumer("A", ack="transacted", prefetch=4),
            send(1, 7, "A1", "A2", "A3", "A4"),
            recv("A", 1),
            recv("A", 2, "A5", "A6"),
            recv("A", 3),
            recv("A", 4, "A7"),
        ],
    ),
    "with prefetch 1 the receive of the first brings the second [q-pref-10]": (
        {},
        [consumer("A", ack="transacted", prefetch=1), send(1, 3, "A1"), recv("A", 1, "A2"), recv("A", 2, "A3")],
    ),
    "not without prefetch extension [q-ack-client-pref2]": (
        {"usePrefetchExtension": False},
        [
            consumer("A", ack="client", prefetch=2),
            send(1, 4, "A1", "A2"),
            recv("A", 1),
            recv("A", 2),
            do("ack", "A", "A3", "A4", n=1),
        ],
    ),
    "automatic acknowledgement is sent at the receive [q-pref-9]": (
        {},
        [consumer("A", ack="auto", prefetch=1), send(1, 3, "A1"), recv("A", 1, "A2"), recv("A", 2, "A3")],
    ),
    "a negative prefetch is always full [q-pref-5]": (
        {},
        [consumer("A", ack="auto", prefetch=-1), send(1, 2), recv("A", None, timeout=200)],
    ),
    "optimized acknowledgement: seven of ten [q-ack-opt]": (
        {},
        [
            consumer("A", ack="auto", prefetch=10, optimizeAcknowledge=True, optimizeAcknowledgeTimeOut=100_000),
            send(1, 20, *(f"A{n}" for n in range(1, 11))),
            *(recv("A", n) for n in range(1, 7)),
            recv("A", 7, *(f"A{n}" for n in range(11, 18))),
            recv("A", 8),
            do("close", "A", "A18"),
            consumer("B", *(f"B{n}" for n in range(9, 21))),
        ],
    ),
    "optimized acknowledgement with prefetch 1 [q-ack-opt1]": (
        {},
        [
            consumer("A", ack="auto", prefetch=1, optimizeAcknowledge=True),
            send(1, 3, "A1"),
            recv("A", 1, "A2"),
            recv("A", 2, "A3"),
        ],
    ),
    "dups-ok on a queue is like auto [q-ack-dups]": (
        {},
        [
            consumer("A", ack="dups", prefetch=2),
            send(1, 3, "A1", "A2"),
            recv("A", 1, "A3"),
            do("close", "A"),
            consumer("B", "B2", "B3"),
        ],
    ),
    "individual acknowledgement out of order [q-ack-ind-order]": (
        {},
        [
            consumer("A"),
            send(1, 3, "A1", "A2", "A3"),
            recv("A", 1),
            recv("A", 2),
            recv("A", 3),
            do("ack", "A", n=2),
            do("close", "A"),
            consumer("B", "B1+1", "B3+1"),
        ],
    ),
    "a lost connection counts even what was only prefetched [q-red-3]": (
        {},
        [
            consumer("A"),
            send(1, 2, "A1", "A2"),
            recv("A", 1),
            do("kill", "A"),
            consumer("B", "B1+1", "B2+1"),
        ],
    ),
    "a session that closes reports the last of all its consumers [q-red-7]": (
        {},
        [
            consumer("A", conn="x"),
            consumer("B", conn="x"),
            send(1, 4, "A1", "B2", "A3", "B4"),
            recv("A", 1),
            recv("B", 2),
            do("closeConnection", "A", "B1", "B3"),
            consumer("C", "C2+1", "C4", "C1", "C3"),
        ],
    ),
    "the client's rollbacks do not reach the broker's counter [q-tx-1]": (
        {},
        [
            consumer("A", ack="transacted"),
            send(1, 1, "A1"),
            recv("A", 1),
            do("rollback", "A"),
            recv("A", 1, seen=2),
            do("rollback", "A"),
            do("close", "A"),
            consumer("B", "B1+1"),
            recv("B", 1, seen=2),
        ],
    ),
    "poison after one delivery, the whole batch [q-dlq-0, q-dlq-batch]": (
        {},
        [
            consumer("A", ack="transacted", redelivery={"maximumRedeliveries": 0}),
            send(1, 3, "A1", "A2", "A3", **P),
            recv("A", 1),
            recv("A", 2),
            do("rollback", "A", other=[letter(1), letter(2)]),
            recv("A", 3),
        ],
    ),
    "non-persistent poison is dropped [q-dlq-np]": (
        {},
        [
            consumer("A", ack="transacted", redelivery={"maximumRedeliveries": 0}),
            send(1, 1, "A1"),
            recv("A", 1),
            do("rollback", "A", other=[letter(1, False)]),
        ],
    ),
    "a transacted consumer refuses what came too often [q-dlq-predispatch]": (
        {},
        [
            consumer("A"),
            send(1, 2, "A1", "A2", **P),
            recv("A", 1),
            do("close", "A"),
            consumer("B", "B1+1", "B2", ack="transacted", redelivery={"maximumRedeliveries": 0}),
            recv("B", 2, other=[letter(1)]),
        ],
    ),
    "recover brings back what was not acknowledged": (
        {},
        [
            consumer("A", ack="client"),
            send(1, 3, "A1", "A2", "A3"),
            recv("A", 1),
            recv("A", 2),
            do("recover", "A"),
            recv("A", 1, seen=2),
            recv("A", 2, seen=2),
            recv("A", 3),
        ],
    ),
    "the client's buffer by priority [q-mprio-3]": (
        {},
        [
            consumer("A", messagePrioritySupported=True),
            send(1, 1, "A1", priority=4),
            send(2, 2, "A2", priority=9),
            send(3, 3, "A3", priority=4),
            recv("A", 2),
            recv("A", 1),
            recv("A", 3),
        ],
    ),
    "rolled back messages go to the front of their list [q-mprio-4]": (
        {},
        [
            consumer("A", ack="transacted", messagePrioritySupported=True),
            send(1, 2, "A1", "A2", priority=4),
            recv("A", 1),
            do("rollback", "A"),
            send(3, 3, "A3", priority=9),
            recv("A", 3),
            recv("A", 1, seen=2),
            recv("A", 2),
        ],
    ),
    "a failing listener goes on until the dead letters": (
        {},
        [
            consumer("A", ack="auto", listen={"fail": [1]}, redelivery={"maximumRedeliveries": 1}),
            send(1, 1, "A1", other=[heard(1, "A", 1, True), heard(1, "A", 2, True), letter(1)], **P),
            send(2, 2, "A2", other=[heard(2, "A")]),
        ],
    ),
    "a failing listener in a client acknowledge session does not redeliver": (
        {},
        [
            consumer("A", ack="client", listen={"fail": [1], "failTimes": 1}),
            send(1, 2, "A1", "A2", other=[heard(1, "A", 1, True), heard(2, "A")]),
        ],
    ),
    "an expired message is not delivered [q-exp]": (
        {},
        [
            consumer("A", ack="auto"),
            send(1, 1, "A1", ttl=100, **P),
            send(2, 2, "A2"),
            {"op": "sleep", "ms": 300},
            recv("A", 2, other=[{"expired": 1}, letter(1)]),
        ],
    ),
    "consumer priority is a signed byte [q-prio-6]": (
        {},
        [{**consumer("A", priority=200), "error": "ConfigurationException"}, consumer("B", priority=-128)],
    ),
    "a selector that is not one": ({}, [{**consumer("A", selector="a ="), "error": "InvalidSelectorException"}]),
    "noLocal on a queue [q-nolocal-1]": (
        {},
        [consumer("A", conn="x", noLocal=True), send(1, 1, conn="x"), send(2, 2, "A2"), consumer("B", "B1")],
    ),
    "a closed transacted consumer leaves when the transaction ends": (
        {},
        [
            consumer("A", ack="transacted"),
            send(1, 2, "A1", "A2"),
            recv("A", 1),
            do("close", "A"),
            consumer("B"),
            do("commit", "A", "B2"),
        ],
    ),
    "closing a session rolls back": (
        {},
        [
            consumer("A", ack="transacted"),
            send(1, 2, "A1", "A2"),
            recv("A", 1),
            do("closeSession", "A"),
            consumer("B", "B1+1", "B2"),
        ],
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name: str) -> None:
    policy, steps = SCENARIOS[name]
    case = {"id": name, "policy": policy, "steps": steps, "final": {"totals": {}}}
    shown, _ = play(json.loads(json.dumps(case)))
    seen = ("dispatched", "received", "browsed", "error", "other")
    for number, (step, result) in enumerate(zip(steps, shown, strict=True)):
        assert result == {key: step[key] for key in seen if key in step}, (number, step)
