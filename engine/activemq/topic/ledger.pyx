"""Deliveries and events of a region of topics; see ledger.pxd."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from pyengine._engine.lowlevel.memory cimport resize
from pyengine._engine.activemq.topic.message_references cimport References

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


cdef class Ledger(References):
    """Internal to a region of topics; see ledger.pxd."""

    def __cinit__(self):
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
            memset(&larger[self.counts_room], 0, (room - self.counts_room) * sizeof(Counts))
            for index in range(self.counts_room, room):
                larger[index].stored_first = larger[index].stored_last = -1
            self.counts = larger
            self.counts_room = room
        return 0

    cdef int deliver(self, int64_t consumer, int32_t message, int32_t redeliveries) except -1:
        cdef TopicDelivery it = TopicDelivery.__new__(TopicDelivery)
        cdef PyObject* body = self.at[message].body
        it.consumer = consumer
        if self.handed is None or <int64_t> self.handed != self.at[message].handle:
            self.handed = self.at[message].handle
        it.message = self.handed
        it.body = <object> body
        it.redeliveries = redeliveries
        it.topic = self.at[message].topic
        self.out.append(it)
        return 0

    cdef int deliver_nothing(self, int64_t consumer) except -1:
        self.out.append(TopicDelivery(consumer, None, None, 0, -1))
        return 0

    cdef int report(self, int kind, object consumer, int32_t topic, int32_t message, object detail) except -1:
        cdef Event it = Event.__new__(Event)
        cdef PyObject* body
        it.kind = KINDS[kind]
        it.consumer = consumer
        it.detail = detail
        if message >= 0:
            body = self.at[message].body
            it.message = self.at[message].handle
            it.body = <object> body
            it.topic = self.at[message].topic
        else:
            it.topic = None if topic < 0 else topic
        self.out.append(it)
        return 0

    cdef int store(self, int32_t reference, int64_t consumer, bint telling) except -1:
        # A store keeps a durable subscription's reference to a persistent message.
        cdef int32_t message = self.refs[reference].message
        cdef Counts* counts = &self.counts[self.at[message].topic]
        self.refs[reference].stored = 1
        self.at[message].stored += 1
        if self.at[message].stored == 1:
            counts.stored += 1
        if self.at[message].stored == 1 and self.pager is None:
            self.at[message].stored_before = counts.stored_last
            self.at[message].stored_after = -1
            if counts.stored_last >= 0:
                self.at[counts.stored_last].stored_after = message
            else:
                counts.stored_first = message
            counts.stored_last = message
        if telling:
            self.report(EventKind.STORED, consumer, -1, message, None)
        return 0

    cdef int unstore(self, int32_t reference, int64_t consumer, bint telling) except -1:
        cdef int32_t message = self.refs[reference].message, before, after
        cdef Counts* counts = &self.counts[self.at[message].topic]
        if not self.refs[reference].stored:
            return 0
        self.refs[reference].stored = 0
        self.at[message].stored -= 1
        if self.at[message].stored == 0:
            counts.stored -= 1
        if self.at[message].stored == 0 and self.pager is None:
            before, after = self.at[message].stored_before, self.at[message].stored_after
            if before >= 0:
                self.at[before].stored_after = after
            else:
                counts.stored_first = after
            if after >= 0:
                self.at[after].stored_before = before
            else:
                counts.stored_last = before
        if telling:
            self.report(EventKind.RELEASED, consumer, -1, message, None)
        return 0

    cdef int give_up_message(self, int32_t message) except -1:
        cdef PyObject* body = self.at[message].body
        self.given_up.append(self.at[message].handle)
        self.given_up.append(<object> body)
        return 0

    cdef list take(self):
        cdef list result = self.out
        self.out = []
        return result

    cdef list load(self, object subscription, int32_t topic, tuple after, int64_t limit):
        # Events for the store come first.
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
        self.busy = True
        try:
            return list(self.pager(changes, subscription, topic, after, limit))
        finally:
            self.busy = False

    cdef int32_t bring(self, int32_t topic, object body, int64_t handle) except -1:
        raise NotImplementedError
