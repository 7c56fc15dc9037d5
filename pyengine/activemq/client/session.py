"""Sessions: one order of messages, one transaction, the consumers and producers that share them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count
from types import TracebackType
from typing import ClassVar, Protocol, Self, TypeAlias, TypeVar

from pyengine import Selector
from pyengine._engine.activemq.client.message_consumer import Consumption
from pyengine._engine.activemq.client.redelivery_policy import RedeliveryPolicy
from pyengine._engine.activemq.client.session_commands import AcknowledgeMode, Begin, Later, Pull, Remove
from pyengine._engine.activemq.client.session_state import SessionState
from pyengine._engine.activemq.commands.message_ack import MessageAck
from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch
from pyengine.activemq._runtime.session_executor import SessionExecutor
from pyengine.activemq.client.browser import QueueBrowser
from pyengine.activemq.client.connection_audit import ConnectionAudit
from pyengine.activemq.client.consumer import Closing, MessageConsumer, MessageListener, TopicSubscriber
from pyengine.activemq.client.producer import MessageProducer
from pyengine.activemq.client.tasks import SessionTask, SessionTasks
from pyengine.activemq.options import ConnectionOptions, UnknownOptions, consumer_options
from pyengine.activemq.transport.commands import ConsumerInfo, MessagePull, Transport
from pyengine.attributes import Declared
from pyengine.clock import Timer
from pyengine.destinations import Destination, destination_of
from pyengine.errors import (
    IllegalStateError,
    InvalidDestinationError,
    JMSError,
    PyengineError,
    TransactionRolledBackError,
)
from pyengine.processes import belong
from pyengine.topology.checked import check
from pyengine.visible import logger

Kind = TypeVar("Kind", bound=MessageConsumer)
Command: TypeAlias = Begin | Pull | Remove | Later
LOG = logger("pyengine.activemq")


def selector_of(text: str | None) -> str | None:
    """A selector as it is compiled, None if it is blank. Raises InvalidSelectorError, TypeError for another type."""
    if text is None or (isinstance(text, str) and not text.strip()):
        return None
    Selector(text)
    return text


class SessionConnection(Protocol):
    """The connection of a session (connection.Connection), as its sessions use it."""

    connection_id: str
    options: ConnectionOptions
    unknown_options: UnknownOptions
    tasks: SessionTasks
    audit: ConnectionAudit | None

    @property
    def client_id(self) -> str:
        """Empty: none."""

    @property
    def started(self) -> bool:
        """True while messages flow."""

    def redelivery_policy_of(self, destination: Destination) -> RedeliveryPolicy:
        """The policy for messages of a destination."""

    def temporary(self, kind: str) -> Destination:
        """A new temporary destination."""

    def check_temporary(self, destination: Destination) -> None:
        """Raise InvalidDestinationError for another connection's temporary destination."""

    def check_unused(self, destination: Destination) -> None:
        """Raise JMSError for a temporary destination that one of the connection's consumers has."""

    def route(self, consumer_id: str, session: SessionExecutor | None) -> None:
        """Messages for a consumer go to this session; None: to no session any more."""

    def count_consumer(self, destination: Destination, difference: int) -> None:
        """The session has opened (1) or closed (-1) a consumer of a destination."""

    def discard(self, session: Session) -> None:
        """A session was closed."""

    def report(self, error: Exception) -> None:
        """Tell of an error that no call can raise."""


class Session(Declared, SessionExecutor):
    """A session of a connection; made by Connection.create_session. For one thread at a time, as in JMS.

    Use it as a context manager, or close it; closing the connection closes it.
    """

    acknowledge_mode: AcknowledgeMode
    connection: SessionConnection
    transport: Transport
    _producer_kind: ClassVar[type[MessageProducer]] = MessageProducer
    _consumer_kind: ClassVar[type[MessageConsumer]] = MessageConsumer
    _subscriber_kind: ClassVar[type[TopicSubscriber]] = TopicSubscriber

    def __init__(self, connection: SessionConnection, session_id: str, mode: AcknowledgeMode) -> None:
        self.acknowledge_mode = mode
        self._consumers: dict[str, MessageConsumer] = {}
        self._expecting: dict[Consumption, Callable[[], None]] = {}  # whose messages tasks wait for
        self._producers: dict[str, MessageProducer] = {}
        self._consumer_numbers = count(1)
        self._producer_numbers = count(1)
        self._temporary_numbers = count(1)
        self._timers: set[Timer] = set()
        belong(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Session {self.session_id} {self.acknowledge_mode.name}{' closed' if self.closed else ''}>"

    @property
    def closed(self) -> bool:
        """True once it was closed."""
        return self.state.closed

    @property
    def consumers(self) -> tuple[MessageConsumer, ...]:
        """Its open consumers, in the order of creation."""
        return tuple(self._consumers.values())

    # Destinations

    def create_queue(self, name: str) -> Destination:
        """A queue by its name, which may carry options: ``orders?consumer.priority=5``, and parts: ``a,b``.

        Raises IllegalStateError if the session is closed, InvalidDestinationError for an empty name.
        """
        self.state.check_open()
        return destination_of(name, "queue")

    def create_topic(self, name: str) -> Destination:
        """A topic by its name, with options and parts as a queue's; raises as ``create_queue``."""
        self.state.check_open()
        return destination_of(name, "topic")

    def create_temporary_queue(self) -> Destination:
        """A queue that lives as long as the connection and that only its consumers may read."""
        self.state.check_open()
        return self.connection.temporary("temp-queue")

    def create_temporary_topic(self) -> Destination:
        """A topic that lives as long as the connection and that only its consumers may read."""
        self.state.check_open()
        return self.connection.temporary("temp-topic")

    def delete_temporary(self, destination: Destination) -> None:
        """End a temporary destination before its connection ends. Raises JMSError while it has consumers,
        IllegalStateError once the connection is closed, which has ended it."""
        self.connection.check_temporary(destination)
        self.connection.check_unused(destination)
        self.transport.remove_destination(self.connection.connection_id, destination)

    # Consumers and producers

    def create_consumer(
        self,
        destination: Destination | str,
        selector: str | None = None,
        no_local: bool = False,
        *,
        listener: MessageListener | None = None,
    ) -> MessageConsumer:
        """A consumer. destination: as create_queue makes it, or its text (a queue if no prefix says otherwise).

        no_local: it does not get what its own connection sends. ``consumer.*`` options of the destination come first,
        except the selector. Raises InvalidSelectorError, ConfigurationError, InvalidDestinationError, and JMSError for
        a listener with prefetch 0 and where the broker refuses.
        """
        destination = destination_of(destination, "queue")
        policy = self.connection.options.prefetch_policy
        prefetch = policy.topic_prefetch if destination.kind.endswith("topic") else policy.queue_prefetch
        return self._create(self._consumer_kind, destination, selector, no_local, prefetch, listener=listener)

    def create_durable_subscriber(
        self,
        topic: Destination | str,
        name: str,
        selector: str | None = None,
        no_local: bool = False,
        *,
        listener: MessageListener | None = None,
    ) -> TopicSubscriber:
        """A subscriber whose messages are kept while it is away, under the connection's client id and ``name``.

        Raises as create_consumer, InvalidDestinationError for a queue and for an empty name, and IllegalStateError
        without a client id (JMSError with a broker of release 5.17).
        """
        topic = destination_of(topic, "topic")
        if not isinstance(name, str) or not name:
            hint = "give a string that is not empty; what waits while the subscriber is away is kept under it"
            raise InvalidDestinationError(f"{name!r} is not the name of a durable subscription; {hint}")
        if not topic.kind.endswith("topic"):
            raise InvalidDestinationError(f"{topic} is not a topic; only topics have durable subscribers")
        if not self.connection.client_id:
            refusal = JMSError if self.transport.release == "5.17" else IllegalStateError
            raise refusal("You cannot create a durable subscriber without specifying a unique clientID on a Connection")
        options = self.connection.options
        policy = options.prefetch_policy
        optimized = self.acknowledge_mode is AcknowledgeMode.AUTO_ACKNOWLEDGE and options.optimized_message_dispatch
        prefetch = policy.optimize_durable_topic_prefetch if optimized else policy.durable_topic_prefetch
        return self._create(self._subscriber_kind, topic, selector, no_local, prefetch, name=name, listener=listener)

    def create_browser(self, queue: Destination | str, selector: str | None = None) -> QueueBrowser:
        """A look at the messages of a queue, which stay where they are.

        Raises InvalidSelectorError, and InvalidDestinationError for a topic.
        """
        self.state.check_open()
        selector_of(selector)
        queue = destination_of(queue, "queue")
        if not queue.kind.endswith("queue"):
            raise InvalidDestinationError(f"{queue} is not a queue; only queues can be browsed")

        def open_consumer() -> MessageConsumer:
            prefetch = self.connection.options.prefetch_policy.queue_browser_prefetch
            return self._create(MessageConsumer, queue, selector, False, prefetch, browser=True)

        return QueueBrowser(self, queue, selector, open_consumer)

    def _create(
        self,
        kind: type[Kind],
        destination: Destination,
        selector: str | None,
        no_local: bool,
        prefetch: int,
        *,
        name: str = "",
        browser: bool = False,
        listener: MessageListener | None = None,
    ) -> Kind:
        self.state.check_open()
        check("no_local", no_local, bool)
        connection, options = self.connection, self.connection.options
        topic = destination.kind.endswith("topic")
        if destination.is_temporary:
            connection.check_temporary(destination)
            if not self.transport.has_destination(destination):
                raise InvalidDestinationError("Cannot use a Temporary destination that has been deleted")
        given = consumer_options(destination.options, connection.unknown_options)
        chosen = selector_of(selector) or given.get("selector")
        if chosen is not None:
            Selector(chosen)
        if destination.is_temporary and prefetch < 0:
            raise JMSError("Cannot have a prefetch size less than zero")
        prefetch = given.get("prefetchSize", prefetch)
        name = given.get("subscriptionName", name)
        info = ConsumerInfo(
            consumer_id=f"{self.session_id}:{next(self._consumer_numbers)}",
            session_id=self.session_id,
            connection_id=connection.connection_id,
            destination=destination,
            prefetch_size=prefetch,
            selector=chosen,
            subscription_name=name,
            priority=given.get("priority", 0),
            exclusive=given.get("exclusive", options.exclusive_consumer),
            retroactive=given.get("retroactive", options.use_retroactive_consumer),
            no_local=given.get("noLocal", no_local),
            browser=browser,
            network_subscription=given.get("networkSubscription", False),
            dispatch_async=given.get("dispatchAsync", options.dispatch_async),
            maximum_pending_message_limit=given.get(
                "maximumPendingMessageLimit", options.prefetch_policy.maximum_pending_message_limit
            ),
        )
        state = Consumption(
            self.state,
            info.consumer_id,
            destination,
            prefetch,
            redelivery_policy=connection.redelivery_policy_of(destination),
            topic=topic,
            browser=browser,
            durable=bool(name) and topic,
            prioritized=options.message_priority_supported,
            optimize_acknowledge=options.optimize_acknowledge,
            optimize_acknowledge_time_out=options.optimize_acknowledge_time_out,
            transacted_individual_ack=options.transacted_individual_ack,
            non_blocking_redelivery=options.non_blocking_redelivery,
            consumer_expiry_check=options.consumer_expiry_check_enabled,
            delay_by_counter=self.transport.release != "5.17",
            now=self.clock.now(),
            audit=connection.audit,
        )
        consumer = state.owner = kind(self, state, chosen, name if topic else "")
        if listener is not None:
            consumer._listen(listener)
        with self.lock:
            self.state.add(state)
            self._consumers[info.consumer_id] = consumer
            connection.route(info.consumer_id, self)
            connection.count_consumer(consumer.destination, 1)
        try:
            counting = self.transport.add_consumer(info)
        except PyengineError:
            with self.lock:
                self.state.discard(state)
                self._forget(state)
            raise
        with self.lock:
            state.prefetch = counting
            if connection.started:
                state.start()
        if state.optimize_acknowledge and options.optimized_ack_scheduled_ack_interval > 0:
            self._acknowledge_regularly(state, options.optimized_ack_scheduled_ack_interval)
        self.wake_up()
        self.clock.settle()
        return consumer

    def create_producer(self, destination: Destination | str | None = None) -> MessageProducer:
        """A producer for one destination, or for any if None."""
        self.state.check_open()
        if destination is not None:
            destination = destination_of(destination, "queue")
        producer = self._producer_kind(self, f"{self.session_id}:{next(self._producer_numbers)}", destination)
        belong(producer)
        self._producers[producer.producer_id] = producer
        self.transport.add_producer(self.connection.connection_id, producer.producer_id, destination)
        return producer

    def unsubscribe(self, name: str) -> None:
        """Forget a durable subscription. Raises InvalidDestinationError if there is none, JMSError if it is in use."""
        self.state.check_open()
        check("name", name, str)
        self.transport.remove_subscription(self.connection.client_id, name)
        self.clock.settle()

    # Acknowledgement and transactions

    def acknowledge(self) -> None:
        """Acknowledge everything that was delivered in this session (CLIENT_ACKNOWLEDGE)."""
        with self.lock:
            self.state.check_open()
            self.state.acknowledge()
        self.flush()
        self.clock.settle()

    def recover(self) -> None:
        """Deliver what was not acknowledged again. Raises IllegalStateError in a transacted session."""
        with self.lock:
            self.state.recover(self.clock.now(), _chance)
        self._after_change()

    def commit(self) -> None:
        """Commit what was sent and received. Raises IllegalStateError outside a transacted session, JMSError if the
        broker cannot; the transaction is rolled back then. TransactionRolledBackError: the connection failed over, and
        what became of a message or of the commit is in doubt."""
        with self.lock:
            self.state.check_transacted()
            self._wait_for_redeliveries()
        try:
            with self.lock:
                transaction = self.state.before_end()
        except TransactionRolledBackError:
            self._rollback()
            raise
        self.flush()
        if transaction is None:
            return
        if self.state.rollback_only:
            self._rollback()
            raise TransactionRolledBackError(
                f"Commit of {transaction}  failed due to rollback only request; typically due to failover with pending "
                "acks"
            )
        try:
            self.transport.commit(transaction)
        except PyengineError:
            with self.lock:
                self.state.after_rollback(self.clock.now(), _chance)
            self._after_change()
            raise
        with self.lock:
            self.state.after_commit()
        self._after_change()

    def rollback(self) -> None:
        """Take back what was sent, and deliver what was received again. Raises IllegalStateError outside a transacted
        session."""
        with self.lock:
            self.state.check_transacted()
        self._rollback()

    def _wait_for_redeliveries(self) -> None:
        """After a failover what the transaction had delivered may come again; ActiveMQ looks once. The lock is held."""
        patience = self.connection.options.consumer_failover_redelivery_wait_period
        if patience > 0 and self.state.missing_messages:
            self.clock.wait(self.changed, lambda: not self.state.missing_messages, max(500, patience // 4))

    def _rollback(self) -> None:
        transaction = None
        while True:
            try:
                with self.lock:
                    transaction = self.state.before_end()
                break
            except TransactionRolledBackError as error:  # as it is about to be
                LOG.warning("%s: rollback processing error: %s", self.session_id, error)
        self.flush()
        if transaction is not None:
            self.transport.rollback(transaction)
        with self.lock:
            self.state.after_rollback(self.clock.now(), _chance)
        self._after_change()

    def start_transaction(self) -> str | None:
        """Before a send: the transaction it belongs to."""
        with self.lock:
            self.state.check_open()
            transaction = self.state.start_transaction()
        self.flush()
        return transaction

    def _after_change(self) -> None:
        with self.lock:
            self._wake_receivers()
        self.flush()
        self.wake_up()
        self.clock.settle()

    def _wake_receivers(self) -> None:
        """A message that was dispatched before may be there for a receiver now: threads and tasks look. The lock is
        held."""
        self.changed.notify_all()
        for available in self._expecting.values():
            available()

    def _expect(self, state: Consumption, available: Callable[[], None] | None) -> None:
        """A task waits for a consumer's messages: ``available`` is called when one may be there. None: no more."""
        with self.lock:
            state.available = available
            if available is None:
                self._expecting.pop(state, None)
            else:
                self._expecting[state] = available

    # What the state asks for

    def _carry_out(self, command: Command, pull_timeout: int | None) -> None:
        """Send the broker a command that is not an acknowledgement."""
        if isinstance(command, Begin):
            self.transport.begin(self.connection.connection_id, command.transaction_id)
        elif isinstance(command, Pull):
            timeout = 0 if pull_timeout is None else pull_timeout if pull_timeout > 0 else -1
            state = command.consumer
            self.transport.pull(MessagePull(state.consumer_id, state.destination, timeout))
        elif isinstance(command, Remove):
            with self.lock:
                self._forget(command.consumer)
            self.transport.remove_consumer(command.consumer.consumer_id, last_delivered=command.last_delivered)
        else:
            self._later(command)

    def _later(self, command: Later) -> None:
        def redeliver() -> None:
            self._timers.discard(timer)
            with self.lock:
                command.consumer.redeliver(command.dispatches, self.clock.now())
            self._after_change()

        timer = self.clock.call_at(self.clock.now() + command.delay, redeliver)
        self._timers.add(timer)

    def _acknowledge_regularly(self, state: Consumption, interval: int) -> None:
        def acknowledge() -> None:
            self._timers.discard(timer)
            with self.lock:
                if state.closed:
                    return
                state.deliver_acks()
            try:
                self.flush()
            except PyengineError as error:
                self.connection.report(error)
            self._acknowledge_regularly(state, interval)

        timer = self.clock.call_at(self.clock.now() + interval, acknowledge)
        self._timers.add(timer)

    # Messages that come

    def _new_task(self) -> SessionTask:
        return self.connection.tasks.task(f"ActiveMQ Session: {self.session_id}", self._run)

    def _listener_failed(self, dispatch: MessageDispatch, error: BaseException) -> list[MessageAck | Command] | None:
        """The commands that follow when a listener has raised."""
        message = dispatch.message
        LOG.exception(
            "%s of %s: the listener failed on message %s",
            dispatch.consumer_id,
            dispatch.destination,
            message and message.message_id,
        )
        with self.lock:
            self._deliverer = 0
            state: Consumption = self.state.owner_of(dispatch)._state
            state.failed(dispatch, self.clock.now(), f"{type(error).__name__}: {error}", _chance)
            self.changed.notify_all()
            return self.state.take_commands()

    def _wait_for_listener(self) -> None:
        """Wait until no listener is at work on another thread. The lock is held."""
        self._wait(lambda: self._deliverer in (0, threading.get_ident()))

    def _wait(self, ready: Callable[[], bool]) -> None:
        self.waiting += 1
        try:
            self.clock.wait(self.changed, ready)
        finally:
            self.waiting -= 1

    # Life

    def start(self) -> None:
        """Deliver messages; Connection.start calls it."""
        with self.lock:
            self.state.start()
            self._wake_receivers()
        try:
            self.wake_up()
        finally:
            if not self.state.asynchronous:
                with self.lock:
                    self.state.resume()
        self.wake_up()

    def stop(self) -> None:
        """Deliver nothing until ``start``; Connection.stop calls it. Waits for a listener at work on another thread."""
        with self.lock:
            self.state.stop()
            self._wait_for_listener()

    def close_consumer(self, consumer: MessageConsumer, how: Closing) -> None:
        """See MessageConsumer.close."""
        if how is Closing.DRAIN:
            self.drain()
        with self.lock:
            self._wait_for_listener()
            if how is Closing.LOST:
                raise IllegalStateError("only a whole connection can be lost")
            self.state.close_consumer(consumer._state)
            self.changed.notify_all()
        self._after_change()

    def drain(self) -> None:
        """Let listeners have what has arrived. Raises IllegalStateError in one of them, which it would wait for."""
        if self.listening_thread == threading.get_ident():
            raise IllegalStateError("a listener cannot wait for what comes behind it; close with Closing.NOW there")
        self.clock.settle()
        with self.lock:
            self._wait(lambda: not self.state.has_work and not self._deliverer)

    def _interrupted(self) -> None:
        """The connection's transport was interrupted: what was not delivered comes again."""
        with self.lock:
            self.state.interrupt()
            self._wake_receivers()

    def forget_all(self) -> None:
        """No message comes for its consumers any more."""
        with self.lock:
            for consumer in list(self._consumers.values()):
                self._forget(consumer._state)

    def _forget(self, state: Consumption) -> None:
        consumer = self._consumers.pop(state.consumer_id, None)
        self.connection.route(state.consumer_id, None)
        if consumer is not None:
            self.connection.count_consumer(consumer.destination, -1)
            if self.connection.audit is not None:
                self.connection.audit.forget(state.consumer_id)
            if state.available is not None:
                state.available()

    def close(self, how: Closing = Closing.NOW) -> None:
        """Close its consumers and producers; an open transaction is rolled back. Closing twice is harmless."""
        check("how", how, Closing)
        if self.closed:
            return
        if how is Closing.DRAIN:
            self.drain()
        elif how is Closing.LOST:
            raise IllegalStateError("only a whole connection can be lost")
        with self.lock:
            self._wait_for_listener()
        consumers, last_delivered = SessionState.leave(self.dispose())
        self.forget_all()
        self.transport.remove_consumers(consumers, last_delivered=last_delivered)
        self.connection.discard(self)
        self.clock.settle()

    def dispose(self) -> list[Consumption]:
        """Stop for good and roll back; the consumers that the broker still has."""
        with self.lock:
            consumers = self.state.dispose()
            producers = list(self._producers.values())
            self.changed.notify_all()
        for producer in producers:
            producer.close()
        self.flush()
        if self.state.transaction is not None:
            self._rollback()
        self._cancel()
        return consumers

    def lose(self) -> None:
        """The connection is gone: nothing is said to the broker any more."""
        with self.lock:
            self.state.dispose()
            self.state.take_commands()
            self._outgoing.clear()
            self.forget_all()
            for producer in self._producers.values():
                producer._closed = True
            self._producers.clear()
            self.changed.notify_all()
        self._cancel()

    def _cancel(self) -> None:
        for timer in list(self._timers):
            timer.cancel()
        self._timers.clear()

    def producer_closed(self, producer: MessageProducer) -> None:
        """A producer was closed."""
        if self._producers.pop(producer.producer_id, None) is not None:
            self.transport.remove_producer(producer.producer_id)


def _chance() -> float:
    """A number of [0, 1) for collision avoidance."""
    from random import random  # it loads OpenSSL

    return random()
