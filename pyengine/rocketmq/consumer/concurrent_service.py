"""Consuming concurrently: batches on a pool of threads, results, retries and timeouts (spec rocketmq 6.2)."""

from __future__ import annotations

from functools import partial

from pyengine._engine.rocketmq.client.consume_concurrently import (
    EXPIRED_AT_ONCE,
    EXPIRED_DELAY_LEVEL,
    RESUBMIT_DELAY,
    ConsumeRequest,
    rejected,
    return_type,
    slices,
)
from pyengine._engine.rocketmq.client.process_queue import ProcessQueue
from pyengine.errors import IllegalStateError
from pyengine.rocketmq.consumer.client import Periodic
from pyengine.rocketmq.consumer.consume_service import ConsumeService
from pyengine.rocketmq.consumer.context import ConsumerContext
from pyengine.rocketmq.consumer.listener import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus
from pyengine.rocketmq.consumer.listener_call import Waiting, listed
from pyengine.rocketmq.consumer.send_back import restore_topic, send_message_back
from pyengine.rocketmq.message import MessageExt
from pyengine.rocketmq.tables.allocation import MessageQueue
from pyengine.visible import logger

log = logger("pyengine.rocketmq")


class ConsumeMessageConcurrentlyService(ConsumeService):
    """Gives batches to the listener on ``ConsumeMessageThread_<group>_<n>`` threads, in no order."""

    statuses = ConsumeConcurrentlyStatus

    def __init__(self, consumer: ConsumerContext) -> None:
        super().__init__(consumer)
        self._cleaning = consumer.clock.worker(f"CleanExpireMsgScheduledThread_{consumer.group[:100]}_1")
        self._cleaner: Periodic | None = None

    def start(self) -> None:
        """Start looking for expired messages. Raises IllegalStateError for a consume_timeout below 1, as in Java."""
        minutes = self._consumer.parameters.consume_timeout
        if minutes <= 0:
            raise IllegalStateError(f"consume_timeout = {minutes}: a period of minutes above 0 is needed")
        self._cleaner = Periodic(
            self._consumer.clock, self._cleaning, minutes * 60000, minutes * 60000, self.clean_expired_messages
        )

    def shutdown(self, wait: int) -> None:
        """Submit nothing later, wait up to ``wait`` ms for what runs or waits to run, then stop."""
        super().shutdown(wait)
        if self._cleaner is not None:
            self._cleaner.stop()
        self._cleaning.close()

    def submit(self, messages: list[MessageExt], process_queue: ProcessQueue, queue: MessageQueue, go: bool) -> None:
        """Have messages consumed, in batches of consume_message_batch_max_size. ``go`` is not used here."""
        batches = slices(messages, self._consumer.parameters.consume_message_batch_max_size)
        taken = self._submit([ConsumeRequest(batch, process_queue, queue) for batch in batches])
        if taken < len(batches):
            self._submit_later(ConsumeRequest(rejected(batches, taken), process_queue, queue))

    def _submit(self, requests: list[ConsumeRequest]) -> int:
        return self._pool.submit([partial(self.run, request) for request in requests])

    def _submit_later(self, request: ConsumeRequest, *, sliced: bool = False) -> None:
        """After five seconds, as it is; sliced: in batches again."""
        if self._stopped:
            return

        def submit() -> None:
            if sliced:
                self.submit(request.messages, request.process_queue, request.queue, True)
            elif not self._submit([request]):
                log.info("the pool of %s is closed, %s", self._consumer.group, request.queue)

        self.delayed.add(RESUBMIT_DELAY, submit)

    def run(self, request: ConsumeRequest) -> KeyboardInterrupt | Waiting | None:
        """One batch through the listener, and what follows from its answer. Returns the user's own interrupt, if it
        was; one that comes elsewhere is raised, and the batch must be run again. Waiting: it has not answered."""
        consumer, queue = self._consumer, request.queue
        began = consumer.clock.now()
        with consumer.lock:
            begins = request.start(began)
        if not begins:
            log.info(
                "the message queue not be able to consume, because it's dropped. group=%s %s", consumer.group, queue
            )
            return None
        restore_topic(consumer, request.messages)
        context = ConsumeConcurrentlyContext(queue)
        return self.call(request.messages, context, queue, partial(self._answered, request, context, began))

    def _answered(
        self,
        request: ConsumeRequest,
        context: ConsumeConcurrentlyContext,
        began: int,
        status: ConsumeConcurrentlyStatus | None,
        raised: bool,
        interrupt: KeyboardInterrupt | None,
    ) -> KeyboardInterrupt | None:
        consumer, queue = self._consumer, request.queue
        elapsed = consumer.clock.now() - began
        name = None if status is None else status.name
        kind = return_type(name, raised, elapsed, consumer.parameters.consume_timeout)
        if status is None:
            log.warning(
                "consumeMessage return null, Group: %s Msgs: %s MQ: %s", consumer.group, listed(request.messages), queue
            )
        consumer.statistics.consumed(queue.topic, consumer.group, elapsed, kind)
        if not request.goes_on:
            log.warning(
                "processQueue is dropped without process consume result. messageQueue=%s, msgs=%s (group %s)",
                queue,
                listed(request.messages),
                consumer.group,
            )
        else:
            self._settle(request, name or ConsumeConcurrentlyStatus.RECONSUME_LATER.name, context)
        return interrupt

    def _settle(self, request: ConsumeRequest, status: str, context: ConsumeConcurrentlyContext) -> None:
        consumer = self._consumer
        counted = request.settle(status, context.ack_index)
        if counted is None:
            return
        consumer.statistics.settled(request.queue.topic, consumer.group, *counted)
        failed = request.failed()
        if not consumer.clustering:
            for message in failed:
                log.warning("BROADCASTING, the message consume failed, drop it, %s (group %s)", message, consumer.group)
        else:
            self._send_back(request, failed, context.delay_level_when_next_consume)
        with consumer.lock:
            offset = request.finish(consumer.clock.now())
        if offset is not None:
            consumer.store.update_offset(request.queue, offset, increase_only=True)

    def _send_back(self, request: ConsumeRequest, failed: list[MessageExt], delay_level: int) -> None:
        consumer = self._consumer
        kept = []
        for message in failed:
            with consumer.lock:
                held = request.holds(message)
            if not held:
                log.info(
                    "Message is not found in its process queue; skip send-back-procedure, topic=%s, "
                    "brokerName=%s, queueId=%s, queueOffset=%s (group %s)",
                    message.topic,
                    message.broker_name,
                    message.queue_id,
                    message.queue_offset,
                    consumer.group,
                )
                continue
            try:
                send_message_back(consumer, message, delay_level, request.queue)
            except Exception as error:
                log.error("sendMessageBack exception, group: %s msg: %s", consumer.group, message, exc_info=error)
                kept.append(message)
        if kept:
            request.keep(kept)
            self._submit_later(ConsumeRequest(kept, request.process_queue, request.queue), sliced=True)

    def clean_expired_messages(self) -> None:
        """Give back what listeners hold for longer than consume_timeout: from each queue's head, at most 16 (1.9)."""
        consumer = self._consumer
        with consumer.lock:
            queues = list(consumer.process_queues.values())
        for process_queue in queues:
            with consumer.lock:
                turns = min(len(process_queue.cached_offsets), EXPIRED_AT_ONCE)
            for _ in range(turns):
                with consumer.lock:
                    message = process_queue.expired(consumer.clock.now(), consumer.parameters.consume_timeout)
                if message is None:
                    break
                try:
                    send_message_back(consumer, message, EXPIRED_DELAY_LEVEL)
                except Exception as error:
                    log.error("send expired msg exception, %s (group %s)", message, consumer.group, exc_info=error)
                    continue
                log.info(
                    "send expire msg back. topic=%s, msgId=%s, storeHost=/%s, queueId=%s, queueOffset=%s (group %s)",
                    message.topic,
                    message.msg_id,
                    message.store_host,
                    message.queue_id,
                    message.queue_offset,
                    consumer.group,
                )
                with consumer.lock:
                    cached = process_queue.cached_offsets
                    if cached and cached[0] == message.queue_offset:
                        process_queue.remove_messages([message], now=consumer.clock.now())
