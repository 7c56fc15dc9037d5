"""rocketmq/remote_offset_store: traces of the real RemoteBrokerOffsetStore: results, calls to the broker, table."""

from __future__ import annotations

import re
from typing import Any

from pyengine import rocketmq
from pyengine.errors import NullArgumentError
from tests.conformance.rocketmq_cluster import GROUP, Cluster, log_lines, queue_of
from tests.conformance.verdict import Verdict, compare


def _queue(text: str | None) -> Any:
    return None if text is None else queue_of(text)


def _short(queue: rocketmq.MessageQueue) -> str:
    return f"{queue.topic}/{queue.queue_id}"


def _operate(store: rocketmq.RemoteBrokerOffsetStore, cluster: Cluster, operation: str, arg: Any) -> Any:
    if operation.startswith("updateOffset("):
        return store.update_offset(_queue(arg[0]), arg[1], increase_only="true" in operation)
    if operation == "updateAndFreezeOffset":
        return store.update_and_freeze_offset(_queue(arg[0]), arg[1])
    if operation.startswith("readOffset "):
        return store.read_offset(_queue(arg), rocketmq.ReadOffsetType[operation.split()[1]])
    if operation == "persistAll":
        return store.persist_all(None if arg is None else {queue_of(text) for text in arg})
    if operation.startswith("(broker stores"):
        cluster.stored[queue_of(arg)] = int(re.findall(r"-?\d+", operation)[0])
        return None
    if operation.startswith("(toggle broker down"):
        cluster.unreachable ^= {queue_of(arg)}
        return None
    return {"persist": store.persist, "removeOffset": store.remove_offset, "load": lambda queue: store.load()}[
        operation
    ](_queue(arg))


def identify(case: dict[str, Any]) -> str:
    return str(case["id"])


def replay(case: dict[str, Any]) -> Verdict:
    cluster = Cluster()
    store = rocketmq.RemoteBrokerOffsetStore(cluster, GROUP)
    for number, step in enumerate(case["ops"]):
        cluster.calls.clear()
        with log_lines():
            try:
                result = _operate(store, cluster, step["op"], step["arg"])
            except NullArgumentError:
                result = "java.lang.NullPointerException"
        expected_result = step["result"]["class"] if isinstance(step["result"], dict) else step["result"]
        calls = sorted(f"[{', '.join([call[0], _short(call[1]), *map(str, call[2:])])}]" for call in cluster.calls)
        table = {_short(queue): offset for queue, offset in store.offsets().items()}
        stored = {_short(queue): offset for queue, offset in cluster.stored.items()}
        down = sorted(map(_short, cluster.unreachable))
        verdict = compare(
            f"step {number}: {step['op']} {step['arg']}",
            (expected_result, sorted(step["rpc"]), step["table"], step["broker"], step["down"]),
            (result, calls, table, stored, down),
        )
        if verdict.kind != "agree":
            return verdict
    return Verdict("agree")
