"""Prometheus text of the exporters that people have for Kafka and RocketMQ, and the JSON of Prometheus' own query API.

Read are kafka_exporter (danielqsj), kafka-lag-exporter, kminion, the lag of Kafka's client as the JMX exporter and
Micrometer name it, rocketmq-exporter, and the metrics that a broker of RocketMQ 5 exports itself.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import field
from typing import Any, Literal

from pyengine.backlog.diagnosis.evidence.model import (
    ALL_QUEUES,
    ConsumerGroupState,
    Evidence,
    GroupState,
    OffsetState,
    Source,
)
from pyengine.backlog.diagnosis.evidence.transcript import moment_of
from pyengine.backlog.findings import say
from pyengine.dataclass import dataclass

_SAMPLE = re.compile(
    r"^(?P<name>[a-zA-Z_:][\w:]*)(?P<labels>\{.*\})?\s+(?P<value>[-+]?[\w.+-]+)(?:\s+(?P<time>-?\d+))?\s*$"
)
_LABEL = re.compile(r'([a-zA-Z_]\w*)\s*=~?\s*"((?:[^"\\]|\\.)*)"')
_ESCAPED = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}
# A lag of Kafka's own client: what the JMX exporter and Micrometer call records-lag of consumer-fetch-manager-metrics.
_CLIENT_LAG = re.compile(r"^kafka_consumer_(?:\w+_)?records_lag(?:_records)?$")
_KMINION = re.compile(r"kafka_(consumer_group_\w+|topic_partition_(?:high|low)_water_mark)$")
_KNOWN = re.compile(r"^(?:kafka_|rocketmq_|\w+_kafka_(?:consumer|topic|cluster|broker)_|jvm_|process_|go_)|_kafka_")

EXPORTERS = (
    ("kafka-lag-exporter", re.compile(r"^kafka_(?:consumergroup_group_|partition_(?:latest|earliest)_offset)")),
    ("kafka_exporter", re.compile(r"^kafka_(?:consumergroup_(?!group_)|consumergroupzookeeper_|topic_partition)")),
    ("kminion", re.compile(r"kafka_(?:consumer_group_|topic_info|topic_partition_(?:high|low)_water|cluster_info)")),
    ("Kafka's client", re.compile(r"^kafka_consumer_(?!group_)")),
    (
        "rocketmq-exporter",
        re.compile(r"^rocketmq_(?:group_|consumer_(?:offset|tps)|producer_|client_|broker_|brokeruntime)"),
    ),
    ("a RocketMQ broker", re.compile(r"^rocketmq_(?:consumer_(?:lag|queueing|inflight|ready|connections)|messages_)")),
)
LAG_TOO = say(
    "it has no lag and no offset of a consumer group; give those of kafka_exporter, kafka-lag-exporter, kminion or "
    "rocketmq-exporter too"
)


@dataclass(frozen=True, slots=True)
class Sample:
    """One line. time: ms, None if nothing tells. dated: the time stands in the text."""

    name: str
    labels: dict[str, str]
    value: float
    time: int | None
    dated: bool


@dataclass(slots=True)
class _Place:
    """The samples of one group in one partition or queue."""

    end: float | None = None
    reached: float | None = None
    oldest: float | None = None
    lag: float | None = None
    client: str | None = None
    uncommitted: bool = False


@dataclass(slots=True)
class _Scrape:
    """Everything with one moment."""

    ends: dict[tuple[str, str, str], float] = field(default_factory=dict)  # system, topic, partition or broker
    oldest: dict[tuple[str, str, str], float] = field(default_factory=dict)
    places: dict[tuple[str, str, str, str], _Place] = field(default_factory=dict)  # system, group, topic, partition
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    diffs: dict[tuple[str, str], float] = field(default_factory=dict)  # of RocketMQ: group, topic
    clients: dict[str, int] = field(default_factory=dict)
    tps: dict[str, float] = field(default_factory=dict)

    def place(self, system: str, group: str, topic: str, part: str) -> _Place:
        return self.places.setdefault((system, group, topic, part), _Place())


def recognises(text: str) -> bool:
    """True for samples with a name of one of the exporters, or an answer of the query API."""
    if _is_api(text):
        return True
    return any((found := _SAMPLE.match(line)) and _KNOWN.search(found["name"]) for line in text.splitlines())


def _is_api(text: str) -> bool:
    return text.lstrip().startswith("{") and re.search(r'"resultType"\s*:\s*"(?:vector|matrix)"', text) is not None


def read(text: str, file: str, modified: int | None) -> Evidence:
    """Lags and offsets by group and partition, at each moment that the samples have."""
    found = Evidence()
    samples = list(_of_api(text) if _is_api(text) else _of_text(text, modified))
    scrapes: dict[tuple[int | None, bool], _Scrape] = {}
    for sample in samples:
        _take(sample, scrapes.setdefault((sample.time, sample.dated), _Scrape()))
    for sight, ((time, dated), scrape) in enumerate(scrapes.items()):
        _Giving(scrape, file, time, found, sight, dated).all()
    makers = [maker for maker, names in EXPORTERS if any(names.search(sample.name) for sample in samples)]
    what = "Prometheus text of {}".format(", ".join(makers)) if makers else "Prometheus text"
    times = sorted({time for time, _ in scrapes if time is not None})
    found.sources.append(Source(file, what, tuple(times), needs="" if found.count else LAG_TOO))
    return found


def _of_text(text: str, modified: int | None) -> Iterator[Sample]:
    lines = text.splitlines()
    dated = False
    time = None if any(moment_of(line) is not None for line in lines) else modified
    for line in lines:
        if (moment := moment_of(line)) is not None:
            time, dated = moment, True
        elif found := _SAMPLE.match(line.strip()):
            try:
                value = float(found["value"])
            except ValueError:
                continue
            stamp = int(found["time"]) if found["time"] else time
            yield Sample(found["name"], _labels(found["labels"] or ""), value, stamp, dated or bool(found["time"]))


def _labels(text: str) -> dict[str, str]:
    return {
        name: re.sub(r"\\.", lambda found: _ESCAPED.get(found[0], found[0]), value)
        for name, value in _LABEL.findall(text)
    }


def _of_api(text: str) -> Iterator[Sample]:
    """The samples of ``/api/v1/query`` and ``query_range``. Raises ValueError for what is not such an answer."""
    try:
        for series in json.loads(text)["data"]["result"]:
            labels = {str(name): str(value) for name, value in series["metric"].items()}
            for moment, value in series.get("values") or [series["value"]]:
                yield Sample(labels.get("__name__", ""), labels, float(value), int(float(moment) * 1000), True)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not an answer of Prometheus' query API: {error!r}") from error


def _take(sample: Sample, scrape: _Scrape) -> None:
    if not math.isfinite(sample.value):  # kafka-lag-exporter writes NaN for what it does not know
        return
    name, labels, value = sample.name, sample.labels, sample.value
    topic, part = labels.get("topic", ""), labels.get("partition", "")
    if name.startswith("rocketmq_"):
        _rocketmq(name, labels, value, scrape)
    elif found := _KMINION.search(name):
        _kminion(found[1], labels, value, scrape)
    elif name in ("kafka_topic_partition_current_offset", "kafka_partition_latest_offset"):
        scrape.ends["kafka", topic, part] = value
    elif name in ("kafka_topic_partition_oldest_offset", "kafka_partition_earliest_offset"):
        scrape.oldest["kafka", topic, part] = value
    elif name in ("kafka_consumergroup_lag", "kafka_consumergroupzookeeper_lag_zookeeper"):
        place = scrape.place("kafka", labels.get("consumergroup", ""), topic, part)
        place.uncommitted = value == -1  # kafka_exporter's word for a group that has committed nothing there
        place.lag = None if place.uncommitted else value
    elif name == "kafka_consumergroup_current_offset":
        scrape.place("kafka", labels.get("consumergroup", ""), topic, part).reached = value if value >= 0 else None
    elif name == "kafka_consumergroup_members":
        scrape.groups.setdefault(labels.get("consumergroup", ""), {})["members"] = int(value)
    elif name in ("kafka_consumergroup_group_lag", "kafka_consumergroup_group_offset"):
        place = scrape.place("kafka", labels.get("group", ""), topic, part)
        if "consumer_id" in labels:
            place.client = labels["consumer_id"]
        if name.endswith("lag"):
            place.lag = value
        else:
            place.reached = value
    elif _CLIENT_LAG.match(name) and topic and part:
        client = labels.get("client_id") or labels.get("clientId") or labels.get("client-id", "")
        # What a client's metrics do not tell is its group.
        place = scrape.place("kafka", labels.get("group_id") or labels.get("group", ""), topic, part)
        place.lag, place.client = value, client


def _kminion(name: str, labels: dict[str, str], value: float, scrape: _Scrape) -> None:
    group, topic, part = labels.get("group_id", ""), labels.get("topic_name", ""), labels.get("partition_id", "")
    if name == "topic_partition_high_water_mark":
        scrape.ends["kafka", topic, part] = value
    elif name == "topic_partition_low_water_mark":
        scrape.oldest["kafka", topic, part] = value
    elif name == "consumer_group_topic_partition_lag":
        scrape.place("kafka", group, topic, part).lag = value
    elif name == "consumer_group_topic_lag":
        scrape.place("kafka", group, topic, "").lag = value
    elif name == "consumer_group_topic_offset_sum":
        scrape.place("kafka", group, topic, "").reached = value
    elif name == "consumer_group_members":
        scrape.groups.setdefault(group, {})["members"] = int(value)
    elif name == "consumer_group_empty_members":
        scrape.groups.setdefault(group, {})["idle"] = int(value)
    elif name == "consumer_group_info":
        scrape.groups.setdefault(group, {})["state"] = labels.get("state", "")


def _rocketmq(name: str, labels: dict[str, str], value: float, scrape: _Scrape) -> None:
    group, topic, broker = labels.get("group", ""), labels.get("topic", ""), labels.get("broker", "")
    if name == "rocketmq_group_diff":
        scrape.diffs[group, topic] = scrape.diffs.get((group, topic), 0) + value
        if labels.get("countOfOnlineConsumers", "").isdecimal():
            scrape.clients[group] = int(labels["countOfOnlineConsumers"])
    elif name == "rocketmq_group_count":
        scrape.clients[group] = int(value)
    elif name == "rocketmq_consumer_offset":
        scrape.place("rocketmq", group, topic, broker).reached = value
    elif name == "rocketmq_producer_offset":
        scrape.ends["rocketmq", topic, broker] = value
    elif name == "rocketmq_consumer_tps":
        scrape.tps[group] = scrape.tps.get(group, 0) + value
    elif name == "rocketmq_consumer_lag_messages":  # a broker of 5.x itself
        own = labels.get("consumer_group", "")
        if labels.get("is_retry") != "true" and labels.get("is_system") != "true":
            scrape.diffs[own, topic] = scrape.diffs.get((own, topic), 0) + value
    elif name == "rocketmq_consumer_connections":
        own = labels.get("consumer_group", "")
        scrape.clients[own] = scrape.clients.get(own, 0) + int(value)


@dataclass(slots=True)
class _Giving:
    """One scrape as evidence."""

    scrape: _Scrape
    file: str
    time: int | None
    found: Evidence
    sight: int
    dated: bool

    def all(self) -> None:
        brokers: dict[tuple[str, str], dict[str, _Place]] = {}
        for (system, group, topic, part), place in self.scrape.places.items():
            if system == "rocketmq":
                brokers.setdefault((group, topic), {})[part] = place
            # Sums of a topic add nothing if its partitions are there.
            elif part or not any(key[:3] == (system, group, topic) and key[3] for key in self.scrape.places):
                self.partition(place, group, topic, part)
        for group, samples in self.scrape.groups.items():
            self.found.consumer_groups.append(ConsumerGroupState(self.file, self.time, group, **samples))
        for group, topic in sorted({*brokers, *self.scrape.diffs}):
            self.queues(group, topic, brokers.get((group, topic), {}))
        for group, count in self.scrape.clients.items():
            lag = sum(value for (name, _), value in self.scrape.diffs.items() if name == group)
            self.found.groups.append(
                GroupState(self.file, self.time, group, count, int(lag), self.scrape.tps.get(group))
            )

    def partition(self, place: _Place, group: str, topic: str, part: str) -> None:
        end, reached, lag = self.scrape.ends.get(("kafka", topic, part)), place.reached, place.lag
        # The exporters ask for the two offsets at different moments: the lag that they give goes with the group's own,
        # and one a little below 0 is none.
        if reached is not None and lag is not None and 0 < -lag * 100 < reached:
            lag = 0
        if reached is not None and lag is not None:
            end = reached + lag
        elif end is not None and lag is not None:
            reached = end - lag
        self.state(
            "kafka",
            (group, topic, ""),
            int(part) if part.isdecimal() else ALL_QUEUES,
            (end, reached, lag),
            oldest=self.scrape.oldest.get(("kafka", topic, part)),
            client=place.client,
        )

    def queues(self, group: str, topic: str, brokers: dict[str, _Place]) -> None:
        """A topic of RocketMQ: by broker where the exporter tells each broker's end, else all of it together."""
        diff = self.scrape.diffs.get((group, topic))
        ends = {broker: self.scrape.ends.get(("rocketmq", topic, broker)) for broker in brokers}
        if brokers and all(end is not None for end in ends.values()):
            for broker, place in brokers.items():
                self.state("rocketmq", (group, topic, broker), ALL_QUEUES, (ends[broker], place.reached, None))
        elif brokers and diff is not None:
            reached = sum(place.reached or 0 for place in brokers.values())
            self.state("rocketmq", (group, topic, ""), ALL_QUEUES, (reached + diff, reached, diff))
        elif diff is not None:
            self.state("rocketmq", (group, topic, ""), ALL_QUEUES, (None, None, diff))

    def state(
        self,
        system: Literal["rocketmq", "kafka"],
        names: tuple[str, str, str],
        queue: int,
        numbers: tuple[float | None, float | None, float | None],
        oldest: float | None = None,
        client: str | None = None,
    ) -> None:
        end, reached, lag = (None if number is None else int(number) for number in numbers)
        self.found.offsets.append(
            OffsetState(
                self.file,
                self.time,
                system,
                *names,
                queue,
                end,
                reached,
                min_offset=None if oldest is None else int(oldest),
                client=client,
                sight=self.sight,
                dated=self.dated,
                told_lag=lag if end is None or reached is None else None,
            )
        )
