"""The shape of a run's summary: what ``pyengine run --json`` prints and what the table and the page are made from.

Timestamps are milliseconds since 1970 UTC, None where there is no message. Counts are messages. bytes: body and
properties, texts in UTF-8, numbers by their width.
"""

from __future__ import annotations

from typing import TypedDict


class ConsumerSummary(TypedDict):
    """What one consumer got from one queue. groups: message groups of which it got at least one message."""

    name: str
    delivered: int
    bytes: int
    groups: int
    first_timestamp: int | None
    last_timestamp: int | None
    selector: str
    exclusive: bool
    priority: int


class HeldSummary(TypedDict):
    """Messages that wait for one reason. consumer: the one the reason names (elected, group owner), or ""."""

    reason: str
    consumer: str
    count: int
    examples: list[str]
    explanation: str


class DaySummary(TypedDict):
    """One UTC day of message timestamps. day: ISO date."""

    day: str
    delivered: int
    held: int


class DestinationSummary(TypedDict):
    """One queue. policy: name of the policy entry that applies, "" for none. days: in order, days without messages left
    out. rejected: messages of this queue that could not be made or evaluated. groups: message groups that were handed
    out. group_skew, consumer_skew: the largest group, or consumer, over the mean; 1 is even, 0 there is none."""

    description: str
    policy: str
    messages: int
    bytes: int
    delivered: int
    held: int
    rejected: int
    first_timestamp: int | None
    last_timestamp: int | None
    groups: int
    group_skew: float
    consumer_skew: float
    consumers: list[ConsumerSummary]
    held_by_reason: list[HeldSummary]
    days: list[DaySummary]


class RejectSummary(TypedDict):
    """Rows that did not become messages, by column and reason. examples: row numbers from 0 over the whole source.
    places: the same as ``file:row``, each file's rows from 0.
    """

    column: str
    reason: str
    count: int
    examples: list[int]
    places: list[str]


class Times(TypedDict):
    """Seconds of wall clock."""

    ingest: float
    dispatch: float
    total: float


class Paths(TypedDict):
    """Where the run's files are; report is "" until the page is written."""

    out: str
    messages: str
    deliveries: str
    held: str
    rejects: str
    summary: str
    report: str


class Summary(TypedDict):
    """One run. rows: rows read = messages + rejected. versions: of pyengine, python, spark, ... by name."""

    title: str
    description: str
    topology: str
    source: str
    rows: int
    messages: int
    delivered: int
    held: int
    rejected: int
    destinations: dict[str, DestinationSummary]
    rejects: list[RejectSummary]
    times: Times
    versions: dict[str, str]
    paths: Paths
    master: str
    partitions: int
