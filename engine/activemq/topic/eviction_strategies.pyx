"""Pending limits and eviction strategies of topic subscriptions (spec activemq 3.4, 3.5)."""

from collections.abc import Mapping

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.message.message cimport Message
from pyengine._engine.activemq.topic.message_references cimport MessageReferences

from pyengine.errors import ConfigurationError
from pyengine.whole_numbers import whole_number_from


cdef class PendingLimit:
    """Limit of the messages that wait for one consumer of a topic beyond its prefetch; base class of the strategies."""

    def __reduce__(self):
        return type(self), ()

    cdef int64_t limit_for(self, int64_t prefetch) except? -2:
        return -1


cdef class ConstantPendingLimit(PendingLimit):
    """constantPendingMessageLimitStrategy: ``limit`` messages; -1 (the default): any number, 0: none."""

    def __cinit__(self, limit=-1):
        self.limit = whole_number_from("constantPendingMessageLimitStrategy.limit", limit, -(2**31), 2**31 - 1)

    def __reduce__(self):
        return type(self), (self.limit,)

    cdef int64_t limit_for(self, int64_t prefetch) except? -2:
        return self.limit


cdef class PrefetchRatePendingLimit(PendingLimit):
    """prefetchRatePendingMessageLimitStrategy: ``multiplier`` (0.5) times the prefetch size, cut to a whole number."""

    def __cinit__(self, multiplier=0.5):
        if isinstance(multiplier, bool) or not isinstance(multiplier, (int, float)):
            raise ConfigurationError("prefetchRatePendingMessageLimitStrategy.multiplier", multiplier, "not a number")
        self.multiplier = multiplier

    def __reduce__(self):
        return type(self), (self.multiplier,)

    cdef int64_t limit_for(self, int64_t prefetch) except? -2:
        # As Java converts a double to an int: cut, held within the range, NaN is 0.
        cdef double product = prefetch * self.multiplier
        if product != product:
            return 0
        return <int64_t> max(-2147483648.0, min(2147483647.0, product))


cdef int64_t pending_limit(object strategy, int64_t prefetch, int64_t consumer_limit) except? -2:
    cdef int64_t limit
    if strategy is None:
        return -1
    if isinstance(strategy, PendingLimit):
        limit = (<PendingLimit> strategy).limit_for(prefetch)
    else:
        limit = whole_number_from("pendingMessageLimitStrategy", strategy(prefetch), -(2**31), 2**31 - 1)
    if consumer_limit > 0 and (limit < 0 or consumer_limit < limit):
        limit = consumer_limit
    return limit if limit >= 0 else -1


def maximum_pending_messages(strategy, prefetch, consumer_limit=0):
    """The limit of a subscription; -1: none.

    strategy: a PendingLimit, any callable from the prefetch size to a limit, or None, with which the consumer's own
    limit has no effect. consumer_limit: the consumer's maximumPendingMessageLimit; it counts if it is above 0 and
    smaller than the strategy's (PolicyEntry.configure).
    """
    return pending_limit(strategy, prefetch, consumer_limit)


cdef object property_key(object body, str name):
    cdef object value
    if not isinstance(body, Message):
        if not isinstance(body, Mapping):
            return None
        if name not in body:
            return None
        body = Message({name: body[name]})
    if not (<Message> body).count:
        return None
    kind = body.property_types().get(name)
    if kind is None:
        return None
    value = body.properties()[name]
    if kind in ("float", "double"):
        return kind, float(value).hex()
    if kind == "object":
        return kind, repr(value)
    return kind, value


cdef class Eviction:
    """Which waiting message goes when too many wait; the base of the strategies.

    high_watermark: evictExpiredMessagesHighWatermark (1000): when more than min(this, the limit) messages wait, one
    expired message is looked for and removed before anything is evicted. expiry_check: expiryCheckEnabled (True).
    """

    def __cinit__(self, *arguments, high_watermark=1000, expiry_check=True, **named):
        self.high_watermark = whole_number_from(
            "evictExpiredMessagesHighWatermark", high_watermark, -(2**31), 2**31 - 1)
        self.expiry_check = expiry_check

    def __reduce__(self):
        return rebuild, (type(self), self.arguments(), self.high_watermark, self.expiry_check)

    def arguments(self):
        """Arguments of the constructor except the two settings that every strategy has."""
        return ()

    cdef list choose(self, MessageReferences messages, list candidates):
        return []


def rebuild(kind, arguments, high_watermark, expiry_check):
    """An eviction strategy from its settings, for pickle."""
    return kind(*arguments, high_watermark=high_watermark, expiry_check=expiry_check)


cdef class OldestEviction(Eviction):
    """oldestMessageEvictionStrategy, the default: the message that waits longest."""

    cdef list choose(self, MessageReferences messages, list candidates):
        return [0]


cdef class LowestPriorityEviction(Eviction):
    """oldestMessageWithLowestPriorityEvictionStrategy: the oldest of the lowest priority, maybe the newest arrival."""

    cdef list choose(self, MessageReferences messages, list candidates):
        cdef int32_t message
        cdef int lowest = 127
        cdef Py_ssize_t index, pivot = 0
        for index in range(len(candidates)):
            message = candidates[index]
            if messages.at[message].priority < lowest:
                lowest = messages.at[message].priority
                pivot = index
        return [pivot]


cdef class UniquePropertyEviction(Eviction):
    """uniquePropertyMessageEvictionStrategy: of each value of a property only the newest message (by timestamp) stays.

    All others go at once, messages without the property included. If no message has it, or nothing would go, the
    oldest one goes. property_name: None: no message has it.
    """

    def __cinit__(self, property_name=None, **settings):
        self.property_name = property_name

    def arguments(self):
        return (self.property_name,)

    cdef list choose(self, MessageReferences messages, list candidates):
        cdef int32_t message
        cdef Py_ssize_t index
        cdef dict pivots = {}
        cdef set kept
        cdef object key, pivot
        if self.property_name is not None:
            for index in range(len(candidates)):
                message = candidates[index]
                if messages.at[message].body == NULL:
                    continue
                key = property_key(<object> messages.at[message].body, self.property_name)
                if key is None:
                    continue
                pivot = pivots.get(key)
                if pivot is None or messages.at[message].timestamp > messages.at[<int32_t> candidates[pivot]].timestamp:
                    pivots[key] = index
        if not pivots or len(pivots) == len(candidates):
            return [0]
        kept = set(pivots.values())
        return [index for index in range(len(candidates)) if index not in kept]


cdef class CustomEviction(Eviction):
    """A strategy of the user's own: a callable from the candidates to those of them that are discarded.

    It is asked with a list of the sent objects, oldest first: the first 1000, or as many as are too many. Nothing
    returned, or something that is not a candidate, discards nothing and is reported.
    """

    def __cinit__(self, strategy, **settings):
        if not callable(strategy):
            raise ConfigurationError("messageEvictionStrategy", strategy, "must be callable")
        self.strategy = strategy

    def arguments(self):
        return (self.strategy,)

    cdef list choose(self, MessageReferences messages, list candidates):
        cdef int32_t message
        cdef list bodies = [], result = []
        cdef Py_ssize_t index
        for message in candidates:
            bodies.append(<object> messages.at[message].body)
        for victim in self.strategy(list(bodies)):
            for index in range(len(bodies)):
                if bodies[index] is victim and index not in result:
                    result.append(index)
                    break
            else:
                raise ConfigurationError(
                    "messageEvictionStrategy", victim, "is not one of the messages the strategy was asked about")
        return result
