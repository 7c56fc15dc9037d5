"""Virtual time for one queue; see queue_simulation.pxd."""

import numpy as np

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free

from pyengine._engine.lowlevel.memory cimport allocate, resize
from pyengine._engine.simulation.event_queue cimport NEVER, EventQueue, Event, nanoseconds, time_after, work_factor
from pyengine._engine.activemq.queue.message_slots cimport Message
from pyengine._engine.activemq.queue.rounds cimport Handout

from pyengine._engine.activemq.queue.batches import column
from pyengine.errors import IllegalStateError, InvalidMessageError

cdef enum:
    MILLISECOND = 1_000_000


cdef class RowMask:
    """A selector whose answers are known: row -> bool. Two masks over one array are one predicate."""

    def __cinit__(self, rows):
        cdef const uint8_t[::1] view
        array = np.ascontiguousarray(rows)
        if array.ndim != 1 or array.dtype != np.bool_:
            raise InvalidMessageError("mask", array.dtype, "must be a one-dimensional array of bool")
        self.rows = array
        self.size = array.shape[0]
        if self.size:
            view = array.view(np.uint8)
            self.at = &view[0]

    def matches(self, row):
        """Whether the selector matches the row."""
        cdef int64_t index = row
        if not 0 <= index < self.size:
            raise IndexError(f"row {row} of {self.size}")
        return bool(self.at[index])


cdef class QueueRun:
    """Arrivals, service times and consumers of one queue, moved through time by ``run``.

    queue: without messages yet; its policy and clock-free rules decide everything. arrivals: int64 ns, rising.
    services: int64 ns of work of each message. groups: int32 handles of ``queue.intern_groups``. group_sequences int32
    (0), priorities int32 (4), lifetimes int64 ms (0: for ever). expire_messages_period: ms from one check for expired
    messages to the next (0: none); max_expire_page_size: see ``Queue.expire``.

    Results, by row, -1 if that did not happen: ``consumers`` (id of the last consumer), ``dispatched``,
    ``started``, ``finished`` (ns), and ``deliveries`` (number of dispatches). Raises InvalidMessageError for a
    column that does not fit.
    """

    def __cinit__(self, Queue queue not None, arrivals, services, *, groups=None, group_sequences=None,
                  priorities=None, lifetimes=None, object expire_messages_period=0,
                  int64_t max_expire_page_size=400):
        cdef int64_t[::1] wide
        cdef int32_t[::1] narrow
        cdef int64_t row
        self.queue = queue
        self.rows = len(arrivals)
        self.first = queue.state.next_sequence
        if queue.statistics["size"]:
            raise IllegalStateError("the queue holds messages that did not arrive in this run")
        self.kept = []
        self.by_consumer = {}
        self.events = EventQueue()
        self.arrivals = column("arrivals", arrivals, self.rows, np.int64)
        self.services = column("services", services, self.rows, np.int64)
        if self.rows and (np.diff(self.arrivals) < 0).any():
            raise InvalidMessageError("arrivals", int(np.argmax(np.diff(self.arrivals) < 0)) + 1, "must be in order")
        if self.rows and self.services.min() < 0:
            raise InvalidMessageError("services", int(self.services.min()), "must not be negative")
        self.arrival = self.wide("arrivals", self.arrivals)
        self.service = self.wide("services", self.services)
        self.longest = max(1, self.services.max()) if self.rows else 1
        self.group = self.narrow("groups", groups)
        if self.group != NULL and (np.max(groups) >= queue.groups.size or np.min(groups) < -1):
            raise InvalidMessageError("groups", int(np.max(groups)), "is not a group handle", hint="see intern_groups")
        self.group_sequence = self.narrow("group_sequences", group_sequences)
        self.priority = self.narrow("priorities", priorities)
        self.lifetime = self.wide("lifetimes", lifetimes)
        self.now = self.arrivals[0] if self.rows else 0
        self.expiry_period = nanoseconds(min(max(0, expire_messages_period), NEVER), MILLISECOND)
        self.expiry_page_size = max_expire_page_size
        self.next_expiry_check = time_after(self.now, self.expiry_period) if self.expiry_period else NEVER
        results = [np.full(self.rows, -1, np.int64) for _ in range(4)]
        self.consumers, self.dispatched, self.started, self.finished = results
        self.deliveries = np.zeros(self.rows, np.int32)
        if not self.rows:
            return
        wide = self.consumers
        self.consumer_of = &wide[0]
        wide = self.dispatched
        self.dispatch_time = &wide[0]
        wide = self.started
        self.start_time = &wide[0]
        wide = self.finished
        self.finish_time = &wide[0]
        narrow = self.deliveries
        self.delivery_count = &narrow[0]
        self.next_row = <int64_t*> allocate(self.rows * sizeof(int64_t))
        self.message = <int32_t*> allocate(self.rows * sizeof(int32_t))
        for row in range(self.rows):
            self.message[row] = -1

    def __dealloc__(self):
        free(self.next_row)
        free(self.message)
        free(self.clients)
        free(self.client_of)
        free(self.masks)

    def __reduce__(self):
        raise TypeError("a run cannot be pickled; ship its arrays and create it again")

    cdef const int64_t* wide(self, str field, object values) except? NULL:
        cdef const int64_t[::1] array
        if values is None or not self.rows:
            return NULL
        self.kept.append(column(field, values, self.rows, np.int64))
        array = self.kept[len(self.kept) - 1]
        return &array[0]

    cdef const int32_t* narrow(self, str field, object values) except? NULL:
        cdef const int32_t[::1] array
        if values is None or not self.rows:
            return NULL
        self.kept.append(column(field, values, self.rows, np.int32))
        array = self.kept[len(self.kept) - 1]
        return &array[0]

    def add_consumer(self, *, RowMask mask=None, int threads=1, double factor=1.0, **options):
        """A consumer joins now, with a client of ``threads`` workers whose work takes ``factor`` times as long.

        mask: RowMask of the rows that its selector matches; None all. options: of ``Queue.add_consumer`` (prefetch,
        priority, exclusive, no_local, ...). Returns its id.
        """
        cdef int32_t slot, number
        cdef Client* client
        if threads < 1:
            raise InvalidMessageError("threads", threads, "must be 1 or more")
        work_factor(factor, self.longest)
        consumer = self.queue.add_consumer(selector=mask, **options)
        slot = self.queue.state.slot_of(consumer)
        if mask is not None:
            self.add_mask(self.queue.consumers.at[slot].predicate, mask)
        if self.client_count == self.client_capacity:
            self.client_capacity = max(8, 2 * self.client_capacity)
            self.clients = <Client*> resize(self.clients, self.client_capacity * sizeof(Client))
        number = self.client_count
        self.client_count += 1
        client = &self.clients[number]
        client.consumer = consumer
        client.slot = slot
        client.epoch = client.busy_time = client.finished = 0
        client.head = client.tail = -1
        client.factor = factor
        client.threads = threads
        client.busy = 0
        client.dead = False
        if slot >= self.slot_capacity:
            self.client_of = <int32_t*> resize(self.client_of, 2 * (slot + 8) * sizeof(int32_t))
            self.slot_capacity = 2 * (slot + 8)
        self.client_of[slot] = number
        self.by_consumer[consumer] = number
        self.dispatch()
        return consumer

    cdef int add_mask(self, int32_t predicate, RowMask mask) except -1:
        cdef int32_t index
        if mask.size != self.rows:
            raise InvalidMessageError("mask", mask.size, f"must have one answer a message ({self.rows})")
        self.kept.append(mask)
        for index in range(self.mask_count):
            if self.masks[index].predicate == predicate:
                self.masks[index].at = mask.at
                return 0
        self.masks = <MaskBit*> resize(self.masks, (self.mask_count + 1) * sizeof(MaskBit))
        self.masks[self.mask_count].predicate = predicate
        self.masks[self.mask_count].at = mask.at
        self.mask_count += 1
        return 0

    def set_factor(self, consumer, double factor):
        """From now on the consumer's work takes ``factor`` times as long; work that has begun is not changed."""
        cdef int32_t number = self.client_number(consumer)
        self.clients[number].factor = work_factor(factor, self.longest)

    def kill(self, consumer):
        """The consumer stays connected and stops working: it keeps its messages and acknowledges no more."""
        cdef int32_t number = self.client_number(consumer)
        self.clients[number].dead = True
        self.clients[number].epoch += 1

    def remove_consumer(self, consumer, *, bint lost=False, matching=None):
        """The consumer leaves; its messages are dispatched to the others.

        lost: its connection broke (redelivery counters go up). matching: as of ``Queue.close``; a row's arrival number
        is the row's, counted from that of the first.
        """
        cdef int32_t number = self.client_number(consumer)
        self.clients[number].epoch += 1
        self.clients[number].dead = True
        self.clients[number].head = self.clients[number].tail = -1
        del self.by_consumer[consumer]
        for delivery in self.queue.close(consumer, lost=lost, now=self.now // MILLISECOND, matching=matching):
            message = self.queue.state.message_of(delivery.message)
            row = self.queue.messages.at[<int32_t> message].sequence - self.first
            self.enqueue_at_client(self.queue.state.slot_of(delivery.consumer), row, message)
        self.dispatch()

    def run(self, until=None):
        """Let time pass to ``until`` (ns; None: until nothing is left to happen). Returns the time then."""
        cdef int64_t end = NEVER if until is None else until, next_arrival, next_finish, next_event
        if end < self.now:
            raise ValueError(f"until = {until}: time does not go back (it is {self.now})")
        while True:
            next_finish = self.events.next_time()
            next_arrival = self.arrival[self.arrived] if self.arrived < self.rows else NEVER
            next_event = min(next_arrival, next_finish)
            if self.next_expiry_check < min(next_event, end) and not self.expiry_check_matters():
                if min(next_event, end) == NEVER:
                    break
                self.skip_expiry_checks(min(next_event, end))
            if self.next_expiry_check < next_event and self.next_expiry_check <= end:
                self.check_expiry()
            elif next_finish <= next_arrival:
                if next_finish > end or not self.events.size:
                    break
                self.work_done()
            else:
                if next_arrival > end:
                    break
                self.now = next_arrival
                self.send(self.arrived)
                self.arrived += 1
                self.dispatch()
        if until is not None:
            self.now = end
        return self.now

    def utilisation(self):
        """``{consumer id: (ns of work begun, messages finished)}`` of every consumer that ever joined."""
        cdef int32_t number
        return {self.clients[number].consumer: (self.clients[number].busy_time, self.clients[number].finished)
                for number in range(self.client_count)}

    def _check(self):
        """Assert the invariants; for tests."""
        cdef int32_t number
        cdef int64_t row, index
        found = set()
        for number in range(self.client_count):
            row = self.clients[number].head
            while row >= 0:
                assert row not in found
                found.add(row)
                assert self.consumer_of[row] == self.clients[number].consumer
                assert self.finish_time[row] < 0
                row = self.next_row[row] if row != self.clients[number].tail else -1
            assert 0 <= self.clients[number].busy <= self.clients[number].threads
        self.events._check()
        for index in range(self.events.size):
            if self.events.heap[index].epoch == self.clients[self.events.heap[index].subject].epoch:
                assert self.events.heap[index].number not in found
                found.add(self.events.heap[index].number)
        self.queue._check()

    cdef int32_t client_number(self, consumer) except -1:
        number = self.by_consumer.get(consumer)
        if number is None:
            raise IllegalStateError(f"consumer {consumer!r} is not in this run")
        return number

    cdef int send(self, int64_t row) except -1:
        cdef Queue queue = self.queue
        cdef int32_t number = queue.messages.allot()
        cdef Message* sent = &queue.messages.at[number]
        cdef object body = row
        cdef object bits
        cdef uint64_t word = 1
        cdef int32_t mask
        sent.group = self.group[row] if self.group != NULL else -1
        sent.group_sequence = self.group_sequence[row] if self.group_sequence != NULL else 0
        sent.priority = min(9, max(0, self.priority[row])) if self.priority != NULL else 4
        sent.expiration = 0
        if self.lifetime != NULL and self.lifetime[row] > 0:
            sent.expiration = self.arrival[row] // MILLISECOND + self.lifetime[row]
            self.latest_expiration = max(self.latest_expiration, sent.expiration)
        sent.connection = -1
        Py_INCREF(body)
        sent.body = <PyObject*> body
        if queue.consumers.predicate_count <= 64:
            for mask in range(self.mask_count):
                if self.masks[mask].at[row]:
                    word |= <uint64_t> 1 << self.masks[mask].predicate
            queue.messages.at[number].match = queue.consumers.class_for_words(&word, 1)
        else:
            bits = 1
            for mask in range(self.mask_count):
                if self.masks[mask].at[row]:
                    bits |= 1 << <object> self.masks[mask].predicate
            queue.messages.at[number].match = queue.consumers.class_for(bits, -1)
        return queue.state.accept(number)

    cdef bint expiry_check_matters(self) noexcept:
        return (self.queue.rounds.looks_further(self.expiry_page_size)
                or self.queue.pending.waiting > 0 and self.latest_expiration > 0
                and (self.changed_since_check or self.latest_expiration >= self.last_expiry_check // MILLISECOND))

    cdef void skip_expiry_checks(self, int64_t moment) noexcept:
        cdef int64_t missed = (moment - self.next_expiry_check + self.expiry_period - 1) // self.expiry_period
        self.next_expiry_check = NEVER if missed > (NEVER - self.next_expiry_check) // self.expiry_period else (
            self.next_expiry_check + missed * self.expiry_period)

    cdef int check_expiry(self) except -1:
        self.now = self.next_expiry_check
        self.skip_expiry_checks(self.now + 1)
        self.queue.rounds.out_size = 0
        self.queue.rounds.look_for_expired(self.now // MILLISECOND, self.expiry_page_size)
        self.start_dispatched()
        self.dispatch()
        self.changed_since_check = False
        self.last_expiry_check = self.now
        return 0

    cdef int dispatch(self) except -1:
        self.changed_since_check = True
        self.queue.rounds.out_size = 0
        self.queue.rounds.run_wakeups(self.now // MILLISECOND, -1)
        return self.start_dispatched()

    cdef int start_dispatched(self) except -1:
        cdef int64_t index
        cdef Handout* handout
        for index in range(self.queue.rounds.out_size):
            handout = &self.queue.rounds.out[index]
            if handout.handle >= 0:
                self.enqueue_at_client(handout.slot, handout.sequence - self.first, handout.message)
        self.queue.rounds.out_size = 0
        return 0

    cdef int enqueue_at_client(self, int32_t slot, int64_t row, int32_t message) except -1:
        cdef int32_t number = self.client_of[slot]
        cdef Client* client = &self.clients[number]
        self.message[row] = message
        self.consumer_of[row] = client.consumer
        self.dispatch_time[row] = self.now
        self.delivery_count[row] += 1
        self.start_time[row] = -1
        if client.head < 0:
            client.head = row
        else:
            self.next_row[client.tail] = row
        self.next_row[row] = -1
        client.tail = row
        return self.start_work(number)

    cdef int start_work(self, int32_t number) except -1:
        cdef Client* client = &self.clients[number]
        cdef int64_t row, work
        while client.busy < client.threads and client.head >= 0 and not client.dead:
            row = client.head
            client.head = self.next_row[row]
            if client.head < 0:
                client.tail = -1
            work = <int64_t> (self.service[row] * client.factor)
            client.busy += 1
            client.busy_time = time_after(client.busy_time, work)
            self.start_time[row] = self.now
            self.events.plan(time_after(self.now, work), 0, number, row, client.epoch)
        return 0

    cdef int work_done(self) except -1:
        cdef Event entry = self.events.pop()
        cdef Client* client = &self.clients[entry.subject]
        self.now = entry.time
        if entry.epoch != client.epoch:
            return 0
        client.busy -= 1
        client.finished += 1
        self.finish_time[entry.number] = self.now
        self.queue.state.complete(client.slot, self.message[entry.number])
        self.message[entry.number] = -1
        self.queue.consumers.contract(client.slot, 1)
        self.queue.state.refresh(client.slot)
        self.queue.state.rounds_due += 2
        self.start_work(entry.subject)
        return self.dispatch()
