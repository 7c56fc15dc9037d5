"""A RocketMQ group under virtual time: queueing theory, allocation, flow control, retries, and the pinned offset."""

from __future__ import annotations

import math
import pickle
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyengine._engine.simulation.group_simulation import PullRun
from pyengine.backlog.pages import simulation_page
from pyengine.backlog.pages.page import LANGUAGES
from pyengine.backlog.simulate import scenario
from pyengine.backlog.simulate.groups import GroupVariant, SimulatedClient, simulate_group
from pyengine.backlog.simulate.queues import NS, SimulatedConsumer, Workload, compare
from pyengine.errors import (
    AllocationError,
    ConfigurationError,
    IllegalStateError,
    InvalidMessageError,
    InvalidTopologyError,
)
from pyengine.rocketmq.tables.allocation import MessageQueue

MINUTE = 60 * NS


def erlang_c(servers: int, load: float) -> float:
    """The share of messages that wait in M/M/c; load: arrivals x service."""
    terms = [load**k / math.factorial(k) for k in range(servers)]
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(terms) + last)


@pytest.mark.parametrize("threads", [1, 4])
def test_mean_delay_is_that_of_theory(threads: int) -> None:
    """One client whose threads are shared by all its queues is M/M/c if pulling takes no time and nothing is held."""
    service, load = 0.01, 0.7
    rate = load * threads / service
    want = erlang_c(threads, load * threads) / (threads / service - rate)
    client = SimulatedClient("c", threads=threads, pull_threshold_for_queue=65535, consume_concurrently_max_span=65535)
    means = [
        simulate_group(Workload.from_rate(rate, service, 6000, seed=seed), (client,), round_trip=0).delays[500:].mean()
        for seed in range(8)
    ]
    error = np.std(means, ddof=1) / math.sqrt(len(means))
    assert abs(np.mean(means) - want) < 3.5 * error


@pytest.mark.parametrize("end", ["dies_at", "leaves_at", "breaks_at"])
def test_a_client_that_is_gone_has_nothing_in_progress(end: str) -> None:
    """Also if no other client takes over its messages, or one does."""
    workload = Workload(np.array([0, NS], np.int64), np.array([60 * NS, NS], np.int64))
    alone = simulate_group(workload, (SimulatedClient("c", **{end: 2}),), queues=1, until=100)
    assert alone.load([1.5, 1.9, 2.1, 50, 99]).tolist() == [2, 2, 0, 0, 0]
    assert alone.load_max == 2
    other = SimulatedClient("d", joins_at=30)
    pair = simulate_group(workload, (SimulatedClient("c", **{end: 2}), other), queues=1, until=100)
    taken_over = end != "dies_at"  # one that is connected keeps its queue
    assert pair.load([10, 60]).tolist() == [0, 1 if taken_over else 0]


def test_a_failed_message_is_in_progress_only_while_a_listener_has_it() -> None:
    """Its first try ends after a second, and the next is ten seconds later; no client has a dead letter."""
    arrivals, services = np.array([0], np.int64), np.array([NS], np.int64)
    once = simulate_group(Workload(arrivals, services, failures=np.array([1], np.int32)), (SimulatedClient("c"),))
    begun = once.started[0] / NS
    assert once.load([begun - 5, begun + 0.5, begun + 1.5]).tolist() == [0, 1, 0]
    always = Workload(arrivals, services, failures=np.array([9], np.int32))
    dead = simulate_group(always, (SimulatedClient("c", max_reconsume_times=0),), until=100)
    assert (dead.dead_letters, dead.load([0.5, 50]).tolist()) == ((0,), [1, 0])


@pytest.mark.parametrize(("clients", "owned"), [(2, {2}), (3, {1, 2}), (5, {0, 1})])
def test_four_queues_and_two_three_five_clients(clients: int, owned: set[int]) -> None:
    one = SimulatedClient("c", threads=1, pull_threshold_for_queue=10)
    workload = Workload.from_rate(300, 0.01, 1500, seed=1)
    found = GroupVariant("v", (one,)).with_clients(clients).play(workload)
    assert {count - (name == "c-1") for _, name, count in found.rebalances} | (
        {0} if len(found.rebalances) < clients else set()
    ) == owned
    working = [name for name, (_, finished) in found.work.items() if finished]
    assert len(working) == min(clients, 4)
    summary = found.summary()
    assert summary["finished"] == 1500
    assert summary["load_max"] <= min(clients, 4)
    assert {name: each["committed"] for name, each in summary["queues"].items()} == {
        **{f"topic/{number}": 375 for number in range(4)}, "%RETRY%group/0": -1,
    }  # fmt: skip


def test_a_client_that_comes_or_goes_is_noticed_after_the_real_delays() -> None:
    """A joining client is told at once; no rebalance within a second of its start; its first pull is 500 ms later."""
    workload = Workload.from_rate(100, 0.001, 3000, arrivals="constant", services="constant")
    clients = (SimulatedClient("a"), SimulatedClient("b", joins_at=10.0, leaves_at=20.0))
    found = simulate_group(workload, clients, queues=2)
    assert [(round(at, 3), name, count) for at, name, count in found.rebalances] == [
        (0.0, "a", 3), (10.0, "a", 2), (11.0, "b", 1), (20.0, "a", 3),
    ]  # fmt: skip
    waits = found.delays[(workload.arrivals > 10 * NS) & (workload.arrivals < 12 * NS)]
    assert 1.4 < waits.max() < 1.51


def pinned(minutes: float, rate: float = 200, **parameters: int) -> tuple[Workload, SimulatedClient]:
    """One message of queue 0 whose listener returns after so many minutes, among fast ones."""
    workload = Workload.from_rate(rate, 0.001, 12_000, arrivals="constant", services="constant", seed=1)
    services = workload.services.copy()
    services[100] = int(minutes * MINUTE)
    return replace(workload, services=services), SimulatedClient("c", **parameters)  # type: ignore[arg-type]


def test_a_call_without_timeout_pins_the_offset_and_the_span_holds_pulls_back() -> None:
    """The span counts what is cached: the pull goes on whenever all but the pinned message are done."""
    workload, client = pinned(60)
    found = simulate_group(workload, (client,), queues=1, until=60.0)
    summary = found.summary()
    at = summary["queues"]["topic/0"]
    assert at["committed"] == 100
    assert summary["flow_control"]["c"] == {"count": 0, "size": 0, "span": summary["flow_control"]["c"]["span"]}
    assert summary["flow_control"]["c"]["span"] > 100
    assert 11_900 < summary["finished"] < 12_000
    assert at["delay"] == 12_000 - 100


def test_a_message_that_times_out_goes_back_and_the_offset_moves() -> None:
    workload, client = pinned(60, 50, consume_timeout=1)
    early = simulate_group(workload, (client,), queues=1, until=119.0)
    assert early.summary()["queues"]["topic/0"]["committed"] == 100  # cleaned at 60 s, 120 s ...
    found = simulate_group(workload, (client,), queues=1, until=300.0)
    assert found.summary()["queues"]["topic/0"]["committed"] == 12_000
    assert found.deliveries[100] == 3  # it stands in the retry queue as well, and times out there again
    assert found.summary()["finished"] == 11_999


def test_failures_come_back_after_their_levels_and_end_as_dead_letters() -> None:
    workload = Workload.from_rate(10, 0.001, 10, arrivals="constant", services="constant")
    failing = replace(workload, failures=np.array([2, 99] + [0] * 8, np.int32))
    found = simulate_group(failing, (SimulatedClient("c", max_reconsume_times=3),), round_trip=0)
    assert found.deliveries.tolist() == [3, 4] + [1] * 8
    assert found.dead_letters == (1,)
    assert (found.finished[0] - found.workload.arrivals[0]) / NS == pytest.approx(10 + 30, abs=0.1)
    assert found.summary()["dead_letters"] == 1
    assert found.held == {}
    assert found.lines() == ["5 deliveries again, 1 dead letter"]
    (line,) = found.lines()
    for language in LANGUAGES:
        assert f"<p>{line.in_language(language)}</p>" in simulation_page.render("", {"c": found}, language)


def test_size_and_topic_thresholds_hold_pulls_back() -> None:
    workload = replace(Workload.from_rate(1000, 0.02, 2000, seed=1), sizes=np.full(2000, 1 << 20, np.int64))
    client = SimulatedClient("c", threads=2, pull_threshold_size_for_queue=10)
    found = simulate_group(workload, (client,), queues=1, until=2.0)
    assert found.flow_control["c"]["size"] > 0
    assert found.flow_control["c"]["count"] == 0
    times = found.flow_control["c"]["size"]
    held = f"flow control of c: pulls held back 0 times by count, {times:,} by size, 0 by span"
    assert found.lines() == [held]
    shared = simulate_group(
        workload, (SimulatedClient("c", threads=2, pull_threshold_for_topic=20),), queues=1, until=2
    )
    assert shared.flow_control["c"]["count"] > 0


def test_a_killed_client_s_unwritten_offsets_are_consumed_again_a_closed_one_s_are_not() -> None:
    workload = Workload.from_rate(500, 0.001, 5000, seed=3)
    stays = SimulatedClient("a")
    closed = simulate_group(workload, (stays, SimulatedClient("b", leaves_at=4.0)), queues=2)
    killed = simulate_group(workload, (stays, SimulatedClient("b", breaks_at=4.0)), queues=2)
    dead = simulate_group(workload, (stays, SimulatedClient("b", dies_at=4.0)), queues=2)
    assert closed.summary()["finished"] == killed.summary()["finished"] == 5000
    assert closed.summary()["redelivered"] <= killed.summary()["redelivered"] < 100
    assert dead.held["not_consumed"] > 1000


@pytest.mark.parametrize(("service", "held"), [(0.08, {}), (0.6, {"not_consumed": 90})])
def test_what_has_not_come_by_the_end_does_not_wait(service: float, held: dict[str, int]) -> None:
    """Where a run is cut 20 threads have begun all 150 messages that have come, or 60: what is in work is not held."""
    workload = Workload.from_rate(100, service, 400, arrivals="constant", services="constant")
    cut = simulate_group(workload, (SimulatedClient("c"),), until=1.505)
    assert cut.held == held
    assert cut.summary()["backlog_end"] == cut.backlog([1.505])[0] == 150 - cut.summary()["finished"]


@pytest.mark.parametrize("round_trip", [0.0, 0.001, 0.5])
def test_what_no_pull_can_have_brought_by_the_end_does_not_wait(round_trip: float) -> None:
    workload = Workload.from_log([0, 2000], [0.01, 0.01])
    for after in (-0.001, 0.0, round_trip / 2, round_trip, round_trip + 0.001):
        found = simulate_group(workload, (SimulatedClient("c"),), round_trip=round_trip, until=2.0 + after)
        assert found.held == {}
        assert bool(found.started[1] >= 0) is (after >= round_trip)
    nobody = simulate_group(
        workload, (SimulatedClient("c", leaves_at=1.0),), round_trip=round_trip, until=2.0 + round_trip
    )
    assert nobody.held == {"not_consumed": 1}


def test_dead_letters_wait_no_more() -> None:
    workload = Workload.from_rate(100, 0.01, 20, failures=np.full(20, 1, np.int32))
    summary = simulate_group(workload, (SimulatedClient("c", max_reconsume_times=0),)).summary()
    assert (summary["dead_letters"], summary["backlog_end"], summary["held"]) == (20, 0, {})


def test_invariants_hold_at_every_moment() -> None:
    workload = Workload.from_rate(400, 0.02, 1200, services="lognormal", seed=5)
    topic = [MessageQueue("t", "b", number) for number in range(3)]
    retry = MessageQueue("%RETRY%g", "b", 0)

    def allocate(name: str, names: list[str], of_retry: bool) -> list[MessageQueue]:
        mine = sorted(names).index(name)
        return ([retry] if mine == 0 else []) if of_retry else topic[mine :: len(names)]

    run = PullRun("g", [*topic, retry], allocate, workload.arrivals, workload.services,
                  np.arange(1200, dtype=np.int32) % 3, failures=np.arange(1200, dtype=np.int32) % 7 // 6)  # fmt: skip
    run.join("a", at_once=True, threads=3, pull_threshold_for_queue=20)
    run.settle()
    for step in range(1, 400):
        if step == 50:
            run.join("b", threads=4)
        if step == 150:
            run.set_factor("a", 3.0)
        if step == 200:
            run.leave("a", lost=True)
        run.run(step * NS // 10)
        run._check()
    assert (run.finished >= 0).all()
    with pytest.raises(IllegalStateError, match="'a' is not in this run"):
        run.kill("a")
    with pytest.raises(ValueError, match="time does not go back"):
        run.run(0)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(run)
    with pytest.raises(InvalidMessageError, match="the topic has 3 queues"):
        PullRun("g", [*topic, retry], allocate, [1], [1], [3])


@pytest.mark.parametrize("until", [None, 9_223_372_036])
def test_a_run_ends_at_the_end_of_time(until: float | None) -> None:
    workload = Workload.from_log([0, 9_223_372_036_000], 0.5)
    found = simulate_group(workload, (SimulatedClient("c", consume_timeout=2**31 - 1),), queues=1, until=until)
    assert found.finished[0] == 501_000_000
    assert found.finished[1] == (-1 if until else 9_223_372_036_501_000_000)
    late = Workload.from_log([0, 9_223_372_036_000], 0.9)
    found = simulate_group(late, (SimulatedClient("c"),), queues=1, until=until)
    assert found.finished.tolist() == [901_000_000, -1]


def test_work_that_no_64_bits_count_is_refused() -> None:
    queues = [MessageQueue("t", "b", 0), MessageQueue("%RETRY%g", "b", 0)]
    run = PullRun("g", queues, lambda name, names, retry: queues[retry:][:1], [0, 1], [5, 7], [0, 0])
    for factor in (-0.5, 2.0**61, float("nan"), float("inf")):
        with pytest.raises(InvalidMessageError, match=re.escape(f"factor = {factor!r} (float): must not be negative")):
            run.join("a", factor=factor)
    run.join("a", factor=1.0, at_once=True)
    with pytest.raises(InvalidMessageError, match="nor work of 7 ns take 292 years"):
        run.set_factor("a", 1e300)
    with pytest.raises(InvalidMessageError, match=r"services = -1 \(int\): must not be negative"):
        PullRun("g", queues, lambda name, names, retry: queues, [0], [-1], [0])


SCENARIO = """
[workload]
rate = 200
service = 0.01
messages = 2000
failing = 0.01
size = 100
[[variant]]
name = "two"
queues = 4
[[variant.client]]
name = "c"
copies = 2
threads = 2
slows_at = { 5 = 2.0 }
[[variant]]
name = "circle"
strategy = "AVG_BY_CIRCLE"
[[variant.client]]
name = "c"
threads = 4
pull_threshold_for_queue = 10
"""


def test_a_scenario_of_groups() -> None:
    asked = scenario.parse(SCENARIO)
    found = compare(asked.workload, asked.variants)
    assert found["two"]["consumers"].keys() == {"c-1", "c-2"}
    assert found["two"]["finished"] == 2000
    assert found["circle"]["redelivered"] > 0
    with pytest.raises(InvalidTopologyError, match="strategy"):
        scenario.parse(SCENARIO.replace("AVG_BY_CIRCLE", "AVG_BY_CIRCEL"))


MEMBER = '{kind} = [{{ name = "c", {life} }}]'
LOAD = "[workload]\nrate = 100\nservice = 0.01\nmessages = 10\n{load}\n[[variant]]\nname = 'v'\n{member}\n"


@pytest.mark.parametrize("kind", ["consumer", "client"])
@pytest.mark.parametrize(
    ("life", "words"),
    [
        ("joins_at = 10, leaves_at = 5", "is before it joins, at 10"),
        ("joins_at = 10, slows_at = { 5 = 2.0 }", "is before it joins, at 10"),
        ("leaves_at = 5, dies_at = 6", "is after it has gone, at 5"),
        ("leaves_at = 5, breaks_at = 5", "stands beside leaves_at"),
        ("joins_at = 1e308", "is out of range"),
        ("dies_at = 9999999999999999999999", "is out of range"),
        ("slows_at = { nan = 2.0 }", "must be a number of seconds"),
        ("factor = -1", "is out of range"),
        ("threads = 2147483648", "is out of range"),
    ],
)
def test_a_life_that_cannot_be_is_refused_where_it_is_written(kind: str, life: str, words: str) -> None:
    member = MEMBER.format(kind=kind, life=life)
    with pytest.raises(InvalidTopologyError, match=words):
        scenario.parse(LOAD.format(load="", member=member))


@pytest.mark.parametrize(
    ("setting", "allowed"),
    [
        ("pull_batch_size = 0", "1 to 1024"),
        ("consume_message_batch_max_size = 2000", "1 to 1024"),
        ("pull_threshold_for_queue = -1", "1 to 65535"),
        ("pull_threshold_size_for_topic = 0", "1 to 102400, or -1"),
    ],
)
def test_a_client_that_would_not_start_is_refused_where_it_is_written(setting: str, allowed: str) -> None:
    """By the real consumer's own ranges: what it does with others nobody can see."""
    member = MEMBER.format(kind="client", life=setting)
    with pytest.raises(InvalidTopologyError, match=rf"s.toml:8: .*is out of range .*allowed: {allowed}"):
        scenario.parse(LOAD.format(load="", member=member), "s.toml")


@pytest.mark.parametrize(
    "load",
    [
        "groups = 9999999999999999999999",
        "lifetime = 1e308",
        "lifetime = -1",
        "lifetime = 0.0005",
        "failing = 1.5",
        "failing = 0.1\nfailures = 2147483648",
        "size = 2147483648",
    ],
)
def test_a_workload_that_cannot_be_is_refused_where_it_is_written(load: str) -> None:
    member = MEMBER.format(kind="consumer", life="threads = 1")
    with pytest.raises(InvalidTopologyError, match=r"line:[56]: workload"):
        scenario.parse(LOAD.format(load=load, member=member))


def test_messages_of_more_than_three_hundred_years_are_refused() -> None:
    member = MEMBER.format(kind="consumer", life="threads = 1")
    with pytest.raises(InvalidTopologyError, match=r"over more than 9.2.*e.09 seconds"):
        scenario.parse(LOAD.replace("rate = 100", "rate = 1e-9").format(load="", member=member))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SimulatedConsumer("late", joins_at=10.0, leaves_at=5.0), "leaves_at=5.0: is before it joins, at 10"),
        (lambda: SimulatedClient("c", threads=2**31), "SimulatedClient.threads=2147483648: is out of range"),
        (lambda: SimulatedClient("c", pull_interval=-2), "SimulatedClient.pull_interval=-2: is out of range"),
        (lambda: SimulatedClient("c", threads=0), "threads=0: is out of range; allowed: 1 to 1000"),
        (lambda: SimulatedClient("c", pull_batch_size=0), "pull_batch_size=0: is out of range; allowed: 1 to 1024"),
        (
            lambda: SimulatedClient("c", pull_threshold_for_topic=0),
            "pull_threshold_for_topic=0: is out of range; allowed: 1 to 6553500, or -1",
        ),
        (lambda: SimulatedClient("c", max_reconsume_times=-2), "max_reconsume_times=-2: is out of range"),
        (lambda: SimulatedClient("c", consume_timeout=0), "consume_timeout=0: is out of range"),
        (lambda: SimulatedClient("c", factor=float("inf")), "SimulatedClient.factor=inf: is out of range"),
        (lambda: SimulatedClient(" "), "SimulatedClient.name=' ': is empty"),
        (lambda: GroupVariant("v", (), queues=10**9), "GroupVariant.queues=1000000000: is out of range; allowed: 1 to"),
        (lambda: GroupVariant("v", (), round_trip=-1.0), "GroupVariant.round_trip=-1.0: is out of range"),
        (lambda: GroupVariant("v", [SimulatedClient("c")] * 2), r"clients\[1\].name='c': is already used by"),
    ],
)
def test_settings_that_mean_nothing_are_refused_where_they_are_made(make: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        make()


def test_more_clients_are_more_of_the_first_beside_the_others() -> None:
    variant = GroupVariant("v", [SimulatedClient("a"), SimulatedClient("b"), SimulatedClient("c")])
    assert [client.name for client in variant.with_clients(2).clients] == ["a-1", "a-2", "b", "c"]


def test_what_is_no_group_is_named_at_once() -> None:
    some = Workload.from_rate(100, 0.01, 5)
    with pytest.raises(ValueError, match=r"simulate_group.clients\[0\]='a': must be a SimulatedClient"):
        simulate_group(some, ["a"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"queues = 0 \(int\): must be 1 or more"):
        simulate_group(some, [SimulatedClient("c")], queues=0)
    with pytest.raises(AllocationError, match="strategy = 5 is not an allocation strategy"):
        simulate_group(some, [SimulatedClient("c")], strategy=5)  # type: ignore[arg-type]


def test_a_day_a_hundred_years_from_now_is_as_near_as_tomorrow() -> None:
    """Nobody has a message in between, so nothing of it is gone through."""
    some = Workload.from_rate(100, 0.01, 500, seed=1)
    clients = (SimulatedClient("c"), SimulatedClient("d", leaves_at=3e9))
    found = simulate_group(some, clients)
    assert found.summary()["seconds"] == 3e9
    assert [(name, count) for _, name, count in found.rebalances] == [("c", 3), ("d", 2)]
    late = replace(some, arrivals=some.arrivals + 3_000_000_000 * NS)
    assert simulate_group(late, clients[:1]).summary()["delay_mean"] < 0.1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("{ EU = inf, US = 1 }", "property, region: has a weight that is none; above 0, at most 1e+09"),
        ("{ EU = nan }", "has a weight that is none"),
        ("{ EU = 1e308, US = 1e308 }", "has a weight that is none"),
        ("{ EU = 0 }", "has a weight that is none"),
        ("{ EU = true }", "has a weight that is none"),
        ("[9223372036854775808]", "has a number that is no Java long; write numbers of 64 bits"),
        ("[1, 2.0]", "must list values of one type"),
    ],
)
def test_what_no_property_is_drawn_from(given: str, words: str) -> None:
    text = LOAD.format(load=f"property.region = {given}", member=MEMBER.format(kind="client", life="threads = 1"))
    with pytest.raises(InvalidTopologyError, match=re.escape(words)):
        scenario.parse(text)
