"""rocketmq/allocate: the real allocation classes' answers, asked of pyengine.rocketmq."""

from __future__ import annotations

from typing import Any

from pyengine import rocketmq
from tests.conformance.verdict import Verdict, compare, unsupported


class _PrefixRoom:
    """The resolver of the recordings: what stands before the first dash."""

    def broker_deploy_in(self, queue: rocketmq.MessageQueue) -> str:
        return queue.broker_name.split("-")[0]

    def consumer_deploy_in(self, client_id: str) -> str:
        return client_id.split("-")[0]


def _queues(rows: list[list[Any]] | None) -> Any:
    return None if rows is None else [rocketmq.MessageQueue(*row) for row in rows]


def _strategy(name: str, config: dict[str, Any]) -> Any:
    if name == "MACHINE_ROOM":
        rooms = config.get("consumeridcs")
        return rocketmq.AllocateMessageQueueByMachineRoom(None if rooms is None else frozenset(rooms))
    if name == "CONFIG":
        queues = _queues(config.get("messageQueueList"))
        return rocketmq.AllocateMessageQueueByConfig(None if queues is None else tuple(queues))
    if name == "CONSISTENT_HASH":
        return rocketmq.AllocateMessageQueueConsistentHash(config.get("virtualNodeCnt", 10))
    if name == "MACHINE_ROOM_NEARBY":
        inner = config.get("inner")
        resolver: Any = None if config.get("resolver", "") is None else _PrefixRoom()
        return rocketmq.AllocateMachineRoomNearby(None if inner is None else _strategy(inner, config), resolver)
    return {
        "AVG": rocketmq.AllocateMessageQueueAveragely,
        "AVG_BY_CIRCLE": rocketmq.AllocateMessageQueueAveragelyByCircle,
    }[name]()


def identify(case: dict[str, Any]) -> str:
    return str(case["id"])


def replay(case: dict[str, Any]) -> Verdict:
    known = {"inner", "resolver", "consumeridcs", "messageQueueList", "virtualNodeCnt"}
    if set(case["config"]) - known:
        return unsupported(f"config {case['config']}")
    asked = f"{case['strategy']} {case['config']} for {case['currentCID']!r}"
    arguments = (case["consumerGroup"], case["currentCID"], _queues(case["queues"]), case["consumers"])
    try:
        strategy = _strategy(case["strategy"], case["config"])
        got: Any = [list(queue) for queue in rocketmq.allocate(strategy, *arguments)]
    except rocketmq.AllocationError as error:
        got = {"class": error.java_class, "message": str(error)}
    if "error" in case:
        return compare(asked, case["error"], got)
    return compare(asked, case["result"] or [], got)
