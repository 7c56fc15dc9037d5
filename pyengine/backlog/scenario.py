"""A question in TOML: what comes in, and which variants of consumers and policy to compare. See docs/simulate.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from pyengine.backlog.group_simulation import GroupVariant, SimulatedClient
from pyengine.backlog.simulate import Distribution, SimulatedConsumer, Variant, Workload
from pyengine.errors import AllocationError
from pyengine.rocketmq.allocation import named_strategy
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
TIMES = ("joins_at", "leaves_at", "dies_at", "breaks_at")


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
        table.refuse(key, "is negative", "seconds from the start, 0 or more")
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
    if count := table.integer("groups", 0, 0):
        columns["groups"] = [f"g{number}" for number in rng.integers(0, count, messages)]
    if table.flag("priorities", False):
        columns["priorities"] = rng.integers(0, 10, messages).astype(np.int32)
    if lifetime := table.number("lifetime", 0.0):
        columns["lifetimes"] = np.full(messages, int(lifetime * 1000), np.int64)
    if failing := table.number("failing", 0.0):
        columns["failures"] = (rng.random(messages) < failing) * np.int32(table.integer("failures", 1, 1))
    if size := table.integer("size", 0, 0):
        columns["sizes"] = np.full(messages, size, np.int64)
    return Workload.from_rate(
        _positive(table, "rate"),
        _positive(table, "service"),
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
        if not all(isinstance(weight, (int, float)) and weight > 0 for weight in weights):
            table.refuse(name, "has a weight that is not positive", f"write {name} = {{EU = 3, US = 1}}")
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
    return Variant(name, consumers, policy)


def _group_variant(table: Table) -> GroupVariant:
    table.only(("name", "client", "queues", "strategy", "round_trip"))
    clients = tuple(client for inner in table.tables("client") for client in _clients(inner))
    refuse_twice(table, "client", [client.name for client in clients[: len(table.tables("client"))]], "name")
    strategy = table.text("strategy") or "AVG"
    try:
        named_strategy(strategy)
    except AllocationError as error:
        table.refuse("strategy", "is no allocation strategy", str(error))
    return GroupVariant(
        table.text("name", required=True),
        clients,
        table.integer("queues", 4, 1, 100_000),
        strategy,
        table.number("round_trip", 0.001),
    )


def _clients(table: Table) -> Iterator[SimulatedClient]:
    table.only((*CLIENT, "copies", "slows_at"))
    whole = {key: table.integer(key, 0, -1, 2**31 - 1) for key in CLIENT_NUMBERS if key in table.values}
    times = {key: _seconds(table, key) for key in TIMES if key in table.values}
    client = SimulatedClient(
        table.text("name", required=True),
        factor=table.number("factor", 1.0),
        slows=tuple((float(at), factor) for at, factor in _slows(table)),
        **whole,
        **times,  # type: ignore[arg-type]
    )
    for number in range(copies := table.integer("copies", 1, 1, 100_000)):
        yield client if copies == 1 else replace(client, name=f"{client.name}-{number + 1}")


def _consumers(table: Table) -> Iterator[SimulatedConsumer]:
    table.only((*CONSUMER, "copies", "slows_at"))
    consumer = SimulatedConsumer(
        table.text("name", required=True),
        selector=table.text("selector"),
        prefetch=table.integer("prefetch", 1000, 0),
        threads=table.integer("threads", 1, 1),
        priority=table.integer("priority", 0, -128, 127),
        exclusive=table.flag("exclusive", False),
        factor=table.number("factor", 1.0),
    )
    times = {key: _seconds(table, key) for key in TIMES if key in table.values}
    slows = tuple((float(at), factor) for at, factor in _slows(table))
    consumer = replace(consumer, slows=slows, **times)  # type: ignore[arg-type]
    copies = table.integer("copies", 1, 1, 100_000)
    if copies == 1:
        yield consumer
    else:
        yield from (replace(consumer, name=f"{consumer.name}-{number + 1}") for number in range(copies))


def _slows(table: Table) -> Iterator[tuple[str, float]]:
    given = table.table("slows_at")
    for at in given.values:
        try:
            float(at)
        except ValueError:
            given.refuse(
                at, "must be a number of seconds", "write slows_at = { 60 = 4.0 }: from second 60 on, 4 times slower"
            )
        yield at, given.number(at, 1.0)
