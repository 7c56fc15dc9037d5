"""Delay and LastConsumeTime of one queue, as RocketMQ's console computes them (spec rocketmq 9)."""

from enum import IntEnum


class LastConsume(IntEnum):
    """KNOWN: the store time of the last consumed message. NOTHING_CONSUMED: shown as 1970, no offset above 0 was
    committed. DELETED: shown as 1970, the last consumed message is no longer stored."""

    KNOWN = 0
    NOTHING_CONSUMED = 1
    DELETED = 2


def delay(broker_offset: int, consumer_offset: int) -> int:
    """Messages of a queue that the group has not committed; cached and unfinished ones are part of it.

    broker_offset: where the next message will go. consumer_offset: what is committed, below 0 for nothing.
    """
    return max(broker_offset, 0) - max(consumer_offset, 0)


def last_consume(consumer_offset: int, store_timestamp: int | None) -> tuple[int, LastConsume]:
    """(ms since 1970, why): the store time of the message before the committed offset; 0 where there is none.

    store_timestamp: of the message at ``consumer_offset - 1``, None if it is not stored.
    """
    if consumer_offset <= 0:
        return 0, LastConsume.NOTHING_CONSUMED
    if store_timestamp is None:
        return 0, LastConsume.DELETED
    return store_timestamp, LastConsume.KNOWN
