"""group_simulation: one RocketMQ consumer group on one topic under virtual time (nanoseconds): messages arrive, clients
pull, cache, consume on their threads (concurrently), commit, give back what fails, and rebalance.

The rules are those of the client's own modules: the process queue and its flow control, pull requests, the concurrent
service, committed offsets, the rebalance with its timer, delay levels and retries. This module adds the times of events
and stands for the broker: message queues, committed offsets, held pulls. Rows are the messages' numbers in the
workload; a message costs its row at an offset and its entry in the client's process queue.

Invariants: ``lines[q].rows[offset]`` is the row at an offset; an offset of a line is never used twice; a Share is one
stay of a queue at a client and is over once its process queue is dropped; a batch is at a thread, waits for one at its
client, or is free; a share that holds a pull is in its line's ``held``, and one entry of the event queue watches over
its holds.

While no client has a message, clients persist, check and pull at fixed periods and change nothing. A long stretch of
that is skipped: each periodic event is postponed by whole periods of its own, and the last two periods of the longest
are stepped through, which gives events that fall due together their order.
"""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.simulation.event_queue cimport EventQueue, Event
from pyengine._engine.rocketmq.client.process_queue cimport ProcessQueue, PullLimits
from pyengine._engine.rocketmq.client.pull_gate cimport PullRequest
from pyengine._engine.rocketmq.client.rebalance cimport RebalanceTimer


cdef enum EventKind:
    PULL                # a share's request is next in the pull loop
    PULL_TIMEOUT        # the broker has held a pull as long as it may
    PULL_RESULT         # a pull's result arrives
    LISTENER_RETURN
    RETRY               # a delayed row reaches the retry queue
    REBALANCE           # a client's rebalance service wakes up
    PERSIST             # a client persists its offsets
    CLEAN               # a client looks for messages whose listener exceeds consumeTimeout


cdef struct Batch:
    int64_t first           # offsets
    int64_t end
    int64_t work            # ns
    int32_t share
    int32_t next            # of those that wait at the client, or of the free ones; -1 none


cdef class Line:
    cdef readonly object queue          # the message queue, as the allocation knows it
    cdef int64_t* rows
    cdef int64_t* consume_start         # ms when the client that caches the offset began with it, -1 not yet
    cdef readonly int64_t size
    cdef int64_t capacity
    cdef public int64_t stored          # committed offset at the broker, -1 none
    cdef list held                      # shares whose pull waits for a message

    cdef int append(self, int64_t row) except -1


cdef class Member:
    cdef readonly str name
    cdef readonly int32_t number
    cdef PullLimits limits
    cdef int32_t threads
    cdef int32_t busy
    cdef int64_t batch_size
    cdef int64_t pull_size
    cdef int64_t pull_interval          # ms
    cdef int64_t threshold_for_topic
    cdef int64_t size_for_topic
    cdef int64_t max_reconsume_times
    cdef int64_t consume_timeout        # minutes
    cdef double factor
    cdef bint dead                      # connected, its listeners return no more
    cdef bint gone
    cdef readonly int64_t work          # ns of listeners that returned
    cdef readonly int64_t finished
    cdef readonly int64_t count_holds   # pulls held back by each limit
    cdef readonly int64_t size_holds
    cdef readonly int64_t span_holds
    cdef RebalanceTimer timer
    cdef dict table                     # message queue -> ProcessQueue
    cdef dict shares                    # message queue -> Share
    cdef int32_t head                   # batches that wait for a thread, in order; -1 none
    cdef int32_t tail

    cdef int64_t timeout(self) noexcept          # ns


cdef class Share:
    cdef int32_t number
    cdef Member member
    cdef Line line
    cdef ProcessQueue process
    cdef PullRequest request
    cdef bint held                      # its pull waits for a message
    cdef bint watched                   # its PULL_TIMEOUT is in the event queue
    cdef int64_t held_until             # ns
    cdef int64_t held_order
    cdef int64_t committed              # in the client's memory, -1 none


cdef class PullRun:
    cdef readonly int64_t now           # ns
    cdef readonly int64_t arrived
    cdef readonly object started        # int64 ns by row, -1 never
    cdef readonly object finished
    cdef readonly object stopped        # int64 ns by row: its last start ended so, unfinished; -1: it did not
    cdef readonly object workers        # int64 by row: the client of its last start, -1 none
    cdef readonly object deliveries     # int32 by row
    cdef readonly object dead           # rows that ended as dead letters
    cdef readonly object moments        # [(ns, client, queues)] of each rebalance that changed something
    cdef list kept
    cdef list lines
    cdef dict line_by                   # message queue -> Line
    cdef list members
    cdef list shares                    # all that ever were, by number
    cdef object allocate
    cdef object retry
    cdef object levels
    cdef str topic
    cdef str group
    cdef int64_t rows
    cdef int64_t longest                # ns of work of a message, at least 1
    cdef int64_t round_trip
    cdef int64_t finished_count         # rows that were finished
    cdef int64_t pending_results        # LISTENER_RETURN and RETRY in the heap
    cdef int64_t progressed             # when one of them, an arrival or a pull with messages last was
    cdef int64_t patience               # ns without any after which nothing will happen any more
    cdef int64_t next_idle_check        # ns, when it is next checked whether all clients are idle
    cdef const int64_t* arrival
    cdef const int64_t* service
    cdef const int32_t* line_of
    cdef const int32_t* failures
    cdef const int64_t* sizes
    cdef int64_t* start_time
    cdef int64_t* finish_time
    cdef int64_t* stop_time
    cdef int64_t* worker
    cdef int32_t* delivery_count
    cdef EventQueue events
    cdef Batch* batches
    cdef int32_t batch_capacity
    cdef int32_t batch_free             # first free one, -1 none

    cdef const int64_t* wide(self, str field, object values) except? NULL
    cdef const int32_t* narrow(self, str field, object values) except? NULL
    cdef Member member(self, str name)
    cdef bint remaining(self) except -1
    cdef int plan(self, int64_t time, int kind, int32_t subject) except -1
    cdef int64_t size_of(self, int64_t row) noexcept
    cdef int32_t new_batch(self, Share share, int64_t first, int64_t end) except -1
    cdef int free_batch(self, int32_t number) noexcept
    cdef int arrive(self, Line line, int64_t row) except -1
    cdef int pull(self, Share share) except -1
    cdef int pull_timed_out(self, Event event) except -1
    cdef int pull_result(self, Share share) except -1
    cdef int start_batches(self, Member member) except -1
    cdef int finish_batch(self, int32_t number) except -1
    cdef int rebalance(self, Member member, int64_t delay) except -1
    cdef int clean(self, Member member) except -1
    cdef int stop(self, Member member, Line line, int64_t first, int64_t end) except -1
    cdef int give_back(self, int64_t row, int64_t level, int64_t maximum) except -1
    cdef int share_thresholds(self, Member member) except -1
    cdef int step(self) except -1
    cdef int persist(self, Member member) except -1
    cdef int notify_members(self) except -1
    cdef int64_t period(self, const Event* event) except -1
    cdef int skip(self, int64_t to) except -1
