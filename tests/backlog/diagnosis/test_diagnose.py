"""What the tools say in ways of their own, stuck threads, healthy systems; each rule's own pair is in test_rules."""

from __future__ import annotations

import random
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pyengine import Message, activemq
from pyengine.backlog.diagnosis.diagnose import diagnose, seen_too_seldom
from pyengine.backlog.diagnosis.evidence import (
    ClientState,
    ConsumeRates,
    DestinationState,
    Evidence,
    FlowControlState,
    GroupState,
    OffsetState,
    ProcessQueueState,
    StreamProgress,
    SubscriptionState,
    ThreadDump,
    ThreadState,
    read_files,
    read_text,
)
from pyengine.backlog.diagnosis.watch import Watch, take_dump, watch
from pyengine.backlog.findings import Finding, Severity
from pyengine.clock import ManualClock
from tests.backlog.diagnosis.live_groups import until

DATA = Path(__file__).parents[1] / "data"
T = 1_700_000_000_000
LATER = T + 60_000

QUEUE = DestinationState(
    "f", T, "b", "q", "queue", 500, 2, enqueue_count=1000, dequeue_count=500, dispatch_count=500, expired_count=0,
    in_flight_count=100, blocked_sends=0, memory_percent=3, max_page_size=200,
)  # fmt: skip
SUB = SubscriptionState("f", T, "b", "q", "queue", "one", "c1", 1000, awaiting=50, pending=0, enqueue_counter=300,
                        dequeue_counter=250, dispatched_counter=300)  # fmt: skip
IDLE = replace(SUB, client_id="two", consumer_id="c2", awaiting=0, enqueue_counter=0, dequeue_counter=0,
               dispatched_counter=0)  # fmt: skip
DEAD = replace(QUEUE, name="ActiveMQ.DLQ", consumer_count=0)
OFFSET = OffsetState("f", T, "rocketmq", "g", "Orders", "broker-a", 0, 1000, 900, last_time=T, client="c1")
HELD = ProcessQueueState("Orders", "broker-a", 0, 900, 900, 1000, 50, 1, True, False, 0, T, T, T)
CLIENT = ClientState("f", T, "c1", "g", (("PROP_CONSUMEORDERLY", "false"),), (("Orders", "*"),), (HELD,), ())
FLOW = FlowControlState("log", T, 1, "count", 1000, 50, 1051, "g", "Orders", "broker-a", 0, 1)
REPORT = StreamProgress("f", T, "q", 1, 100, 100.0, 200.0, 500, 0)


def queues(*states: DestinationState | SubscriptionState) -> Evidence:
    return Evidence(
        destinations=[each for each in states if isinstance(each, DestinationState)],
        subscriptions=[each for each in states if isinstance(each, SubscriptionState)],
    )


def later(state: DestinationState, **changes: object) -> DestinationState:
    return replace(state, **{"file": "f2", "time": LATER, **changes})  # type: ignore[arg-type]


def steady(count: int, **changes: object) -> DestinationState:
    """The queue a minute later, when as many have gone as have come."""
    return later(QUEUE, **{"enqueue_count": 1000 + count, "dequeue_count": 500 + count, **changes})


def sub_later(state: SubscriptionState, **changes: object) -> SubscriptionState:
    return replace(state, **{"time": LATER, **changes})  # type: ignore[arg-type]


def offsets(*states: OffsetState) -> Evidence:
    return Evidence(offsets=list(states))


def clients(*states: ClientState) -> Evidence:
    return Evidence(clients=list(states))


def held(**changes: object) -> ClientState:
    return replace(CLIENT, queues=(replace(HELD, **changes),))  # type: ignore[arg-type]


def streams(*changes: dict[str, object]) -> Evidence:
    return Evidence(streams=[
        replace(REPORT, batch=n, time=T + n * 1000, **change) for n, change in enumerate(changes)  # type: ignore[arg-type]
    ])  # fmt: skip


SELECTIVE = replace(IDLE, selector="region = 'EU'")
EXCLUSIVE = replace(SUB, exclusive=True, selector="region = 'EU'")
STRICT = replace(SELECTIVE, consumer_id="c3", client_id="three", selector="region = 'US'")
GROUPED = replace(QUEUE, message_groups=(("g1", "c1"), ("g2", "c1")))
NEXT = replace(OFFSET, queue=1, client="c2")
PARTITION = replace(OFFSET, system="kafka", broker="", queue=1, client="c2")
UNCOMMITTED = replace(PARTITION, queue=0, consumer_offset=None, client="c1")
ORDERLY = (("PROP_CONSUMEORDERLY", "true"),)

WORK = ("java.net.SocketInputStream.socketRead0(Native Method)", "shop.Tax.call(Tax.java:7)")
POOL = ("java.util.concurrent.ThreadPoolExecutor.getTask(ThreadPoolExecutor.java:1)",)


def dumps(*frames: tuple[str, ...], process: str = "one") -> Evidence:
    threads = [(ThreadState("ConsumeMessageThread_g_1", "RUNNABLE", each),) for each in frames]
    return Evidence(dumps=[
        ThreadDump("f", T + n * 1000, "jstack", process, each) for n, each in enumerate(threads)
    ])  # fmt: skip


# What no live broker shows: the tools' own ways to say it. Case -> evidence in which the rule fires, evidence close by.
CASES: dict[str, tuple[Evidence, Evidence]] = {
    "stopped, of the list of groups": (
        Evidence(groups=[GroupState("f", T, "g", 0, 7)]),
        Evidence(groups=[GroupState("f", T, "g", 1, 7)]),
    ),
    "stopped, by the newest list of groups": (
        Evidence(groups=[GroupState("f", T, "g", 1, 7), GroupState("f", LATER, "g", 0, 7)]),
        Evidence(groups=[GroupState("f", T, "g", 0, 7), GroupState("f", LATER, "g", 1, 7)]),
    ),
    "page_starved, not where one of them is exclusive": (
        queues(QUEUE, later(QUEUE), SELECTIVE, sub_later(SELECTIVE), STRICT, sub_later(STRICT)),
        queues(QUEUE, later(QUEUE), SELECTIVE, sub_later(SELECTIVE), replace(STRICT, exclusive=True),
               sub_later(STRICT, exclusive=True)),
    ),
    "exclusive_disjoint, while the exclusive one has room": (
        queues(QUEUE, later(QUEUE), IDLE, sub_later(IDLE), replace(EXCLUSIVE, awaiting=999),
               sub_later(EXCLUSIVE, awaiting=999)),
        queues(QUEUE, later(QUEUE), IDLE, sub_later(IDLE), replace(EXCLUSIVE, awaiting=1000),
               sub_later(EXCLUSIVE, awaiting=1000)),
    ),
    "stopped, a client that does not answer": (
        offsets(replace(OFFSET, client=""), replace(OFFSET, client="", time=LATER)),
        offsets(replace(OFFSET, client=""), replace(OFFSET, client="", time=LATER, consumer_offset=901)),
    ),
    "uneven_allocation, of addresses": (  # how many clients there are is known from elsewhere
        Evidence(offsets=[replace(OFFSET, queue=n, client="c1" if n < 3 else "c2") for n in range(4)],
                 groups=[GroupState("f", T, "g", 2, 0)]),
        Evidence(offsets=[replace(OFFSET, queue=n, client="c1" if n < 3 else "c2") for n in range(4)],
                 groups=[GroupState("f", T, "g", 3, 0)]),
    ),
    "retention_overtook, without the oldest offset": (
        offsets(replace(OFFSET, last_time=0)),
        offsets(replace(OFFSET, last_time=0, min_offset=900)),
    ),
    "consumer_stopped, too soon to say": (
        queues(QUEUE, later(QUEUE), SUB, sub_later(SUB)),
        queues(QUEUE, later(QUEUE), SUB, replace(sub_later(SUB), time=T + 20_000)),
    ),
    "dead_letters, a reading of fewer queues before": (
        queues(QUEUE, later(QUEUE), later(DEAD)),
        queues(QUEUE, later(QUEUE), later(DEAD), later(replace(QUEUE, name="other"))),
    ),
    "offsets.slow, three seconds of work": (
        offsets(OFFSET, replace(OFFSET, time=LATER, consumer_offset=960, broker_offset=1100)),
        offsets(OFFSET, replace(OFFSET, time=LATER, consumer_offset=1901, broker_offset=2010)),
    ),
    "offsets.slow, as much as before": (  # two queues: what waits in one that stands still is nobody's slowness
        offsets(OFFSET, replace(OFFSET, time=LATER, consumer_offset=990, broker_offset=1090)),
        offsets(OFFSET, replace(OFFSET, time=LATER), NEXT,
                replace(NEXT, time=LATER, consumer_offset=1000, broker_offset=1100)),
    ),
    "offsets.slow, as much as before, all of which was committed meanwhile": (
        offsets(OFFSET, replace(OFFSET, time=LATER, consumer_offset=999, broker_offset=1099)),
        offsets(OFFSET, replace(OFFSET, time=LATER, consumer_offset=1000, broker_offset=1100)),
    ),
    "destinations.slow, as much as before": (
        queues(QUEUE, steady(400), SUB, sub_later(SUB, dequeue_counter=650)),
        queues(QUEUE, steady(500), SUB, sub_later(SUB, dequeue_counter=750)),
    ),
    "destinations.slow, as much as before, in six seconds": (
        queues(QUEUE, steady(200, time=T + 6_000), SUB, sub_later(SUB, time=T + 6_000, dequeue_counter=450)),
        queues(QUEUE, steady(320, time=T + 6_000), SUB, sub_later(SUB, time=T + 6_000, dequeue_counter=570)),
    ),
    "destinations.slow, as much as before, and no selector": (
        queues(QUEUE, steady(400), SELECTIVE, sub_later(SELECTIVE), SUB, sub_later(SUB, dequeue_counter=650)),
        queues(QUEUE, steady(400), SELECTIVE, sub_later(SELECTIVE, dequeue_counter=400)),
    ),
    "destinations.slow, as much as before, no owner of a group": (
        queues(QUEUE, steady(400), SUB, sub_later(SUB, dequeue_counter=650)),
        queues(GROUPED, steady(400, message_groups=GROUPED.message_groups), SUB, sub_later(SUB, dequeue_counter=650)),
    ),
    "destinations.slow, as much as before, but for what a consumer holds that stopped": (
        queues(QUEUE, steady(400), IDLE, sub_later(IDLE, awaiting=99), SUB, sub_later(SUB, dequeue_counter=650)),
        queues(QUEUE, steady(400), IDLE, sub_later(IDLE, awaiting=100), SUB, sub_later(SUB, dequeue_counter=650)),
    ),
    "stalled, in a partition without any commit": (
        offsets(UNCOMMITTED, replace(UNCOMMITTED, time=LATER, broker_offset=1001)),
        offsets(UNCOMMITTED, replace(UNCOMMITTED, time=LATER)),
    ),
    "stalled, in a partition without any commit, whose client is no new one": (
        offsets(UNCOMMITTED, replace(UNCOMMITTED, time=LATER, broker_offset=1001)),
        offsets(replace(UNCOMMITTED, client=""), replace(UNCOMMITTED, time=LATER, broker_offset=1001)),
    ),
    "one_queue_stuck, a partition without any commit": (
        offsets(UNCOMMITTED, replace(UNCOMMITTED, time=LATER, broker_offset=1001), PARTITION,
                replace(PARTITION, time=LATER, consumer_offset=1000)),
        offsets(UNCOMMITTED, replace(UNCOMMITTED, time=LATER, broker_offset=1001, consumer_offset=1), PARTITION,
                replace(PARTITION, time=LATER, consumer_offset=1000)),
    ),
    "unassigned_queue, a partition without any commit": (
        offsets(replace(UNCOMMITTED, client=""), replace(UNCOMMITTED, client="", time=LATER, broker_offset=1001),
                PARTITION, replace(PARTITION, time=LATER)),
        offsets(replace(UNCOMMITTED, client=""), replace(UNCOMMITTED, client="", time=LATER),
                PARTITION, replace(PARTITION, time=LATER)),
    ),
    "stuck_thread, a pool's thread": (dumps(WORK, WORK, WORK, WORK), dumps(POOL, POOL, POOL, POOL)),
    "stream_behind, now and then": (
        streams(*({"processed_per_second": 80.0},) * 3),
        streams({"processed_per_second": 80.0}, {}, {"processed_per_second": 80.0}),
    ),
}  # fmt: skip


def codes(evidence: Evidence) -> set[str]:
    return {finding.code for finding in diagnose(evidence)}


@pytest.mark.parametrize("case", CASES)
def test_a_rule_fires_in_its_case_and_not_close_by(case: str) -> None:
    fires, silent = CASES[case]
    code = case.partition(",")[0].rpartition(".")[2]
    found = [finding for finding in diagnose(fires) if finding.code == code]
    assert found
    for finding in found:
        assert finding.where
        assert all(finding.evidence)
        assert len(finding.advice) > 20
    assert code not in codes(silent)


@pytest.mark.parametrize(
    ("ok_tps", "failed_tps", "failed", "severity"),
    [
        (70, 0.1, 3, Severity.WARNING),
        (70, 0.0, 3, Severity.INFO),
        (1, 0.0, 36, Severity.INFO),
        (1, 0.0, 37, Severity.WARNING),
    ],
)
def test_a_listener_that_failed_now_and_then_is_no_warning(
    ok_tps: float, failed_tps: float, failed: int, severity: Severity
) -> None:
    rates = (ConsumeRates("Orders", 3, 70, 1, ok_tps, failed_tps, failed),)
    (found,) = [each for each in diagnose(clients(replace(CLIENT, rates=rates))) if each.code == "failing_listener"]
    assert found.severity is severity


def healthy(seed: int) -> Evidence:
    """A system at work: backlog that comes and goes, idle queues, consumers of several speeds, two sights."""
    rng = random.Random(seed)
    rate, seconds = rng.randint(1, 200), 60
    size = rng.choice((0, 0, rng.randint(1, 50)))
    before = replace(QUEUE, queue_size=size, in_flight_count=size, enqueue_count=5000, dequeue_count=5000 - size)
    more = rng.randint(0, rate * 5)  # a backlog that breathes
    after = later(before, enqueue_count=5000 + rate * seconds, dequeue_count=5000 - size + rate * seconds - more,
                  queue_size=size + more, in_flight_count=size + more)  # fmt: skip
    letters = replace(before, name="ActiveMQ.DLQ", queue_size=3, enqueue_count=rng.randint(3, 9))
    restarted = later(letters, enqueue_count=0, dequeue_count=0)
    one = replace(SUB, awaiting=size, dequeue_counter=2500, prefetch=rng.choice((1, 10, 1000)))
    two = replace(one, client_id="two", consumer_id="c2", selector=rng.choice(("", "a = 1")), awaiting=0)
    subs = [one, two, sub_later(one, dequeue_counter=2500 + rate), sub_later(two, dequeue_counter=2501)]
    idle = [replace(before, name="idle", queue_size=0, in_flight_count=0), later(before, name="idle", queue_size=0)]
    first = [replace(OFFSET, queue=n, client=f"c{n % 2}", broker_offset=900 + size) for n in range(4)]
    last = [
        replace(each, time=LATER, consumer_offset=900 + rate * 60, broker_offset=900 + rate * 60 + size + more // 4)
        for each in first
    ]
    # Two hosts, three clients on one of them; and a client that does not answer mqadmin but commits.
    host = [replace(OFFSET, group="shared", queue=n, client="h1" if n < 6 else "h2") for n in range(8)]
    silent = [replace(each, group="mute", client="") for each in first]
    mute = [replace(each, group="mute", client="") for each in last]
    quiet = replace(OFFSET, topic="Quiet", consumer_offset=0, broker_offset=0, last_time=0)
    never = replace(quiet, topic="%RETRY%g", client="")
    rates = (ConsumeRates("Orders", 2.0, float(rate), 5.0, float(rate), 0.0, 0),)
    member = replace(CLIENT, rates=rates)
    moved = replace(held(min_offset=950, max_offset=990, last_pull=LATER, last_consume=LATER), time=LATER, rates=rates)
    return Evidence(
        destinations=[before, after, *idle, letters, restarted],
        subscriptions=subs,
        offsets=[*first, *last, quiet, never, replace(quiet, time=LATER), *host, *silent, *mute],
        groups=[GroupState("f", T, "g", 2, 0, 1.0), GroupState("f", T, "unused", 0, 0)],
        clients=[member, moved],
        streams=[replace(REPORT, batch=n, time=T + n) for n in range(5)],
        dumps=dumps(POOL, WORK, POOL).dumps + [each for n in "234" for each in dumps(WORK, process=n).dumps],
    )


@pytest.mark.parametrize("seed", range(24))
def test_a_healthy_system_gives_no_finding(seed: int) -> None:
    assert diagnose(healthy(seed)) == []


def test_the_broken_broker_is_explained() -> None:
    """Two dumps of a real broker, 35 s apart: each queue is broken in a way of its own, one is healthy."""
    found = {(finding.code, finding.where) for finding in diagnose(read_files(sorted(DATA.glob("jolokia-*.json"))))}
    assert found == {
        ("page_starved", "queue typo"),
        ("selector_matches_nothing", "queue typo, consumer never"),
        ("group_owner_stopped", "queue grouped, consumer owner"),
        ("consumer_stopped", "queue bulk, consumer hoarder"),
        ("consumer_stopped", "queue bulk, consumer idle"),
        ("consumer_stopped", "queue orders, consumer dead"),
        ("exclusive_disjoint", "queue orders"),
        ("no_consumer", "queue nobody"),
    }
    once = {finding.code for finding in diagnose(read_files([DATA / "jolokia-1.json"] * 2))}
    assert once == {"selector_matches_nothing", "exclusive_disjoint", "no_consumer"}  # what one moment can show


def test_subscriptions_that_are_away_and_an_exclusive_consumer_that_refuses_all_are_told_of_a_real_broker() -> None:
    """Two dumps of ActiveMQ 6.3.1: two durable subscriptions of one client are away, which its views call not durable
    and give one consumer id; what waits is for none but an exclusive consumer's neighbour."""
    found = diagnose(read_files([DATA / "away-1.json", DATA / "away-2.json"]))
    assert {(finding.code, str(finding.where), str(finding.evidence[0])) for finding in found} == {
        ("durable_offline", "topic prices, durable subscription daily", "Active false, PendingQueueSize 30 (+10)"),
        ("durable_offline", "topic prices, durable subscription hourly", "Active false, PendingQueueSize 15 (+5)"),
        ("exclusive_disjoint", "queue orders", "20 of 20 messages are not dispatched"),
    }


def stuck(found: list[Finding]) -> dict[str, str]:
    return {finding.where: f"{finding.evidence[0]}; {finding.evidence[1]}" for finding in found}


def test_an_idle_client_has_no_stuck_thread() -> None:
    (dump,) = read_files([DATA / "rocketmq-client-jstack.txt"]).dumps  # of RocketMQ's client 5.3.3
    names = {thread.name for thread in dump.threads}
    assert {
        "NettyClientWorkerThread_1",
        "AsyncAppender-Worker-DefaultAppender",
        "ConsumeMessageThread_orders_3",
    } <= names
    assert diagnose(Evidence(dumps=[replace(dump, time=T + n * 5000) for n in range(3)])) == []


@pytest.mark.parametrize(
    ("name", "frames"),
    [
        (
            "kafka-coordinator-heartbeat-thread | consumers",
            (
                "java.lang.Object.wait(Native Method)",
                "org.apache.kafka.clients.consumer.internals.AbstractCoordinator$HeartbeatThread.run(A.java:1448)",
            ),
        ),
        (
            "grpc-nio-worker-ELG-1-1",
            ("sun.nio.ch.EPoll.wait(Native Method)", "io.netty.channel.nio.NioEventLoop.select(NioEventLoop.java:883)"),
        ),
        (
            "grpc-default-worker-ELG-1-1",
            (
                "io.netty.channel.epoll.Native.epollWait(N.java)",
                "io.netty.channel.epoll.EpollEventLoop.epollWait(E.java)",
            ),
        ),
    ],
)
def test_a_librarys_own_thread_is_no_stuck_listener(name: str, frames: tuple[str, ...]) -> None:
    threads = (ThreadState(name, "RUNNABLE", frames),)
    assert diagnose(Evidence(dumps=[ThreadDump("f", T + n * 5000, "jstack", "one", threads) for n in range(3)])) == []


def test_stuck_threads_are_named_with_their_line_runnable_ones_too() -> None:
    found = stuck(diagnose(read_files(sorted(DATA.glob("jstack-*.txt")))))
    assert set(found) == {"thread ConsumeMessageThread_orders_group_2", "thread ConsumeMessageThread_orders_group_4"}
    assert found["thread ConsumeMessageThread_orders_group_2"].startswith(
        "at Stuck.insertRow(Stuck.java:4); cause: lock"
    )
    call = found["thread ConsumeMessageThread_orders_group_4"]
    assert call.startswith("at Stuck.callTaxService(Stuck.java:3); cause: network")
    assert call.endswith("state RUNNABLE")
    assert not diagnose(read_files([DATA / "jstack-1.txt", DATA / "jstack-2.txt"]))  # two sights prove nothing
    assert not diagnose(read_files([DATA / "jstack-1.txt", *([DATA / "jstack-2.txt"] * 2)]))
    copies = read_files([DATA / "jstack-1.txt", DATA / "jstack-2.txt"])
    copies.add(copies)
    assert not diagnose(copies)
    python = stuck(diagnose(read_files(sorted(DATA.glob("py-spy-*.txt")))))
    assert list(python) == ["thread ConsumeMessageThread_orders_0"]
    assert python["thread ConsumeMessageThread_orders_0"].startswith("at call_tax_service (app.py:6)")


def test_flow_control_lines_say_which_limit_and_which_message() -> None:
    lines = [replace(FLOW, line=n, time=T + n * 60_000, max_offset=1051 + n, times=n * 1000 + 1) for n in range(3)]
    (finding,) = diagnose(Evidence(flow_controls=lines))
    assert finding.code == "flow_control"
    assert finding.evidence[0].startswith("pullThresholdForQueue")
    assert finding.evidence[2] == "minOffset stays 50 for 2 min: one message holds it"
    (span,) = diagnose(Evidence(flow_controls=[replace(FLOW, cause="span")]))
    assert span.evidence[0].startswith("consumeConcurrentlyMaxSpan")


def call_without_timeout(address: tuple[str, int], started: threading.Event) -> None:
    with socket.create_connection(address) as connection:
        started.set()
        connection.recv(1)


def rests(thread: threading.Thread) -> bool:
    """Whether it has come into its call: until then it wants the interpreter's lock, and runs for that."""
    before = take_dump(0, [thread.ident or 0])
    time.sleep(0.03)
    return take_dump(0, [thread.ident or 0]) == before


def test_a_listener_of_this_process_that_stands_still_is_named_once() -> None:
    clock = ManualClock()
    told: list[Finding] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        started = threading.Event()
        thread = threading.Thread(
            target=call_without_timeout, args=(server.getsockname(), started), name="ConsumeMessageThread_g_1"
        )
        thread.start()
        connection, _ = server.accept()
        with connection:
            assert started.wait(10)
            until(lambda: rests(thread))
            with Watch(samples=3, every=1000, report=told.append, clock=clock):
                clock.advance(2000)
                assert told == []
                clock.advance(8000)
                assert [finding.where for finding in told] == ["thread ConsumeMessageThread_g_1"]
                assert "call_without_timeout" in told[0].evidence[0]
        thread.join(10)
    assert not thread.is_alive()


def test_watch_finds_the_threads_of_a_consumer_by_its_group() -> None:
    class Consumer:
        consumer_group = "orders"

    with watch(Consumer(), clock=ManualClock()) as watching:
        assert watching.sample() == []
    with pytest.raises(TypeError, match="no consumer_group and no listening_thread"):
        watch(3)
    with pytest.raises(ValueError, match="three at least"):
        Watch(samples=2)
    with pytest.raises(ValueError, match="every = 0"):
        Watch(every=0)


def test_watch_finds_the_thread_that_is_in_an_activemq_listener() -> None:
    """Whatever its name: a session's thread, or the sender's own; and none between two messages."""
    clock = ManualClock()
    told: list[Finding] = []
    gate, begun = threading.Event(), threading.Event()

    def wait_for_stock(message: object) -> None:
        begun.set()
        gate.wait(20)

    with activemq.Broker() as broker:
        factory = activemq.ConnectionFactory("vm://localhost", broker=broker)
        with factory.create_connection() as connection:
            session = connection.create_session()
            consumer = session.create_consumer("orders", listener=wait_for_stock)
            with watch(consumer, samples=3, every=1000, report=told.append, clock=clock) as watching:
                clock.advance(5000)
                connection.create_session().create_producer("orders").send(Message({}))
                assert begun.wait(20)
                clock.advance(2000)
                assert told == []
                clock.advance(5000)
                (finding,) = told
                assert "wait_for_stock" in finding.evidence[0]
                assert finding.evidence[1].startswith("cause: lock (wait (threading.py:")
                assert session.listening_thread is not None
                gate.set()
                until(lambda: session.listening_thread is None)
                assert watching.sample() == []


def test_a_group_is_named_where_it_has_a_name() -> None:
    for name, where in (("g", "group g, topic Orders"), ("", "group (not named), topic Orders")):
        behind = replace(OFFSET, group=name, client="")
        found = diagnose(offsets(behind, replace(behind, time=LATER)))
        assert [finding.where for finding in found if finding.code == "stopped"] == [where]


@pytest.mark.parametrize(("prefetch", "fewer"), [(1000, 10), (199, 1), (99, 1)])
def test_a_hundredth_of_a_prefetch_that_hoards_is_advised_and_at_least_1(prefetch: int, fewer: int) -> None:
    held = replace(QUEUE, queue_size=prefetch, in_flight_count=prefetch)
    hoard = replace(SUB, prefetch=prefetch, awaiting=prefetch)
    (finding,) = (each for each in diagnose(queues(held, hoard, IDLE)) if each.code == "prefetch_hoarding")
    assert f"?consumer.prefetchSize={fewer})" in finding.advice


def test_the_worst_comes_first() -> None:
    bills = replace(OFFSET, topic="Bills")
    lost = replace(OFFSET, topic="Lost", last_time=0)
    found = diagnose(offsets(bills, replace(bills, time=LATER, consumer_offset=910), lost))
    assert [(finding.code, finding.severity) for finding in found] == [
        ("retention_overtook", Severity.ERROR), ("draining", Severity.INFO),
    ]  # fmt: skip
    assert found[0].as_dict()["severity"] == "error"


def test_what_was_seen_too_seldom_to_say_whether_it_moves_is_said() -> None:
    def said(*files: str) -> list[str]:
        return [str(each) for each in seen_too_seldom(read_files([str(DATA / file) for file in files]))]

    once = said("jolokia-1.json")
    assert once == ["4 queues with a backlog were seen once: a second snapshot a minute later shows whether it moves"]
    assert said("jolokia-1.json", "jolokia-1.json") == once
    assert said("jolokia-1.json", "jolokia-2.json") == []
    table = (
        "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID\n"
        "g     t     0         90             100            10  -           -    -\n"
        "g     t     1         100            100            0   -           -    -\n"
    )
    behind = seen_too_seldom(read_text(table, "groups.txt"))
    again = "seen once: a second snapshot a minute later shows whether it moves"
    assert [str(each) for each in behind] == [f"group g, topic t: lag 10 in 1 queue, {again}"]
    uncommitted = table.replace("100            100            0   -", "-              100            -   c")
    behind = seen_too_seldom(read_text(uncommitted, "groups.txt"))
    assert [str(each) for each in behind] == [f"group g, topic t: lag 10 in 2 queues, {again}"]
    twice = read_text(table, "groups.txt", 1000)
    twice.add(read_text(table, "groups.txt", 61_000))
    assert seen_too_seldom(twice) == []
    of_all = "of its process, but 3 of them, some seconds apart, show which thread stands still"
    assert said("jstack-1.txt") == [f"{DATA / 'jstack-1.txt'}: 1 dump {of_all}"]
    assert said("jstack-1.txt", "jstack-1.txt", "jstack-2.txt") == [f"{DATA / 'jstack-1.txt'}: 2 dumps {of_all}"]
    assert said("jstack-1.txt", "jstack-2.txt", "jstack-3.txt") == []
    assert said("py-spy-1.txt", "py-spy-2.txt") == [f"{DATA / 'py-spy-1.txt'}: 2 dumps {of_all}"]


def test_the_policy_of_a_destination_explains_its_findings() -> None:
    text = (
        '<broker xmlns="http://activemq.apache.org/schema/core" brokerName="b"><destinationPolicy><policyMap>'
        '<policyEntries>\n<policyEntry queue="q" allConsumersExclusiveByDefault="true" maxPageSize="50"/>\n'
        '<policyEntry topic=">"/></policyEntries></policyMap></destinationPolicy></broker>'
    )
    owner, other = replace(SUB, selector="region = 'EU'"), replace(IDLE, selector="region = 'US'")
    seen = queues(QUEUE, owner, other)
    assert "exclusive_disjoint" not in {finding.code for finding in diagnose(seen)}
    seen.add(read_text(text, "activemq.xml"))
    (found,) = (finding for finding in diagnose(seen) if finding.code == "exclusive_disjoint")
    assert found.evidence[-1] == (
        'activemq.xml:2: policyEntry queue="q" counts here: allConsumersExclusiveByDefault true'
    )
    elsewhere = queues(replace(QUEUE, name="other", consumer_count=0))
    elsewhere.add(read_text(text, "activemq.xml"))
    (nobody,) = diagnose(elsewhere)
    assert nobody.evidence[-1] == "no policy entry of activemq.xml covers it: gcInactiveDestinations false"
