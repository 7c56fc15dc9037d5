"""Map, stream and object bodies over STOMP, and the data structures of advisories, as recorded of the real 5.18.6 with
XStream 1.4.20 and Jettison 1.5.4, which its distribution has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from pyengine import Char, MapBody, Message, ObjectBody, StreamBody
from pyengine.activemq import Broker
from pyengine.destinations import Destination
from pyengine.topology.policy import Policy
from tests.activemq.stomp.raw import Frame, RawClient

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "bodies.json").read_text("utf-8"))
INNER = {"a": 1, "b": "c"}


def map_of(**entries: Any) -> MapBody:
    return MapBody(entries)


BODIES: dict[str, Any] = {
    "map all": map_of(
        name="Dejan", i=5, l=numpy.int64(6), b=numpy.int8(3), s=numpy.int16(4), f=numpy.float32(1.5), d=2.25,
        c=Char("x"), bo=True, by=b"\1\2\xff", n=None,
    ),
    "map odd": map_of(
        t="a<b>&\"'\n\t\u2603 \1 e", e="", c0=Char("\0"), fn=numpy.float32("nan"), di=float("-inf"), dd=1e20,
        lt=Char("<"),
    ),
    "map nested": map_of(li=[1, "x", None, numpy.int64(2), ["q"]], ma=INNER, el=[], em={}),
    "map empty": map_of(), "map one": map_of(only="x"), "map strings": map_of(a="1", b="2"),
    "map ints": map_of(a=1, b=2), "map list1": map_of(li=["x"]), "map list2": map_of(li=[1, 2]),
    "map list3": map_of(li=[1, "a", 2]), "map inner": map_of(ma=INNER), "map null": map_of(nn=None),
    "map texts": map_of(a='/x"\\', b="7", c="true", d=" ", e="1.50", f="null"),
    "map numbers": map_of(n="007", big="12345678901234567890", m="-0", x="1e3"),
    "map nulls": map_of(x=None, y="z"),
    "object string": ObjectBody(b"\xac\xed\0\5t\0\3a<by"), "object null": ObjectBody(),
    "object int": ObjectBody(
        bytes.fromhex(
            "aced0005737200116a6176612e6c616e672e496e746567657212e2a0a4f781873802000149000576616c7565787200106a6176612e6c"
            "616e672e4e756d62657286ac951d0b94e08b02000078700000000779"
        )
    ),
    "object long": ObjectBody(
        bytes.fromhex(
            "aced00057372000e6a6176612e6c616e672e4c6f6e673b8be490cc8f23df0200014a000576616c7565787200106a6176612e6c616e67"
            "2e4e756d62657286ac951d0b94e08b0200007870000000000000000779"
        )
    ),
    # Classes that the broker does not trust: it closes the connection.
    "object list": ObjectBody(
        bytes.fromhex("aced0005737200136a6176612e7574696c2e41727261794c6973747881d21d99c7619d0300")
    ),
    "object map": ObjectBody(bytes.fromhex("aced0005737200116a6176612e7574696c2e486173684d61700507dac1c31660d1")),
    "object untrusted": ObjectBody(bytes.fromhex("aced00057372000e6a6176612e6177742e506f696e74b6c48a7234")),
}  # fmt: skip


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(name="bodies", transport_connectors=["stomp://127.0.0.1:0"]) as broker:
        yield broker


def dispatched(broker: Broker, body: Any, **headers: str) -> Frame:
    """The MESSAGE of a body for a subscription with these headers."""
    client = RawClient(broker)
    broker.send("test", Destination("bodies"), Message(body=body, message_id="ID:t:1:1:1"))
    client.send("SUBSCRIBE", destination="/queue/bodies", id="1", **headers)
    frame = client.read()
    client.close()
    if not frame.action:
        broker.purge("bodies")
    return frame


@pytest.mark.parametrize("form", ["xml", "json"])
@pytest.mark.parametrize("name", RECORDED["shown"])
def test_a_body_is_shown_as_by_the_real_broker(broker: Broker, name: str, form: str) -> None:
    expected = RECORDED["shown"][name][form]
    frame = dispatched(broker, BODIES[name], transformation=f"jms-{form}")
    if expected is None:
        assert frame.action == ""
        return
    assert frame.body == expected
    assert frame.headers["transformation"] == f"jms-{name.split()[0]}-{form}"
    assert "content-length" not in frame.headers


def test_other_transformations(broker: Broker) -> None:
    """The last word decides: JSON or XML; a name that is not known, or none, is a message without its body."""
    one, stream = map_of(only="x"), StreamBody([1, "x"])
    xml = RECORDED["shown"]["map one"]["xml"]
    for transformation in ("jms-object-xml", "jms-byte", "jms-advisory-xml"):
        assert dispatched(broker, one, transformation=transformation).body == xml
    for body, headers in ((one, {"transformation": "nosuch"}), (one, {}), (stream, {"transformation": "jms-map-json"})):
        frame = dispatched(broker, body, **headers)
        assert frame.action == "MESSAGE"
        assert frame.body == ""
        assert frame.headers.get("transformation") == headers.get("transformation")


def shown(body: Any) -> str:
    """A body as the recorder shows it."""
    if isinstance(body, ObjectBody):
        return body.data.hex()
    kinds = {"int": "Integer", "char": "Character"}
    types = body.entry_types()
    return "".join(
        f"{name}={'null' if body[name] is None else kinds.get(types[name], types[name].title()) + ':'}"
        f"{'' if body[name] is None else body.get_string(name)};"
        for name in body
    )


@pytest.mark.parametrize("case", RECORDED["read"], ids=lambda case: f"{case['transformation']} {case['text']}"[:60])
def test_a_body_is_read_as_by_the_real_broker(broker: Broker, case: dict[str, Any]) -> None:
    client = RawClient(broker)
    destination = "/queue/read"
    client.ask("SEND", case["text"], destination=destination, transformation=case["transformation"], receipt="r")
    client.close()
    (message,) = broker.browse("read")
    broker.purge("read")
    kind = {str: "Text", MapBody: "Map", ObjectBody: "Object"}[type(message.body)]
    assert kind == case["kind"]
    assert message.get_string_property("transformation") == case["transformation"]
    error = message.get_string_property("transformation-error")
    if case["error"] == "*":  # XStream's debugging information
        assert error is not None
    else:
        assert error == case["error"]
    if kind == "Text":
        assert message.body == case["text"]
    else:
        assert shown(message.body) == case["value"].split(" ")[0]


def test_what_is_hostile_is_a_text(broker: Broker) -> None:
    client = RawClient(broker)
    deep = "<list>" * 5000 + "</list>" * 5000
    bomb = '<!DOCTYPE m [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><map><entry><string>&b;</string><null/></entry></map>'
    outside = '<!DOCTYPE m [<!ENTITY a SYSTEM "file:///etc/passwd">]><string>&a;</string>'
    for text in (deep, bomb, outside, '{"map":' * 5000, "[" * 5000, '{"a":{"b":[[1]]}}'):
        form = "xml" if text.startswith("<") else "json"
        for kind in ("map", "object"):
            client.ask("SEND", text, destination="/queue/bad", transformation=f"jms-{kind}-{form}", receipt="r")
    assert [message.body for message in broker.browse("bad")] == [
        text for text in (deep, bomb, outside, '{"map":' * 5000, "[" * 5000, '{"a":{"b":[[1]]}}') for _ in range(2)
    ]
    broker.purge("bad")
    client.close()


def command_of(frame: Frame) -> dict[str, Any]:
    """What an advisory reports, without the numbers of ids, commands and time."""
    text = re.sub(r'"commandId":\d+', '"commandId":0', frame.body)
    text = re.sub(r'"responseRequired":true', '"responseRequired":false', text)
    found: dict[str, Any] = json.loads(text)
    return found


def test_advisories_of_a_session() -> None:
    """The session that was recorded of the real broker, and its advisories in order."""
    switches = {
        "advisory_for_consumed": True, "advisory_for_delivery": True, "advisory_for_discarding_messages": True,
        "send_advisory_if_no_consumers": True,
    }  # fmt: skip
    policies = [Policy("queue://>", **switches), Policy("topic://>", **switches)]
    with Broker(name="advised", policies=policies, transport_connectors=["stomp://127.0.0.1:0"]) as broker:
        watch = RawClient(broker, client_id="watch")
        watch.ask("SUBSCRIBE", id="1", destination="/topic/ActiveMQ.Advisory.>", receipt="r")

        def advisories(number: int) -> list[tuple[str, dict[str, Any]]]:
            found = []
            for _ in range(number):
                frame = watch.read()
                assert frame.action == "MESSAGE"
                name = frame.headers["destination"].removeprefix("/topic/ActiveMQ.Advisory.")
                command = command_of(frame) if frame.headers.get("type") == "Advisory" else {}
                counts = {key: frame.headers[key] for key in ("consumerCount", "producerCount") if key in frame.headers}
                found.append((name, {**counts, **command}))
            with pytest.raises(TimeoutError):
                watch.read(0.02)
            return found

        client = RawClient(broker, client_id="cli", login="joe", passcode="pw")
        ((name, connected),) = advisories(1)
        connection_id = connected["ConnectionInfo"]["connectionId"]["value"]
        assert name == "Connection"
        assert connected == {
            "ConnectionInfo": {
                "commandId": 0, "responseRequired": False, "connectionId": {"value": connection_id}, "clientId": "cli",
                "userName": "joe", "password": "", "brokerMasterConnector": False, "manageable": False,
                "clientMaster": True, "faultTolerant": False, "failoverReconnect": False,
            }
        }  # fmt: skip
        client.ask(
            "SUBSCRIBE", id="1", destination="/queue/Q", ack="client-individual", selector="a='b'",
            activemq__prefetchSize="1", receipt="r",
        )  # fmt: skip
        queue = {"@class": "ActiveMQQueue", "string": "Q", "null": ""}
        base = {"commandId": 0, "responseRequired": False}
        made = {
            **base,
            "connectionId": {"value": connection_id},
            "destination": queue,
            "operationType": 0,
            "timeout": 0,
        }
        consumer = {"connectionId": connection_id, "sessionId": -1, "value": 1}
        flags = {"noLocal": False, "exclusive": False, "retroactive": False, "priority": 0}
        flags |= {"optimizedAcknowledge": False, "noRangeAcks": False}
        started = {
            **base, "consumerId": consumer, "destination": queue, "prefetchSize": 1, "maximumPendingMessageLimit": 0,
            "browser": False, "dispatchAsync": True, "selector": "convert_string_expressions:a='b'", **flags,
        }  # fmt: skip
        assert advisories(2) == [
            ("Queue", {"DestinationInfo": made}),
            ("Consumer.Queue.Q", {"consumerCount": "1", "ConsumerInfo": started}),
        ]
        client.ask("SUBSCRIBE", id="2", destination="/topic/T", activemq__subscriptionName="dur", receipt="r")
        (topic, durable) = advisories(2)
        assert topic[1]["DestinationInfo"]["destination"]["@class"] == "ActiveMQTopic"
        assert durable[1]["ConsumerInfo"]["subscriptionName"] == "dur"
        client.ask("SEND", "hello", destination="/queue/Q", a="b")
        ((name, delivered),) = advisories(1)
        assert name == "MessageDelivered.Queue.Q"
        message = delivered["ActiveMQTextMessage"]
        assert message["messageId"]["producerId"] == {"connectionId": connection_id, "sessionId": -1, "value": 1}
        assert message["properties"] == [{"entry": {"string": ["a", "b"]}}]
        client.close()
        names = [name for name, _ in advisories(3)]
        assert names == ["Consumer.Queue.Q", "Consumer.Topic.T", "Connection"]
        late = RawClient(broker, client_id="late")
        late.ask("SUBSCRIBE", id="1", destination="/topic/ActiveMQ.Advisory.Queue", receipt="r")
        assert command_of(late.read())["DestinationInfo"]["destination"] == queue
        late.send("SUBSCRIBE", id="2", destination="/topic/ActiveMQ.Advisory.Connection")
        assert [command_of(late.read())["ConnectionInfo"]["clientId"] for _ in range(2)] == ["watch", "late"]
        late.close()
        watch.close()
