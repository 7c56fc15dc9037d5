"""pull_run: one RocketMQ consumer group on one topic under virtual time (nanoseconds): messages arrive, clients pull,
cache, consume on their threads (concurrently), commit, give back what fails, and rebalance.

The rules are those of the client's own rooms: the process queue and its flow control, the pull gate, consume requests,
the rebalance with its timer, delay levels and retries. This room only knows when things happen, and stands for the
broker: message queues, committed offsets, held pulls. Rows are the messages' numbers in the workload.

Invariants: ``lines[q].rows[offset]`` is the row at an offset; an offset of a line is never used twice; a Share is one
stay of a queue at a client and is over once its process queue is dropped; what is due lies in the heap once.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t

from pyengine._engine.process_queue cimport ProcessQueue
from pyengine._engine.pull cimport PullGate, PullRequest
from pyengine._engine.rebalance cimport RebalanceTimer


cdef enum What:
    PULL        # a Share's request is next in the pull loop
    ANSWER      # a pull's answer is here
    DONE        # a listener returns
    RETRY       # a delayed row reaches the retry queue
    REBALANCE   # a client's rebalance service looks
    PERSIST     # a client writes its offsets
    CLEAN       # a client looks for messages whose listener takes too long


cdef struct Due:
    int64_t time
    int64_t order
    int64_t number      # row of RETRY, work of DONE (ns)
    PyObject* who       # owned: a Share, a Batch or a Member
    int what


cdef class Stored:
    cdef readonly int64_t queue_offset
    cdef readonly object body           # of the row's size, or None
    cdef readonly dict properties
    cdef int64_t row


cdef class Line:
    cdef readonly object queue          # the message queue, as the allocation knows it
    cdef int64_t* rows
    cdef readonly int64_t size
    cdef int64_t room
    cdef public int64_t stored          # committed offset at the broker, -1 none
    cdef list held                      # shares whose pull waits for a message

    cdef int append(self, int64_t row) except -1


cdef class Member:
    cdef readonly str name
    cdef readonly object settings       # of the pull gate, by name
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
    cdef PullGate gate
    cdef RebalanceTimer timer
    cdef dict table                     # message queue -> ProcessQueue
    cdef dict shares                    # message queue -> Share
    cdef object waiting                 # batches that wait for a thread


cdef class Share:
    cdef Member member
    cdef Line line
    cdef ProcessQueue process
    cdef PullRequest request
    cdef int64_t holds                  # counts holds, from 1; one that is over has an older number
    cdef int64_t committed              # in the client's memory, -1 none


cdef class Batch:
    cdef Share share
    cdef object request                 # ConsumeRequest


cdef class PullRun:
    cdef readonly int64_t now           # ns
    cdef readonly int64_t arrived
    cdef readonly object started        # int64 ns by row, -1 never
    cdef readonly object finished
    cdef readonly object deliveries     # int32 by row
    cdef readonly object dead           # rows that ended as dead letters
    cdef readonly object moments        # [(ns, client, queues)] of each rebalance that changed something
    cdef list kept
    cdef list lines
    cdef list members
    cdef object allocate
    cdef object retry
    cdef object levels
    cdef str topic
    cdef str group
    cdef int64_t rows
    cdef int64_t round_trip
    cdef int64_t ends                   # rows that were finished
    cdef int64_t moving                 # DONE and RETRY in the heap
    cdef int64_t progressed             # when one of them, an arrival or a pull with messages last was
    cdef int64_t patience               # ns without any after which nothing will happen any more
    cdef const int64_t* arrival
    cdef const int64_t* service
    cdef const int32_t* line_of
    cdef const int32_t* failures
    cdef const int64_t* sizes
    cdef int64_t* began
    cdef int64_t* ended
    cdef int32_t* times
    cdef Due* heap
    cdef int64_t heap_size
    cdef int64_t heap_room
    cdef int64_t orders

    cdef const int64_t* wide(self, str field, object values) except? NULL
    cdef const int32_t* narrow(self, str field, object values) except? NULL
    cdef Member member(self, str name)
    cdef bint remaining(self) except -1
    cdef int plan(self, int64_t time, int what, object who, int64_t number=*) except -1
    cdef Due pop(self) noexcept
    cdef int arrive(self, Line line, int64_t row) except -1
    cdef int pull(self, Share share, int64_t hold) except -1
    cdef int answer(self, Share share) except -1
    cdef int begin(self, Member member) except -1
    cdef int done(self, Batch batch, int64_t work) except -1
    cdef int rebalance(self, Member member, int64_t delay) except -1
    cdef int clean(self, Member member) except -1
    cdef int give_back(self, int64_t row, int64_t level, int64_t maximum) except -1
    cdef int share_thresholds(self, Member member) except -1
    cdef int step(self) except -1
    cdef int persist(self, Member member) except -1
    cdef int tell(self) except -1
