"""What if: the queue's own rules under virtual time, for arrivals, service times and consumers that need not exist.

Nothing here decides who gets what: that is the core's queue, the one that the broker and Spark drive. Times are seconds
at this door, nanoseconds inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyengine import Selector
from pyengine._engine.activemq.queue.batches import headers_now
from pyengine._engine.activemq.queue.queue import Queue
from pyengine._engine.matching.consumer_filter import reads_changing
from pyengine._engine.simulation.queue_simulation import QueueRun, RowMask
from pyengine.activemq.core_settings import queue_settings
from pyengine.attributes import named_arguments
from pyengine.backlog.findings import Said
from pyengine.backlog.simulate.lifetimes import INT32, LONGEST, check_life, refuse_beyond, refuse_twice
from pyengine.backlog.tables.rows import required_pyarrow
from pyengine.dataclass import dataclass
from pyengine.errors import ConfigurationError, counted, shown
from pyengine.topology import Policy
from pyengine.topology.checked import Checked, check_arguments, check_selector, refuse_if
from pyengine.topology.limits import Problem
from pyengine.topology.policy import CLIENT_QUEUE_PREFETCH

NS = 1_000_000_000
Distribution = Literal["exponential", "constant", "lognormal"]


def draw(rng: np.random.Generator, distribution: Distribution, mean: float, size: int) -> NDArray[np.float64]:
    """``size`` times in seconds with this mean. lognormal: sigma 1, a long tail: one in a hundred takes 6.2 means."""
    if distribution == "constant":
        return np.full(size, mean)
    if distribution == "lognormal":
        return rng.lognormal(np.log(mean) - 0.5, 1.0, size)
    if distribution == "exponential":
        return rng.exponential(mean, size)
    raise ConfigurationError("distribution", shown(distribution), "must be exponential, constant or lognormal")


def _column(
    name: Literal["timestamps", "services"], values: ArrayLike, kind: type[np.generic], times: Literal["M", "m"]
) -> NDArray[Any]:
    """A column of a log: numbers as ``kind``, or numpy's moments ("M") or durations ("m"), as data frames have them."""
    wanted = "must be numbers of ms, or moments" if times == "M" else "must be numbers of seconds, or durations"
    hint = "moments and durations: a column of numpy's, Arrow's or a data frame's, with one in each row"
    try:
        found = np.asarray(values)
        if found.dtype.kind == "O" and getattr(getattr(values, "dtype", None), "kind", "") == times:
            found = np.asarray(values, dtype=f"{times}8[ns]")  # pandas gives moments of a time zone as objects
        if found.dtype.kind in "Mm":
            fits = found.dtype.kind == times and not np.isnat(found).any()
        else:
            fits = found.dtype.kind != "f" or kind is not np.int64 or bool(np.isfinite(found).all())
            found = np.asarray(values, dtype=kind) if fits else found
        if not fits:
            raise ValueError(found.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise ConfigurationError(f"Workload.from_log.{name}", shown(values), wanted, hint) from error
    if found.ndim != 1 and (found.ndim or name == "timestamps"):
        raise ConfigurationError(f"Workload.from_log.{name}", shown(values), "must be a column of numbers")
    return found


@named_arguments
@dataclass(frozen=True, eq=False)
class Workload:
    """Messages to come. arrivals: int64 ns since the start, rising. services: int64 ns of work each.

    properties: what selectors are asked about, anything Selector.mask takes (a dict of numpy arrays, an Arrow table).
    groups: a group (or None) each. priorities 0-9, lifetimes in ms (0: ever). Of a RocketMQ topic: queues, the number
    of each one's message queue (None: in turn); failures, how many of its first deliveries fail; sizes in bytes.
    """

    arrivals: NDArray[np.int64]
    services: NDArray[np.int64]
    properties: Any = field(default_factory=dict)
    groups: Sequence[str | None] | None = None
    priorities: NDArray[np.int32] | None = None
    lifetimes: NDArray[np.int64] | None = None
    queues: NDArray[np.int32] | None = None
    failures: NDArray[np.int32] | None = None
    sizes: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        for name in ("arrivals", "services"):
            times = np.asarray(getattr(self, name))
            if times.ndim != 1 or (times.dtype.kind not in "iu" and len(times)):
                raise ConfigurationError(f"Workload.{name}", shown(getattr(self, name)), "must be whole numbers of ns")
            if len(times) and times[0] < 0:
                raise ConfigurationError(f"Workload.{name}", shown(times[0]), "must be from the start of the run on")
            object.__setattr__(self, name, times.astype(np.int64, copy=False))

    @classmethod
    def from_rate(
        cls,
        rate: float,
        service: float,
        messages: int,
        *,
        arrivals: Distribution = "exponential",
        services: Distribution = "exponential",
        seed: int = 0,
        **columns: Any,
    ) -> Self:
        """``messages`` at ``rate`` a second whose work takes ``service`` seconds on average.

        arrivals, services: how the times between messages, and of the work, are distributed. columns: properties,
        groups, priorities, lifetimes as above. Raises ConfigurationError.
        """
        check_arguments("Workload.from_rate", Workload.from_rate, locals())
        refuse_beyond("Workload.from_rate.rate", rate, 1e-9, 1e9)
        refuse_beyond("Workload.from_rate.service", service, 0, 1e6)
        refuse_beyond("Workload.from_rate.messages", messages, 0, INT32)
        refuse_beyond("Workload.from_rate.seed", seed, 0, float("inf"))
        rng = np.random.default_rng(seed)
        gaps = draw(rng, arrivals, 1 / rate, messages)
        if gaps.sum() > LONGEST:
            problem = f"spreads {counted(messages, 'message')} over more than {LONGEST} seconds"
            raise ConfigurationError("Workload.from_rate.rate", shown(rate), problem, "write a higher one")
        return cls(
            np.cumsum(gaps * NS).astype(np.int64), (draw(rng, services, service, messages) * NS).astype(np.int64),
            **columns,
        )  # fmt: skip

    @classmethod
    def from_log(cls, timestamps: ArrayLike, services: ArrayLike, **columns: Any) -> Self:
        """From a message log. timestamps: ms, or moments, rising. services: seconds, or durations, one or each.

        Moments and durations are columns of numpy's, Arrow's or a data frame's. Raises ConfigurationError.
        """
        stamps = _column("timestamps", timestamps, np.int64, "M")
        if np.any(stamps[1:] < stamps[:-1]):
            hint = "sort the log by time first, with its columns"
            raise ConfigurationError("Workload.from_log.timestamps", shown(timestamps), "must rise", hint)
        moments = stamps.dtype.kind == "M"
        ms = (stamps.astype("M8[ms]") if moments else stamps).astype(np.int64)
        if len(ms) and int(ms[-1]) - int(ms[0]) > LONGEST * 1000:
            problem = f"spread over more than {LONGEST} seconds"
            raise ConfigurationError("Workload.from_log.timestamps", shown(timestamps), problem, "give milliseconds")
        work = _column("services", services, np.float64, "m")
        if work.dtype.kind == "m":
            work = work / np.timedelta64(1, "s")
        if work.shape not in ((), (1,), stamps.shape):
            problem = f"must be one number, or one for each of {len(stamps)} timestamps"
            raise ConfigurationError("Workload.from_log.services", shown(services), problem)
        work = np.broadcast_to(work, stamps.shape)
        if not np.all((work >= 0) & (work <= LONGEST)):
            problem = f"must be seconds from 0 to {LONGEST}"
            raise ConfigurationError("Workload.from_log.services", shown(services), problem)
        since = stamps - stamps[:1]
        arrivals = since.astype("m8[ns]").astype(np.int64) if moments else since * 1_000_000
        return cls(arrivals, (work * NS).astype(np.int64), **columns)

    def __len__(self) -> int:
        return len(self.arrivals)


PULLS: Problem = ("makes a consumer pull, which is not simulated", "give 1 or more")


def pulling(consumers: Sequence[SimulatedConsumer], policy: Policy) -> Problem | None:
    """What is wrong with the prefetch that a policy gives consumers."""
    return None if all(policy.prefetch_of(each.prefetch) for each in consumers) else PULLS


@named_arguments
@dataclass(frozen=True, slots=True)
class SimulatedConsumer(Checked):
    """A consumer and its client. Times are seconds from the start.

    prefetch: 1000 is the client's default, which the queue_prefetch of a policy replaces; below 0: gets nothing.
    threads: how many messages it works on at once. factor: its work takes so many times as long. joins_at, leaves_at
    (closes), dies_at (stays connected and does nothing more), breaks_at (its connection is lost). slows: (at, factor).
    """

    name: str
    selector: str = ""
    prefetch: int = CLIENT_QUEUE_PREFETCH
    threads: int = 1
    priority: int = 0
    exclusive: bool = False
    factor: float = 1.0
    joins_at: float = 0.0
    leaves_at: float | None = None
    dies_at: float | None = None
    breaks_at: float | None = None
    slows: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        check_life("SimulatedConsumer", self)
        refuse_if("SimulatedConsumer.prefetch", self.prefetch, PULLS if self.prefetch == 0 else None)
        refuse_beyond("SimulatedConsumer.prefetch", self.prefetch, -INT32 - 1, INT32)
        refuse_beyond("SimulatedConsumer.threads", self.threads, 1, INT32)
        refuse_beyond("SimulatedConsumer.priority", self.priority, -128, 127)
        check_selector(self)


@dataclass(frozen=True, eq=False)
class Simulation:
    """What happened. Arrays by message, ns, -1 if it did not come to that; see QueueRun. gone: consumer -> the
    moment (ns) from which it works on nothing, although messages may be in its hands."""

    workload: Workload
    names: dict[int, str]
    end: int
    consumers: NDArray[np.int64]
    dispatched: NDArray[np.int64]
    started: NDArray[np.int64]
    finished: NDArray[np.int64]
    deliveries: NDArray[np.int32]
    work: dict[str, tuple[float, int]]
    held: dict[str, int]
    expired: int
    gone: dict[str, int] = field(default_factory=dict)

    @property
    def delays(self) -> NDArray[np.float64]:
        """Seconds from arrival to the start of the work, of the messages that were finished."""
        done = self.finished >= 0
        delays: NDArray[np.float64] = (self.started[done] - self.workload.arrivals[done]) / NS
        return delays

    def backlog(self, times: ArrayLike) -> NDArray[np.int64]:
        """Messages arrived and not finished at each time (seconds); expired ones count until the end."""
        moments = (np.asarray(times, dtype=np.float64) * NS).astype(np.int64)
        arrived = np.searchsorted(self.workload.arrivals, moments, side="right")
        ended = np.sort(self.finished[self.finished >= 0])
        return np.asarray(arrived - np.searchsorted(ended, moments, side="right"), dtype=np.int64)

    @property
    def backlog_max(self) -> int:
        """The largest backlog at any moment: behind one of the arrivals."""
        ended = np.sort(self.finished[self.finished >= 0])
        arrivals = self.workload.arrivals
        arrivals = arrivals[arrivals <= self.end]
        left = np.arange(1, len(arrivals) + 1) - np.searchsorted(ended, arrivals, side="right")
        return int(left.max()) if len(left) else 0

    @property
    def load_max(self) -> int:
        """The most messages in work at any moment: behind one of the starts."""
        begun = np.sort(self.started[self.started >= 0])
        ended = self._ends_of_work()
        busy = np.arange(1, len(begun) + 1) - np.searchsorted(ended, begun, side="right")
        return int(busy.max()) if len(busy) else 0

    @property
    def waiting(self) -> int:
        """Messages that have come by the end and are neither finished nor expired."""
        came = int(np.searchsorted(self.workload.arrivals, self.end, side="right"))
        return came - int((self.finished >= 0).sum()) - self.expired

    @property
    def redelivered(self) -> int:
        """Deliveries of messages that had been delivered before."""
        return int(np.maximum(self.deliveries - 1, 0).sum())

    def load(self, times: ArrayLike) -> NDArray[np.int64]:
        """Messages being worked on at each time (seconds): the load on the systems that the listeners call."""
        moments = (np.asarray(times, dtype=np.float64) * NS).astype(np.int64)
        begun = np.sort(self.started[self.started >= 0])
        ended = self._ends_of_work()
        return np.asarray(
            np.searchsorted(begun, moments, side="right") - np.searchsorted(ended, moments, side="right"),
            dtype=np.int64,
        )

    def _ends_of_work(self) -> NDArray[np.int64]:
        """When messages were worked on no more, rising: they were finished, or their consumer was gone."""
        ends = [self.finished[self.finished >= 0]]
        left = (self.started >= 0) & (self.finished < 0)
        for number, name in self.names.items():
            if name in self.gone:
                begun = self.started[left & (self.consumers == number)]
                ends.append(np.maximum(begun, self.gone[name]))
        return np.sort(np.concatenate(ends))

    def lines(self) -> list[Said]:
        """Sentences about what the numbers do not show; of a queue none."""
        return []

    def last_consume_time(self, times: ArrayLike) -> NDArray[np.float64]:
        """Arrival (seconds) of the newest message of which it and all before are finished, nan where there is none."""
        moments = (np.asarray(times, dtype=np.float64) * NS).astype(np.int64)
        ends = np.where(self.finished < 0, np.iinfo(np.int64).max, self.finished)
        done = np.searchsorted(np.maximum.accumulate(ends), moments, side="right") if len(ends) else moments * 0
        arrivals = np.concatenate([[np.nan], self.workload.arrivals / NS])
        return np.asarray(arrivals[done], dtype=np.float64)

    def summary(self) -> dict[str, Any]:
        """The figures people compare; times in seconds. Percentiles are of the delay before work starts."""
        delays = self.delays
        seconds = self.end / NS
        at = (0.5, 0.95, 0.99)
        quantiles = np.quantile(delays, at) if len(delays) else np.full(3, np.nan)
        return {
            "messages": len(self.workload),
            "finished": int((self.finished >= 0).sum()),
            "seconds": seconds,
            "delay_mean": float(delays.mean()) if len(delays) else None,
            **{
                f"delay_p{round(100 * q)}": float(v) if len(delays) else None
                for q, v in zip(at, quantiles, strict=True)
            },
            "backlog_max": self.backlog_max,
            "backlog_end": self.waiting,
            "load_max": self.load_max,
            "redelivered": self.redelivered,
            "expired": self.expired,
            "held": self.held,
            "consumers": {
                name: {"finished": finished, "busy": work / seconds if seconds else 0.0}
                for name, (work, finished) in self.work.items()
            },
        }


class Run(Protocol):
    """A run of the core."""

    @property
    def now(self) -> int: ...
    def run(self, until: int | None = None) -> int: ...


def _in_time(what: str, second: float) -> None:
    refuse_beyond(what, second, 0, LONGEST)


class Script:
    """What happens to a run from outside, and when."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, Callable[[], object]]] = []

    def at(self, second: float | None, action: Callable[[], object]) -> None:
        """Do this at a second; None: never. What is due at one moment is done in the order of these calls."""
        if second is not None:
            _in_time("an event", second)
            self._entries.append((second, len(self._entries), action))

    def play(self, run: Run, until: float | None) -> int:
        """Run with everything in between, to the end; the time (ns) it is then."""
        if until is not None:
            _in_time("until", until)
        for second, _, action in sorted(self._entries, key=lambda entry: entry[:2]):
            if until is not None and second > until:
                break
            run.run(max(run.now, int(second * NS)))
            action()
        return run.run(None if until is None else max(run.now, int(until * NS)))


class _Changing:
    """A selector that reads what changes while a message waits. answers: of each row as it arrives."""

    def __init__(self, selector: str, workload: Workload, answers: NDArray[np.bool_]) -> None:
        self.selector = selector
        self.answers = answers
        pa = required_pyarrow()
        names = Selector(selector).names
        given = workload.properties
        if isinstance(given, Mapping):
            given = pa.table({name: pa.array(np.ma.asanyarray(given[name])) for name in names if name in given})
        else:
            if isinstance(columns := getattr(given, "columns", None), Iterable) and not hasattr(given, "schema"):
                given = given[[name for name in columns if name in names]]
            given = pa.table(given)
            given = given.select([name for name in given.column_names if name in names])
        rows = pa.table({"__row": np.arange(len(workload))})
        for name in given.column_names:
            rows = rows.append_column(name, given.column(name))
        self.rows = rows

    def now(
        self, rows: NDArray[np.int64], redeliveries: NDArray[np.int32], group_first: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Its answers where these rows have come back so often, or were the first of a group, and the others not."""
        from pyengine.activemq.tables.current_headers import truth_now  # with pyarrow

        found = self.answers.copy()
        found[rows] = truth_now(self.selector, self.rows.take(rows), redeliveries, group_first) == 1
        return found


def simulate(
    workload: Workload,
    consumers: Sequence[SimulatedConsumer],
    policy: Policy | None = None,
    *,
    until: float | None = None,
) -> Simulation:
    """Run one queue. until: seconds; None: until nothing more happens.

    Raises InvalidSelectorError, and what the core raises for columns that do not fit.
    """
    check_arguments("simulate", simulate, locals())
    refuse_twice("simulate.consumers", consumers)
    policy = policy or Policy("")
    refuse_if("simulate.policy.queue_prefetch", policy.queue_prefetch, pulling(consumers, policy))
    queue = Queue(**queue_settings(policy))
    run = QueueRun(
        queue,
        workload.arrivals,
        workload.services,
        groups=None if workload.groups is None else queue.intern_groups(workload.groups),
        priorities=workload.priorities,
        lifetimes=workload.lifetimes,
        expire_messages_period=policy.expire_messages_period,
        max_expire_page_size=policy.max_expire_page_size,
    )
    masks = {
        text: RowMask(Selector(text).mask(workload.properties))
        for text in dict.fromkeys(each.selector for each in consumers)
        if text
    }
    names: dict[int, str] = {}
    ids: dict[str, int] = {}

    changing = {
        text: _Changing(text, workload, mask.rows) for text, mask in masks.items() if reads_changing(Selector(text))
    }
    selectors = {each.name: each.selector for each in consumers}

    def join(each: SimulatedConsumer) -> None:
        mask = masks.get(each.selector)
        if each.selector in changing:
            _, rows, _, redeliveries, group_first = headers_now([queue])
            mask = RowMask(changing[each.selector].now(rows, redeliveries, group_first))
        ids[each.name] = run.add_consumer(
            mask=mask,
            threads=each.threads,
            factor=each.factor,
            prefetch=policy.prefetch_of(each.prefetch),
            priority=each.priority,
            exclusive=each.exclusive,
        )
        names[ids[each.name]] = each.name

    def slow(name: str, factor: float) -> None:
        run.set_factor(ids[name], factor)

    def kill(name: str) -> None:
        run.kill(ids[name])

    def remove(name: str, *, lost: bool = False) -> None:
        gone = ids.pop(name)
        matching: dict[int, list[int]] | None = None
        if changing:
            _, rows, holders, redeliveries, group_first = headers_now([queue])
            held = holders == gone
            back = rows[held]
            answers = {
                text: back[each.now(back, redeliveries[held] + lost, group_first[held])[back]].tolist()
                for text, each in changing.items()
            }
            matching = {
                queue.predicate_of(id): answers[selectors[other]]
                for other, id in ids.items()
                if selectors[other] in changing
            }
        run.remove_consumer(gone, lost=lost, matching=matching)

    script = Script()
    for each in consumers:
        if each.joins_at <= 0:
            join(each)
        else:
            script.at(each.joins_at, partial(join, each))
        for at, factor in each.slows:
            script.at(at, partial(slow, each.name, factor))
        script.at(each.dies_at, partial(kill, each.name))
        script.at(each.leaves_at, partial(remove, each.name))
        script.at(each.breaks_at, partial(remove, each.name, lost=True))
    end = script.play(run, until)
    expired = sum(1 for entry in queue.take_removed() if entry[1] == "expired")
    work = {names[each]: (busy / NS, finished) for each, (busy, finished) in run.utilisation().items()}
    held = {reason.name.lower(): total for reason, total in queue.hold_counts().items() if total}
    # What is neither held, gone nor done is with a consumer; if nothing more happens, it stays there.
    kept = len(workload) - int((run.finished >= 0).sum()) - expired - sum(held.values())
    if until is None and kept:
        held["consumer_stopped"] = kept
    return Simulation(
        workload, names, end, run.consumers, run.dispatched, run.started, run.finished, run.deliveries, work, held,
        expired, {each.name: int(each.dies_at * NS) for each in consumers if each.dies_at is not None},
    )  # fmt: skip


@named_arguments
@dataclass(frozen=True, slots=True)
class Variant(Checked):
    """One answer to "what if": consumers and a policy, under a name."""

    name: str
    consumers: tuple[SimulatedConsumer, ...]
    policy: Policy = field(default_factory=lambda: Policy(""))

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        refuse_twice("Variant.consumers", self.consumers)
        wrong = pulling(self.consumers, self.policy)
        refuse_if("Variant.policy.queue_prefetch", self.policy.queue_prefetch, wrong)

    def with_consumers(self, copies: int) -> Variant:
        """The first consumer so many times, the others as they are."""
        first = self.consumers[0]
        more = tuple(replace(first, name=f"{first.name}-{n + 1}") for n in range(copies))
        return replace(self, consumers=more + self.consumers[1:])

    def play(self, workload: Workload, until: float | None = None) -> Simulation:
        """The workload under this variant."""
        return simulate(workload, self.consumers, self.policy, until=until)


@runtime_checkable
class Playable(Protocol):
    """A variant: of a queue, or of a group (GroupVariant)."""

    @property
    def name(self) -> str: ...
    def play(self, workload: Workload, until: float | None = None) -> Simulation: ...


def compare(
    workload: Workload, variants: Sequence[Playable], *, until: float | None = None
) -> dict[str, dict[str, Any]]:
    """``{variant: summary}`` of the same messages under each variant."""
    check_arguments("compare", compare, locals())
    refuse_twice("compare.variants", variants)
    return {variant.name: variant.play(workload, until).summary() for variant in variants}


__all__ = ["SimulatedConsumer", "Simulation", "Variant", "Workload", "compare", "draw", "simulate"]
