"""activemq/scenarios through the public client: connections, sessions, consumers and producers under a manual clock.

Clients ask for dispatchAsync=false, so the order in which the broker reaches their connections is its own order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlencode

from pyengine import Message, activemq
from pyengine.activemq.broker.events import ConsumerClosed, DeadLetter, MessageDiscarded, MessageExpired, SlowConsumer
from pyengine.activemq.transport.commands import Answer, ConnectionInfo, ConnectionSink, MessageDispatch
from pyengine.clock import ManualClock
from pyengine.destinations import Destination, destination_of
from pyengine.errors import (
    ConfigurationError,
    IllegalStateError,
    InvalidClientIDError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    PyengineError,
)
from pyengine.topology.policy import (
    AbortSlowAckConsumerStrategy,
    AbortSlowConsumerStrategy,
    CompositeQueue,
    CompositeTopic,
    ConstantPendingMessageLimitStrategy,
    DiscardingDeadLetterStrategy,
    FilteredDestination,
    FixedCountSubscriptionRecoveryPolicy,
    FixedSizedSubscriptionRecoveryPolicy,
    IndividualDeadLetterStrategy,
    LastImageSubscriptionRecoveryPolicy,
    NoSubscriptionRecoveryPolicy,
    OldestMessageEvictionStrategy,
    OldestMessageWithLowestPriorityEvictionStrategy,
    Policy,
    PolicyMap,
    PrefetchRatePendingMessageLimitStrategy,
    SharedDeadLetterStrategy,
    TimedSubscriptionRecoveryPolicy,
    UniquePropertyMessageEvictionStrategy,
    VirtualDestination,
    VirtualTopic,
)
from tests.conformance.activemq_selector import typed
from tests.conformance.verdict import Verdict, compare, unsupported

Step = dict[str, Any]
MODES = {
    "auto": activemq.AUTO_ACKNOWLEDGE,
    "client": activemq.CLIENT_ACKNOWLEDGE,
    "dups": activemq.DUPS_OK_ACKNOWLEDGE,
    "individual": activemq.INDIVIDUAL_ACKNOWLEDGE,
    "transacted": activemq.SESSION_TRANSACTED,
}
RECOVERY = {
    "fixedCount": FixedCountSubscriptionRecoveryPolicy,
    "fixedSized": FixedSizedSubscriptionRecoveryPolicy,
    "lastImage": LastImageSubscriptionRecoveryPolicy,
    "timed": TimedSubscriptionRecoveryPolicy,
    "none": NoSubscriptionRecoveryPolicy,
}
ERRORS: tuple[tuple[type[PyengineError], str], ...] = (
    (ConfigurationError, "ConfigurationException"),
    (InvalidSelectorError, "InvalidSelectorException"),
    (InvalidClientIDError, "InvalidClientIDException"),
    (InvalidDestinationError, "InvalidDestinationException"),
    (IllegalStateError, "IllegalStateException"),
    (JMSError, "JMSException"),
)
CONSUMER_OPTIONS = ("exclusive", "priority", "noLocal", "retroactive", "maximumPendingMessageLimit")
CONNECTION_OPTIONS = (
    "messagePrioritySupported", "optimizeAcknowledge", "optimizeAcknowledgeTimeOut",
    "optimizedAckScheduledAckInterval", "nonBlockingRedelivery", "transactedIndividualAck",
)  # fmt: skip
# The recording waited after every step until nothing happened any more; redelivery delays are 20 ms.
QUIET, TICK = 50, 10
RECEIVE_TIMEOUT = 2000
ANSWERS = ("dispatched", "received", "browsed", "matched", "error", "other")


def snake_case(name: str) -> str:
    return re.sub(r"JMS|[A-Z]", lambda found: "_" + found[0].lower(), name)


def named(fields: dict[str, Any]) -> dict[str, Any]:
    return {snake_case(name): value for name, value in fields.items()}


def policy_of(given: dict[str, Any], topic: bool) -> Policy:
    """The policyEntry of a case."""
    given = dict(given)
    made: dict[str, Any] = {"expire_messages_period": 0, "selector_errors": "exact"}
    given.pop("vmCursor", None)  # where messages wait, not which
    if "constantLimit" in given:
        made["pending_message_limit_strategy"] = ConstantPendingMessageLimitStrategy(given.pop("constantLimit"))
    if "prefetchRate" in given:
        made["pending_message_limit_strategy"] = PrefetchRatePendingMessageLimitStrategy(given.pop("prefetchRate"))
    if "eviction" in given:
        kind, _, name = given.pop("eviction").partition(":")
        made["message_eviction_strategy"] = {
            "oldest": OldestMessageEvictionStrategy,
            "oldestLowestPriority": OldestMessageWithLowestPriorityEvictionStrategy,
            "unique": lambda: UniquePropertyMessageEvictionStrategy(name),
        }[kind]()
    if "recovery" in given:
        recovery = dict(given.pop("recovery"))
        made["subscription_recovery_policy"] = RECOVERY[recovery.pop("type")](**named(recovery))
    if "dispatchPolicy" in given:
        made["dispatch_policy"] = snake_case(given.pop("dispatchPolicy"))
    if "dlq" in given:
        letters = dict(given.pop("dlq") or {})
        individual, discarding = letters.pop("individual", False), letters.pop("discarding", False)
        strategy = DiscardingDeadLetterStrategy if discarding else SharedDeadLetterStrategy
        strategy = IndividualDeadLetterStrategy if individual else strategy
        made["dead_letter_strategy"] = strategy(**named(letters))
    if "slowAbort" in given:
        made["slow_consumer_strategy"] = AbortSlowConsumerStrategy(**named(given.pop("slowAbort")))
    if "slowAck" in given:
        made["slow_consumer_strategy"] = AbortSlowAckConsumerStrategy(**named(given.pop("slowAck")))
    kind = "topic" if topic else "queue"
    return Policy(f"{kind}://{given.pop('destination', '>')}", **made, **named(given))


def virtual_of(given: dict[str, Any]) -> VirtualDestination:
    """One of a case's virtual destinations; its targets are texts, or tables with a selector."""
    given = dict(given)
    kind = {"topic": VirtualTopic, "compositeTopic": CompositeTopic}.get(given.pop("type"), CompositeQueue)
    if "forwardTo" in given:
        given["forwardTo"] = tuple(
            FilteredDestination(**each) if isinstance(each, dict) else each for each in given["forwardTo"]
        )
    return kind(**named(given))


class Watched:
    """A broker whose dispatches are written down as they reach the connections."""

    def __init__(
        self,
        broker: activemq.Broker,
        dispatched: Callable[[MessageDispatch], None],
        ordered: Callable[[Iterable[str]], list[str]],
    ) -> None:
        self._broker = broker
        self._dispatched = dispatched
        self._ordered = ordered

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    def remove_consumers(self, consumer_ids: Iterable[str], *, last_delivered: str | None = None) -> None:
        self._broker.remove_consumers(self._ordered(consumer_ids), last_delivered=last_delivered)

    def add_connection(self, info: ConnectionInfo, sink: ConnectionSink) -> None:
        def dispatch(command: MessageDispatch) -> Answer | None:
            self._dispatched(command)
            return sink.dispatch(command)

        self._broker.add_connection(info, replace(sink, dispatch=dispatch))


@dataclass
class Client:
    """A consumer of the script. number: how often a message failed in its listener."""

    name: str
    session: activemq.Session
    consumer: activemq.MessageConsumer
    received: dict[int, Message] = field(default_factory=dict)
    failures: dict[int, int] = field(default_factory=dict)


class Replay:
    """One scenario: a broker, its clients, what is seen of them."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.topic = case.get("dest") == "topic"
        self.kind = "topic" if self.topic else "queue"
        self.quiet = case.get("quiet", QUIET)
        self.main = case.get("destName", "T" if self.topic else "Q")
        self.clock = ManualClock()
        self.folder = TemporaryDirectory() if case.get("store") else None
        self.settings: dict[str, Any] = {
            # The default entry: of dead letters, and of what virtual destinations feed, too.
            "policies": [policy_of(case.get("policy") or {}, topic) for topic in (self.topic, not self.topic)],
            "clock": self.clock,
            "release": case.get("release", "5.17"),
        }
        if "entries" in case:
            default = replace(self.settings["policies"][0], destination="")
            entries = tuple(policy_of(each, self.topic) for each in case["entries"])
            self.settings["policies"] = PolicyMap(entries, default)
        if "virtual" in case:
            self.settings["virtual_destinations"] = [virtual_of(each) for each in case["virtual"]]
        self.connections: dict[str, activemq.Connection] = {}
        self.producers: dict[activemq.Connection | activemq.Session, activemq.MessageProducer] = {}
        self.senders: dict[str, activemq.Session] = {}
        # Those that several consumers share, by name, and how many consumers each session has had.
        self.sessions: dict[str | None, activemq.Session] = {}
        self.consumers: Counter[activemq.Session] = Counter()
        self.clients: dict[str, Client] = {}
        self.names: dict[str, str] = {}
        self.totals: dict[str, list[int]] = {}
        self.dispatched: list[dict[str, Any]] = []
        self.other: list[dict[str, Any]] = []
        self.asynchronous: list[Exception] = []
        self.events = 0
        self.idle = False
        self.leaving: list[str] = []
        self.start()

    def start(self) -> None:
        """Start the broker, with what is in the store."""
        self.broker = activemq.Broker(self.folder and self.folder.name, **self.settings)
        self.watched = Watched(self.broker, self.see, self.ordered)
        self.broker.on(SlowConsumer, lambda event: self.say(slow=self.names.get(event.consumer.consumer_id)))
        self.broker.on(MessageDiscarded, self.discarded)
        self.broker.on(MessageExpired, lambda event: self.say(expired=event.message.get_int_property("n")))
        self.broker.on(DeadLetter, self.dead_letter)
        self.broker.on(ConsumerClosed, self.removed)

    def reach(self) -> Any:
        """What a new connection has as its broker."""
        return self.watched

    # What is seen

    def say(self, **entry: Any) -> None:
        self.events += 1
        self.other.append(entry)

    def discarded(self, event: MessageDiscarded) -> None:
        self.say(discarded=event.message.get_int_property("n"), **{"for": self.names.get(event.consumer.consumer_id)})

    def removed(self, event: ConsumerClosed) -> None:
        """Whoever leaves while the script sleeps was sent away."""
        if self.idle and event.consumer.consumer_id in self.names:
            self.say(removed=self.names[event.consumer.consumer_id])

    def dead_letter(self, event: DeadLetter) -> None:
        self.say(dlq=event.message.get_int_property("n"), sent=event.sent_to is not None)

    def see(self, command: MessageDispatch) -> None:
        name = self.names.get(command.consumer_id)
        if command.message is None or name is None or str(command.destination).startswith("queue://ActiveMQ."):
            return  # the recording left the broker's own destinations out
        self.events += 1
        n = command.message.get_int_property("n")
        entry: dict[str, Any] = {"to": name, "n": n}
        if command.redelivery_counter:
            entry["redelivery"] = command.redelivery_counter
        if command.message.group_first_for_consumer:
            entry["groupFirst"] = True
        self.dispatched.append(entry)
        self.totals.setdefault(name, []).append(n)

    # Steps

    def connection(self, name: str, options: dict[str, Any] | None, client_id: str | None) -> activemq.Connection:
        """options: what its next consumer asks for; None: it is for no consumer. One that failed stays."""
        found = self.connections.get(name)
        new = found is None or (found.closed and found._failed is None)
        if not new and options is None:
            return found
        options = dict(options or {})
        redelivery = {"initialRedeliveryDelay": 20, "redeliveryDelay": 20, **options.pop("redelivery", {})}
        texts = {f"jms.redeliveryPolicy.{key}": value for key, value in redelivery.items()}
        texts |= {f"jms.{key}": value for key, value in options.items()} | {"jms.dispatchAsync": False}
        if self.quiet == 0:
            texts["jms.alwaysSessionAsync"] = False
        factory = self.factory(urlencode({key: str(value).lower() for key, value in texts.items()}))
        if new:
            found = self.connections[name] = self.connect(factory, client_id)
            found.exception_listener = self.asynchronous.append
            found.start()
        else:
            # A connection that a send or an unsubscribe made is told what its consumers ask for when they come.
            found.options = replace(factory.options, client_id=found.client_id)
        return found

    def factory(self, options: str) -> activemq.ConnectionFactory:
        return activemq.ConnectionFactory(
            f"vm://localhost?{options}", broker=self.reach(), unknown_options=activemq.UnknownOptions.IGNORE
        )

    def connect(self, factory: activemq.ConnectionFactory, client_id: str | None) -> activemq.Connection:
        return factory.create_connection(client_id)

    def step_consumer(self, step: Step) -> None:
        name = step["name"]
        options = {key: step[key] for key in ("redelivery", *CONNECTION_OPTIONS) if key in step}
        connection = self.connection(step.get("conn", f"of {name}"), options, step.get("clientId"))
        session = self.sessions.get(step.get("session"))
        if session is None or session.closed:
            session = connection.create_session(MODES[step.get("ack", "individual")])
        if "session" in step:
            self.sessions[step["session"]] = session
        chosen = {f"consumer.{key}": step[key] for key in CONSUMER_OPTIONS if key in step}
        if "prefetch" in step:
            chosen["consumer.prefetchSize"] = step["prefetch"]
        text, _, query = step.get("dest", self.main).partition("?")
        query = "&".join(part for part in (query, urlencode({k: str(v).lower() for k, v in chosen.items()})) if part)
        destination = (session.create_topic if self.topic else session.create_queue)(text + ("?" + query) * bool(query))
        listen = step.get("listen")
        self.consumers[session] += 1
        consumer_id = f"{session.session_id}:{self.consumers[session]}"
        self.names[consumer_id] = name
        client = Client(name, session, None)  # type: ignore[arg-type]
        listener = None if listen is None else self.listener(client, listen)
        if "durable" in step:
            client.consumer = session.create_durable_subscriber(destination, step["durable"], step.get("selector"))
            if listener is not None:
                client.consumer.message_listener = listener
        else:
            client.consumer = session.create_consumer(destination, step.get("selector"), listener=listener)
        assert client.consumer.consumer_id == consumer_id
        self.clients[name] = client

    def listener(self, client: Client, listen: dict[str, Any]) -> Callable[[Message], None]:
        def on_message(message: Message) -> None:
            n = message.get_int_property("n")
            entry: dict[str, Any] = {"onMessage": n, "by": client.name, "deliveryCount": message.delivery_count}
            client.received[n] = message
            fails = n in listen.get("fail", ()) and client.failures.get(n, 0) < listen.get("failTimes", 2**31)
            self.say(**entry, **({"threw": True} if fails else {}))
            if fails:
                client.failures[n] = client.failures.get(n, 0) + 1
                raise RuntimeError("as the script says")

        return on_message

    def step_send(self, step: Step) -> None:
        within: activemq.Connection | activemq.Session
        if "name" in step or "sender" in step:
            within = self.session_of(step)
        else:
            within = self.connection(step.get("conn", "producer"), None, None)
        if within not in self.producers:
            session = within if isinstance(within, activemq.Session) else within.create_session()
            self.producers[within] = session.create_producer()
        producer = self.producers[within]
        where = destination_of(step.get("to", self.main), self.kind)
        for n in range(step["n"], step["n"] + step.get("count", 1)):
            message = Message({"n": n}, body=step.get("text"), group_id=step.get("group"))
            message.group_sequence = step.get("seq", 0)
            for key, value in step.get("props", {}).items():
                message.set_object_property(key, typed(value))
            producer.send(
                message,
                where,
                delivery_mode="PERSISTENT" if step.get("persistent") else "NON_PERSISTENT",
                priority=step.get("priority", 4),
                time_to_live_ms=step.get("ttl", 0),
            )

    def step_recv(self, step: Step) -> dict[str, Any]:
        client = self.clients[step["name"]]
        timeout = step.get("timeout", RECEIVE_TIMEOUT) / 1000
        message = client.consumer.receive_no_wait() if timeout <= 0 else client.consumer.receive(timeout)
        if message is None:
            return {"none": True}
        n = message.get_int_property("n")
        client.received[n] = message
        received: dict[str, Any] = {"n": n}
        if message.redelivered:
            received.update(redelivered=True, deliveryCount=message.delivery_count)
        if message.group_first_for_consumer:
            received["groupFirst"] = True
        return received

    def step_ack(self, step: Step) -> None:
        self.clients[step["name"]].received[step["n"]].acknowledge()

    def session_of(self, step: Step) -> activemq.Session:
        """The session of a consumer, or of a sender in transactions, which comes with its first step."""
        if "name" in step:
            return self.clients[step["name"]].session
        sender = step["sender"]
        if sender not in self.senders:
            connection = self.connection(f"of sender {sender}", None, None)
            self.senders[sender] = connection.create_session(activemq.SESSION_TRANSACTED)
        return self.senders[sender]

    def step_commit(self, step: Step) -> None:
        self.session_of(step).commit()

    def step_rollback(self, step: Step) -> None:
        self.session_of(step).rollback()

    def step_recover(self, step: Step) -> None:
        self.clients[step["name"]].session.recover()

    def step_close(self, step: Step) -> None:
        self.clients[step["name"]].consumer.close()

    def step_close_session(self, step: Step) -> None:
        self.leaving = step.get("order", [])
        self.clients[step["name"]].session.close()

    def step_close_connection(self, step: Step) -> None:
        self.order(step)
        self.connection_of(step).close()

    def step_kill(self, step: Step) -> None:
        self.order(step)
        self.connection_of(step).close(activemq.Closing.LOST)

    def ordered(self, consumer_ids: Iterable[str]) -> list[str]:
        """Consumers of a session that closes, in the order in which the real broker removed them, if it is known."""
        last = {name: number for number, name in enumerate(self.leaving)}
        return sorted(consumer_ids, key=lambda each: last.get(self.names[each], -1))

    def order(self, step: Step) -> None:
        """Let the consumers of a connection go in the order in which the real broker removed them, if it is known."""
        came = self.broker._connections[self.connection_of(step).connection_id].subscriptions
        last = {name: number for number, name in enumerate(step.get("order", ()))}
        ordered = sorted(came.values(), key=lambda each: last.get(self.names[each.info.consumer_id], -1))
        came.clear()
        came.update((each.info.consumer_id, each) for each in ordered)

    def connection_of(self, step: Step) -> activemq.Connection:
        if "conn" in step:
            return self.connections[step["conn"]]
        return self.clients[step["name"]].session.connection

    def step_stop(self, step: Step) -> None:
        self.connection_of(step).stop()

    def step_start(self, step: Step) -> None:
        self.connection_of(step).start()

    def step_unsubscribe(self, step: Step) -> None:
        self.connection(step["conn"], None, step["conn"]).create_session().unsubscribe(step["durable"])

    def step_browse(self, step: Step) -> list[int]:
        return self.browse(step.get("dest", self.main), step.get("selector"))

    def browse(self, queue: str, selector: str | None = None) -> list[int]:
        session = self.connection("browser", None, None).create_session()
        with session, session.create_browser(queue, selector) as browser:
            return [message.get_int_property("n") for message in browser]

    def administer(self, change: Callable[[str], object]) -> None:
        if any(str(each) == f"queue://{self.main}" for each in self.broker.destinations()):
            change(self.main)

    def step_pause(self, step: Step) -> None:
        self.administer(self.broker.pause)

    def step_resume(self, step: Step) -> None:
        self.administer(self.broker.resume)

    def step_purge(self, step: Step) -> None:
        self.administer(self.broker.purge)

    def step_expire(self, step: Step) -> None:
        """The look for expired messages, which happens at no other time."""
        with self.broker.outbox:
            self.administer(lambda queue: self.broker._queue_named(queue).expire_messages())
        self.broker.settle()

    def step_remove_group(self, step: Step) -> None:
        self.administer(lambda queue: self.broker.remove_message_group(queue, step["group"]))

    def matched(self, change: Callable[[str], int]) -> int | None:
        found: list[int] = []
        self.administer(lambda queue: found.append(change(queue)))
        return found[0] if found else None

    def step_remove(self, step: Step) -> int | None:
        return self.matched(lambda queue: self.broker.remove_messages(queue, step["selector"]))

    def step_copy(self, step: Step) -> int | None:
        return self.matched(lambda queue: self.broker.copy_messages(queue, step["to"], step["selector"]))

    def step_move(self, step: Step) -> int | None:
        return self.matched(lambda queue: self.broker.move_messages(queue, step["to"], step["selector"]))

    def step_restart(self, step: Step) -> None:
        self.broker.close()
        self.connections.clear()
        self.producers.clear()
        self.senders.clear()
        self.sessions.clear()
        self.clients.clear()
        self.clock.advance(step.get("ms", 0))
        self.start()

    def step_sleep(self, step: Step) -> None:
        self.idle = True
        self.clock.advance(step["ms"])
        self.idle = False

    def settle(self) -> None:
        """Let the time pass in which the recording waited for the step's events."""
        self.clock.advance(0)
        quiet = 0
        while quiet < self.quiet:
            before = self.events
            self.clock.advance(TICK)
            quiet = quiet + TICK if self.events == before else 0

    def step(self, step: Step) -> dict[str, Any]:
        """Play one step; what it shows."""
        self.dispatched, self.other = [], []
        shown: dict[str, Any] = {}
        self.asynchronous.clear()
        try:
            answer = getattr(self, "step_" + snake_case(step["op"]))(step)
        except PyengineError as error:
            shown["error"] = next(name for kind, name in ERRORS if isinstance(error, kind))
            answer = None
        if step["op"] != "sleep":
            self.settle()
        if step["op"] == "recv" and answer is not None:
            shown["received"] = answer
        if step["op"] == "browse" and answer is not None:
            shown["browsed"] = answer
        if step["op"] in ("remove", "copy", "move") and answer is not None:
            shown["matched"] = answer
        if self.dispatched:
            shown["dispatched"] = list(self.dispatched)
        if self.other:
            shown["other"] = list(self.other)
        return shown

    # The end

    def final(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """What is left, in the form and for the parts that were recorded."""
        found: dict[str, Any] = {"totals": {name: list(numbers) for name, numbers in self.totals.items()}}
        live = {client.consumer.consumer_id: name for name, client in self.clients.items()}
        views = {
            live[view.consumer_id]: view
            for view in self.broker.subscriptions()
            if view.consumer_id in live and view.active
        }
        if "queueSize" in wanted:
            queue = Destination(self.main)
            view = self.broker.view(queue) if queue in self.broker.destinations() else None
            owners = {} if view is None else {group: live.get(own, own) for group, own in view.message_groups.items()}
            counts = {name: view.assigned_group_count.get(self.main, 0) for name, view in views.items()}
            found["queueSize"], found["inflight"] = (view.queue_size, view.in_flight_count) if view else (0, 0)
            found["groupOwners"] = owners
            found["assignedGroupCount"] = {name: count for name, count in counts.items() if count}
        if "subs" in wanted:
            found["subs"] = {
                name: {
                    "pending": view.pending_queue_size,
                    "dispatchedUnacked": view.dispatched_queue_size,
                    "slow": view.slow_consumer,
                    "discarded": view.discarded_count,
                }
                for name, view in views.items()
            }
            for name, recorded in wanted["subs"].items():
                if name in found["subs"] and "discarded" not in recorded:
                    del found["subs"][name]["discarded"]
        if "dlq" in wanted:
            found["dlq"] = {text: self.browse(text) for text in wanted["dlq"]}
        for name in ("groupOwners", "assignedGroupCount"):
            if not found.get(name):
                found.pop(name, None)
        return found

    def close(self) -> None:
        for connection in self.connections.values():
            connection.close()
        self.broker.close()
        if self.folder is not None:
            self.folder.cleanup()


def identify(case: dict[str, Any]) -> str:
    return str(case["id"])


def play(case: dict[str, Any], kind: type[Replay] = Replay) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What every step shows, and the end."""
    player = kind(case)
    try:
        shown = [player.step(step) for step in case["steps"]]
        return shown, player.final(case["final"])
    finally:
        player.close()


def replay(case: dict[str, Any]) -> Verdict:
    """Play the steps and compare what each shows, then the final state; of a loose case the totals and errors."""
    unknown = {step["op"] for step in case["steps"]} - {
        name for step in case["steps"] for name in [step["op"]] if hasattr(Replay, "step_" + snake_case(name))
    }
    if unknown:
        return unsupported(f"operation {', '.join(sorted(unknown))}")
    shown, final = play(case)
    verdict = None
    for variant in ({}, *case.get("variants", ())):
        recorded = {**case, **variant} if isinstance(variant, dict) else case
        got: list[Any] = []
        expected: list[Any] = []
        for number, (step, seen) in enumerate(zip(recorded["steps"], shown, strict=True)):
            keys = ("error",) if case.get("loose") else ANSWERS
            wanted = {key: step[key] for key in keys if key in step}
            seen = {key: seen[key] for key in keys if key in seen}
            if wanted != seen:
                expected.append((number, step["op"], wanted))
                got.append((number, step["op"], seen))
        wanted = recorded["final"]
        if case.get("loose"):
            wanted, final = {"totals": wanted["totals"]}, {"totals": final["totals"]}
        verdict = compare(f"{case.get('note', '')} {case['steps']}", [*expected, wanted], [*got, final])
        if verdict.kind == "agree":
            return verdict
    assert verdict is not None
    return verdict
