"""rule_shapes: rules as people write them beside conjunctions: IN, OR, trees, routing rules, texts, narrow ranges."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

Message = dict[str, object]
Shape = tuple[Callable[[random.Random], str], Callable[[random.Random], Message]]

VALUES = 50_000
WORDS = ("alpha", "beta", "gamma", "delta", "omega", "sigma", "kappa", "theta", "order", "trade", "price", "stock")
REGIONS = tuple(f"region-{number}" for number in range(20))


def membership(size: int) -> Shape:
    """``x IN (size values)`` of 50,000."""

    def rule(draw: random.Random) -> str:
        return f"x IN ({', '.join(repr(f'v{draw.randrange(VALUES)}') for _ in range(size))})"

    return rule, lambda draw: {"x": f"v{draw.randrange(VALUES)}"}


def alternatives(branches: int) -> Shape:
    """An OR of equalities on four attributes of 50,000 values."""

    def rule(draw: random.Random) -> str:
        return " OR ".join(f"c{draw.randrange(4)} = 'v{draw.randrange(VALUES)}'" for _ in range(branches))

    return rule, lambda draw: {f"c{number}": f"v{draw.randrange(VALUES)}" for number in range(4)}


def leaf(draw: random.Random) -> str:
    kind, low = draw.random(), draw.uniform(0, 1000)
    if kind < 0.45:
        return f"c{draw.randrange(6)} = 'v{draw.randrange(50)}'"
    if kind < 0.7:
        return f"n{draw.randrange(6)} {draw.choice(('<', '<=', '>', '>='))} {low:.3f}"
    if kind < 0.85:
        return f"n{draw.randrange(6)} BETWEEN {low:.3f} AND {low + draw.uniform(1, 100):.3f}"
    return f"c{draw.randrange(6)} IN ({', '.join(repr(f'v{draw.randrange(50)}') for _ in range(4))})"


def tree(draw: random.Random, depth: int = 3) -> str:
    """AND and OR of two or three, or NOT, down to ``depth``."""
    if depth == 0:
        return leaf(draw)
    if draw.random() < 0.15:
        return f"NOT ({tree(draw, depth - 1)})"
    parts = [tree(draw, depth - 1) for _ in range(draw.randint(2, 3))]
    return f"({draw.choice((' AND ', ' OR ')).join(parts)})"


def tree_message(draw: random.Random) -> Message:
    message: Message = {f"c{number}": f"v{draw.randrange(50)}" for number in range(6)}
    return message | {f"n{number}": round(draw.uniform(0, 1000), 3) for number in range(6)}


def routing(draw: random.Random) -> str:
    """What an event bus routes by: source, kind, regions, a path, numbers, what must be there."""
    parts = [f"source = 'app.{draw.randrange(200)}'"] if draw.random() < 0.7 else []
    choices = [
        lambda: f"kind = 'k{draw.randrange(40)}'",
        lambda: f"region IN ({', '.join(repr(region) for region in draw.sample(REGIONS, draw.randint(1, 4)))})",
        lambda: f"path LIKE '/{draw.choice(WORDS)}/{draw.choice(WORDS)}/%'",
        lambda: f"amount > {draw.randrange(1000)}",
        lambda: f"amount BETWEEN {(low := draw.randrange(1000))} AND {low + draw.randrange(1, 100)}",
        lambda: f"account IN ({', '.join(repr(f'a{draw.randrange(10_000)}') for _ in range(3))})",
        lambda: f"{draw.choice(('detail', 'user', 'trace'))} IS NOT NULL",
        lambda: f"status <> 's{draw.randrange(5)}'",
    ]
    parts += [make() for make in draw.sample(choices, draw.randint(2, 4))]
    return " AND ".join(parts)


def routing_message(draw: random.Random) -> Message:
    message: Message = {
        "source": f"app.{draw.randrange(200)}",
        "kind": f"k{draw.randrange(40)}",
        "region": draw.choice(REGIONS),
        "path": f"/{draw.choice(WORDS)}/{draw.choice(WORDS)}/{draw.randrange(1000)}",
        "amount": draw.randrange(1000),
        "account": f"a{draw.randrange(10_000)}",
        "status": f"s{draw.randrange(5)}",
    }
    return message | {name: "x" for name in ("detail", "user", "trace") if draw.random() < 0.5}


def searching(draw: random.Random) -> str:
    """``LIKE '%x%'`` and IN lists."""
    if draw.random() < 0.5:
        piece = draw.choice(WORDS)[: draw.randint(2, 5)] + f"{draw.randrange(1000):03d}"
        return f"subject LIKE '%{piece}%'"
    return f"account IN ({', '.join(repr(f'a{draw.randrange(VALUES)}') for _ in range(draw.randint(2, 20)))})"


def searching_message(draw: random.Random) -> Message:
    words = [f"{draw.choice(WORDS)}{draw.randrange(1000):03d}" for _ in range(6)]
    return {"subject": " ".join(words), "account": f"a{draw.randrange(VALUES)}"}


def narrow(draw: random.Random) -> str:
    low = draw.uniform(0, 1000)
    return f"price BETWEEN {low!r} AND {low + draw.uniform(0.001, 0.2)!r}"


def equalities(rule: str) -> list[tuple[str, str]]:
    """What an IN or an OR of equalities names: property and value."""
    return [
        (name, value)
        for name, listed in re.findall(r"(\w+) (?:=|IN) ((?:\(.*?\))|'[^']*')", rule)
        for value in re.findall(r"'([^']*)'", listed)
    ]


def bounds(rule: str) -> tuple[float, float]:
    low, high = re.findall(r"[\d.]+(?:e-\d+)?", rule)
    return float(low), float(high)


SHAPES: dict[str, Shape] = {
    "IN of 1": membership(1),
    "IN of 8": membership(8),
    "IN of 50": membership(50),
    "OR of 8": alternatives(8),
    "OR of 9": alternatives(9),
    "OR of 200": alternatives(200),
    "trees": (tree, tree_message),
    "routing rules": (routing, routing_message),
    "LIKE and IN": (searching, searching_message),
    "narrow ranges": (narrow, lambda draw: {"price": draw.uniform(0, 1000)}),
}
