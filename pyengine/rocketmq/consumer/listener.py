"""Message listeners: what they are given and what they answer (spec rocketmq 6)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from enum import Enum
from typing import Any, TypeAlias

from pyengine.attributes import Declared, frozen, named_arguments
from pyengine.dataclass import dataclass
from pyengine.errors import ConfigurationError
from pyengine.rocketmq.message import MessageExt
from pyengine.rocketmq.tables.allocation import MessageQueue


class ConsumeConcurrentlyStatus(Enum):
    """CONSUME_SUCCESS: the messages up to the context's ack_index are done. RECONSUME_LATER: none is."""

    CONSUME_SUCCESS = "CONSUME_SUCCESS"
    RECONSUME_LATER = "RECONSUME_LATER"


class ConsumeOrderlyStatus(Enum):
    """SUCCESS: done. SUSPEND_CURRENT_QUEUE_A_MOMENT: try these again soon. COMMIT, ROLLBACK: without auto_commit."""

    SUCCESS = "SUCCESS"
    ROLLBACK = "ROLLBACK"
    COMMIT = "COMMIT"
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "SUSPEND_CURRENT_QUEUE_A_MOMENT"


@named_arguments
@dataclass(slots=True)
class ConsumeConcurrentlyContext(Declared):
    """What a concurrent listener can set for one batch.

    ack_index: the last message that is done; by default all, -1: none. delay_level_when_next_consume: of what failed:
    0 = the broker chooses by the number of tries, 1..18 = that delay level, -1 = to the dead letters at once.
    """

    message_queue: MessageQueue
    delay_level_when_next_consume: int = 0
    ack_index: int = 2**31 - 1


@named_arguments
@dataclass(slots=True)
class ConsumeOrderlyContext(Declared):
    """What an ordered listener can set for one batch.

    auto_commit: False leaves the batch open until COMMIT or ROLLBACK. suspend_current_queue_time_millis: how long the
    queue rests after a failure, 10..30000 ms; -1: the consumer's own value.
    """

    message_queue: MessageQueue
    auto_commit: bool = True
    suspend_current_queue_time_millis: int = -1


Concurrently: TypeAlias = Callable[
    [Sequence[MessageExt], ConsumeConcurrentlyContext],
    ConsumeConcurrentlyStatus | Coroutine[Any, Any, ConsumeConcurrentlyStatus | None] | None,
]
Orderly: TypeAlias = Callable[
    [Sequence[MessageExt], ConsumeOrderlyContext],
    ConsumeOrderlyStatus | Coroutine[Any, Any, ConsumeOrderlyStatus | None] | None,
]


def _check(listener: object) -> None:
    if not callable(listener):
        hint = "give a function of (messages, context) that returns a status"
        raise ConfigurationError("listener", repr(listener), "cannot be called", hint)


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class MessageListenerConcurrently:
    """A listener for messages in any order, on many threads. consume_message: (messages, context) -> status.

    A coroutine function may stand for a function. None and an exception count as RECONSUME_LATER. Raises
    ConfigurationError for what cannot be called.
    """

    consume_message: Concurrently

    def __post_init__(self) -> None:
        _check(self.consume_message)


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class MessageListenerOrderly:
    """A listener for each queue's messages in their order. consume_message: (messages, context) -> status.

    A coroutine function may stand for a function. None and an exception count as SUSPEND_CURRENT_QUEUE_A_MOMENT.
    Raises ConfigurationError for what cannot be called.
    """

    consume_message: Orderly

    def __post_init__(self) -> None:
        _check(self.consume_message)


MessageListener: TypeAlias = MessageListenerConcurrently | MessageListenerOrderly


class MessageQueueListener:
    """Told after each change of the assignment; override message_queue_changed."""

    def message_queue_changed(self, topic: str, all_queues: set[MessageQueue], mine: set[MessageQueue]) -> None:
        """topic: what changed. all_queues: of the topic. mine: this consumer's."""
