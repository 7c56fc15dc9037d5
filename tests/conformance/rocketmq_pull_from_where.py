"""rocketmq/pull_from_where: where the real client starts to pull, and what it asks or refuses."""

from __future__ import annotations

import os
import time
from typing import Any

from pyengine import rocketmq
from tests.conformance.rocketmq_cluster import GROUP, Cluster, RecordingStore, log_lines, outcome, started
from tests.conformance.verdict import Verdict, compare

CONSUME_TIMESTAMP = "20240102030405"


class _Stored(RecordingStore):
    """An offset store whose stored offset is the case's."""

    def __init__(self, store: rocketmq.OffsetStore, offset: int) -> None:
        super().__init__(store)
        self.offset = offset

    def read_offset(self, queue: rocketmq.MessageQueue | None, where: rocketmq.ReadOffsetType) -> int:
        return self.offset


def identify(case: dict[str, Any]) -> str:
    return str(case["id"])


def replay(case: dict[str, Any]) -> Verdict:
    zone = os.environ.get("TZ")
    os.environ["TZ"] = "Etc/UTC"
    time.tzset()
    try:
        return _replay(case)
    finally:
        os.environ.pop("TZ") if zone is None else os.environ.update(TZ=zone)
        time.tzset()


def _replay(case: dict[str, Any]) -> Verdict:
    cluster = Cluster()
    cluster.highest, cluster.found_by_time = case["maxOffset"], case["searchOffset"]
    store = _Stored(rocketmq.RemoteBrokerOffsetStore(cluster, GROUP), case["storeOffset"])
    queue = rocketmq.MessageQueue("%RETRY%GroupTest" if case["retryTopic"] else "TopicTest", "broker-a", 0)
    where = rocketmq.ConsumeFromWhere[case["consumeFromWhere"]]
    timestamp = case.get("consumeTimestamp", CONSUME_TIMESTAMP)
    parameters = {"offset_store": store, "consume_from_where": where, "consume_timestamp": timestamp}
    with log_lines(), started(cluster, **parameters) as consumer:
        rebalancing = consumer.default_mq_push_consumer_impl.rebalancing
        got = outcome(lambda: rebalancing.compute_pull_from_where_with_exception(queue))
        asked = ["@".join([call[0], *map(str, call[2:])]) for call in cluster.named("maxOffset", "searchOffset")]
        deprecated = rebalancing.compute_pull_from_where(queue)
    if isinstance(got, rocketmq.MQClientError):
        got = {"message": str(got), "responseCode": got.code}
    expected = case.get("result")
    if "error" in case:
        expected = {name: case["error"][name] for name in ("message", "responseCode")}
    return compare(
        str({name: case[name] for name in ("consumeFromWhere", "retryTopic", "storeOffset", "maxOffset")}),
        (expected, case["deprecatedComputePullFromWhere"], case["adminCalls"]),
        (got, deprecated, asked),
    )
