"""``pyengine allocate``: topics and clients in, the plan of each strategy out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from os.path import basename, isfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from pyengine.backlog.diagnosis.evidence.opening import STDIN, open_whole
from pyengine.cli.tables import Table, plain, show_line, show_table
from pyengine.dataclass import dataclass
from pyengine.errors import AllocationError, ConfigurationError, counted, did_you_mean
from pyengine.rocketmq import (
    AllocateMachineRoomNearby,
    AllocateMessageQueueByMachineRoom,
    AllocateMessageQueueConsistentHash,
    AllocationPlan,
    MessageQueue,
    Move,
    allocate_topics,
)
from pyengine.rocketmq.broker.topic_list import queues_in, read_queues
from pyengine.rocketmq.tables.allocation import Strategy, named_strategy

SHOWN = 20
NEARBY = "MACHINE_ROOM_NEARBY"


@dataclass(frozen=True, slots=True)
class Options:
    """What the strategies and the question need in addition to queues and clients."""

    brokers: Sequence[str]
    rooms: Sequence[str]
    room_mark: str
    virtual_nodes: int
    join: Sequence[str]
    leave: Sequence[str]


@dataclass(frozen=True, slots=True)
class RoomsByName:
    """A broker or client is in the room whose name stands before the first ``mark`` in its own name.

    Raises ConfigurationError for a name without a room.
    """

    mark: str

    def broker_deploy_in(self, queue: MessageQueue) -> str:
        """The room of a queue's broker."""
        return self.consumer_deploy_in(queue.broker_name)

    def consumer_deploy_in(self, client_id: str) -> str:
        """The room of a client."""
        room, mark, _ = client_id.partition(self.mark)
        if not mark or not room:
            hint = f"begin the names of brokers and clients with their room, as in hz{self.mark}a, or give another mark"
            raise ConfigurationError("--room-mark", self.mark, f"ends no room in {client_id!r}", hint)
        return room


@dataclass(frozen=True, slots=True)
class Answer:
    """The plan of one strategy; with a change of the clients also the plan after it and what moves."""

    plan: AllocationPlan
    after: AllocationPlan | None
    moves: list[Move]

    @property
    def plans(self) -> list[tuple[str, AllocationPlan]]:
        """The plans with the moment of each."""
        return [("now", self.plan)] if self.after is None else [("now", self.plan), ("then", self.after)]

    @property
    def leaves_queues(self) -> bool:
        """A queue has no owner, now or then: what is sent there is not consumed."""
        return any(plan.skew().orphans for _, plan in self.plans)


def items(text: str) -> list[str]:
    """The parts between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def items_or_file(text: str) -> list[str]:
    """The parts between commas, or the lines of a file of that name. Raises InvalidSourceError for a path of none."""
    path = text.endswith(".txt") or (basename(text) != text and "@" not in text)  # every client's id has an @
    if "," in text or not (path or isfile(text)):
        return items(text)
    return [line.strip() for line in open_whole(text).text.splitlines() if line.strip()]


def ask(topics: str | Path, clients: Sequence[str], strategies: Sequence[str], options: Options) -> list[Answer]:
    """The answer of each strategy. topics: a file, or ``-`` for standard input.

    Raises InvalidSourceError, ConfigurationError, AllocationError.
    """
    if not clients:
        raise ConfigurationError("--clients", "", "names no client", "give ids with commas, or a file with one a line")
    if set(clients) | set(options.join) <= set(options.leave):
        raise ConfigurationError("--leave", ",".join(options.leave), "leaves no client", "let one stay")
    if topics == "-":
        queues = queues_in(open_whole(topics).text, STDIN, options.brokers)
    else:
        queues = read_queues(topics, options.brokers)
    answers = []
    for name in strategies:
        plan = allocate_topics(_strategy(name, options), queues, clients)
        after = None
        if options.join or options.leave:
            gone = set(options.leave)
            after = plan.with_clients(options.join).without_clients(gone) if gone else plan.with_clients(options.join)
        answers.append(Answer(plan, after, [] if after is None else plan.moves(after)))
    return answers


def as_dict(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """The JSON document: one object a strategy."""
    found: list[dict[str, Any]] = []
    for answer in answers:
        entry: dict[str, Any] = {
            "strategy": answer.plan.strategy.name,
            "skew": answer.plan.skew()._asdict(),
            "clients": {client_id: answer.plan.of(client_id) for client_id in answer.plan.client_ids},
        }
        if answer.after is not None:
            entry["after"] = {
                "skew": answer.after.skew()._asdict(),
                "moved": len(answer.moves),
                "moves": [move._asdict() for move in answer.moves],
            }
        found.append(entry)
    return found


def show(answers: Sequence[Answer], console: Console) -> None:
    """One table of all strategies, and the clients' loads of a single one."""
    table = Table()
    table.add_column("strategy", overflow="fold")
    for heading in ("when", "clients", "fewest", "most", "most/mean", "idle", "moved"):
        table.add_column(heading)
    for answer in answers:
        for when, plan in answer.plans:
            skew = plan.skew()
            table.add_row(
                plan.strategy.name, when, str(len(plan.client_ids)), str(skew.fewest),
                str(skew.most), f"{skew.ratio:.2f}", str(skew.idle),
                str(len(answer.moves)) if plan is answer.after else "",
            )  # fmt: skip
    show_table(table, console)
    for answer in answers:
        for when, plan in answer.plans:
            if orphans := plan.skew().orphans:
                belong = f"{counted(orphans, 'queue belongs', 'queues belong')} to nobody"
                if twice := [each for each, count in Counter(plan.client_ids).items() if count > 1]:
                    belong += f"; there more than once: {', '.join(twice[:3])}"
                show_line(f"{plan.strategy.name}, {when}: {belong}", console)
    if len(answers) == 1:
        _show_plan(answers[0], console)


def _show_plan(answer: Answer, console: Console) -> None:
    loads = Table()
    loads.add_column("client", overflow="fold")
    for heading in ("queues", "most of one topic"):
        loads.add_column(heading)
    for load in answer.plan.loads()[:SHOWN]:
        loads.add_row(Text(load.client_id), str(load.queues), str(load.most_of_one_topic))
    show_table(loads, console)
    _and_more(len(answer.plan.client_ids), "clients", console)
    for move in answer.moves[:SHOWN]:
        queue = f"{move.queue.topic} {move.queue.broker_name} {move.queue.queue_id}"
        console.print(plain(f"{queue}: {move.before or 'nobody'} -> {move.after or 'nobody'}"), soft_wrap=True)
    _and_more(len(answer.moves), "moves", console)


def _and_more(count: int, what: str, console: Console) -> None:
    if count > SHOWN:
        console.print(f"... {count - SHOWN} more {what}; --json has all", highlight=False)


def _strategy(name: str, options: Options) -> Strategy:
    if name == "CONSISTENT_HASH":
        return AllocateMessageQueueConsistentHash(options.virtual_nodes)
    if name == "MACHINE_ROOM":
        if not options.rooms:
            hint = "MACHINE_ROOM shares the queues of brokers named ROOM@NAME: --rooms hz,sh"
            raise ConfigurationError("--rooms", "", "names no room", hint)
        return AllocateMessageQueueByMachineRoom(frozenset(options.rooms))
    if name == NEARBY or name.startswith(NEARBY + "-"):
        if not options.room_mark:
            raise ConfigurationError("--room-mark", "", "is empty", "give what ends the room in names, as - in hz-a")
        inner = name.removeprefix(NEARBY).removeprefix("-") or "AVG"
        return AllocateMachineRoomNearby(_strategy(inner, options), RoomsByName(options.room_mark))
    if name in ("AVG", "AVG_BY_CIRCLE"):
        return named_strategy(name)
    known = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM", NEARBY)  # CONFIG needs a list of queues
    raise AllocationError("strategy", name, f"there is no allocation strategy {name!r}; {did_you_mean(name, known)}")
