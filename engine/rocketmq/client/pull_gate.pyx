"""The pull loop's decisions: flow control, delays, the next offset, and the log lines."""

from libc.stdint cimport INT64_MAX, int64_t

from pyengine._engine.rocketmq.client.process_queue cimport FlowControl, ProcessQueue, PullLimits

from typing import NamedTuple

from pyengine._engine.rocketmq.client.validators import suggested
from pyengine._engine.rocketmq.commands.defaults import (
    CONSUME_CONCURRENTLY_MAX_SPAN, PULL_THRESHOLD_FOR_QUEUE, PULL_THRESHOLD_SIZE_FOR_QUEUE,
    PULL_TIME_DELAY_WHEN_EXCEPTION,
)
from pyengine.visible import one_line

# How long a request waits, ms.
CACHE_FLOW_CONTROL = 50
BROKER_FLOW_CONTROL = 20
SUSPENDED = 1000
cdef int BROKER_CODE_FLOW_CONTROL = 215
cdef int BROKER_CODE_SUBSCRIPTION_NOT_LATEST = 25


cpdef enum PullStep:
    DROP = 0            # the request is gone
    LATER = 1           # put it back after the delay
    FIX_OFFSET = 2      # ask where to start, then fix_offset or fix_failed
    SEND = 3            # look for the subscription and pull
    IMMEDIATELY = 4     # put it back at once
    CONSUME = 5         # cache the messages, have them consumed, put it back after the delay
    ADVANCE = 6         # move the committed offset to next_offset, put it back at once
    ILLEGAL = 7         # commit next_offset, frozen, give the queue up and rebalance
    FORGET = 8          # nothing: only an expired pull brings the queue back


class PullVerdict(NamedTuple):
    """What to do with a request. delay: ms. log: (level, text) lines. problem: what the real client throws, or None."""

    step: int
    delay: int = 0
    log: tuple = ()
    problem: object = None


cdef class PullRequest:
    """One message queue's next pull (org.apache.rocketmq.client.impl.consumer.PullRequest)."""

    def __cinit__(self, str consumer_group, queue, ProcessQueue process_queue not None, int64_t next_offset=0):
        self.consumer_group = consumer_group
        self.queue = queue
        self.process_queue = process_queue
        self.next_offset = next_offset

    cdef bint opens(self, int64_t now) noexcept:
        """The request's turn in the pull loop, before the checks."""
        if self.process_queue.dropped:
            return False
        self.process_queue.last_pull_timestamp = now
        return True

    cdef bint found(self, int64_t next_begin_offset, int64_t first_offset) noexcept:
        """The request goes on behind what was found. False: the broker's numbers go backwards."""
        cdef int64_t before = self.next_offset
        self.next_offset = next_begin_offset
        return next_begin_offset >= before and first_offset >= before

    def __str__(self):
        return (f"PullRequest [consumerGroup={self.consumer_group}, messageQueue={self.queue}, "
                f"nextOffset={self.next_offset}]")


cdef class PullGate:
    """One consumer's rules of pulling. Source: DefaultMQPushConsumerImpl.pullMessage and its callback."""

    def __cinit__(self, str consumer_group):
        self.consumer_group = consumer_group

    cdef object held(self, PullRequest request, int64_t number, str text, str detail):
        """50 ms, and a line at every thousandth time; the real one fails to write it when nothing is cached."""
        if number % 1000:
            return PullVerdict(PullStep.LATER, CACHE_FLOW_CONTROL)
        cdef ProcessQueue cached = request.process_queue
        if cached.cached.count == 0:
            return PullVerdict(PullStep.LATER, CACHE_FLOW_CONTROL, (), "NoSuchElementException")
        line = (f"{text}, so do flow control, minOffset={cached.cached.smallest()}, maxOffset={cached.cached.largest()}"
                f", {detail}, pullRequest={request}, flowControlTimes={number + 1}")
        return PullVerdict(PullStep.LATER, CACHE_FLOW_CONTROL, (("WARN", line),))

    def examine(self, PullRequest request not None, int64_t now, *, str service_state="RUNNING", bint paused=False,
                bint orderly=False, str instance_name="DEFAULT", int64_t exception_delay=PULL_TIME_DELAY_WHEN_EXCEPTION,
                int64_t pull_threshold_for_queue=PULL_THRESHOLD_FOR_QUEUE,
                int64_t pull_threshold_size_for_queue=PULL_THRESHOLD_SIZE_FOR_QUEUE,
                int64_t consume_concurrently_max_span=CONSUME_CONCURRENTLY_MAX_SPAN):
        """Steps 1 to 7 of spec rocketmq 2.2. now: ms. service_state: RUNNING or what the consumer is in instead."""
        cdef ProcessQueue queue = request.process_queue
        cdef int64_t number
        cdef PullLimits limits
        if not request.opens(now):
            return PullVerdict(PullStep.DROP, 0, (("INFO", f"the pull request[{request}] is dropped."),))
        if service_state != "RUNNING":
            state = suggested(f"The consumer service state not OK, {service_state}")
            return PullVerdict(PullStep.LATER, exception_delay, (
                ("WARN", f"pullMessage exception, consumer state not ok\n{state}"),))
        if paused:
            return PullVerdict(PullStep.LATER, SUSPENDED, (
                ("WARN", "consumer was paused, execute pull request later. "
                         f"instanceName={instance_name}, group={self.consumer_group}"),))
        limits = PullLimits(pull_threshold_for_queue, pull_threshold_size_for_queue, consume_concurrently_max_span)
        cdef int verdict = queue.hold(&limits, orderly)
        if verdict == FlowControl.SPAN:
            number = self.queue_max_span_flow_control_times
            self.queue_max_span_flow_control_times += 1
            return self.held(request, number, "the queue's messages, span too long", f"maxSpan={queue.max_span}")
        if verdict != FlowControl.PULL:
            number = self.queue_flow_control_times
            self.queue_flow_control_times += 1
            exceeded = (f"count exceeds the threshold {pull_threshold_for_queue}" if verdict == FlowControl.COUNT
                        else f"size exceeds the threshold {pull_threshold_size_for_queue} MiB")
            return self.held(request, number, f"the cached message {exceeded}",
                             f"count={queue.message_count}, size={queue.message_mebibytes} MiB")
        if orderly and not queue.locked:
            return PullVerdict(PullStep.LATER, exception_delay, (
                ("INFO", f"pull message later because not locked in broker, {request}"),))
        if orderly and not request.previously_locked:
            return PullVerdict(PullStep.FIX_OFFSET)
        return PullVerdict(PullStep.SEND)

    def fix_offset(self, PullRequest request not None, int64_t offset):
        """The first pull under a broker lock starts at ``offset``, lower or higher than planned."""
        busy = offset < request.next_offset
        log = [("INFO", "the first time to pull message, so fix offset from broker. "
                        f"pullRequest: {request} NewOffset: {offset} brokerBusy: {'true' if busy else 'false'}")]
        if busy:
            log.append(("INFO", "[NOTIFYME]the first time to pull message, but pull request offset larger than broker "
                                f"consume offset. pullRequest: {request} NewOffset: {offset}"))
        request.previously_locked = True
        request.next_offset = offset
        return PullVerdict(PullStep.SEND, 0, tuple(log))

    def fix_failed(self, PullRequest request not None, str problem,
                   int64_t exception_delay=PULL_TIME_DELAY_WHEN_EXCEPTION):
        """There is no offset to start from; problem: the error's text."""
        line = f"Failed to compute pull offset, pullResult: {one_line(str(request))}\n{problem}"
        return PullVerdict(PullStep.LATER, exception_delay, (("ERROR", line),))

    def not_subscribed(self, PullRequest request not None, int64_t exception_delay=PULL_TIME_DELAY_WHEN_EXCEPTION):
        """The topic has no subscription (any more)."""
        return PullVerdict(PullStep.LATER, exception_delay, (
            ("WARN", f"find the consumer's subscription failed, {request}"),))

    def not_sent(self, str problem, int64_t exception_delay=PULL_TIME_DELAY_WHEN_EXCEPTION):
        """The pull could not be sent."""
        return PullVerdict(PullStep.LATER, exception_delay, (("ERROR", f"pullKernelImpl exception\n{problem}"),))

    def answered(self, PullRequest request not None, str status, int64_t next_begin_offset, int64_t found=0,
                 int64_t first_offset=INT64_MAX, int64_t pull_interval=0, str result=""):
        """What the broker's answer leads to; next_offset moves with it (spec rocketmq 2.5).

        status: FOUND, NO_NEW_MSG, NO_MATCHED_MSG or OFFSET_ILLEGAL; None: no answer. found: messages left by the
        client's own filter. first_offset: of the first of them. result: the answer's text for the log.
        """
        if status is None:
            return PullVerdict(PullStep.FORGET)
        cdef int64_t before = request.next_offset
        if status == "FOUND":
            if not found:
                first_offset = INT64_MAX
            log = ()
            if not request.found(next_begin_offset, first_offset):
                log = (("WARN", "[BUG] pull message result maybe data wrong, nextBeginOffset: "
                                f"{next_begin_offset} firstMsgOffset: {first_offset} prevRequestOffset: {before}"),)
            if not found:
                return PullVerdict(PullStep.IMMEDIATELY, 0, log)
            return PullVerdict(PullStep.CONSUME, pull_delay(pull_interval), log)
        if status == "OFFSET_ILLEGAL":
            line = f"the pull request offset illegal, {request} {result}"
            request.next_offset = next_begin_offset
            request.process_queue.dropped = True
            return PullVerdict(PullStep.ILLEGAL, 0, (
                ("WARN", line), ("WARN", f"fix the pull request offset, {request}")))
        request.next_offset = next_begin_offset
        return PullVerdict(PullStep.ADVANCE if request.process_queue.message_count == 0 else PullStep.IMMEDIATELY)

    def failed(self, PullRequest request not None, object code, str problem, *, bint retry_topic=False,
               int64_t exception_delay=PULL_TIME_DELAY_WHEN_EXCEPTION):
        """The pull failed. code: the broker's response code, None for any other error; problem: the error's text."""
        log = ()
        if not retry_topic and code == BROKER_CODE_SUBSCRIPTION_NOT_LATEST:
            log = (("WARN", "the subscription is not latest, "
                            f"group={self.consumer_group}, messageQueue={request.queue}"),)
        elif not retry_topic:
            log = (("WARN", f"execute the pull request exception, group={self.consumer_group}, "
                            f"messageQueue={one_line(str(request.queue))}\n{problem}"),)
        return PullVerdict(PullStep.LATER, failed_pull_delay(code, exception_delay), log)


def failed_pull_delay(code, int64_t exception_delay):
    """ms until a queue whose pull failed is pulled again. code: the broker's, None for any other error."""
    return BROKER_FLOW_CONTROL if code == BROKER_CODE_FLOW_CONTROL else exception_delay


def commit_with_pull(int64_t memory_offset, *, bint clustering=True):
    """(commit offset, its bit): what a pull tells the broker (spec rocketmq 2.4). memory_offset: -1 for none."""
    if not clustering:
        return 0, 0
    return memory_offset, 1 if commits_with_pull(memory_offset) else 0


def pull_sys_flag(*, bint commit_offset=False, bint suspend=False, bint subscription=False, bint class_filter=False):
    """The four bits of a pull (PullSysFlag.buildSysFlag)."""
    return commit_offset | suspend << 1 | subscription << 2 | class_filter << 3
