"""The pull tasks of one lite pull consumer, and the batches that wait to be polled (PullTaskImpl)."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from pyengine._engine.rocketmq.client.lite_pull import (
    NO_OFFSET,
    AssignedQueues,
    LitePullGate,
    LitePullLimits,
)
from pyengine._engine.rocketmq.client.process_queue import ProcessQueue
from pyengine._engine.rocketmq.client.pull_gate import failed_pull_delay
from pyengine._engine.rocketmq.client.validators import attached
from pyengine.clock import Worker
from pyengine.errors import MQBrokerError, MQClientError
from pyengine.rocketmq.consumer.client import call_later, hand_over, write_log
from pyengine.rocketmq.consumer.context import MemberContext
from pyengine.rocketmq.consumer.lite_pull_parameters import LitePullConsumerParameters
from pyengine.rocketmq.consumer.pulling import kept_messages
from pyengine.rocketmq.message import MessageExt
from pyengine.rocketmq.remoting.mq_client_api import (
    FLAG_LITE_PULL,
    FLAG_SUBSCRIPTION,
    FLAG_SUSPEND,
    PullMessageRequest,
    PullResult,
    PullStatus,
    SubscriptionData,
)
from pyengine.rocketmq.tables.allocation import MessageQueue
from pyengine.visible import logger

log = logger("pyengine.rocketmq")

ALL_BYTES = 2**31 - 1


class Batch(NamedTuple):
    """Messages of one answer that were not polled yet (ConsumeRequest)."""

    messages: list[MessageExt]
    queue: MessageQueue
    process_queue: ProcessQueue


class PullTask:
    """One queue's turns. running: it has one of the consumer's threads, or would have in the real client."""

    __slots__ = ("cancelled", "queue", "running")

    def __init__(self, queue: MessageQueue) -> None:
        self.queue = queue
        self.cancelled = False
        self.running = False


class LitePulling:
    """Pulls from the assigned queues, pull_thread_nums at a time; what comes is put into the cache for poll().

    starting_point: where a queue begins that was never pulled. subscription_of: what is wanted of a topic.
    """

    def __init__(
        self,
        consumer: MemberContext,
        parameters: LitePullConsumerParameters,
        assigned: AssignedQueues,
        starting_point: Callable[[MessageQueue], int],
        subscription_of: Callable[[str], SubscriptionData],
    ) -> None:
        self._consumer = consumer
        self._parameters = parameters
        self._assigned = assigned
        self._starting_point = starting_point
        self._subscription_of = subscription_of
        self._gate = LitePullGate()
        self._tasks: dict[MessageQueue, PullTask] = {}
        self._ready: deque[PullTask] = deque()
        self._busy = 0
        self._cache: deque[Batch] = deque()
        self._lock = threading.RLock()  # by itself: Ctrl-C within Condition.__enter__ would leave it locked
        self._cached = threading.Condition(self._lock)
        self._wakes: list[Callable[[], object]] = []  # of tasks of event loops that wait for a batch
        self._worker: Worker | None = None

    def start(self) -> None:
        """Pull from now on."""
        self._worker = self._consumer.clock.worker(f"PullMsgThread-{self._consumer.group}")

    def close(self) -> None:
        """Pull no more; answers that are on their way are dropped."""
        with self._lock:
            for task in self._tasks.values():
                task.cancelled = True
            self._tasks.clear()
            self._ready.clear()
            worker, self._worker = self._worker, None
            self._wake_tasks()
        if worker is not None:
            worker.close()

    def update(self, queues: Iterable[MessageQueue], topic: str | None = None) -> None:
        """Pull from these and from no others; with a topic from no others of that topic."""
        wanted = list(queues)
        with self._lock:
            for queue in [each for each in self._tasks if topic is None or each.topic == topic]:
                if queue not in wanted:
                    self._tasks.pop(queue).cancelled = True
            new = [self._tasks.setdefault(queue, PullTask(queue)) for queue in wanted if queue not in self._tasks]
        for task in new:
            self._submit(task)

    def restart(self, queue: MessageQueue, offset: int) -> None:
        """Drop what is cached of a queue, and pull it from ``offset`` on, without waiting for the pull at hand."""
        with self._consumer.lock, self._lock:
            found = self._assigned.get(queue)
            if found is None:
                return
            found.process_queue.clear()
            self._cache = deque(batch for batch in self._cache if batch.queue != queue)
            before = self._tasks.pop(queue, None)
            if before is not None:
                before.cancelled = True
            found.seek_offset = offset
            task = self._tasks[queue] = PullTask(queue)
        if before is not None and before.running:
            log.warning("Polling thread was interrupted. (group %s, %s)", self._consumer.group, queue)
            self._free(before)
        self._submit(task)

    def take(self, timeout: int) -> Batch | None:
        """The next batch, waiting at most ``timeout`` ms for one."""
        self._lock.acquire()
        try:
            self._consumer.clock.wait(self._cached, lambda: bool(self._cache), max(0, timeout))
            return self._cache.popleft() if self._cache else None
        finally:
            self._lock.release()

    async def wait_cached(self, seconds: float) -> None:
        """Let other tasks of the event loop run until a batch is cached or nothing is pulled any more, or the time is
        over.
        """
        import asyncio

        loop, woken = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            loop.call_soon_threadsafe(woken.set)

        with self._lock:
            if self._cache or self._worker is None:
                return
            self._wakes.append(wake)
        try:
            with suppress(TimeoutError):  # the caller looks at the cache in either case
                await asyncio.wait_for(woken.wait(), seconds)
        finally:
            with self._lock:
                self._wakes.remove(wake)

    def _wake_tasks(self) -> None:
        for wake in self._wakes:
            wake()

    # -- turns

    def _submit(self, task: PullTask, delay: int = 0) -> None:
        """Give a queue its turn after ``delay`` ms, when a thread is free."""
        if delay:
            clock = self._consumer.clock
            call_later(clock, clock.now() + delay, lambda: self._submit(task))
            return
        with self._lock:
            self._ready.append(task)
        self._next()

    def _next(self) -> None:
        with self._lock:
            while self._worker is not None and self._ready and self._busy < self._parameters.pull_thread_nums:
                task = self._ready.popleft()
                task.running = True
                self._busy += 1
                hand_over(self._worker, partial(self._turn, task))

    def _free(self, task: PullTask) -> None:
        with self._lock:
            if not task.running:
                return
            task.running = False
            self._busy -= 1
        self._next()

    def _turn(self, task: PullTask) -> None:
        consumer, parameters, queue = self._consumer, self._parameters, task.queue
        if task.cancelled:
            self._free(task)
            return
        limits = LitePullLimits(
            consumer.group, parameters.pull_batch_size, parameters.pull_threshold_for_all,
            parameters.pull_threshold_for_queue, parameters.pull_threshold_size_for_queue, parameters.consume_max_span,
        )  # fmt: skip
        with consumer.lock:
            assigned = self._assigned.get(queue)
            verdict = self._gate.examine(queue, assigned, len(self._cache), limits, consumer.clock.now())
        write_log(verdict.log)
        if not verdict.goes or assigned is None:
            self._free(task)
            if verdict.delay is not None:
                self._submit(task, verdict.delay)
            return
        process_queue = assigned.process_queue
        try:
            offset = self._next_offset(queue)
        except Exception:
            log.exception("Failed to get next pull offset (group %s, %s)", consumer.group, queue)
            self._free(task)
            self._submit(task, NO_OFFSET)
            return
        if task.cancelled or process_queue.dropped:
            self._free(task)
            return
        try:
            self._send(task, process_queue, offset)
        except Exception as error:
            self._failed(task, error)

    def _next_offset(self, queue: MessageQueue) -> int:
        with self._consumer.lock:
            assigned = self._assigned.get(queue)
            if assigned is not None and assigned.seek_offset != -1:
                offset = assigned.consume_offset = assigned.seek_offset
                assigned.seek_offset = -1
                return offset
            if assigned is not None and assigned.pull_offset != -1:
                return assigned.pull_offset
        return self._starting_point(queue)

    def _send(self, task: PullTask, process_queue: ProcessQueue, offset: int) -> None:
        parameters, subscription = self._parameters, self._subscription_of(task.queue.topic)
        if offset < 0:
            raise MQClientError(attached("offset < 0"))
        if parameters.pull_batch_size <= 0:
            raise MQClientError(attached("maxNums <= 0"))
        client = self._consumer.running
        request = PullMessageRequest(
            client_id=client.client_id,
            consumer_group=self._consumer.group,
            queue=task.queue,
            queue_offset=offset,
            max_nums=parameters.pull_batch_size,
            max_bytes=ALL_BYTES,
            sys_flag=FLAG_SUSPEND | FLAG_SUBSCRIPTION | FLAG_LITE_PULL,
            suspend_timeout=parameters.broker_suspend_max_time_millis,
            timeout_millis=parameters.consumer_timeout_millis_when_suspend,
            sub_expression=subscription.sub_string,
            sub_version=0 if subscription.expression_type == "TAG" else subscription.sub_version,
            expression_type=subscription.expression_type,
        )
        client.api.pull_message(
            request, lambda answer: client.answer(lambda: self._answered(task, process_queue, subscription, answer))
        )

    def _answered(
        self,
        task: PullTask,
        process_queue: ProcessQueue,
        subscription: SubscriptionData,
        answer: PullResult | Exception | None,
    ) -> None:
        if not isinstance(answer, PullResult):
            self._failed(task, answer or MQClientError("the pull was not answered"))
            return
        self._free(task)
        if task.cancelled or process_queue.dropped:
            return
        queue = task.queue
        messages = kept_messages(queue, subscription, answer) if answer.status is PullStatus.FOUND else []
        if answer.status is PullStatus.OFFSET_ILLEGAL:
            log.warning("The pull request offset illegal, %s (group %s, %s)", answer, self._consumer.group, queue)
        with self._consumer.lock, self._lock:
            assigned = self._assigned.get(queue)
            seeks = assigned is not None and assigned.seek_offset != -1
            if messages and not seeks:
                process_queue.put_messages(messages)
                self._cache.append(Batch(messages, queue, process_queue))
                self._cached.notify()
                self._wake_tasks()
            if assigned is not None and not seeks and assigned.process_queue is process_queue:
                assigned.pull_offset = answer.next_begin_offset
        self._again(task, 0)

    def _failed(self, task: PullTask, error: Exception) -> None:
        self._free(task)
        code = error.code if isinstance(error, MQBrokerError) else None
        log.error(
            "An error occurred in pull message process. (group %s, %s)",
            self._consumer.group,
            task.queue,
            exc_info=error,
        )
        self._again(task, failed_pull_delay(code, self._consumer.exception_delay))

    def _again(self, task: PullTask, delay: int) -> None:
        if task.cancelled:
            log.warning("The Pull Task is cancelled after doPullTask, %s (group %s)", task.queue, self._consumer.group)
        else:
            self._submit(task, delay)
