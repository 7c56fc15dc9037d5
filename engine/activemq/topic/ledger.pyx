"""Deliveries and events of a region of topics; see ledger.pxd."""

cimport cython
from cython cimport final
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from pyengine._engine.lowlevel.memory cimport resize
from pyengine._engine.activemq.topic.message_references cimport MessageReferences, Post

cdef dict KINDS = {int(kind): kind for kind in EventKind}


@cython.freelist(256)
cdef class TopicDelivery:
    """One message of a topic dispatched to one subscription. ``message`` is its handle, or None for the null dispatch
    that
    ends a pull; ``body`` the object that was sent; ``redeliveries`` the broker's counter; ``topic`` the number of its
    topic (-1: the null dispatch)."""

    def __init__(self, consumer, message, body, redeliveries, topic):
        self.consumer = consumer
        self.message = message
        self.body = body
        self.redeliveries = redeliveries
        self.topic = topic

    def __repr__(self):
        return (f"TopicDelivery(consumer={self.consumer}, message={self.message}, body={self.body!r}, "
                f"redeliveries={self.redeliveries}, topic={self.topic})")

    def __reduce__(self):
        return TopicDelivery, (self.consumer, self.message, self.body, self.redeliveries, self.topic)


cdef class Event:
    """An event other than a delivery: ``kind`` (EventKind), and, if applicable, the number of the topic, the
    subscription's id, the message's handle and object, and a detail."""

    def __init__(self, kind, topic=None, consumer=None, message=None, body=None, detail=None):
        self.kind = kind
        self.topic = topic
        self.consumer = consumer
        self.message = message
        self.body = body
        self.detail = detail

    def __repr__(self):
        return (f"Event({self.kind.name}, topic={self.topic}, consumer={self.consumer}, message={self.message}, "
                f"body={self.body!r}, detail={self.detail!r})")

    def __reduce__(self):
        return Event, (self.kind, self.topic, self.consumer, self.message, self.body, self.detail)


@final
cdef class Ledger:
    """Internal to a region of topics; see ledger.pxd."""

    def __cinit__(self, MessageReferences messages not None, bint expired_as_discarded, bint chained):
        self.messages = messages
        self.expired_as_discarded = expired_as_discarded
        self.chained = chained
        self.out = []
        self.given_up = []

    def __dealloc__(self):
        free(self.counts)

    cdef int reserve_counts(self, int32_t topics) except -1:
        cdef int32_t room, index
        cdef Counts* larger
        if topics > self.counts_room:
            room = max(16, 2 * topics)
            larger = <Counts*> resize(self.counts, room * sizeof(Counts))
            self.counts = larger
            for index in range(self.counts_room, room):
                self.reset_counts(index)
            self.counts_room = room
        return 0

    cdef void reset_counts(self, int32_t topic) noexcept:
        memset(&self.counts[topic], 0, sizeof(Counts))
        self.counts[topic].stored_first = self.counts[topic].stored_last = -1

    cdef int deliver(self, int64_t consumer, int32_t message, int32_t redeliveries) except -1:
        cdef TopicDelivery delivery = TopicDelivery.__new__(TopicDelivery)
        cdef const Post* post = &self.messages.at[message]
        delivery.consumer = consumer
        if self.latest is None or <int64_t> self.latest != post.handle:
            self.latest = post.handle
        delivery.message = self.latest
        delivery.body = <object> post.body
        delivery.redeliveries = redeliveries
        delivery.topic = post.topic
        self.out.append(delivery)
        return 0

    cdef int deliver_nothing(self, int64_t consumer) except -1:
        self.out.append(TopicDelivery(consumer, None, None, 0, -1))
        return 0

    cdef int report(self, int kind, object consumer, int32_t topic, int32_t message, object detail) except -1:
        # topic: of an event without a message.
        cdef Event event = Event.__new__(Event)
        cdef const Post* post
        event.kind = KINDS[kind]
        event.consumer = consumer
        event.detail = detail
        if message >= 0:
            post = &self.messages.at[message]
            event.message = post.handle
            event.body = <object> post.body
            event.topic = post.topic
        else:
            event.topic = None if topic < 0 else topic
        self.out.append(event)
        return 0

    cdef int store(self, int32_t reference, int64_t consumer, bint reported) except -1:
        # A store keeps a durable subscription's reference to a persistent message.
        cdef Post* at = self.messages.at
        cdef int32_t message = self.messages.refs[reference].message
        cdef Counts* counts = &self.counts[at[message].topic]
        self.messages.refs[reference].stored = 1
        at[message].stored += 1
        if at[message].stored == 1:
            counts.stored += 1
        if at[message].stored == 1 and self.chained:
            at[message].stored_before = counts.stored_last
            at[message].stored_after = -1
            if counts.stored_last >= 0:
                at[counts.stored_last].stored_after = message
            else:
                counts.stored_first = message
            counts.stored_last = message
        if reported:
            self.report(EventKind.STORED, consumer, -1, message, None)
        return 0

    cdef int unstore(self, int32_t reference, int64_t consumer, bint reported) except -1:
        cdef Post* at = self.messages.at
        cdef int32_t message = self.messages.refs[reference].message, before, after
        cdef Counts* counts = &self.counts[at[message].topic]
        if not self.messages.refs[reference].stored:
            return 0
        self.messages.refs[reference].stored = 0
        at[message].stored -= 1
        if at[message].stored == 0:
            counts.stored -= 1
        if at[message].stored == 0 and self.chained:
            before, after = at[message].stored_before, at[message].stored_after
            if before >= 0:
                at[before].stored_after = after
            else:
                counts.stored_first = after
            if after >= 0:
                at[after].stored_before = before
            else:
                counts.stored_last = before
        if reported:
            self.report(EventKind.RELEASED, consumer, -1, message, None)
        return 0

    cdef int give_up_message(self, int32_t message) except -1:
        self.given_up.append(self.messages.at[message].handle)
        self.given_up.append(<object> self.messages.at[message].body)
        return 0

    cdef list take(self):
        cdef list result = self.out
        self.out = []
        return result

    cdef list take_changes(self):
        cdef Event event
        cdef list changes = [], others = []
        for item in self.out:
            if type(item) is Event:
                event = item
                if event.kind is EventKind.STORED or event.kind is EventKind.RELEASED:
                    changes.append(event)
                    continue
            others.append(item)
        self.out = others
        return changes
