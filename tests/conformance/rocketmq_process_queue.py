"""rocketmq/process_queue: traces of the real ProcessQueue, result and state after every operation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyengine import rocketmq
from tests.conformance.verdict import Verdict, compare

DELAY_LEVEL = 3


@dataclass
class Record:
    """A message of the recordings: offset, body of a given length, properties."""

    queue_offset: int
    body: bytes | None
    properties: dict[str, str] = field(default_factory=dict)


def _record(row: list[Any]) -> Record:
    offset, size, accumulated = (*row, None)[:3]
    properties = {} if accumulated is None else {"MAX_OFFSET": str(accumulated)}
    return Record(offset, None if size is None else bytes(size), properties)


def _state(queue: rocketmq.ProcessQueue) -> dict[str, Any]:
    return {
        "msgCount": queue.message_count,
        "msgSize": queue.message_size,
        "queueOffsetMax": queue.queue_offset_max,
        "consuming": queue.consuming,
        "msgAccCnt": queue.accumulated,
        "maxSpan": queue.max_span,
        "hasTempMessage": queue.has_temp_message,
        "tree": queue.cached_offsets,
        "consumingTree": queue.taken_offsets,
    }


def _clean_expired(queue: rocketmq.ProcessQueue, known: dict[int, Record], arg: dict[str, Any]) -> dict[str, Any]:
    now = 10_000_000
    for offset, age in arg["consumeStartAgeMs"].items():
        known[int(offset)].properties["CONSUME_START_TIME"] = "" if age == "" else str(now - age)
    sent: list[list[int]] = []
    for _ in range(0 if arg["orderly"] else min(len(queue.cached_offsets), 16)):
        message = queue.expired(now, arg["consumeTimeoutMinutes"])
        if message is None:
            break
        if message.queue_offset in arg["sendBackFails"]:
            continue
        sent.append([message.queue_offset, DELAY_LEVEL])
        queue.remove_messages([message], now=now)
    return {"sentBack": sent}


def _operate(queue: rocketmq.ProcessQueue, known: dict[int, Record], step: dict[str, Any]) -> Any:
    operation, arg = step["op"], step.get("arg")
    if operation in ("putMessage", "removeMessage", "makeMessageToConsumeAgain"):
        records = [_record(row if isinstance(row, list) else [row, 0, None]) for row in arg]
        if operation == "putMessage":
            known.update((record.queue_offset, record) for record in records)
            return queue.put_messages(records)
        if operation == "removeMessage":
            return queue.remove_messages(records)
        return queue.make_message_to_consume_again(records)
    if operation == "takeMessages":
        return [message.queue_offset for message in queue.take_messages(arg)]
    if operation == "containsMessage":
        return queue.contains_message(None if arg is None else Record(arg, None))
    if operation == "fillProcessQueueInfo":
        return {name: value for name, value in queue.info().items() if name in step["result"]}
    if operation == "cleanExpiredMsg":
        return _clean_expired(queue, known, arg)
    return {"commit": queue.commit, "rollback": queue.rollback, "clear": queue.clear}[operation]()


def identify(case: dict[str, Any]) -> str:
    return str(case["id"])


def replay(case: dict[str, Any]) -> Verdict:
    queue = rocketmq.ProcessQueue()
    known: dict[int, Record] = {}
    for number, step in enumerate(case["ops"]):
        try:
            outcome: Any = {"result": _operate(queue, known, step)}
        except (rocketmq.IllegalStateError, ValueError):
            outcome = {"error": True}
        queue._check()
        asked = f"step {number}: {step['op']} {str(step.get('arg'))[:100]}"
        expected: Any = {"error": True} if "error" in step else {"result": step.get("result")}
        verdict = compare(asked, (expected, step["state"]), (outcome, _state(queue)))
        if verdict.kind != "agree":
            return verdict
    return Verdict("agree")
