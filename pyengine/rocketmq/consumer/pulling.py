"""The pull loop of one consumer: it does what the core's gate decides (spec rocketmq 2)."""

from __future__ import annotations

from collections.abc import Callable

from pyengine._engine.rocketmq.client.process_queue import ProcessQueue
from pyengine._engine.rocketmq.client.pull_gate import PullGate, PullRequest, PullStep, PullVerdict, commit_with_pull
from pyengine._engine.rocketmq.client.tags import client_accepts
from pyengine.errors import IllegalStateError, MQBrokerError
from pyengine.rocketmq.consumer.client import write_log
from pyengine.rocketmq.consumer.context import ConsumerContext
from pyengine.rocketmq.consumer.offset_store import ReadOffsetType
from pyengine.rocketmq.consumer.push_rebalancing import PushRebalancing
from pyengine.rocketmq.message import (
    PROPERTY_MAX_OFFSET,
    PROPERTY_MIN_OFFSET,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    RETRY_GROUP_TOPIC_PREFIX,
    MessageExt,
)
from pyengine.rocketmq.remoting.mq_client_api import (
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

Submit = Callable[[list[MessageExt], ProcessQueue, MessageQueue, bool], None]


class Pulling:
    """Sends a consumer's pull requests and takes their answers. Source: DefaultMQPushConsumerImpl, PullAPIWrapper.

    submit: has messages consumed that were put into their process queue.
    """

    def __init__(self, consumer: ConsumerContext, rebalancing: PushRebalancing, submit: Submit) -> None:
        self._consumer = consumer
        self._rebalancing = rebalancing
        self._submit = submit
        self.gate = PullGate(consumer.group)

    def pull_message(self, request: PullRequest) -> None:
        """One turn of a request. Raises IllegalStateError if the real client throws: full, and nothing cached."""
        consumer, parameters = self._consumer, self._consumer.parameters
        with consumer.lock:
            verdict = self.gate.examine(
                request,
                consumer.clock.now(),
                service_state=consumer.service_state,
                paused=consumer.paused,
                orderly=consumer.orderly,
                instance_name=parameters.instance_name,
                exception_delay=consumer.exception_delay,
                pull_threshold_for_queue=parameters.pull_threshold_for_queue,
                pull_threshold_size_for_queue=parameters.pull_threshold_size_for_queue,
                consume_concurrently_max_span=parameters.consume_concurrently_max_span,
            )
        if verdict.step == PullStep.FIX_OFFSET:
            try:
                offset = self._rebalancing.compute_pull_from_where_with_exception(request.queue)
                verdict = self.gate.fix_offset(request, offset)
            except Exception as failure:
                verdict = self.gate.fix_failed(request, str(failure), consumer.exception_delay)
        subscription = consumer.subscriptions.get(request.queue.topic)
        if verdict.step == PullStep.SEND and subscription is None:
            write_log(verdict.log)
            verdict = self.gate.not_subscribed(request, consumer.exception_delay)
        self._again(request, verdict)
        write_log(verdict.log)
        if verdict.problem is not None:
            raise IllegalStateError(f"{verdict.problem}: {request} is held back and nothing is cached")
        if verdict.step == PullStep.SEND and subscription is not None:
            self._send(request, subscription)

    def _again(self, request: PullRequest, verdict: PullVerdict) -> None:
        service = self._consumer.running.pull_service
        if verdict.step == PullStep.IMMEDIATELY or (verdict.step == PullStep.CONSUME and not verdict.delay):
            service.execute_pull_request_immediately(request)
        elif verdict.step in (PullStep.LATER, PullStep.CONSUME):
            service.execute_pull_request_later(request, verdict.delay)

    def _send(self, request: PullRequest, subscription: SubscriptionData) -> None:
        consumer, parameters = self._consumer, self._consumer.parameters
        memory = (
            consumer.store.read_offset(request.queue, ReadOffsetType.READ_FROM_MEMORY) if consumer.clustering else 0
        )
        commit_offset, commit_flag = commit_with_pull(memory, clustering=consumer.clustering)
        expression = subscription.sub_string if parameters.post_subscription_when_pull else None
        sent = PullMessageRequest(
            client_id=consumer.running.client_id,
            consumer_group=consumer.group,
            queue=request.queue,
            queue_offset=request.next_offset,
            max_nums=parameters.pull_batch_size,
            max_bytes=parameters.pull_batch_size_in_bytes,
            sys_flag=commit_flag | FLAG_SUSPEND | (0 if expression is None else FLAG_SUBSCRIPTION),
            commit_offset=commit_offset,
            sub_expression=expression,
            sub_version=subscription.sub_version,
            expression_type=subscription.expression_type,
        )
        began = consumer.clock.now()
        client = consumer.running
        try:
            client.api.pull_message(
                sent, lambda answer: client.answer(lambda: self.answered(request, subscription, answer, began))
            )
        except Exception as error:
            verdict = self.gate.not_sent(str(error), consumer.exception_delay)
            self._again(request, verdict)
            write_log(verdict.log)

    def answered(
        self,
        request: PullRequest,
        subscription: SubscriptionData,
        answer: PullResult | Exception | None,
        began: int,
    ) -> None:
        """Do what a broker's answer leads to. began: when the pull was sent, ms."""
        if isinstance(answer, Exception):
            self._failed(request, answer)
            return
        consumer, topic = self._consumer, request.queue.topic
        messages = [] if answer is None else kept_messages(request.queue, subscription, answer)
        if answer is not None and answer.status is PullStatus.FOUND:
            consumer.statistics.pulled(topic, consumer.group, consumer.clock.now() - began, len(messages))
        with consumer.lock:
            verdict = self.gate.answered(
                request,
                None if answer is None else answer.status.name,
                0 if answer is None else answer.next_begin_offset,
                len(messages),
                messages[0].queue_offset if messages else 0,
                consumer.parameters.pull_interval,
                str(answer),
            )
            go = request.process_queue.put_messages(messages) if verdict.step == PullStep.CONSUME else False
        write_log(verdict.log[:1])
        if verdict.step == PullStep.CONSUME:
            self._submit(messages, request.process_queue, request.queue, go)
        elif verdict.step == PullStep.ADVANCE:
            consumer.store.update_offset(request.queue, request.next_offset, increase_only=True)
            consumer.running.pull_service.execute_pull_request_immediately(request)
        elif verdict.step == PullStep.ILLEGAL:
            consumer.running.pull_service.execute_task(lambda: self._fix(request, verdict.log[1:]))
        self._again(request, verdict)

    def _failed(self, request: PullRequest, error: Exception) -> None:
        verdict = self.gate.failed(
            request,
            error.code if isinstance(error, MQBrokerError) else None,
            str(error),
            retry_topic=request.queue.topic.startswith(RETRY_GROUP_TOPIC_PREFIX),
            exception_delay=self._consumer.exception_delay,
        )
        write_log(verdict.log)
        self._again(request, verdict)

    def _fix(self, request: PullRequest, lines: tuple[tuple[str, str], ...]) -> None:
        """Commit the offset that the broker named, give the queue up and have it assigned again."""
        consumer = self._consumer
        consumer.store.update_and_freeze_offset(request.queue, request.next_offset)
        consumer.store.persist(request.queue)
        self._rebalancing.remove_process_queue(request.queue)
        consumer.running.rebalance_service.wakeup()
        write_log(lines)


def kept_messages(queue: MessageQueue, subscription: SubscriptionData, answer: PullResult) -> list[MessageExt]:
    """The messages of an answer that the tags let through, with what the client adds to them."""
    kept = [message for message in answer.messages if client_accepts(subscription.tags_set, message.tags)]
    for message in kept:
        properties = message.properties
        if properties.get(PROPERTY_TRANSACTION_PREPARED, "").lower() == "true":
            message.transaction_id = properties.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
        properties[PROPERTY_MIN_OFFSET] = str(answer.min_offset)
        properties[PROPERTY_MAX_OFFSET] = str(answer.max_offset)
        message.broker_name = queue.broker_name
        message.queue_id = queue.queue_id
    return kept
