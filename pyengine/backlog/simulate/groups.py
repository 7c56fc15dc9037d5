"""What if, for a RocketMQ consumer group: pulling, flow control, threads, retries and rebalances under virtual time.

Nothing here decides: the rules are the push consumer's own (engine rooms process_queue, pull, consume_concurrently,
rebalance, delay) and its allocation strategies. Times are seconds at this door.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyengine._engine.rocketmq.broker.consume_lag import delay
from pyengine._engine.rocketmq.client.validators import RANGES
from pyengine._engine.rocketmq.commands import defaults
from pyengine._engine.simulation.group_simulation import PullRun
from pyengine.attributes import named_arguments
from pyengine.backlog.findings import Said, say
from pyengine.backlog.simulate.lifetimes import INT32, LONGEST, MOST_QUEUES, check_life, refuse_beyond, refuse_twice
from pyengine.backlog.simulate.queues import NS, Script, Simulation, Workload
from pyengine.dataclass import dataclass
from pyengine.errors import InvalidMessageError
from pyengine.rocketmq.consumer.parameters import java_name
from pyengine.rocketmq.tables.allocation import MessageQueue, Strategy, named_strategy, sort_client_ids, sort_queues
from pyengine.topology.checked import Checked, check_arguments, refuse_if
from pyengine.topology.limits import Problem

BROKER = "broker"
# By RocketMQ's names: lowest, highest, and the value beside them that switches a limit off.
_RANGES = {
    **{name: (low, high, off) for name, low, high, off in RANGES},
    "maxReconsumeTimes": (0, INT32, -1),
    "consumeTimeout": (1, INT32, None),
}


def parameter_problem(name: str, value: int) -> Problem | None:
    """Of a client's parameter: a real consumer does not start with one that is out of its range."""
    low, high, off = _RANGES["consumeThreadMin" if name == "threads" else java_name(name)]
    if value == off or low <= value <= high:
        return None
    return "is out of range", f"allowed: {low} to {high}" + ("" if off is None else f", or {off}")


@named_arguments
@dataclass(frozen=True, slots=True)
class SimulatedClient(Checked):
    """A push consumer that consumes concurrently, in clustering. Times are seconds from the start.

    threads: consumeThreadMin. The parameters have RocketMQ's names, defaults and units. factor: its work takes so many
    times as long. joins_at 0: it was there before. leaves_at (shuts down), dies_at (stays connected, its listeners
    return no more), breaks_at (killed: offsets not yet written are lost). slows: (at, factor).
    """

    name: str
    threads: int = defaults.CONSUME_THREADS
    pull_batch_size: int = defaults.PULL_BATCH_SIZE
    pull_interval: int = 0
    consume_message_batch_max_size: int = defaults.CONSUME_MESSAGE_BATCH_MAX_SIZE
    pull_threshold_for_queue: int = defaults.PULL_THRESHOLD_FOR_QUEUE
    pull_threshold_size_for_queue: int = defaults.PULL_THRESHOLD_SIZE_FOR_QUEUE
    consume_concurrently_max_span: int = defaults.CONSUME_CONCURRENTLY_MAX_SPAN
    pull_threshold_for_topic: int = -1
    pull_threshold_size_for_topic: int = -1
    max_reconsume_times: int = -1
    consume_timeout: int = defaults.CONSUME_TIMEOUT
    factor: float = 1.0
    joins_at: float = 0.0
    leaves_at: float | None = None
    dies_at: float | None = None
    breaks_at: float | None = None
    slows: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        check_life("SimulatedClient", self)
        for name, value in self.parameters.items():
            if name != "factor":
                refuse_if(f"SimulatedClient.{name}", value, parameter_problem(name, value))

    @property
    def parameters(self) -> dict[str, Any]:
        """What the core's client takes."""
        names = ("threads", "pull_batch_size", "pull_interval", "consume_message_batch_max_size",
                 "pull_threshold_for_queue", "pull_threshold_size_for_queue", "consume_concurrently_max_span",
                 "pull_threshold_for_topic", "pull_threshold_size_for_topic", "max_reconsume_times", "consume_timeout",
                 "factor")  # fmt: skip
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, eq=False)
class GroupSimulation(Simulation):
    """What happened. flow_control: client -> how many pulls each limit held back. queues: label -> (end offset,
    committed offset). dead_letters: rows. rebalances: (second, client, queues it has then) where that changed.
    consumers: the client that began last with a message. stopped: when its listener returned without finishing it.
    """

    flow_control: dict[str, dict[str, int]] = field(default_factory=dict)
    queues: dict[str, tuple[int, int]] = field(default_factory=dict)
    dead_letters: tuple[int, ...] = ()
    rebalances: tuple[tuple[float, str, int], ...] = ()
    stopped: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def _ends_of_work(self) -> NDArray[np.int64]:
        """The same; a listener that failed works on its messages no more either, until they come again."""
        failed = (self.finished < 0) & (self.stopped >= 0)
        still = replace(self, started=np.where(failed, -1, self.started))
        return np.sort(np.concatenate([Simulation._ends_of_work(still), self.stopped[failed]]))

    @property
    def waiting(self) -> int:
        """Messages that have come by the end and are neither finished nor dead letters."""
        left = (self.finished < 0) & (self.workload.arrivals <= self.end)
        left[list(self.dead_letters)] = False
        return int(left.sum())

    def lines(self) -> list[Said]:
        """Of each client the pulls that were held back and by which limit; what was delivered again or given up."""
        lines = [
            say(
                "flow control of {client}: pulls held back {count:,time|times} by count, {size:,} by size, "
                "{span:,} by span",
                client=client,
                **holds,
            )
            for client, holds in self.flow_control.items()
            if any(holds.values())
        ]
        if self.redelivered or self.dead_letters:
            dead = len(self.dead_letters)
            lines.append(
                say(
                    "{again:,delivery|deliveries} again, {dead:,dead letter|dead letters}",
                    again=self.redelivered,
                    dead=dead,
                )
            )
        return lines

    def summary(self) -> dict[str, Any]:
        """As of a queue, and flow control, the Delay of each queue at the end, dead letters and rebalances."""
        return super().summary() | {
            "flow_control": self.flow_control,
            "queues": {name: {"end": end, "committed": at, "delay": delay(end, at)}
                       for name, (end, at) in self.queues.items()},
            "dead_letters": len(self.dead_letters),
            "rebalances": len(self.rebalances),
        }  # fmt: skip


def simulate_group(
    workload: Workload,
    clients: Sequence[SimulatedClient],
    *,
    queues: int = 4,
    strategy: str | Strategy = "AVG",
    round_trip: float = 0.001,
    until: float | None = None,
) -> GroupSimulation:
    """Run one group on one topic. queues: of the topic. round_trip: seconds from a pull to its answer.

    The messages' queues are ``workload.queues``, or taken in turn. until: seconds; None: until every message is
    finished or a dead letter, or no client is left to finish one. Raises AllocationError, InvalidMessageError.
    """
    check_arguments("simulate_group", simulate_group, locals())
    refuse_twice("simulate_group.clients", clients)
    if queues < 1:
        raise InvalidMessageError("queues", queues, "must be 1 or more")
    chosen = named_strategy(strategy)
    topic = [MessageQueue("topic", BROKER, number) for number in range(queues)]
    retry = [MessageQueue("%RETRY%group", BROKER, 0)]
    plans: dict[tuple[str, tuple[str, ...], bool], list[MessageQueue]] = {}

    def allocate(name: str, names: list[str], of_retry: bool) -> list[MessageQueue]:
        key = (name, tuple(names), of_retry)
        if key not in plans:
            every = sort_queues(retry if of_retry else topic)
            plans[key] = chosen.allocate("group", name, every, sort_client_ids(names))
        return plans[key]

    rows = len(workload)
    run = PullRun(
        "group",
        topic + retry,
        allocate,
        workload.arrivals,
        workload.services,
        np.arange(rows, dtype=np.int32) % queues if workload.queues is None else workload.queues,
        failures=workload.failures,
        sizes=workload.sizes,
        round_trip=int(round_trip * NS),
    )
    script = Script()
    for each in clients:
        if each.joins_at <= 0:
            run.join(each.name, at_once=True, **each.parameters)
        else:
            script.at(each.joins_at, partial(run.join, each.name, **each.parameters))
        for at, factor in each.slows:
            script.at(at, partial(run.set_factor, each.name, factor))
        script.at(each.dies_at, partial(run.kill, each.name))
        script.at(each.leaves_at, partial(run.leave, each.name))
        script.at(each.breaks_at, partial(run.leave, each.name, lost=True))
    run.settle()
    end = script.play(run, until)
    left = run.finished < 0
    left[run.dead] = False
    if until is not None:  # what no pull can have brought yet, or is in work, may be finished later
        left &= (workload.arrivals <= end - int(round_trip * NS)) & (run.started < 0)
    kept = int(left.sum())
    members = run.members_seen()
    none = np.full(rows, -1, np.int64)
    ends = {each.name: [each.dies_at, each.leaves_at, each.breaks_at] for each in clients}
    gone = {name: int(min(last) * NS) for name, each in ends.items() if (last := [at for at in each if at is not None])}
    return GroupSimulation(
        workload, dict(enumerate(name for name, *_ in members)), end, run.workers, none, run.started, run.finished,
        run.deliveries, {name: (work / NS, finished) for name, work, finished, *_ in members},
        {"not_consumed": kept} if kept else {}, 0, gone,
        stopped=run.stopped,
        flow_control={name: {"count": count, "size": size, "span": span} for name, _, _, count, size, span in members},
        queues={f"{queue.topic}/{queue.queue_id}": (last, at) for queue, last, at in run.offsets()},
        dead_letters=tuple(run.dead),
        rebalances=tuple((at / NS, name, count) for at, name, count in run.moments),
    )  # fmt: skip


@named_arguments
@dataclass(frozen=True, slots=True)
class GroupVariant(Checked):
    """One answer to "what if" for a group: clients, queues and an allocation strategy, under a name."""

    name: str
    clients: tuple[SimulatedClient, ...]
    queues: int = 4
    strategy: str | Strategy = "AVG"
    round_trip: float = 0.001

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        refuse_twice("GroupVariant.clients", self.clients)
        refuse_beyond("GroupVariant.queues", self.queues, 1, MOST_QUEUES)
        refuse_beyond("GroupVariant.round_trip", self.round_trip, 0, LONGEST)

    def with_clients(self, copies: int) -> GroupVariant:
        """The first client so many times, the others as they are."""
        first = self.clients[0]
        more = tuple(replace(first, name=f"{first.name}-{number + 1}") for number in range(copies))
        return replace(self, clients=more + self.clients[1:])

    def play(self, workload: Workload, until: float | None = None) -> GroupSimulation:
        """The workload under this variant."""
        return simulate_group(
            workload,
            self.clients,
            queues=self.queues,
            strategy=self.strategy,
            round_trip=self.round_trip,
            until=until,
        )
