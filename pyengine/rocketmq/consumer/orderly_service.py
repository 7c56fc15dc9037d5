"""Consuming in order: one listener at a time a queue, under the broker's lock (spec rocketmq 6.3)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from pyengine._engine.rocketmq.client.consume_concurrently import return_type
from pyengine._engine.rocketmq.client.consume_orderly import (
    LOCK_FIRST,
    LOCK_PERIOD,
    OrderlyRun,
    OrderlyStep,
    OrderlyVerdict,
    reconsume_after,
)
from pyengine._engine.rocketmq.client.process_queue import ProcessQueue
from pyengine.rocketmq.consumer.client import Periodic, write_log
from pyengine.rocketmq.consumer.consume_service import ConsumeService
from pyengine.rocketmq.consumer.context import ConsumerContext
from pyengine.rocketmq.consumer.listener import ConsumeOrderlyContext, ConsumeOrderlyStatus
from pyengine.rocketmq.consumer.listener_call import Waiting, listed
from pyengine.rocketmq.consumer.push_rebalancing import PushRebalancing
from pyengine.rocketmq.consumer.send_back import restore_topic, send_to_retry_topic
from pyengine.rocketmq.message import MessageExt
from pyengine.rocketmq.tables.allocation import MessageQueue
from pyengine.visible import logger

log = logger("pyengine.rocketmq")

WITHOUT_END = 2**31 - 1
Heard: TypeAlias = tuple[OrderlyVerdict, KeyboardInterrupt | None]


class ConsumeMessageOrderlyService(ConsumeService):
    """Gives each queue's messages to the listener in order, on ``ConsumeMessageThread_<group>_<n>`` threads."""

    statuses = ConsumeOrderlyStatus

    def __init__(self, consumer: ConsumerContext, rebalancing: PushRebalancing) -> None:
        super().__init__(consumer)
        self._rebalancing = rebalancing
        self._locker: Periodic | None = None
        self._turns = threading.Lock()
        self._running: dict[MessageQueue, list[ProcessQueue]] = {}

    def start(self) -> None:
        """In clustering, renew all locks every 20 s, first after 1 s."""
        if self._consumer.clustering:
            self._locker = Periodic(self._consumer.clock, self._scheduled, LOCK_FIRST, LOCK_PERIOD, self._lock_all)

    def shutdown(self, wait: int) -> None:
        """Come back to no queue, wait up to ``wait`` ms for what runs or waits to run, give the locks back."""
        if self._locker is not None:
            self._locker.stop()
        super().shutdown(wait)
        if self._consumer.clustering:
            self._rebalancing.unlock_all()

    def submit(self, messages: list[MessageExt], process_queue: ProcessQueue, queue: MessageQueue, go: bool) -> None:
        """Have a queue drained, if ``go``: otherwise a run is under way already."""
        if go and not self._pool.submit([partial(self.run, process_queue, queue)]):
            log.info("the pool of %s is closed, %s", self._consumer.group, queue)

    def run(
        self,
        process_queue: ProcessQueue,
        queue: MessageQueue,
        rest: Callable[[], KeyboardInterrupt | Waiting | None] | None = None,
    ) -> KeyboardInterrupt | Waiting | None:
        """One run over a queue; a second one waits until the first has ended. Returns the user's own interrupt, if a
        listener was ended by it; one that comes elsewhere is raised, and the queue must be run again. Waiting: a
        listener has not answered; the run goes on with ``rest``."""
        first = rest is not None
        outcome: KeyboardInterrupt | Waiting | None = None
        try:
            with self._turns:
                if not first and queue in self._running:
                    self._running[queue].append(process_queue)
                    return None
                if not first:
                    first = True
                    self._running[queue] = []
            outcome = self._run(process_queue, queue) if rest is None else rest()
            return outcome
        except KeyboardInterrupt:
            with self._consumer.lock:
                process_queue.rollback()
            raise
        finally:
            waiting = []
            if isinstance(outcome, Waiting):
                outcome.rest = partial(self.run, process_queue, queue, outcome.rest)
            elif first:
                with self._turns:
                    waiting = self._running.pop(queue)
            for following in waiting:
                self.submit([], following, queue, True)

    def _run(self, process_queue: ProcessQueue, queue: MessageQueue) -> KeyboardInterrupt | Waiting | None:
        consumer = self._consumer
        run = OrderlyRun(process_queue, queue, clustering=consumer.clustering)
        with consumer.lock:
            verdict = run.start(consumer.clock.now())
        write_log(verdict.log)
        return self._go_on(run, verdict)

    def _go_on(
        self, run: OrderlyRun, verdict: OrderlyVerdict, heard: Heard | None = None
    ) -> KeyboardInterrupt | Waiting | None:
        """Batch after batch. heard: what follows from the one at hand, whose listener had not answered before."""
        consumer = self._consumer
        while heard is not None or verdict.step == OrderlyStep.CONTINUE:
            if heard is None:
                with consumer.lock:
                    verdict = run.next(consumer.clock.now(), consumer.parameters.consume_message_batch_max_size)
                write_log(verdict.log)
            if heard is not None or verdict.step == OrderlyStep.CONSUME:
                found = self._consume(run) if heard is None else heard
                if isinstance(found, Waiting):
                    found.rest = partial(self._heard_later, run, verdict, found.rest)
                    return found
                (verdict, interrupt), heard = found, None
                write_log(verdict.log)
                if interrupt is not None:
                    goes_on = verdict.step == OrderlyStep.CONTINUE
                    self._come_back(run, OrderlyVerdict(OrderlyStep.RESUBMIT) if goes_on else verdict)
                    return interrupt
        self._come_back(run, verdict)
        return None

    def _heard_later(
        self, run: OrderlyRun, verdict: OrderlyVerdict, rest: Callable[[], Heard]
    ) -> KeyboardInterrupt | Waiting | None:
        return self._go_on(run, verdict, rest())

    def _come_back(self, run: OrderlyRun, verdict: OrderlyVerdict) -> None:
        if verdict.step == OrderlyStep.LOCK_LATER:
            self._later(verdict.delay, lambda: self._lock_and_come_back(run))
        elif verdict.step == OrderlyStep.RESUBMIT:
            self._submit_later(run, verdict.delay)

    def _submit_later(self, run: OrderlyRun, delay: int) -> None:
        self._later(delay, lambda: self.submit([], run.process_queue, run.queue, True))

    def _lock_and_come_back(self, run: OrderlyRun) -> None:
        locked = not self._stopped and self._rebalancing.lock(run.queue)
        self._submit_later(run, reconsume_after(locked))

    def _later(self, delay: int, action: Callable[[], None]) -> None:
        if not self._stopped:
            self.delayed.add(delay, action)

    def _lock_all(self) -> None:
        if not self._stopped:
            self._rebalancing.lock_all()

    def _consume(self, run: OrderlyRun) -> Heard | Waiting:
        """The batch through the listener, and what follows from its answer; the user's own interrupt, if it was."""
        consumer, queue = self._consumer, run.queue
        restore_topic(consumer, run.messages)
        context = ConsumeOrderlyContext(queue)
        began = consumer.clock.now()
        self._rebalancing.listener_begins(run.process_queue)
        heard: tuple[Any, bool, KeyboardInterrupt | None] | Waiting | None = None
        try:
            if run.process_queue.dropped:
                return run.dropped(before_listener=True), None
            heard = self.call(run.messages, context, queue, lambda *answer: answer)
        finally:
            if not isinstance(heard, Waiting):
                self._rebalancing.listener_ended(run.process_queue)
        if isinstance(heard, Waiting):
            heard.rest = partial(self._answers_later, run, context, began, heard.rest)
            return heard
        assert heard is not None
        return self._answered(run, context, began, *heard)

    def _answers_later(
        self, run: OrderlyRun, context: ConsumeOrderlyContext, began: int, rest: Callable[[], Any]
    ) -> Heard:
        try:
            answer = rest()
        finally:
            self._rebalancing.listener_ended(run.process_queue)
        return self._answered(run, context, began, *answer)

    def _answered(
        self,
        run: OrderlyRun,
        context: ConsumeOrderlyContext,
        began: int,
        status: ConsumeOrderlyStatus | None,
        raised: bool,
        interrupt: KeyboardInterrupt | None,
    ) -> Heard:
        consumer, queue = self._consumer, run.queue
        elapsed = consumer.clock.now() - began
        name = None if status is None else status.name
        if run.not_ok(name):
            log.warning(
                "consumeMessage Orderly return not OK, Group: %s Msgs: %s MQ: %s",
                consumer.group,
                listed(run.messages),
                queue,
            )
        kind = return_type(name, raised, elapsed, consumer.parameters.consume_timeout)
        consumer.statistics.consumed(queue.topic, consumer.group, elapsed, kind)
        status_name = name or ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT.name
        return self._settle(run, status_name, context), interrupt

    def _settle(self, run: OrderlyRun, status: str, context: ConsumeOrderlyContext) -> OrderlyVerdict:
        consumer = self._consumer
        ok, failed = run.counts(status, auto_commit=context.auto_commit)
        consumer.statistics.settled(run.queue.topic, consumer.group, ok, failed)
        if status == ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT.name:
            for position, message in enumerate(run.messages):
                step = run.check(position, consumer.parameters.max_reconsume_times)
                if step == OrderlyStep.SEND_BACK and not self._send_back(message):
                    run.not_sent_back(position)
        with consumer.lock:
            verdict = run.close(
                status,
                auto_commit=context.auto_commit,
                suspend_millis=context.suspend_current_queue_time_millis,
                configured_millis=consumer.parameters.suspend_current_queue_time_millis,
            )
        if verdict.offset is not None:
            consumer.store.update_offset(run.queue, verdict.offset)
        return verdict

    def _send_back(self, message: MessageExt) -> bool:
        """Send a message whose tries are used up to the retry topic; the broker makes it a dead letter."""
        times = self._consumer.parameters.max_reconsume_times
        try:
            send_to_retry_topic(self._consumer, message, WITHOUT_END if times == -1 else times)
        except Exception as error:
            log.error("sendMessageBack exception, group: %s msg: %s", self._consumer.group, message, exc_info=error)
            return False
        return True
