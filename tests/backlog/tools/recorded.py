"""What the real tools printed, as :mod:`tests.backlog.tools.record` kept it."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.backlog.tools.clusters import Case, Client, Cluster, Group, Held, Moment, Queue

DATA = Path(__file__).parents[1] / "data" / "tools"


@dataclass(frozen=True, slots=True)
class Printed:
    """moment: the first or the second. command: as people type it. text: what it printed. shown: the case's truth is
    that of what is shown; the rest is kept for its form."""

    moment: int
    command: str
    text: str
    shown: bool


@dataclass(frozen=True, slots=True)
class Recording:
    case: Case
    printed: tuple[Printed, ...]


def _client(fields: dict[str, Any]) -> Client:
    pairs = tuple((topic, text) for topic, text in fields["subscriptions"])
    return Client(**{**fields, "subscriptions": pairs, "held": tuple(Held(**each) for each in fields["held"])})


def _moment(fields: dict[str, Any]) -> Moment:
    queues = tuple(Queue(*each) for each in fields["queues"])
    return Moment(**{**fields, "queues": queues, "clients": tuple(_client(each) for each in fields["clients"])})


def _group(fields: dict[str, Any]) -> Group:
    return Group(fields["name"], fields["kind"], tuple(_moment(each) for each in fields["moments"]))


@cache
def recordings(product: str, release: str) -> tuple[Recording, ...]:
    """All clusters of a release."""
    found = []
    for line in gzip.decompress((DATA / f"{product}-{release}.jsonl.gz").read_bytes()).decode().splitlines():
        fields = json.loads(line)
        cluster = fields["cluster"]
        groups = tuple(_group(each) for each in cluster["groups"])
        case = Case(
            Cluster(**{**cluster, "brokers": tuple(cluster["brokers"]), "groups": groups}),
            fields["shown"],
            fields["kind"],
            frozenset(fields["truth"]),
        )
        found.append(Recording(case, tuple(Printed(**each) for each in fields["printed"])))
    return tuple(found)
