"""workloads: the selectors and messages that every rival is asked about; drawn from a fixed seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

S1 = "color = 'blue' AND weight > 2500"
S2 = "JMSPriority >= 5 AND (region IN ('us','eu','apac') OR customer LIKE 'gold%') AND price BETWEEN 10 AND 500"
S3 = "price * qty > 1000 AND type IS NOT NULL AND NOT (status = 'cancelled')"
SELECTORS = {"S1": S1, "S2": S2, "S3": S3}

COLORS = ("blue", "red", "green", "black")
REGIONS = ("us", "eu", "apac", "latam", "mea")
CUSTOMERS = tuple(f"{level}-{number:03d}" for level in ("gold", "silver", "bronze", "plain") for number in range(50))
TYPES = ("order", "refund", "quote")
STATUSES = ("open", "paid", "shipped", "cancelled")

REGION_SET = frozenset(("us", "eu", "apac"))

# What a Python programmer writes instead. The messages of the row workloads have every property, so that these may
# index without asking; the selectors would also be right without them.
LAMBDAS: dict[str, Callable[[Mapping[str, object]], bool]] = {
    "S1": lambda m: m["color"] == "blue" and m["weight"] > 2500,  # type: ignore[operator]
    "S2": lambda m: (
        m["JMSPriority"] >= 5  # type: ignore[operator]
        and (m["region"] in REGION_SET or m["customer"].startswith("gold"))  # type: ignore[attr-defined]
        and 10 <= m["price"] <= 500  # type: ignore[operator]
    ),
    "S3": lambda m: (
        m["price"] * m["qty"] > 1000  # type: ignore[operator]
        and m["type"] is not None
        and m["status"] != "cancelled"
    ),
}


def messages(count: int, seed: int = 20221) -> list[dict[str, object]]:
    """Messages with ten properties and a priority."""
    draw = random.Random(seed)
    return [
        {
            "JMSPriority": draw.randrange(10),
            "color": draw.choice(COLORS),
            "weight": draw.randrange(5000),
            "region": draw.choice(REGIONS),
            "customer": draw.choice(CUSTOMERS),
            "price": round(draw.uniform(1.0, 700.0), 2),
            "qty": draw.randrange(1, 20),
            "type": draw.choice(TYPES),
            "status": draw.choice(STATUSES),
            "vip": draw.random() < 0.1,
            "ts": 1_700_000_000_000 + draw.randrange(10**9),
        }
        for _ in range(count)
    ]
