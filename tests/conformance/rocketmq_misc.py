"""rocketmq/misc: tags, hash codes, names, sort orders, pull flags, consume timestamps, offsets that freeze."""

from __future__ import annotations

from typing import Any

from pyengine import rocketmq
from pyengine._engine.rocketmq.client.allocation import hash_texts
from pyengine.errors import PyengineError
from tests.conformance.verdict import Verdict, compare, unsupported


def _subscription(case: dict[str, Any]) -> dict[str, Any]:
    selector: Any = case.get("subString")
    if "expression" in case or "type" in case:
        selector = rocketmq.MessageSelector(case.get("expression"), case.get("type"))
    try:
        data = rocketmq.build_subscription("TopicTest", selector)
    except PyengineError as error:
        return {"error": str(error)}
    return {
        "storedSubString": data.sub_string,
        "tagsSet": sorted(data.tags_set),
        "codeSet": sorted(data.code_set),
        "expressionType": data.expression_type,
    }


def _names(case: dict[str, Any]) -> dict[str, Any]:
    group = case["group"]
    return {"retryTopic": rocketmq.retry_topic(group), "dlqTopic": rocketmq.dlq_topic(group)}


def _sorted(case: dict[str, Any]) -> dict[str, Any]:
    if case["kind"] != "sort queues":
        return {"out": rocketmq.sort_client_ids(case["in"])}
    queues = [rocketmq.MessageQueue(*_parts(text)) for text in case["in"]]
    return {"out": [f"{queue.topic}/{queue.broker_name}/{queue.queue_id}" for queue in rocketmq.sort_queues(queues)]}


def _parts(text: str) -> tuple[str, str, int]:
    topic, broker_name, queue_id = text.rsplit("/", 2)
    return topic, broker_name, int(queue_id)


def _queue(case: dict[str, Any]) -> dict[str, Any]:
    queue = rocketmq.MessageQueue(case["topic"], case["broker"], case["queueId"])
    return {"toString": str(queue), "hashCode": queue.hash_code()}


def _offset(case: dict[str, Any]) -> dict[str, Any]:
    offset = rocketmq.ControllableOffset(case["initial"])
    after = []
    for operation, argument, _ in case["ops(op,arg,valueAfter)"]:
        if operation == "updateAndFreeze":
            offset.update_and_freeze(argument)
        else:
            offset.update(argument, increase_only=operation == "update(increaseOnly)")
        after.append([operation, argument, offset.value])
    return {"ops(op,arg,valueAfter)": after}


def _flag(case: dict[str, Any]) -> dict[str, Any]:
    return {
        "flag": rocketmq.pull_sys_flag(
            commit_offset=case["commitOffset"],
            suspend=case["suspend"],
            subscription=case["subscription"],
            class_filter=case["classFilter"],
        )
    }


KINDS = {
    "tag": _subscription,
    "FilterAPI.build": _subscription,
    "tagsCode": lambda case: {
        "hashCode": None if case["tags"] is None else rocketmq.hash_code(case["tags"]),
        "tagsCode": rocketmq.tags_code(case["tags"]),
    },
    "md5hash": lambda case: {"hash": int(hash_texts([case["key"]])[0])},
    "names": _names,
    "pull sysFlag": _flag,
    "MessageQueue": _queue,
    "ControllableOffset": _offset,
}
# Names of parts that are out of scope: retry topics of POP mode.
SKIPPED = {"popRetryV1", "popRetryV2", "popRetryDefault"}


def identify(case: dict[str, Any]) -> str:
    return str(case["id"])


def replay(case: dict[str, Any]) -> Verdict:
    kind = case["kind"]
    asked = str({name: value for name, value in case.items() if name not in ("id", "out")})[:300]
    if kind.startswith("consumeTimestamp parse"):
        return compare(asked, case["millis"], rocketmq.parse_consume_timestamp(case["text"]))
    if kind.startswith("sort"):
        got = _sorted(case)
    elif kind in KINDS:
        got = KINDS[kind](case)
    else:
        return unsupported(f"kind {kind}")
    if "error" in case and "error" in got:
        error = case["error"]
        return compare(asked, error["message"] if isinstance(error, dict) else error, got["error"])
    expected = {name: value for name, value in case.items() if name in got}
    for name in ("tagsSet", "codeSet"):
        if name in expected:
            expected[name] = sorted(expected[name])
    missing = "error" in case or {name for name in got if got[name] is not None} - set(case)
    return compare(asked, case if missing else expected, got)
