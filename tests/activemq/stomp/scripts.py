"""What STOMP can say of a broker, as scripts that a client of any language plays; each answers with a transcript.

A step is ``[operation, connection, arguments]``. ``send``, ``subscribe``, ``unsubscribe``, ``begin``, ``commit``,
``abort``, ``disconnect`` ask for a receipt and wait for it or for an ERROR; ``ack`` and ``nack`` name the number of a
message that the connection got. ``receive`` waits for so many more messages and shows them, ``quiet`` shows what comes
without being expected, ``drop`` closes the socket. ``{3}`` in a header is the reply-to of message 3.

Where several consumers wait for a message ``quiet`` stands before it: the real broker answers a SUBSCRIBE first, and
then lets messages come to it.
"""

from __future__ import annotations

from typing import Any

Step = list[Any]


def connect(name: str = "a", **headers: str) -> Step:
    return ["connect", name, {"headers": headers}]


def send(destination: str, body: str, name: str = "a", transaction: str = "", **headers: str) -> Step:
    shown = {key if key.startswith("AMQ") else key.replace("_", "-"): value for key, value in headers.items()}
    return ["send", name, {"destination": destination, "body": body, "transaction": transaction, "headers": shown}]


def subscribe(destination: str, name: str = "a", id: str = "1", ack: str = "auto", **headers: str) -> Step:
    shown = {key.replace("__", "."): value for key, value in headers.items()}
    return ["subscribe", name, {"destination": destination, "id": id, "ack": ack, "headers": shown}]


def unsubscribe(name: str = "a", id: str = "1", **headers: str) -> Step:
    return [
        "unsubscribe",
        name,
        {"id": id, "headers": {key.replace("__", "."): value for key, value in headers.items()}},
    ]


def receive(number: int, name: str = "a") -> Step:
    return ["receive", name, {"number": number}]


def quiet(name: str = "a") -> Step:
    return ["quiet", name, {}]


def ack(number: int, name: str = "a", transaction: str = "") -> Step:
    return ["ack", name, {"number": number, "transaction": transaction}]


def nack(number: int, name: str = "a") -> Step:
    return ["nack", name, {"number": number, "transaction": ""}]


def transaction(what: str, transaction: str = "t", name: str = "a") -> Step:
    return [what, name, {"transaction": transaction}]


def disconnect(name: str = "a") -> Step:
    return ["disconnect", name, {}]


def drop(name: str = "a") -> Step:
    return ["drop", name, {}]


def sends(destination: str, *bodies: str, name: str = "a", **headers: str) -> list[Step]:
    return [send(destination, body, name, **headers) for body in bodies]


SCRIPTS: dict[str, list[Step]] = {
    "text": [connect(), subscribe("/queue/Q"), send("/queue/Q", "tea"), receive(1), disconnect()],
    "headers": [
        connect(), subscribe("/queue/Q"),
        send("/queue/Q", "x", price="150", colour="a:b\\c\nd", persistent="true", priority="7", type="ty",
             correlation_id="c1", reply_to="/queue/R", JMSXGroupID="g", JMSXGroupSeq="2", expires="32503680000000"),
        receive(1), disconnect(),
    ],
    "message types": [
        connect(), subscribe("/queue/Q"),
        send("/queue/Q", "t", amq_msg_type="text"), send("/queue/Q", "b", amq_msg_type="bytes"), receive(2),
        disconnect(),
    ],
    "waiting messages": [
        connect(), *sends("/queue/Q", "1", "2", "3"), subscribe("/queue/Q"), receive(3), quiet(), disconnect(),
    ],
    "client acknowledges up to a message": [
        connect(), *sends("/queue/Q", "1", "2", "3", "4"), subscribe("/queue/Q", ack="client"), receive(4), ack(2),
        disconnect(), connect("b"), subscribe("/queue/Q", "b"), receive(1, "b"), quiet("b"), disconnect("b"),
    ],
    "client-individual": [
        connect(), *sends("/queue/Q", "1", "2", "3"), subscribe("/queue/Q", ack="client-individual"), receive(3),
        ack(1), disconnect(), connect("b"), subscribe("/queue/Q", "b"), receive(2, "b"), quiet("b"), disconnect("b"),
    ],
    "nack to the dead letters": [
        connect(), send("/queue/Q", "p", persistent="true"), send("/queue/Q", "n"),
        subscribe("/queue/Q", ack="client-individual"), receive(2), nack(0), nack(1),
        subscribe("/queue/ActiveMQ.DLQ", id="2"), receive(1), quiet(), disconnect(),
    ],
    "unsubscribe gives back": [
        connect(), *sends("/queue/Q", "1", "2"), subscribe("/queue/Q", ack="client"), receive(2), unsubscribe(),
        connect("b"), subscribe("/queue/Q", "b"), receive(2, "b"), disconnect("b"), disconnect(),
    ],
    "a lost connection gives back": [
        connect(), *sends("/queue/Q", "1", "2"), subscribe("/queue/Q", ack="client"), receive(2), drop(),
        connect("b"), subscribe("/queue/Q", "b"), receive(2, "b"), disconnect("b"),
    ],
    "prefetch": [
        connect(), *sends("/queue/Q", *"12345"),
        subscribe("/queue/Q", ack="client-individual", activemq__prefetchSize="2"), receive(2), quiet(), ack(0),
        receive(1), quiet(), disconnect(),
    ],
    "prefetch zero": [
        connect(), send("/queue/Q", "1"), subscribe("/queue/Q", activemq__prefetchSize="0"), quiet(), disconnect(),
    ],
    "selector": [
        connect(), subscribe("/queue/Q", selector="price > 100 AND region = 'EU'"),
        send("/queue/Q", "no", price="50", region="EU"), send("/queue/Q", "yes", price="150", region="EU"),
        send("/queue/Q", "neither", price="150", region="US"), receive(1), quiet(), disconnect(),
    ],
    "bad selector": [
        connect(), subscribe("/queue/Q", selector="price >"), send("/queue/Q", "1"), quiet(), disconnect(),
    ],
    "exclusive": [
        connect(), connect("b"), subscribe("/queue/Q", activemq__exclusive="true"),
        subscribe("/queue/Q", "b", activemq__exclusive="true"), quiet("b"), *sends("/queue/Q", "1", "2", "3"),
        receive(3), quiet("b"), disconnect(), send("/queue/Q", "4", "b"), receive(1, "b"), disconnect("b"),
    ],
    "consumer priority": [
        connect(), connect("b"), subscribe("/queue/Q", activemq__priority="1"),
        subscribe("/queue/Q", "b", activemq__priority="5", activemq__prefetchSize="2", ack="client"), quiet("b"),
        *sends("/queue/Q", *"1234"), receive(2, "b"), receive(2), disconnect(), disconnect("b"),
    ],
    "groups": [
        connect(), connect("b"), subscribe("/queue/Q"), subscribe("/queue/Q", "b"), quiet("b"),
        *[send("/queue/Q", f"{group}{n}", JMSXGroupID=group) for n in "12" for group in "AB"],
        receive(2), receive(2, "b"), quiet(), quiet("b"), disconnect(), disconnect("b"),
    ],
    "topic": [
        connect(), connect("b"), subscribe("/topic/T"), subscribe("/topic/T", "b"), send("/topic/T", "1"),
        receive(1), receive(1, "b"), disconnect("b"), send("/topic/T", "2"), receive(1), disconnect(),
    ],
    "topic without subscribers": [
        connect(), send("/topic/T", "1"), subscribe("/topic/T"), quiet(), send("/topic/T", "2"), receive(1),
        disconnect(),
    ],
    "no local": [
        connect(), connect("b"), subscribe("/topic/T", activemq__noLocal="true"), send("/topic/T", "mine"),
        send("/topic/T", "yours", "b"), receive(1), quiet(), disconnect(), disconnect("b"),
    ],
    "retroactive": [
        connect(), send("/topic/T", "1"), subscribe("/topic/T", activemq__retroactive="true"), send("/topic/T", "2"),
        receive(1), disconnect(),
    ],
    "durable subscription": [
        connect(client_id="dora"), subscribe("/topic/D", id="s", activemq__subscriptionName="news"),
        send("/topic/D", "1", persistent="true"), receive(1), disconnect(),
        connect("b"), send("/topic/D", "2", "b", persistent="true"), disconnect("b"),
        connect("c", client_id="dora"), subscribe("/topic/D", "c", "s", activemq__subscriptionName="news"),
        receive(1, "c"), unsubscribe("c", "s"), unsubscribe("c", "s", activemq__subscriptionName="news"),
        disconnect("c"),
        connect("d"), send("/topic/D", "3", "d", persistent="true"), disconnect("d"),
        connect("e", client_id="dora"), subscribe("/topic/D", "e", "s", activemq__subscriptionName="news"), quiet("e"),
        unsubscribe("e", "s"), unsubscribe("e", "s", activemq__subscriptionName="news"), disconnect("e"),
    ],
    "client id in use": [connect(client_id="one"), connect("b", client_id="one"), disconnect()],
    "composite": [
        connect(), subscribe("/queue/A"), subscribe("/topic/B", id="2"),
        send("/queue/A,/topic/B", "1"), receive(2), disconnect(),
    ],
    "wildcards": [
        connect(), subscribe("/queue/W.>"), subscribe("/topic/W.*.x", id="2"), send("/queue/W.a.b", "1"),
        send("/topic/W.b.x", "2"), send("/topic/W.b.y", "3"), receive(2), quiet(), disconnect(),
    ],
    "commit": [
        connect(), subscribe("/queue/Q"), transaction("begin"), send("/queue/Q", "1", transaction="t"),
        send("/queue/Q", "2", transaction="t"), quiet(), transaction("commit"), receive(2), disconnect(),
    ],
    "abort": [
        connect(), subscribe("/queue/Q"), transaction("begin"), send("/queue/Q", "1", transaction="t"),
        transaction("abort"), quiet(), disconnect(),
    ],
    "acknowledged in a transaction": [
        connect(), *sends("/queue/Q", "1", "2"), subscribe("/queue/Q", ack="client-individual"), receive(2),
        transaction("begin"), ack(0, transaction="t"), transaction("commit"), transaction("begin", "u"),
        ack(1, transaction="u"), transaction("abort", "u"), quiet(), ack(1), disconnect(),
        connect("b"), subscribe("/queue/Q", "b"), quiet("b"), disconnect("b"),
    ],
    "client acknowledges in a transaction": [
        connect(), *sends("/queue/Q", "1", "2", "3"), subscribe("/queue/Q", ack="client"), receive(3),
        transaction("begin"), ack(1, transaction="t"), transaction("abort"), transaction("begin", "u"),
        ack(1, transaction="u"), transaction("commit", "u"), disconnect(),
        connect("b"), subscribe("/queue/Q", "b"), receive(1, "b"), quiet("b"), disconnect("b"),
    ],
    "acknowledged after its subscription": [
        connect(), subscribe("/queue/Q", ack="client-individual"), send("/queue/Q", "1"), receive(1), unsubscribe(),
        ack(0), nack(0), disconnect(),
    ],
    "subscriptions that are not": [
        connect(client_id="c"), unsubscribe("a", "s", activemq__subscriptionName="nosuch"),
        subscribe("/topic/T", id="s", activemq__subscriptionName="n"),
        unsubscribe("a", "s", activemq__subscriptionName="n"), disconnect(),
    ],
    "virtual topic": [
        connect(), subscribe("/queue/Consumer.A.VirtualTopic.T"), send("/topic/VirtualTopic.T", "v"), receive(1),
        disconnect(),
    ],
    "request and reply": [
        connect(), connect("b"), subscribe("/queue/R", "b"), subscribe("/temp-queue/mine", id="t"),
        send("/queue/R", "ask", reply_to="/temp-queue/mine", correlation_id="7"), receive(1, "b"),
        send("{0}", "answer", "b", correlation_id="7"), receive(1), disconnect(), send("{0}", "late", "b"),
        disconnect("b"),
    ],
    "browser": [
        connect(), *sends("/queue/Q", "1", "2", "3"), subscribe("/queue/Q", browser="true"), receive(4), unsubscribe(),
        subscribe("/queue/Q", id="2"), receive(3), disconnect(),
    ],
    "expired": [
        connect(), send("/queue/Q", "old", expires="1000"), send("/queue/Q", "new"), subscribe("/queue/Q"), receive(1),
        quiet(), disconnect(),
    ],
    "delayed": [
        connect(), subscribe("/queue/Q"), send("/queue/Q", "later", AMQ_SCHEDULED_DELAY="400", price="1"), quiet(),
        send("/queue/Q", "now"), receive(2), disconnect(),
    ],
    "repeated": [
        connect(), subscribe("/queue/Q"),
        send("/queue/Q", "again", AMQ_SCHEDULED_DELAY="10", AMQ_SCHEDULED_PERIOD="200", AMQ_SCHEDULED_REPEAT="2"),
        receive(3), quiet(), disconnect(),
    ],
    "delayed in a transaction": [
        connect(), subscribe("/queue/Q"), transaction("begin"),
        send("/queue/Q", "later", AMQ_SCHEDULED_PERIOD="100", transaction="t"), quiet(), transaction("commit"),
        receive(1), disconnect(),
    ],
    "what cannot be scheduled": [
        connect(), send("/queue/Q", "x", AMQ_SCHEDULED_DELAY="1", AMQ_SCHEDULED_REPEAT="1001"), disconnect(),
    ],
    "errors": [
        connect(), transaction("commit", "nosuch"), quiet(), disconnect(),
    ],
    "two subscriptions": [
        connect(), subscribe("/queue/Q", id="1"), subscribe("/queue/Q", id="2"), quiet(), *sends("/queue/Q", *"1234"),
        receive(4), disconnect(),
    ],
    "slow and fast": [
        connect(), connect("b"), subscribe("/queue/Q", ack="client-individual", activemq__prefetchSize="1"),
        subscribe("/queue/Q", "b"), quiet("b"), *sends("/queue/Q", *"12345"), receive(1), receive(4, "b"), ack(0),
        quiet(),
        disconnect(), disconnect("b"),
    ],
}  # fmt: skip
