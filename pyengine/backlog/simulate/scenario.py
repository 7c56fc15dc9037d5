"""A question in TOML: what comes in, and which variants of consumers and policy to compare. See docs/simulate.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from pyengine.backlog.simulate.groups import GroupVariant, SimulatedClient, parameter_problem
from pyengine.backlog.simulate.lifetimes import INT32, LONGEST, MOST_QUEUES, SLOWEST, TIMES, life_problem
from pyengine.backlog.simulate.queues import PULLS, Distribution, SimulatedConsumer, Variant, Workload, pulling
from pyengine.dataclass import dataclass
from pyengine.errors import AllocationError, counted
from pyengine.rocketmq.tables.allocation import named_strategy
from pyengine.topology import Policy
from pyengine.topology.policy_tables import read_policy
from pyengine.topology.table import Table, read_text, refuse_twice, root_table

DISTRIBUTIONS = ("exponential", "constant", "lognormal")
WORKLOAD = (
    "rate",
    "service",
    "messages",
    "arrivals",
    "services",
    "seed",
    "groups",
    "priorities",
    "lifetime",
    "failing",
    "failures",
    "size",
    "property",
)
CONSUMER = tuple(each.name for each in fields(SimulatedConsumer) if each.name != "slows")
CLIENT = tuple(each.name for each in fields(SimulatedClient) if each.name != "slows")
CLIENT_NUMBERS = tuple(each.name for each in fields(SimulatedClient) if type(each.default) is int)
HEAVIEST = 1e9  # weight of a property's value


@dataclass(frozen=True, eq=False)
class Scenario:
    """What was read. until: seconds, None: until nothing more happens."""

    title: str
    workload: Workload
    variants: tuple[Variant | GroupVariant, ...]
    until: float | None = None


def load(path: str | Path) -> Scenario:
    """Read a TOML file. Raises InvalidTopologyError with file, line, key, value and what to do."""
    return parse(read_text(path), str(path))


def parse(text: str, file: str = "") -> Scenario:
    """Read TOML text. Raises InvalidTopologyError."""
    root = root_table(text, file)
    root.only(("title", "until", "workload", "variant"))
    tables = root.tables("variant")
    if not tables:
        root.refuse("", "has no [[variant]]", "add one with a name and its [[variant.consumer]] tables")
    variants = tuple(_variant(table) for table in tables)
    refuse_twice(root, "variant", [variant.name for variant in variants], "name")
    until = _seconds(root, "until") if "until" in root.values else None
    return Scenario(root.text("title"), _workload(root.table("workload", required=True)), variants, until)


def _seconds(table: Table, key: str) -> float:
    value = table.number(key, 0.0)
    if value < 0:
        table.refuse(key, "is negative", "seconds, 0 or more")
    if value > LONGEST:
        table.refuse(key, "is out of range", f"seconds, at most {LONGEST:g}")
    return value


def _factor(table: Table, key: str) -> float:
    value = table.number(key, 1.0)
    if not 0 <= value <= SLOWEST:
        table.refuse(key, "is out of range", "how many times as long its work takes: 0 to 1e6")
    return value


def _positive(table: Table, key: str) -> float:
    if key not in table.values:
        table.refuse("", f"needs {key}", f"write {key} = 0.05")
    value = table.number(key, 0.0)
    if value <= 0:
        table.refuse(key, "must be positive", f"write {key} = 0.05")
    if not 1e-9 <= value <= 1e9:
        table.refuse(key, "is out of range", "allowed: 1e-9 to 1e9")
    return value


def _workload(table: Table) -> Workload:
    table.only(WORKLOAD)
    messages = table.integer("messages", 10_000, 1, 100_000_000)
    seed = table.integer("seed", 0, 0)
    rng = np.random.default_rng(seed + 1)
    columns: dict[str, Any] = {"properties": dict(_properties(table.table("property"), rng, messages))}
    rate, service = _positive(table, "rate"), _positive(table, "service")
    if messages / rate > LONGEST:
        table.refuse(
            "rate", f"spreads {counted(messages, 'message')} over more than {LONGEST:g} seconds", "write a higher one"
        )
    if count := table.integer("groups", 0, 0, INT32):
        columns["groups"] = [f"g{number}" for number in rng.integers(0, count, messages)]
    if table.flag("priorities", False):
        columns["priorities"] = rng.integers(0, 10, messages).astype(np.int32)
    if "lifetime" in table.values and (lifetime := _seconds(table, "lifetime")):
        if lifetime < 0.001:  # as none it would be for ever
            table.refuse("lifetime", "is less than a millisecond", "write 0.001 or more, or 0 for ever")
        columns["lifetimes"] = np.full(messages, int(lifetime * 1000), np.int64)
    if failing := table.number("failing", 0.0):
        if not 0 < failing <= 1:
            table.refuse("failing", "is not a share", "write failing = 0.01: one message in a hundred")
        columns["failures"] = (rng.random(messages) < failing) * np.int32(table.integer("failures", 1, 1, INT32))
    if size := table.integer("size", 0, 0, INT32):
        columns["sizes"] = np.full(messages, size, np.int64)
    return Workload.from_rate(
        rate,
        service,
        messages,
        arrivals=cast(Distribution, table.choice("arrivals", DISTRIBUTIONS, "exponential")),
        services=cast(Distribution, table.choice("services", DISTRIBUTIONS, "exponential")),
        seed=seed,
        **columns,
    )


def _properties(table: Table, rng: np.random.Generator, messages: int) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Each property takes one of its values at random: a list (all alike) or a table value = weight."""
    for name, given in table.values.items():
        values = given if isinstance(given, list) else list(given) if isinstance(given, dict) else []
        weights = list(given.values()) if isinstance(given, dict) else [1.0] * len(values)
        if (
            not values
            or len({type(value) for value in values}) > 1
            or not isinstance(values[0], (str, int, float, bool))
        ):
            table.refuse(
                name, "must list values of one type", f'write {name} = ["EU", "US"] or {name} = {{EU = 3, US = 1}}'
            )
        if not all(type(weight) in (int, float) and 0 < weight <= HEAVIEST for weight in weights):
            hint = f"above 0, at most {HEAVIEST:g}; write {name} = {{EU = 3, US = 1}}"
            table.refuse(name, "has a weight that is none", hint)
        if not all(-(2**63) <= value < 2**63 for value in values if isinstance(value, int)):
            table.refuse(name, "has a number that is no Java long", "write numbers of 64 bits")
        share = np.array(weights, dtype=float)
        yield name, np.array(values)[rng.choice(len(values), messages, p=share / share.sum())]


def _variant(table: Table) -> Variant | GroupVariant:
    if "client" in table.values:
        return _group_variant(table)
    table.only(("name", "consumer", "policy"))
    name = table.text("name", required=True)
    policy = read_policy(table.table("policy"), default=True) if "policy" in table.values else Policy("")
    consumers = tuple(consumer for inner in table.tables("consumer") for consumer in _consumers(inner))
    if not consumers:
        table.refuse(
            "", "has no consumers", "add a [[variant.consumer]] or, of RocketMQ, a [[variant.client]] with a name"
        )
    refuse_twice(table, "consumer", [consumer.name for consumer in consumers[: len(table.tables("consumer"))]], "name")
    if wrong := pulling(consumers, policy):
        table.table("policy").refuse("queue_prefetch", *wrong)
    return Variant(name, consumers, policy)


def _group_variant(table: Table) -> GroupVariant:
    table.only(("name", "client", "queues", "strategy", "round_trip"))
    clients = tuple(client for inner in table.tables("client") for client in _clients(inner))
    refuse_twice(table, "client", [client.name for client in clients[: len(table.tables("client"))]], "name")
    strategy = table.text("strategy") or "AVG"
    try:
        named_strategy(strategy)
    except AllocationError as error:
        table.refuse("strategy", "is not an allocation strategy", str(error))
    return GroupVariant(
        table.text("name", required=True),
        clients,
        table.integer("queues", 4, 1, MOST_QUEUES),
        strategy,
        _seconds(table, "round_trip") if "round_trip" in table.values else 0.001,
    )


def _clients(table: Table) -> Iterator[SimulatedClient]:
    table.only((*CLIENT, "copies", "slows_at"))
    whole: dict[str, Any] = {key: _parameter(table, key) for key in CLIENT_NUMBERS if key in table.values}
    client = SimulatedClient(
        table.text("name", required=True),
        factor=_factor(table, "factor"),
        **whole,
        **_life(table),
    )
    for number in range(copies := table.integer("copies", 1, 1, 100_000)):
        yield client if copies == 1 else replace(client, name=f"{client.name}-{number + 1}")


def _parameter(table: Table, key: str) -> int:
    value = table.integer(key, 0, -(2**63))
    if wrong := parameter_problem(key, value):
        table.refuse(key, *wrong)
    return value


def _consumers(table: Table) -> Iterator[SimulatedConsumer]:
    table.only((*CONSUMER, "copies", "slows_at"))
    consumer = SimulatedConsumer(
        table.text("name", required=True),
        selector=table.selector("selector"),
        prefetch=_prefetch(table),
        threads=table.integer("threads", 1, 1, INT32),
        priority=table.integer("priority", 0, -128, 127),
        exclusive=table.flag("exclusive", False),
        factor=_factor(table, "factor"),
        **_life(table),
    )
    copies = table.integer("copies", 1, 1, 100_000)
    if copies == 1:
        yield consumer
    else:
        yield from (replace(consumer, name=f"{consumer.name}-{number + 1}") for number in range(copies))


def _prefetch(table: Table) -> int:
    prefetch = table.integer("prefetch", 1000, -INT32 - 1, INT32)
    if prefetch == 0:
        table.refuse("prefetch", *PULLS)
    return prefetch


def _life(table: Table) -> dict[str, Any]:
    """When it comes and goes, and what happens in between."""
    times = {key: _seconds(table, key) for key in TIMES if key in table.values}
    slows = tuple(_slows(table))
    if wrong := life_problem(times, [at for at, _ in slows]):
        table.refuse(*wrong)
    return {"slows": slows, **times}


def _slows(table: Table) -> Iterator[tuple[float, float]]:
    given = table.table("slows_at")
    for at in given.values:
        try:
            second = float(at)
        except ValueError:
            second = -1.0
        if not 0 <= second <= LONGEST:
            given.refuse(
                at, "must be a number of seconds", "write slows_at = { 60 = 4.0 }: from second 60 on, 4 times slower"
            )
        yield second, _factor(given, at)
