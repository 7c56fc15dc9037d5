"""Virtual time against the slow model, against queueing theory, and against the stories people tell."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyengine import Selector
from pyengine._engine.simulation.queue_simulation import QueueRun, RowMask
from pyengine.activemq import Queue
from pyengine.activemq.core_settings import queue_settings
from pyengine.backlog.simulate import scenario
from pyengine.backlog.simulate.queues import SimulatedConsumer, Variant, Workload, compare, draw, simulate
from pyengine.errors import ConfigurationError, IllegalStateError, InvalidMessageError, InvalidTopologyError
from pyengine.topology import Policy
from tests.model.simulation_model import MILLISECOND, SlowRun

EVENTS = st.lists(
    st.tuples(st.integers(0, 60), st.sampled_from(["join", "kill", "leave", "break", "slow"]), st.integers(0, 5)),
    max_size=6,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(
            st.integers(0, 4),
            st.integers(0, 12),
            st.sampled_from([None, "a", "b", "c"]),
            st.sampled_from([0, 0, 5, 20]),
        ),
        max_size=30,
    ),
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3), st.booleans()), min_size=1, max_size=3),
    EVENTS,
    st.sampled_from([3, 7, 50]),
    st.sampled_from([1, 4, 400]),
)
def test_the_compiled_run_is_the_slow_one(
    messages: Any, consumers: Any, events: Any, look_period: int, look_limit: int
) -> None:
    arrivals = MILLISECOND * np.cumsum([gap for gap, *_ in messages]).astype(np.int64)
    services = [MILLISECOND * work for _, work, *_ in messages]
    groups = [group for *_, group, _ in messages]
    lifetimes = [lifetime for *_, lifetime in messages]
    fast_queue, slow_queue = Queue(max_page_size=5), Queue(max_page_size=5)
    fast = QueueRun(
        fast_queue,
        arrivals,
        np.array(services, np.int64),
        groups=fast_queue.intern_groups(groups),
        lifetimes=np.array(lifetimes, np.int64),
        expire_messages_period=look_period,
        max_expire_page_size=look_limit,
    )
    period = MILLISECOND * look_period
    slow = SlowRun(slow_queue, arrivals.tolist(), services, groups, lifetimes, period, look_limit, now=fast.now)
    here: list[int] = []

    def join(prefetch: int, threads: int, exclusive: bool) -> None:
        got = fast.add_consumer(prefetch=prefetch, threads=threads, exclusive=exclusive, factor=1.5)
        assert got == slow.add_consumer(threads, 1.5, prefetch=prefetch, exclusive=exclusive)
        here.append(got)

    for prefetch, threads, exclusive in consumers:
        join(prefetch, threads, exclusive)
    for at, what, which in sorted(events):
        moment = max(fast.now, MILLISECOND * at)
        fast.run(moment)
        slow.run(moment)
        fast._check()
        if what == "join":
            join(which, 1, False)
        elif here:
            consumer = here[which % len(here)]
            if what == "kill":
                fast.kill(consumer)
                slow.kill(consumer)
            elif what == "slow":
                fast.set_factor(consumer, 3.0)
                slow.clients[consumer].factor = 3.0
            else:
                here.remove(consumer)
                fast.remove_consumer(consumer, lost=what == "break")
                slow.remove_consumer(consumer, lost=what == "break")
        fast._check()
    fast.run(1000 * MILLISECOND)
    slow.run(1000 * MILLISECOND)
    fast._check()
    assert [entry[2] for entry in fast_queue.take_removed()] == [entry[2] for entry in slow_queue.take_removed()]
    assert fast.consumers.tolist() == slow.who
    assert fast.dispatched.tolist() == slow.dispatched
    assert fast.started.tolist() == slow.started
    assert fast.finished.tolist() == slow.finished
    assert fast.deliveries.tolist() == slow.times


CHANGING = [
    "", "n > 1", "JMSRedelivered", "JMSXDeliveryCount = 1", "JMSXDeliveryCount > 2 OR n = 0",
    "JMSXGroupFirstForConsumer", "JMSXGroupFirstForConsumer = FALSE AND JMSXDeliveryCount + n > 2",
]  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 9), st.sampled_from([None, "a", "b"]), st.integers(0, 3)),
        min_size=3,
        max_size=30,
    ),
    st.lists(
        st.tuples(st.sampled_from(CHANGING), st.sampled_from([1, 2, 9]), st.integers(0, 20), st.integers(1, 25)),
        min_size=2,
        max_size=5,
    ),
    st.booleans(),
    st.booleans(),
)
def test_selectors_see_a_message_that_came_back_as_it_is_now(
    messages: list[Any], drawn: list[Any], counts: bool, arrow: bool
) -> None:
    """The slow model's queue is asked with objects; the run has columns."""
    arrivals = MILLISECOND * np.cumsum([gap for gap, *_ in messages]).astype(np.int64)
    services = [MILLISECOND * work for _, work, *_ in messages]
    groups = [group for *_, group, _ in messages]
    properties: dict[str, Any] = {"n": np.array([n for *_, n in messages])}
    if counts:
        properties["JMSXDeliveryCount"] = np.array([1 + row % 2 for row in range(len(messages))])
    bodies = [{name: column[row].item() for name, column in properties.items()} for row in range(len(messages))]
    workload = Workload(arrivals, np.array(services), pa.table(properties) if arrow else properties, groups)
    consumers = [
        SimulatedConsumer(
            f"c{number}",
            selector if number else "",
            prefetch,
            joins_at=joins / 1000 if number else 0.0,
            **{"breaks_at" if stays % 3 else "leaves_at": (joins + stays) / 1000},
        )
        for number, (selector, prefetch, joins, stays) in enumerate(drawn)
    ]
    found = simulate(workload, consumers, until=0.2)
    queue = Queue(**queue_settings(Policy("")))
    for row, body in enumerate(bodies):
        body["row"] = row
    slow = SlowRun(
        queue, arrivals.tolist(), services, groups, [0] * len(messages), 30_000 * MILLISECOND, 400,
        now=int(arrivals[0]), bodies=bodies,
    )  # fmt: skip
    ids: dict[str, int] = {}
    events: list[tuple[float, str, SimulatedConsumer]] = []
    for each in consumers:
        if each.joins_at:
            events.append((each.joins_at, "join", each))
        else:
            ids[each.name] = slow.add_consumer(1, 1.0, selector=selector_of(each), prefetch=each.prefetch)
        events += [(each.leaves_at, "leave", each)] if each.leaves_at is not None else []
        events += [(each.breaks_at, "break", each)] if each.breaks_at is not None else []
    for second, what, each in sorted(events, key=lambda event: event[0]):
        slow.run(max(slow.now, int(second * 1_000_000_000)))
        if what == "join":
            ids[each.name] = slow.add_consumer(1, 1.0, selector=selector_of(each), prefetch=each.prefetch)
        else:
            slow.remove_consumer(ids[each.name], lost=what == "break")
    slow.run(200 * MILLISECOND)
    assert found.consumers.tolist() == slow.who
    assert found.dispatched.tolist() == slow.dispatched
    assert found.finished.tolist() == slow.finished
    assert found.deliveries.tolist() == slow.times


def selector_of(consumer: SimulatedConsumer) -> Selector | None:
    return Selector(consumer.selector) if consumer.selector else None


def erlang_c(servers: int, load: float) -> float:
    """Share of messages that wait in M/M/c."""
    top = load**servers / math.factorial(servers) * servers / (servers - load)
    return top / (sum(load**n / math.factorial(n) for n in range(servers)) + top)


SECONDS = st.integers(0, 4).map(lambda number: number * 10**9)


@settings(max_examples=50)
@given(st.lists(st.tuples(SECONDS, SECONDS), max_size=12), st.integers(1, 3))
def test_what_waits_and_what_is_worked_on_is_counted_at_each_moment(messages: Any, threads: int) -> None:
    arrivals = sorted(arrival for arrival, _ in messages)
    workload = Workload(np.array(arrivals, np.int64), np.array([service for _, service in messages], np.int64))
    run = simulate(workload, [SimulatedConsumer("c", threads=threads)])
    seconds = range(60)
    started, finished = (times.tolist() for times in (run.started, run.finished))
    assert min(started, default=0) >= 0
    assert min(finished, default=0) >= 0
    busy = [sum(at <= now * 10**9 for at in started) - sum(at <= now * 10**9 for at in finished) for now in seconds]
    left = [sum(at <= now * 10**9 for at in arrivals) - sum(at <= now * 10**9 for at in finished) for now in seconds]
    assert run.load(seconds).tolist() == busy
    assert run.load_max == max(busy)
    assert run.backlog_max == max(left)


@pytest.mark.parametrize(
    ("servers", "threads", "services", "rho"),
    [(1, 1, "exponential", 0.5), (1, 1, "exponential", 0.8), (3, 1, "exponential", 0.8), (1, 4, "exponential", 0.7),
     (1, 1, "constant", 0.8)],
)  # fmt: skip
def test_mean_delays_are_those_of_queueing_theory(servers: int, threads: int, services: Any, rho: float) -> None:
    """M/M/1, M/M/c and M/D/1 within the confidence interval of eight runs (t quantile for seven degrees: 3.5, 99 %)."""
    workers, mean = servers * threads, 0.001
    rate = rho * workers / mean
    expected = erlang_c(workers, rho * workers) * mean / (workers * (1 - rho))
    if services == "constant":
        expected /= 2
    found = []
    for seed in range(8):
        workload = Workload.from_rate(rate, mean, 60_000, services=services, seed=seed)
        prefetch = 1 if threads == 1 else 1000
        consumers = [SimulatedConsumer(f"c{n}", prefetch=prefetch, threads=threads) for n in range(servers)]
        found.append(float(simulate(workload, consumers).delays.mean()))
    error = np.std(found, ddof=1) / math.sqrt(len(found))
    assert abs(np.mean(found) - expected) < 3.5 * error + 0.002 * expected


def test_more_consumers_help_until_they_do_not() -> None:
    workload = Workload.from_rate(100, 0.025, 5000, seed=1)
    today = Variant("today", (SimulatedConsumer("c", prefetch=1),))
    variants = [Variant(f"{n}", today.with_consumers(n).consumers) for n in (2, 3, 5)]
    two, three, five = compare(workload, variants).values()
    assert two["delay_mean"] > 10 * three["delay_mean"] > 10 * five["delay_mean"]
    assert (two["load_max"], three["load_max"], five["load_max"]) == (2, 3, 5)  # what the listeners call pays for it


def test_a_wide_prefetch_starves_the_other_consumer() -> None:
    workload = Workload.from_rate(1000, 0.01, 400, seed=2)
    late = SimulatedConsumer("late", prefetch=1000, joins_at=0.5)
    wide = compare(workload, [Variant("wide", (SimulatedConsumer("first", prefetch=1000), late))])["wide"]
    narrow = compare(workload, [Variant("narrow", (SimulatedConsumer("first", prefetch=1), late))])["narrow"]
    assert wide["consumers"]["late"]["finished"] == 0
    assert narrow["consumers"]["late"]["finished"] > 100
    assert narrow["seconds"] < wide["seconds"]


def test_a_policy_s_prefetch_counts_for_who_has_the_client_s_default() -> None:
    workload = Workload.from_rate(1000, 0.01, 400, seed=2)
    consumers = (SimulatedConsumer("first"), SimulatedConsumer("late", joins_at=0.5))
    narrow = simulate(workload, consumers, Policy("q", queue_prefetch=1))
    alike = simulate(workload, tuple(replace(each, prefetch=1) for each in consumers))
    assert np.array_equal(narrow.consumers, alike.consumers)
    assert not np.array_equal(narrow.consumers, simulate(workload, consumers).consumers)
    nothing = simulate(workload, consumers, Policy("q", queue_prefetch=-1)).held
    assert nothing == {"no_credit": 400}
    assert simulate(workload, (SimulatedConsumer("c", prefetch=-1),)).held == nothing


@pytest.mark.parametrize(
    ("policy", "prefetch", "words"),
    [
        ("{ queue_prefetch = 0 }", "", r":6: variant .*queue_prefetch: makes a consumer pull, which is not simulated"),
        ("{ }", "prefetch = 0", r":10: .*prefetch: makes a consumer pull, which is not simulated .* give 1 or more"),
        ("{ }", "prefetch = -2147483649", r":10: .*prefetch: is out of range .* allowed: -2147483648 to 2147483647"),
    ],
)
def test_a_scenario_has_no_consumer_that_pulls(policy: str, prefetch: str, words: str) -> None:
    text = f"""[workload]
rate = 1
service = 1
[[variant]]
name = "v"
policy = {policy}
[[variant.consumer]]
name = "c"

{prefetch}
"""
    with pytest.raises(InvalidTopologyError, match=words):
        scenario.parse(text, "s.toml")


def test_exclusive_with_disjoint_selectors_holds_and_says_why() -> None:
    workload = Workload.from_rate(100, 0.001, 1000, seed=3, properties={"region": np.array(["EU", "US"] * 500)})
    consumers = (
        SimulatedConsumer("eu", "region = 'EU'", exclusive=True),
        SimulatedConsumer("us", "region = 'US'"),
    )
    summary = simulate(workload, consumers).summary()
    assert summary["consumers"]["us"]["finished"] == 0
    assert summary["held"] == {"exclusive_selector": 400, "not_paged_in": 200}
    assert summary["backlog_end"] == 600


@pytest.mark.parametrize("count", [63, 64, 130])
def test_each_of_many_selectors_gets_its_own(count: int) -> None:
    """A word holds the answers of 64 selectors."""
    workload = Workload.from_rate(100, 0.001, 2 * count, seed=3, properties={"n": np.arange(2 * count) % count})
    consumers = tuple(SimulatedConsumer(f"c{number}", f"n = {number}") for number in range(count))
    summary = simulate(workload, consumers).summary()
    assert [summary["consumers"][f"c{number}"]["finished"] for number in range(count)] == [2] * count


def test_what_has_not_come_by_the_end_does_not_wait() -> None:
    workload = Workload.from_rate(100, 0.03, 400, arrivals="constant", services="constant")
    cut = simulate(workload, (SimulatedConsumer("c"),), until=1.5)
    assert cut.summary()["finished"] == 49
    assert cut.summary()["backlog_end"] == cut.backlog([1.5])[0] == 150 - 49


def test_a_dead_consumer_keeps_what_it_holds_a_lost_one_gives_it_back() -> None:
    workload = Workload.from_rate(100, 0.02, 400, seed=4)
    other = SimulatedConsumer("other", prefetch=5)
    dead = simulate(workload, (SimulatedConsumer("c", prefetch=50, dies_at=1.0), other)).summary()
    lost = simulate(workload, (SimulatedConsumer("c", prefetch=50, breaks_at=1.0), other)).summary()
    left = simulate(workload, (SimulatedConsumer("c", prefetch=50, leaves_at=1.0), other)).summary()
    assert dead["backlog_end"] > 0
    assert dead["redelivered"] == 0
    assert lost["backlog_end"] == left["backlog_end"] == 0
    assert lost["redelivered"] > 0


def test_series_add_up() -> None:
    workload = Workload.from_rate(50, 0.05, 500, seed=5, lifetimes=np.full(500, 100, np.int64))
    found = simulate(workload, (SimulatedConsumer("c", prefetch=1, slows=((1.0, 4.0),)),))
    assert found.expired > 0
    times = np.linspace(0, found.end / 1e9, 50)
    assert (found.backlog(times) >= found.load(times)).all()
    assert found.load(times).max() == 1
    done = found.last_consume_time(times)
    assert (np.nan_to_num(done[1:]) >= np.nan_to_num(done[:-1])).all()
    assert found.summary()["finished"] + found.expired == 500


def test_a_message_log_is_replayed_from_its_first_message() -> None:
    log = Workload.from_log([5_000, 5_010, 5_010, 6_000], 0.001)
    assert log.arrivals.tolist() == [0, 10_000_000, 10_000_000, 1_000_000_000]
    assert len(simulate(log, (SimulatedConsumer("c"),)).delays) == 4
    assert simulate(Workload.from_log([], 1.0), (SimulatedConsumer("c"),)).summary()["finished"] == 0


def test_a_log_may_have_moments_and_durations() -> None:
    """Whatever their unit and zone, as Parquet gives them: they were taken for numbers of ms and seconds."""
    texts = ["2026-03-29T00:59:59.999", "2026-03-29T01:00:00.0005", "2026-03-29T01:00:02"]  # the hour is left out there
    moments = pd.Series(pd.to_datetime(texts, format="ISO8601"))
    here = moments.dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")
    since = [0, 1_500_000, 2_001_000_000]
    half = np.array([500], "m8[ms]")
    for column in (moments, here, moments.astype("M8[us]"), pa.array(here), pa.chunked_array([pa.array(moments)])):
        log = Workload.from_log(column, half)
        assert log.arrivals.tolist() == since
        assert log.services.tolist() == [500_000_000] * 3
    days = Workload.from_log(np.array(["2026-01-01", "2026-01-03"], "M8[D]"), pd.Series(pd.to_timedelta([1, 2], "s")))
    assert (days.arrivals[1], days.services.tolist()) == (2 * 86_400 * 10**9, [10**9, 2 * 10**9])
    assert len(Workload.from_log(moments[:0], half)) == 0


@pytest.mark.parametrize(
    "groups", [pa.array(["a", None]), pd.Series(["a", None], dtype="string"), ["a", math.nan], [b"a", None], [1, 2]]
)
def test_only_none_is_no_group(groups: Any) -> None:
    """The null of a column is another object, which was a group of all messages without one."""
    workload = Workload.from_log([0, 1], 0.001, groups=groups)
    with pytest.raises(InvalidMessageError, match=r"JMSXGroupID = .*: must be a string; None has no group"):
        simulate(workload, (SimulatedConsumer("c"),))
    given = Workload.from_log([0, 1], 0.001, groups=["a", None])
    assert simulate(given, (SimulatedConsumer("c"),)).summary()["finished"] == 2


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("timestamps", "services", "words"),
    [
        (np.array(["2026-01-01", "NaT"], "M8[s]"), 1, "must be numbers of ms, or moments"),
        (np.array([1.0, np.nan]), 1, "must be numbers of ms, or moments"),
        (np.array([1, 2], "m8[s]"), 1, "must be numbers of ms, or moments"),
        ([1, 2], np.array([1, 2], "M8[s]"), "must be numbers of seconds, or durations"),
        ([1, 2], np.array([1, "NaT"], "m8[s]"), "must be numbers of seconds, or durations"),
        ([0, 86_400 * 10**9], 1, "spread over more than 9223372036 seconds; give milliseconds"),
        (np.array(["1600-01-01", "2026-01-01"], "M8[s]"), 1, "spread over more than 9223372036 seconds"),
    ],
)
def test_a_log_without_a_time_in_each_row_is_refused(timestamps: Any, services: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Workload.from_log(timestamps, services)


def test_misuse_is_refused() -> None:
    queue = Queue()
    with pytest.raises(InvalidMessageError, match="must be in order"):
        QueueRun(queue, [2, 1], [0, 0])
    with pytest.raises(InvalidMessageError, match="one value a message"):
        QueueRun(queue, [1, 2], [0])
    with pytest.raises(InvalidMessageError, match="must not be negative"):
        QueueRun(queue, [1], [-1])
    run = QueueRun(queue, [1], [1])
    with pytest.raises(InvalidMessageError, match="one answer a message"):
        run.add_consumer(mask=RowMask(np.array([True, False])))
    with pytest.raises(InvalidMessageError, match=r"threads = 0 \(int\): must be 1 or more"):
        run.add_consumer(threads=0)
    for factor in (-1.0, 1e300, 2.0**63, float("nan"), float("inf")):
        with pytest.raises(InvalidMessageError, match=re.escape(f"factor = {factor!r} (float): must not be negative")):
            run.add_consumer(factor=factor)
    assert run.utilisation() == {}
    with pytest.raises(InvalidMessageError, match=r"factor = 1e\+300"):
        run.set_factor(run.add_consumer(factor=2.0**62), 1e300)
    with pytest.raises(IllegalStateError, match="is not in this run"):
        run.kill(77)
    run.run(5)
    with pytest.raises(ValueError, match="does not go back"):
        run.run(4)
    with pytest.raises(ValueError, match="must rise"):
        Workload.from_log([2, 1], 0.1)
    with pytest.raises(ValueError, match="exponential, constant or lognormal"):
        draw(np.random.default_rng(), "normal", 1, 1)  # type: ignore[arg-type]


def test_what_would_end_behind_the_end_of_time_never_ends() -> None:
    longest = 2**62
    run = QueueRun(Queue(), [longest, longest, longest], [longest, longest - 1024, longest - 1024])
    consumer = run.add_consumer(threads=3)
    assert run.run() == 2**63 - 1024
    run._check()
    assert run.finished.tolist() == [-1, 2**63 - 1024, 2**63 - 1024]
    assert run.utilisation() == {consumer: (2**63 - 1, 2)}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda some: Workload.from_rate("a", 1, 1), "Workload.from_rate.rate='a': must be a number"),
        (lambda some: Workload.from_rate(float("nan"), 1, 1), "Workload.from_rate.rate=nan: must be a number"),
        (lambda some: Workload.from_rate(1, 1, 1, seed=-1), r"from_rate.seed=-1: is out of range; allowed: 0 to inf"),
        (
            lambda some: Workload.from_log([1], [float("nan")]),
            r"from_log.services=\[nan\]: must be seconds from 0 to 9223372036",
        ),
        (lambda some: simulate(5, []), "simulate.workload=5: must be a Workload"),
        (lambda some: simulate(some, "ab"), "simulate.consumers='ab': must be a list of which each is a Simulated"),
        (lambda some: simulate(some, ["a"]), r"simulate.consumers\[0\]='a': must be a SimulatedConsumer"),
        (lambda some: simulate(some, [], until="5"), "simulate.until='5': must be a number or None"),
        (
            lambda some: simulate(some, [], until=float("inf")),
            "until=inf: is out of range; allowed: 0 to 9223372036",
        ),
        (
            lambda some: simulate(some, [SimulatedConsumer("c", joins_at=1e10)]),
            "SimulatedConsumer.joins_at=10000000000.0: is out of range; allowed: 0 to 9223372036",
        ),
        (lambda some: Workload.from_rate(0, 1, 1), "Workload.from_rate.rate=0: is out of range; allowed: 1e-09 to"),
        (
            lambda some: Workload.from_rate(1e-9, 1, 50, arrivals="constant"),
            "rate=1e-09: spreads 50 messages over more",
        ),
        (lambda some: Workload.from_log(["a"], 1), r"from_log.timestamps=\['a'\]: must be numbers"),
        (lambda some: Workload.from_log([1, 2], [1, 2, 3]), "services=.*: must be one number, or one for each of 2"),
        (lambda some: Workload(None, None), "Workload.arrivals=None: must be whole numbers of ns"),
        (lambda some: Workload([0.5], [1]), r"Workload.arrivals=\[0.5\]: must be whole numbers of ns"),
        (lambda some: Workload([-5], [1]), "Workload.arrivals=.*-5.*: must be from the start of the run on"),
        (lambda some: SimulatedConsumer(""), "SimulatedConsumer.name='': is empty"),
        (lambda some: SimulatedConsumer("c", "a ="), "the selector ends too early"),
        (
            lambda some: SimulatedConsumer("c", prefetch=-(2**31) - 1),
            "SimulatedConsumer.prefetch=-2147483649: is out of range; allowed: -2147483648 to",
        ),
        (lambda some: SimulatedConsumer("c", prefetch=0), "prefetch=0: makes a consumer pull, which is not simulated"),
        (
            lambda some: Variant("v", (SimulatedConsumer("c"),), Policy("q", queue_prefetch=0)),
            "Variant.policy.queue_prefetch=0: makes a consumer pull, which is not simulated; give 1 or more",
        ),
        (
            lambda some: SimulatedConsumer("c", threads=2**40),
            "SimulatedConsumer.threads=1099511627776: is out of range",
        ),
        (lambda some: SimulatedConsumer("c", priority=200), "SimulatedConsumer.priority=200: is out of range"),
        (lambda some: SimulatedConsumer("c", factor=-1.0), "SimulatedConsumer.factor=-1.0: is out of range"),
        (lambda some: SimulatedConsumer("c", leaves_at=5, breaks_at=6), "breaks_at=6: stands beside leaves_at"),
        (lambda some: SimulatedConsumer("c", leaves_at=5, dies_at=6), "dies_at=6: is after it has gone, at 5"),
        (lambda some: SimulatedConsumer("c", slows=[[5, -1]]), r"slows\[0\]\[1\]=-1: is out of range"),
        (
            lambda some: Variant("v", (SimulatedConsumer("c"), SimulatedConsumer("c"))),
            r"Variant.consumers\[1\].name='c': is already used by Variant.consumers\[0\]",
        ),
        (
            lambda some: compare(some, [Variant("v", ()), Variant("v", ())]),
            r"compare.variants\[1\].name='v': is already",
        ),
        (lambda some: simulate(some, [], until=-1), "until=-1: is out of range"),
        (lambda some: compare(some, ["x"]), r"compare.variants\[0\]='x': must be a Playable"),
        (lambda some: SimulatedConsumer("c", threads="5"), "SimulatedConsumer.threads='5': must be a whole number"),
        (lambda some: SimulatedConsumer("c", slows={60: 4.0}), "slows={60: 4.0}: must be a list of which each is "),
        (lambda some: Variant("v", "ab"), "Variant.consumers='ab': must be a list"),
    ],
)
def test_what_cannot_be_played_is_named_at_once(call, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=words):
        call(Workload.from_rate(100, 0.01, 5))
