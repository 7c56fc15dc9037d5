"""RocketMQ's client side: which client of a group owns which message queue."""

from pyengine.errors import AllocationError
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
    "MachineRoomResolver",
    "MessageQueue",
    "allocate",
    "allocate_all",
    "sort_client_ids",
    "sort_queues",
]
