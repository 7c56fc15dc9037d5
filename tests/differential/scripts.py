"""Random scripts. Each step is drawn as plain numbers and read against what is alive, so that every shorter list of the
same numbers is a script too: hypothesis shrinks a difference by leaving steps out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

Step = dict[str, Any]
Numbers = tuple[int, int, int, int]
NAMES = "ABCDEFGH"
MODES = ("individual", "auto", "client", "transacted", "dups")
QUEUE_SELECTORS = (None, None, None, None, "k = 1", "k <> 1", "k > 0 AND JMSPriority < 7", "k IS NULL")
TOPIC_SELECTORS = (None, None, None, "k = 1", "k <> 1")
# On what changes while a message waits. Of a time, which is that of two clocks, only whether there is one is asked.
CHANGING = (
    "JMSRedelivered = FALSE", "JMSRedelivered = TRUE", "JMSXDeliveryCount > 1", "JMSXDeliveryCount < 3",
    "JMSRedelivered OR k = 1", "NOT JMSRedelivered AND JMSXDeliveryCount = 1 AND k <> 1",
    "JMSXGroupFirstForConsumer", "JMSXGroupFirstForConsumer = FALSE OR JMSRedelivered",
    "JMSActiveMQBrokerInTime > 0 AND JMSXDeliveryCount = 2",
)  # fmt: skip
# While a topic's message goes to one subscription after the other it is in docs/differences.md.
CHANGING_IN_QUEUES = (*CHANGING, "JMSActiveMQBrokerOutTime = 0", "JMSActiveMQBrokerOutTime > 0 OR k > 0")
GROUPS = (None, None, "a", "b", "c", "a")
SEQUENCES = (None, None, None, None, 1, 2, -1)
PRIORITIES = (0, 0, 0, 0, 1, 5, 127)
AT_ONCE = {"initialRedeliveryDelay": 0, "redeliveryDelay": 0}
# Times that a step of the real broker, and a few waiting receives, stay well below or above.
LATER = {"initialRedeliveryDelay": 160, "redeliveryDelay": 160}
TIME_TO_LIVE, PAUSES = 700, (200, 800)
# Sessions that only send, in transactions; others send in the session of a consumer.
SENDERS = ({"sender": "s0"}, {"sender": "s1"})
KINDS = (
    "queue", "topic", "durable", "several", "listeners", "stored", "sessions", "virtual", "stopped", "entries",
    "topics",
)  # fmt: skip
# What the consumers of one session, and of its connection, have in common.
SHARED = ("conn", "ack", "redelivery", "messagePrioritySupported", "transactedIndividualAck", "optimizeAcknowledge")
# Where a script of the kind "several" sends and listens, composites among them; a virtual topic feeds two queues.
TARGETS = ("Q.1", "Q.2", "Q.1", "topic://VirtualTopic.T", "Q.1,Q.2", "Q.2,topic://VirtualTopic.T")
SOURCES = ("Q.1", "Q.1", "Q.2", "Q.*", "Consumer.A.VirtualTopic.T", "Consumer.B.VirtualTopic.T")
SOURCES += ("Q.2,Q.1", "Q.1,Consumer.A.VirtualTopic.T", "Q.2,topic://VirtualTopic.T")
SOURCES += ("Consumer.A.VirtualTopic.>", "Consumer.*.VirtualTopic.T", "Consumer.>")
# Of the kind "virtual": what may be declared, one thing a line, and where its scripts send and listen. Nobody consumes
# several of these queues: which one is fed first is chance. No message comes to a queue on two ways: what comes of that
# is listed in docs/differences.md.
VIRTUAL: tuple[tuple[Step, ...], ...] = (
    ({"type": "topic", "name": "VirtualTopic.>"}, {"type": "topic", "name": "VirtualTopic.>", "selectorAware": True}),
    (
        {"type": "compositeQueue", "name": "Q.1", "forwardTo": ["Q.2", "topic://T.1"]},
        {"type": "compositeQueue", "name": "Q.1", "forwardTo": ["Q.2", {"destination": "Q.3", "selector": "k = 1"}]},
        {
            "type": "compositeQueue",
            "name": "Q.1",
            "forwardTo": [{"destination": "Q.2", "selector": "k = 1"}, {"destination": "T.1", "selector": "k > 1"}],
        },
        {
            "type": "compositeQueue",
            "name": "Q.*",
            "forwardTo": ["Other.1", {"destination": "R.1", "selector": "k = 2"}],
        },
    ),
    (
        {"type": "compositeTopic", "name": "T.1", "forwardTo": ["R.2", {"destination": "R.3", "selector": "k <> 1"}]},
        {"type": "compositeTopic", "name": "T.1", "forwardTo": ["topic://VirtualTopic.T", "R.2"]},
    ),
)
# Of the kinds "entries" and "topics": queues, or topics, that messages are sent to, what is consumed, and policy
# entries that name parts of it, whole texts and wildcards.
NAMED = ("A.1", "A.2", "B", "A.1,B", "A.1")
CONSUMED = ("A.1,A.2", "A.1,B", "B,A.1", "A.*", "A.1", "A.2,B", "A.>,B", "A.2", "B", "A.1,A.2,B")
ENTRIES = ("A.1", "A.2", "B", "A.1,A.2", "A.1,B", "A.>", "A.*", "B,A.1", "A.2,B", "*.1,B", "A.1,A.2,B", ">")
FED = ("Q.1", "Q.1", "Q.2", "Q.3", "topic://T.1", "topic://VirtualTopic.T", "topic://VirtualTopic.T")
TAKEN = ("Q.1", "Q.2", "Q.3", "R.1", "R.2", "R.3", "topic://T.1", "topic://VirtualTopic.T")
TAKEN += ("Consumer.A.VirtualTopic.T", "Consumer.A.VirtualTopic.T", "Consumer.B.VirtualTopic.T")


@dataclass
class Living:
    """What a script has made so far. persistent: all its messages, none, or (None, and on topics) some."""

    kind: str
    persistent: bool | None
    timed: bool
    prioritized: bool = False
    steps: list[Step] = field(default_factory=list)
    consumers: dict[str, Step] = field(default_factory=dict)
    sent: int = 0
    pauses: int = 0
    made: int = 0
    halted: bool = False
    stopped: set[str] = field(default_factory=set)
    sessions: set[str] = field(default_factory=set)

    @property
    def topic(self) -> bool:
        return self.kind in ("topic", "durable", "topics")

    def add(self, numbers: Numbers) -> None:
        """Read four numbers as a step and append it, if there is somebody it can be about."""
        kind, *_ = numbers
        table = TABLES.get(self.kind, QUEUE_STEPS)
        step = table[kind % len(table)](self, numbers)
        if step is not None:
            self.steps.append(step)

    def one(self, number: int) -> Step | None:
        """One of the living consumers."""
        return list(self.consumers.values())[number % len(self.consumers)] if self.consumers else None

    def leave(self, connection: str) -> None:
        self.stopped.discard(connection)
        self.consumers = {name: step for name, step in self.consumers.items() if step["conn"] != connection}


def _send(living: Living, numbers: Numbers) -> Step:
    _, first, second, third = numbers
    living.sent += 1
    step: Step = {"op": "send", "n": living.sent}
    if first % 3:
        step["props"] = {"k": {"t": "int", "v": first % 3}}
    if first % 2 if living.topic or living.persistent is None else living.persistent:
        step["persistent"] = True
    if living.timed and third % 7 == 0:
        step["ttl"] = TIME_TO_LIVE
    if living.kind == "sessions":
        # Of copies, one in each queue, docs/differences.md says which counts as delivered when its session closes.
        step["to"] = ("Q.1", "Q.2")[third % 2]
    if living.kind == "several":
        step["to"] = TARGETS[third % len(TARGETS)]
    if living.kind == "virtual":
        step["to"] = FED[third % len(FED)]
    if living.kind in ("entries", "topics"):
        step["to"] = NAMED[third % len(NAMED)]
    if second % 7 == 6 or (living.prioritized and second % 3):
        step["priority"] = second % 10
    sessions = [{"name": name} for name, each in living.consumers.items() if each["ack"] == "transacted"]
    if second % 4 == 3:
        step |= [*SENDERS, *sessions][first % (2 + len(sessions))]
    elif second % 11 == 10:
        step["conn"] = f"c{first % 2}"
    if not living.topic and GROUPS[third % len(GROUPS)] is not None:
        step["group"] = GROUPS[third % len(GROUPS)]
        if SEQUENCES[second % len(SEQUENCES)] is not None:
            step["seq"] = SEQUENCES[second % len(SEQUENCES)]
    if living.topic and third % 3:
        step["props"] = {**step.get("props", {}), "sym": {"t": "string", "v": "xyz"[third % 3]}}
    return step


def _consumer(living: Living, numbers: Numbers) -> Step | None:
    _, first, second, third = numbers
    if living.made == len(NAMES):
        return None
    name = NAMES[living.made]
    shared = first % 4 == 3
    step: Step = {"op": "consumer", "name": name, "conn": f"c{first % 2}" if shared else f"own {name}"}
    if living.kind == "durable" and third % 3:
        durable = {"conn": f"d{first % 2}", "clientId": f"d{first % 2}", "durable": "st"[second % 2]}
        if any(durable.items() <= each.items() for each in living.consumers.values()):
            return None
        step |= durable
        shared = True
    living.made += 1
    if living.kind == "several":
        step["dest"] = SOURCES[second % len(SOURCES)]
    if living.kind == "virtual":
        step["dest"] = TAKEN[third // 7 % len(TAKEN)]
    if living.kind in ("entries", "topics"):
        step["dest"] = CONSUMED[third // 7 % len(CONSUMED)]
    step["ack"] = MODES[second % len(MODES)]
    if first % 7:
        step["prefetch"] = (1, 2, 3, 5, 0, -1)[first % 7 - 1]
    selectors = TOPIC_SELECTORS if living.topic else QUEUE_SELECTORS
    if selectors[third % len(selectors)] is not None:
        step["selector"] = selectors[third % len(selectors)]
    if second // 5 % 4 == 3:
        changing = CHANGING if living.topic else CHANGING_IN_QUEUES
        step["selector"] = changing[third % len(changing)]
    if shared and second % 3 == 2:
        step["noLocal"] = True
    if PRIORITIES[third % len(PRIORITIES)]:
        step["priority"] = PRIORITIES[third % len(PRIORITIES)]
    if not living.topic and third % 5 == 4:
        step["exclusive"] = True
    # Retroactive durable subscriptions are listed in docs/differences.md.
    if living.topic and third % 4 == 3 and "durable" not in step:
        step["retroactive"] = True
    if living.topic and second % 6 == 5:
        step["maximumPendingMessageLimit"] = 1 + third % 3
    delays = LATER if living.timed and not shared and third % 2 else AT_ONCE
    step["redelivery"] = delays if shared or second % 4 else {**delays, "maximumRedeliveries": second % 3}
    if not shared and second % 9 > 5:
        step[("messagePrioritySupported", "transactedIndividualAck", "optimizeAcknowledge")[second % 9 - 6]] = True
    if second % 8 == 7 and step.get("prefetch") != 0 and living.kind in ("durable", "listeners", "stopped"):
        # A session that fails while its user holds several messages is listed in docs/differences.md.
        failing = third % 4 if step["ack"] in ("auto", "transacted") else 3
        step["listen"] = {"fail": [n for n in range(1, 60) if n % 3 == failing], "failTimes": 1 + first % 3}
    if living.kind == "sessions":
        _join(living, step, first)
        step["dest"] = ("Q.1", "Q.2", "Q.1")[third % 3]
    living.consumers[name] = step
    return step


def _join(living: Living, step: Step, number: int) -> None:
    """Four of five consumers come to one of three sessions, each with a connection of its own; none is made twice."""
    session = f"S{number // 5 % 3}"
    mates = [each for each in living.consumers.values() if each.get("session") == session]
    if number % 5 == 4 or (session in living.sessions and not mates):
        return
    living.sessions.add(session)
    step["session"] = session
    if not mates:
        step["conn"] = f"own {step['name']}"
        return
    for key in SHARED:
        step.pop(key, None)
    step |= {key: mates[0][key] for key in SHARED if key in mates[0]}


def _receive(living: Living, numbers: Numbers) -> Step | None:
    consumer = living.one(numbers[1])
    if consumer is None or "listen" in consumer:
        return None
    if consumer["conn"] in living.stopped and consumer.get("prefetch") == 0:
        return None  # it waits for the broker's answer until the connection is started
    return {"op": "recv", "name": consumer["name"], "timeout": 30}


def _settle(living: Living, numbers: Numbers) -> Step | None:
    """Acknowledge, commit, roll back or recover, whichever the consumer's mode has."""
    consumer = living.one(numbers[1])
    if consumer is None:
        return None
    name, back = consumer["name"], numbers[2] % 4 == 3
    match consumer["ack"]:
        case "transacted":
            return {"op": "rollback" if back else "commit", "name": name}
        case "client" | "individual" if not back:
            return {"op": "ack", "name": name, "n": -1 - numbers[3] % 3}
        case _:
            return {"op": "recover", "name": name}


def _end(living: Living, numbers: Numbers) -> Step:
    """End the transaction of a sender without a consumer."""
    return {"op": "rollback" if numbers[2] % 4 == 3 else "commit", **SENDERS[numbers[1] % 2]}


def _leave(living: Living, numbers: Numbers) -> Step | None:
    consumer = living.one(numbers[1])
    if consumer is None:
        return None
    alone = [step["conn"] for step in living.consumers.values()].count(consumer["conn"]) == 1
    match numbers[2] % 5:
        case 0 if alone:
            living.leave(consumer["conn"])
            return {"op": "kill", "conn": consumer["conn"]}
        case 1:
            living.leave(consumer["conn"])
            return {"op": "closeConnection", "conn": consumer["conn"]}
        case 2:
            session = consumer.get("session")
            living.consumers = {
                name: each
                for name, each in living.consumers.items()
                if each is not consumer and (session is None or each.get("session") != session)
            }
            return {"op": "closeSession", "name": consumer["name"]}
        case _:
            del living.consumers[consumer["name"]]
            return {"op": "close", "name": consumer["name"]}


def _pause(living: Living, numbers: Numbers) -> Step | None:
    if not living.timed or living.pauses == 2:
        return None
    living.pauses += 1
    return {"op": "sleep", "ms": PAUSES[numbers[1] % 2]}


def _unsubscribe(living: Living, numbers: Numbers) -> Step | None:
    if numbers[2] % 3:
        return None
    return {"op": "unsubscribe", "conn": f"d{numbers[1] % 2}", "durable": "st"[numbers[3] % 2]}


def _stop(living: Living, numbers: Numbers) -> Step | None:
    """A connection stops, and starts again; it may be started twice."""
    consumer = living.one(numbers[1])
    if consumer is None or living.kind != "stopped":
        return None
    if consumer["conn"] in living.stopped or numbers[2] % 7 == 6:
        living.stopped.discard(consumer["conn"])
        return {"op": "start", "name": consumer["name"]}
    living.stopped.add(consumer["conn"])
    return {"op": "stop", "name": consumer["name"]}


def _browse(living: Living, numbers: Numbers) -> Step:
    _, first, second, _ = numbers
    if first % 3 == 0:
        return {"op": "browse", "selector": CHANGING_IN_QUEUES[second % len(CHANGING_IN_QUEUES)]}
    return {"op": "browse"} if first % 2 else {"op": "browse", "selector": "k = 1"}


def _administer(living: Living, numbers: Numbers) -> Step | None:
    """Pause and resume take turns; a broker with a store is started anew."""
    _, first, second, third = numbers
    if living.kind in ("several", "sessions", "virtual", "entries"):
        return None
    if living.kind == "stored" and first % 3 == 0:
        living.consumers.clear()
        living.halted = False
        return {"op": "restart"}
    if second % 3:
        living.halted = not living.halted
        return {"op": "pause" if living.halted else "resume"}
    if third % 4 < 2:
        return {"op": "purge" if third % 4 == 0 else "expire"}
    return {"op": "removeGroup", "group": "abc"[first % 3]}


QUEUE_STEPS = (
    _send, _consumer, _receive, _send, _settle, _receive, _send, _leave, _consumer, _receive, _settle, _browse, _pause,
    _administer, _end,
)  # fmt: skip
STOPPED_STEPS = (*QUEUE_STEPS, _stop, _stop, _stop)
TOPIC_STEPS = (
    _send, _consumer, _receive, _send, _settle, _receive, _send, _send, _receive, _settle, _leave, _pause, _end,
)  # fmt: skip
DURABLE_STEPS = (
    _send, _consumer, _receive, _send, _settle, _receive, _send, _leave, _receive, _settle, _consumer, _leave, _pause,
    _unsubscribe, _end,
)  # fmt: skip
TABLES = {"topic": TOPIC_STEPS, "topics": TOPIC_STEPS, "durable": DURABLE_STEPS, "stopped": STOPPED_STEPS}
LETTERS: tuple[dict[str, Any], ...] = (
    {"dlq": {"individual": True}},
    {"dlq": {"processNonPersistent": True}},
    {"dlq": {"individual": True, "processExpired": False}},
    {"dlq": {"discarding": True}},
)


def _policy(topic: bool, numbers: list[int]) -> dict[str, Any]:
    queue_keys: tuple[dict[str, Any], ...] = (
        {},
        {"strictOrderDispatch": True},
        {"useConsumerPriority": False},
        {"prioritizedMessages": True},
        {"allConsumersExclusiveByDefault": True},
        {"messageGroupMapFactoryType": "simple"},
        {"messageGroupMapFactoryType": "bucket?bucketCount=2"},
        {"messageGroupMapFactoryType": "cached?cacheSize=2"},
        {"maxPageSize": 2},
        {"maxPageSize": 3},
        {"maxExpirePageSize": 3},
        {"usePrefetchExtension": False},
        {"lazyDispatch": True},
        {"queuePrefetch": 2},
        {"maxBrowsePageSize": 2},
        {"persistJMSRedelivered": True},
        *LETTERS,
    )
    topic_keys: tuple[dict[str, Any], ...] = (
        {"constantLimit": 2},
        {"constantLimit": 1},
        {"constantLimit": 0},
        {"prefetchRate": 1.0},
        {"eviction": "oldestLowestPriority"},
        {"eviction": "unique:sym"},
        {"recovery": {"type": "fixedCount", "maximumSize": 3}},
        {"recovery": {"type": "lastImage"}},
        {"alwaysRetroactive": True},
        {"dispatchPolicy": "priority"},
        {"dispatchPolicy": "roundRobin"},
        {"dispatchPolicy": "strictOrder"},
        {"usePrefetchExtension": False},
        {"topicPrefetch": 2, "durableTopicPrefetch": 2},
        {"recovery": {"type": "fixedSized", "maximumSize": 3000}},
        {"prioritizedMessages": True},
        *LETTERS,
    )
    found: dict[str, Any] = {"maxPageSize": 200}
    for number in numbers:
        keys = topic_keys if topic else queue_keys
        found |= keys[number % len(keys)]
    if "constantLimit" in found:
        found.pop("prefetchRate", None)
    return found


def _apart(steps: list[Step]) -> list[Step]:
    """The same steps where no two messages are of one millisecond: that eviction goes by their timestamps."""
    return [each for step in steps for each in ([step, {"op": "sleep", "ms": 2}] if step["op"] == "send" else [step])]


_NUMBER = st.integers(0, 419)
_STEP = st.tuples(st.integers(0, 2339), _NUMBER, _NUMBER, _NUMBER)


@st.composite
def _declared(draw: st.DrawFn) -> list[Step]:
    """Virtual destinations: of each line of VIRTUAL one, or none."""
    found: list[Step] = []
    for line in VIRTUAL:
        chosen = draw(st.sampled_from((None, *line)))
        if chosen is not None:
            chosen = dict(chosen)
            if chosen["type"] != "topic":
                switches = ("forwardOnly", "sendWhenNotMatched")
                chosen |= {switch: draw(st.booleans()) for switch in switches if draw(st.booleans())}
            found.append(chosen)
    return found


@st.composite
def scripts(draw: st.DrawFn, *, kind: str) -> dict[str, Any]:
    """A script of 15 to 45 steps, where a step with nobody to do it is left out.

    kind: "queue" or "topic": one of them; "durable": a topic with durable subscribers too; "several": two queues, and
    the queues of a virtual topic; "listeners": a queue with listeners too; "stored": a queue of brokers with a
    store, which half of the durable ones have too; "sessions": two queues, sessions with several consumers; "virtual":
    what virtual topics and composites feed; "stopped": a queue whose consumers' connections stop and start; "entries"
    and "topics": queues, or topics, and consumers of several of them beside policy entries.
    Every eighth script of "durable", "several", "listeners" and "stored" takes time: messages expire, redelivery has
    delays.
    quiet: how long our clock waits after a step for what the real one does at once.
    """
    timed = draw(st.integers(0, 7)) == 7 and kind not in ("queue", "topic", "sessions", "virtual", "entries", "topics")
    timed |= kind == "stopped" and draw(st.booleans())
    living = Living(kind, draw(st.sampled_from((False, True, None))), timed)
    policy = _policy(living.topic, draw(st.lists(_NUMBER, max_size=3)))
    if kind == "stored" and draw(st.booleans()):
        # How a store is read anew after a restart shows with small pages.
        policy |= {"maxPageSize": draw(st.sampled_from((2, 3, 5)))}
        policy |= {key: True for key in ("lazyDispatch", "prioritizedMessages") if draw(st.booleans())}
    living.prioritized = kind == "stored" and "prioritizedMessages" in policy
    if kind == "durable":
        policy.pop("alwaysRetroactive", None)
    for numbers in draw(st.lists(_STEP, min_size=15, max_size=45)):
        living.add(numbers)
    entries: list[dict[str, Any]] = []
    if kind in ("entries", "topics"):
        for name in draw(st.lists(st.sampled_from(ENTRIES), min_size=1, max_size=4, unique=True)):
            entries.append({"destination": name} | _policy(living.topic, draw(st.lists(_NUMBER, max_size=3))))
    if any(str(each.get("eviction")).startswith("unique") for each in (policy, *entries)):
        if timed:
            del policy["eviction"]
        else:
            living.steps = _apart(living.steps)
    script: dict[str, Any] = {"policy": policy, "steps": living.steps, "quiet": 0}
    if living.topic:
        script["dest"] = "topic"
    if kind == "stored" or (kind == "durable" and draw(st.booleans())):
        script["store"] = True
    if kind == "virtual":
        script["virtual"] = draw(_declared())
    if kind in ("several", "sessions", "virtual"):
        script["destName"] = "Q.1"
    if kind in ("entries", "topics"):
        script |= {"destName": "A.1", "entries": entries}
    return script
