"""RocketMQ's client side: which client owns which message queue, and which offset is safe to commit."""

from pyengine._engine.process_queue import FlowControl, ProcessQueue
from pyengine.errors import AllocationError, IllegalStateError
from pyengine.rocketmq.allocation import (
    AllocateMachineRoomNearby,
    AllocateMessageQueueAveragely,
    AllocateMessageQueueAveragelyByCircle,
    AllocateMessageQueueByConfig,
    AllocateMessageQueueByMachineRoom,
    AllocateMessageQueueConsistentHash,
    MachineRoomResolver,
    MessageQueue,
    allocate,
    allocate_all,
    sort_client_ids,
    sort_queues,
)

__all__ = [
    "AllocateMachineRoomNearby",
    "AllocateMessageQueueAveragely",
    "AllocateMessageQueueAveragelyByCircle",
    "AllocateMessageQueueByConfig",
    "AllocateMessageQueueByMachineRoom",
    "AllocateMessageQueueConsistentHash",
    "AllocationError",
    "FlowControl",
    "IllegalStateError",
    "MachineRoomResolver",
    "MessageQueue",
    "ProcessQueue",
    "allocate",
    "allocate_all",
    "sort_client_ids",
    "sort_queues",
]
