"""pull_gate: what a consumer does with a pull request, before it is sent and when its answer is here (spec rocketmq 2).

A PullRequest is one message queue's place in the pull loop; a PullGate holds what all requests of a consumer share:
the two counters that thin out the flow-control lines. Invariant: the counters only grow.
"""

from libc.stdint cimport int64_t

from pyengine._engine.rocketmq.client.process_queue cimport ProcessQueue, PullLimits


cdef inline int64_t pull_delay(int64_t pull_interval) noexcept:
    """ms from an answer with messages to the next pull."""
    return pull_interval if pull_interval > 0 else 0


cdef inline bint commits_with_pull(int64_t memory_offset) noexcept:
    """Whether a pull in clustering commits the offset in memory (-1 for none) on the way (spec rocketmq 2.4)."""
    return memory_offset > 0


cdef class PullRequest:
    cdef readonly str consumer_group
    cdef readonly object queue                  # the message queue; its str() is RocketMQ's text
    cdef readonly ProcessQueue process_queue
    cdef public int64_t next_offset
    cdef public bint previously_locked

    cdef bint opens(self, int64_t now) noexcept         # False: the request is gone
    cdef bint found(self, int64_t next_begin_offset, int64_t first_offset) noexcept


cdef class PullGate:
    cdef readonly str consumer_group
    cdef readonly int64_t queue_flow_control_times
    cdef readonly int64_t queue_max_span_flow_control_times

    cdef object held(self, PullRequest request, int64_t number, str text, str detail)
