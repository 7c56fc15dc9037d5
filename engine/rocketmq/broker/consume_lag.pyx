# cython: freethreading_compatible=True
"""Delay and LastConsumeTime of one queue, as RocketMQ's console computes them (spec rocketmq 9)."""

from libc.stdint cimport int64_t


cpdef enum LastConsume:
    KNOWN = 0               # the store time of the last consumed message
    NOTHING_CONSUMED = 1    # shown as 1970: no offset above 0 was committed
    DELETED = 2             # shown as 1970: the last consumed message is no longer stored


def delay(int64_t broker_offset, int64_t consumer_offset):
    """Messages of a queue that the group has not committed; cached and unfinished ones are part of it.

    broker_offset: where the next message will go. consumer_offset: what is committed, below 0 for nothing.
    """
    return max(broker_offset, 0) - max(consumer_offset, 0)


def last_consume(int64_t consumer_offset, store_timestamp):
    """(ms since 1970, why): the store time of the message before the committed offset; 0 where there is none.

    store_timestamp: of the message at ``consumer_offset - 1``, None if it is not stored.
    """
    if consumer_offset <= 0:
        return 0, LastConsume.NOTHING_CONSUMED
    if store_timestamp is None:
        return 0, LastConsume.DELETED
    return store_timestamp, LastConsume.KNOWN
