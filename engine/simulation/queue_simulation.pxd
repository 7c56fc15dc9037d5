"""queue_simulation: one queue, its consumers' workers and a list of arrivals under virtual time (nanoseconds).

The rules are the queue's own: every arrival is a send, every finished piece of work an acknowledgement, each with the
dispatch rounds it causes; this module adds time. A consumer's client processes dispatched messages in order, on
``threads`` workers; a message takes ``services[row] * factor`` there and is acknowledged when it is done. Every
``expire_messages_period`` the queue looks for expired messages, if that can change the outcome.

Invariants: a row is in at most one client's line or at one worker; a worker's entry in the event queue is void once its
client's epoch has moved on (the client left or died). Of events due at one moment, work ends before messages arrive,
both in the order in which they were planned, and the check for expired messages comes last.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from pyengine._engine.simulation.event_queue cimport EventQueue
from pyengine._engine.activemq.queue.queue cimport Queue


cdef struct Client:
    int64_t consumer            # id in the queue
    int64_t epoch
    int64_t head                # rows dispatched to it and not begun, in order; -1 none
    int64_t tail
    int64_t busy_time           # ns of work, finished or not
    int64_t finished
    double factor
    int32_t slot
    int32_t threads
    int32_t busy
    bint dead                   # connected, but begins and finishes no work


cdef struct MaskBit:
    const uint8_t* at           # by row
    int32_t predicate


cdef class RowMask:
    cdef readonly object rows
    cdef const uint8_t* at
    cdef int64_t size


cdef class QueueRun:
    cdef readonly Queue queue
    cdef readonly int64_t now           # ns
    cdef readonly int64_t arrived       # rows sent so far
    cdef readonly object arrivals       # the arrays of the constructor and the results, kept alive
    cdef readonly object services
    cdef readonly object consumers
    cdef readonly object dispatched
    cdef readonly object started
    cdef readonly object finished
    cdef readonly object deliveries
    cdef list kept
    cdef int64_t rows
    cdef int64_t longest                # ns of work of a message, at least 1
    cdef int64_t first                  # sequence of row 0
    cdef const int64_t* arrival
    cdef const int64_t* service
    cdef const int32_t* group
    cdef const int32_t* group_sequence
    cdef const int32_t* priority
    cdef const int64_t* lifetime        # ms, 0 for ever
    cdef int64_t* consumer_of
    cdef int64_t* dispatch_time
    cdef int64_t* start_time
    cdef int64_t* finish_time
    cdef int32_t* delivery_count
    cdef int64_t* next_row              # next row in a client's line
    cdef int32_t* message               # slot in the queue while in flight
    cdef Client* clients
    cdef int32_t client_count
    cdef int32_t client_capacity
    cdef int32_t* client_of             # queue slot -> client, -1
    cdef int32_t slot_capacity
    cdef EventQueue events              # ends of processing: ``subject`` is the client, ``number`` the row
    cdef dict by_consumer               # id -> client
    cdef MaskBit* masks
    cdef int32_t mask_count
    cdef int64_t expiry_period          # ns, 0 for never
    cdef int64_t expiry_page_size       # messages
    cdef int64_t next_expiry_check      # ns
    cdef int64_t latest_expiration      # ms, the latest expiration of a message that arrived, 0 for none
    cdef int64_t last_expiry_check      # ns
    cdef bint changed_since_check       # an event since the last check

    cdef const int64_t* wide(self, str field, object values) except? NULL
    cdef const int32_t* narrow(self, str field, object values) except? NULL
    cdef int add_mask(self, int32_t predicate, RowMask mask) except -1
    cdef int send(self, int64_t row) except -1
    cdef int work_done(self) except -1
    cdef int start_dispatched(self) except -1
    cdef int enqueue_at_client(self, int32_t slot, int64_t row, int32_t message) except -1
    cdef int start_work(self, int32_t client) except -1
    cdef int dispatch(self) except -1
    cdef int check_expiry(self) except -1
    cdef void skip_expiry_checks(self, int64_t moment) noexcept  # the next is then or later
    cdef bint expiry_check_matters(self) noexcept               # may page in or find expired messages
    cdef int32_t client_number(self, consumer) except -1
