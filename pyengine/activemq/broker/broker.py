"""The broker in this process: its connections, and what every command of a client changes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import EllipsisType, TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

from pyengine._engine.activemq.region.queue_region import QueueRegion
from pyengine._engine.message.message import Message
from pyengine.activemq._runtime.dispatch_task import DispatchTask
from pyengine.activemq._runtime.outbox import Outbox
from pyengine.activemq._runtime.region_broker import RegionBroker
from pyengine.activemq.broker.acknowledgements import Acknowledgements
from pyengine.activemq.broker.administration import Administration
from pyengine.activemq.broker.advisories import Advisories
from pyengine.activemq.broker.authentication import Authentication
from pyengine.activemq.broker.authorization import Authorization
from pyengine.activemq.broker.broker_registry import BrokerRegistry
from pyengine.activemq.broker.consumers import Consumers
from pyengine.activemq.broker.dead_letters import DeadLetters
from pyengine.activemq.broker.durable_subscriptions import Offline
from pyengine.activemq.broker.event_listeners import EventListeners
from pyengine.activemq.broker.events import Event
from pyengine.activemq.broker.inactive_destinations import InactiveDestinations
from pyengine.activemq.broker.interceptors import Interceptors
from pyengine.activemq.broker.producers import Producers
from pyengine.activemq.broker.queues import QueueDestination
from pyengine.activemq.broker.router import AnyDestination, Router
from pyengine.activemq.broker.scheduler import KEPT_IN, Scheduler
from pyengine.activemq.broker.services import BrokerServices
from pyengine.activemq.broker.slow_consumers import SlowConsumers
from pyengine.activemq.broker.statistics import Statistics
from pyengine.activemq.broker.subscription import Connection, Subscription
from pyengine.activemq.broker.topic_destination import TopicDestination
from pyengine.activemq.broker.topics import Topics
from pyengine.activemq.broker.transactions import Transactions
from pyengine.activemq.broker.views import DestinationView
from pyengine.activemq.store.producer_sequence_ids import ProducerSequenceIds
from pyengine.activemq.store.store_options import SyncStrategy
from pyengine.activemq.transport.commands import (
    ConnectionInfo,
    ConnectionSink,
    ConsumerInfo,
    MessageAck,
    MessagePull,
    ProducerInfo,
)
from pyengine.activemq.transport.connectors import ConnectorURI, connector_uri
from pyengine.attributes import Declared, letters, named_arguments
from pyengine.clock import Clock, ManualClock, SystemClock, Timer
from pyengine.destinations import Destination, composite_parts, parse_destination
from pyengine.durations import milliseconds
from pyengine.errors import (
    ConfigurationError,
    IllegalStateError,
    InvalidClientIDError,
    JMSError,
    PyengineError,
    counted,
)
from pyengine.processes import belong
from pyengine.topology.authorization import AuthorizationPlugin
from pyengine.topology.checked import check, check_arguments
from pyengine.topology.not_modelled import NotModelled
from pyengine.topology.policy import (
    DEFAULT_VIRTUAL_TOPIC,
    DiscardingPlugin,
    ForcePersistencyModePlugin,
    Policy,
    PolicyMap,
    RedeliveryPlugin,
    TimeStampingPlugin,
    VirtualDestination,
)

if TYPE_CHECKING:
    from pyengine.activemq.store.store import SqliteStore
    from pyengine.activemq.transport.client_connection import TransportConnector
    from pyengine.activemq.transport.connector_thread import ConnectorThread

E = TypeVar("E", bound=Event)
WRITE_DELAY = 2  # ms after which an acknowledgement that came while another thread wrote is written, if none has yet
_REGISTRY: BrokerRegistry[Broker] = BrokerRegistry()


def running_broker(name: str, wait: int = 0) -> Broker | None:
    """The broker of that name in this process (``vm://name``), or None if none comes within ``wait`` ms."""
    return _REGISTRY.lookup(name, wait)


@named_arguments
class Broker(Declared, RegionBroker, Administration):
    """An ActiveMQ broker inside this process.

    directory: where its store is (made if it is not there); None: everything is in memory. name: what ``vm://name``
    means. policies: a PolicyMap or policy entries. virtual_destinations: virtual topics and composite destinations; the
    broker's default makes ``VirtualTopic.>`` feed ``Consumer.*.VirtualTopic.>``. redelivery_plugin: sends poison
    messages again later. discarding_plugin: drops what would become a dead letter. journal_disk_sync_strategy: see
    SqliteStore. cursor_limit: with a store, how many messages of a queue, or of a topic for one durable subscription,
    stand ready in memory in addition to those that are paged in and in flight; for a queue at least two pages.
    release: "newest", or "5.17" where ActiveMQ changed since: there a queue never marks its full consumers slow
    (AMQ-9153), a topic counts messages that expired while they waited as discarded (AMQ-9168), an individual
    dead-letter strategy has one audit for all its destinations, and the delay of a client's redelivery runs on from
    rollback to rollback (AMQ-8617).
    offline_durable_subscriber_timeout: ms after which a durable subscription without its consumer is deleted, -1 never,
    looked at every offline_durable_subscriber_task_schedule ms. schedule_period_for_destination_purge: every so many ms
    inactive destinations (gc_inactive_destinations of their policy) are removed; 0 never. These three are ms, or a
    timedelta. transport_connectors: addresses to listen on, ``stomp://127.0.0.1:61613`` (port 0: any free one); see
    docs/stomp.md. users: names and passwords of the clients that may connect there; None: any client, which an address
    that other machines reach refuses without allow_anonymous. scheduler_support: messages with AMQ_SCHEDULED_DELAY,
    AMQ_SCHEDULED_PERIOD or AMQ_SCHEDULED_CRON are delivered when they ask for it. time_stamping_plugin,
    force_persistency_mode_plugin: what they change of a message, before the scheduler sees it. authorization_plugin:
    what users may do, by their groups (``groups``: name -> groups); programs in the broker's own process
    may do everything. statistics_plugin: messages to ActiveMQ.Statistics.Destination.NAME, .Broker and .Subscription
    with a reply-to are answered with a MapMessage. clock: SystemClock by
    default; with a ManualClock nothing happens by itself.

    left_out: of a broker made by :meth:`from_xml`, what its file says and it does not do.

    Use it as a context manager, or call :meth:`close`. Raises IllegalStateError if a broker of that name is running or
    another one uses the directory, StoreError if the store cannot be read, ConfigurationError and InvalidSelectorError
    for settings that cannot be used.
    """

    name: str
    policies: PolicyMap
    store: SqliteStore | None
    cursor_limit: int
    release: str
    offline_durable_subscriber_timeout: int
    offline_durable_subscriber_task_schedule: int
    started: int
    dead_letters: DeadLetters
    slow_consumers: SlowConsumers
    topics: Topics
    left_out: tuple[NotModelled, ...] = ()
    _elsewhere: ClassVar[Mapping[str, str]] = {
        letters("broker_name"): "it is Broker(name=...)",
        letters("data_directory"): "it is Broker(directory=...)",
        letters("destination_policy"): "it is Broker(policies=...)",
        letters("plugins"): "each has an argument of its own, such as Broker(redelivery_plugin=...)",
    }

    def __init__(
        self,
        directory: str | Path | None = None,
        *,
        name: str = "localhost",
        policies: PolicyMap | Iterable[Policy] = (),
        virtual_destinations: Iterable[VirtualDestination] = (DEFAULT_VIRTUAL_TOPIC,),
        redelivery_plugin: RedeliveryPlugin | None = None,
        discarding_plugin: DiscardingPlugin | None = None,
        journal_disk_sync_strategy: SyncStrategy = "periodic",
        cursor_limit: int = 5000,
        release: Literal["newest", "5.17"] = "newest",
        offline_durable_subscriber_timeout: int | timedelta = -1,
        offline_durable_subscriber_task_schedule: int | timedelta = 300_000,
        schedule_period_for_destination_purge: int | timedelta = 0,
        transport_connectors: Iterable[str] = (),
        users: Mapping[str, str] | None = None,
        allow_anonymous: bool = False,
        scheduler_support: bool = False,
        time_stamping_plugin: TimeStampingPlugin | None = None,
        force_persistency_mode_plugin: ForcePersistencyModePlugin | None = None,
        groups: Mapping[str, Iterable[str]] | None = None,
        authorization_plugin: AuthorizationPlugin | None = None,
        statistics_plugin: bool = False,
        clock: Clock | None = None,
    ) -> None:
        check_arguments("Broker", Broker.__init__, locals())
        if cursor_limit < 1:
            raise ConfigurationError("Broker.cursor_limit", cursor_limit, "must be above 0")
        if directory == "":
            raise ConfigurationError("Broker.directory", "''", "names no folder", "None keeps no store, '.' is here")
        listened_on = tuple(map(connector_uri, transport_connectors))
        self._authentication = Authentication(users, groups or {}, allow_anonymous=allow_anonymous)
        self._authentication.check_open(listened_on)
        _REGISTRY.check_free(name)
        self.name = name
        self.policies = policies if isinstance(policies, PolicyMap) else PolicyMap(tuple(policies))
        self._owns_clock = clock is None
        self.clock = SystemClock(f"ActiveMQ Broker[{name}] Scheduler") if clock is None else clock
        self._directory = "" if directory is None else str(Path(directory).absolute())
        self._authorization = None if authorization_plugin is None else Authorization(authorization_plugin)
        self._connectors: ConnectorThread | None = None
        store: SqliteStore | None = None
        try:
            if directory is not None:
                from pyengine.activemq.store.store import SqliteStore  # it loads SQLite

                store = SqliteStore(directory, journal_disk_sync_strategy)
            self.store = store
            self.cursor_limit = cursor_limit
            self.release = release
            self.offline_durable_subscriber_timeout = milliseconds(
                "Broker.offline_durable_subscriber_timeout", offline_durable_subscriber_timeout
            )
            self.offline_durable_subscriber_task_schedule = milliseconds(
                "Broker.offline_durable_subscriber_task_schedule", offline_durable_subscriber_task_schedule
            )
            self.started = self.clock.now()
            self.outbox = Outbox(self.store, self._write_later, self._acknowledge)
            self._write_timer: Timer | None = None
            self._connections: dict[str, Connection] = {}
            self._clients: dict[str, str] = {}
            self._sequence_ids = ProducerSequenceIds() if store is None else store
            self.region = QueueRegion(self.outbox.posted)
            self._subscriptions: dict[str, Subscription] = self.region.subscriptions
            self._listeners = EventListeners(self.outbox, self.region)
            self._services = services = BrokerServices(
                name=name,
                clock=self.clock,
                outbox=self.outbox,
                store=store,
                cursor_limit=cursor_limit,
                release=release,
                policies=self.policies,
                report=self._listeners.report,
                call_at=self.call_at,
            )
            self.router = Router(
                services, self.region, virtual_destinations, make=self._make_destination, attach=self._attach
            )
            self._advisories = Advisories(services, self.router, self, lambda: list(self._subscriptions.values()))
            self._listeners.advisories = self._advisories
            self.dead_letters = DeadLetters(services, self.router, redelivery_plugin, discarding_plugin)
            offline = Offline(
                self.offline_durable_subscriber_timeout, self.offline_durable_subscriber_task_schedule, self.started
            )
            self.topics = Topics(services, self.router, self.dead_letters, offline)
            self.slow_consumers = SlowConsumers(
                services,
                self.topics,
                remove_consumer=partial(self.remove_consumer, lost=True),
                remove_connection=partial(self.remove_connection, lost=True),
            )
            self._consumers = Consumers(
                services,
                self.router,
                self.topics,
                self.slow_consumers,
                self._advisories,
                self._listeners,
                self._subscriptions,
            )
            self._transactions = Transactions()
            self._acknowledgements = Acknowledgements(self.clock, self.topics, self._transactions)
            self.producers = Producers()
            self._temporary: dict[Destination, Connection] = {}
            self._connected = 0
            purge = milliseconds("Broker.schedule_period_for_destination_purge", schedule_period_for_destination_purge)
            InactiveDestinations(
                services,
                self.router,
                self.topics,
                purge,
                producers=self.producers.count,
                remove=partial(self.remove_destination, ""),
            )
            self._closed = False
            _REGISTRY.bind(name, self)
            with self.outbox:
                scheduler = Scheduler(services, self.started, self.router.route) if scheduler_support else None
                statistics = Statistics(self, self.router.route) if statistics_plugin else None
                if any(
                    (scheduler, time_stamping_plugin, force_persistency_mode_plugin, authorization_plugin, statistics)
                ):
                    self.interceptors = Interceptors(
                        self.clock,
                        self._transactions,
                        time_stamping_plugin,
                        force_persistency_mode_plugin,
                        scheduler,
                        self._authorization,
                        statistics,
                    )
                if self.store is not None:
                    for known in self.store.destinations():
                        if known != KEPT_IN:
                            self.router.find(parse_destination(known)[0])
                    self.topics.durables.recover(self.store)
            belong(self)
            self._listen(listened_on)
            _REGISTRY.announce()
        except BaseException:  # Ctrl-C too
            self._closed = True
            _REGISTRY.unbind(name, self)
            try:
                if store is not None:
                    store.close()
            finally:
                if self._owns_clock:
                    self.clock.close()
            raise

    @classmethod
    def from_xml(
        cls,
        source: str | Path,
        *,
        properties: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        broker: str = "",
        name: str = "",
        directory: str | Path | EllipsisType | None = ...,
        cursor_limit: int = 5000,
        release: Literal["newest", "5.17"] = "newest",
        transport_connectors: Iterable[str] | None = None,
        users: Mapping[str, str] | None = None,
        allow_anonymous: bool = False,
        clock: Clock | None = None,
    ) -> Self:
        """A broker that does what an ``activemq.xml`` says: name, policies, virtual destinations, plugins, destinations
        that exist from the start, times, and where its messages are kept.

        source: the path of the file (a ``.toml`` says the same), or its text, which begins with ``<``. properties,
        environment, broker: see BrokerConfiguration.load. name: in place of the file's. directory: of the store; by
        default the folder that the file names (of ``kahaDB``, else the broker's name in ``dataDirectory``, else in
        ``activemq-data``), in memory if the file has no store or ``persistent="false"``; None: in memory.
        A relative folder is the process's. Nothing of the real broker's own store is read. transport_connectors: in
        place of the file's, () for none; one of the file that other machines reach is left out where there are neither
        users nor allow_anonymous.

        Settings of the file that this broker does not have are in ``left_out``, and a UserWarning counts them once.
        Raises InvalidTopologyError for the file, and what Broker raises.
        """
        check_arguments("Broker.from_xml", cls.from_xml, locals())
        # A broker that no file configures needs none of the readers.
        from pyengine.activemq.broker.configured import InPlace, configuration, configured

        connectors = None if transport_connectors is None else tuple(transport_connectors)
        found = configured(
            configuration(source, properties, environment, broker),
            InPlace(name, directory, connectors, users, allow_anonymous),
        )
        if found.empty_store is not None:
            from pyengine.activemq.store.store import delete_store

            delete_store(found.empty_store)
        embedded = cls(**found.arguments, cursor_limit=cursor_limit, release=release, clock=clock)
        embedded.left_out = found.left_out
        try:
            with embedded.outbox:
                for each in found.destinations:
                    embedded.router.find(each, create_temporary=True)
            if embedded.left_out:
                first = max(embedded.left_out, key=lambda part: part.changes_answers)
                count = counted(len(embedded.left_out), "thing that the file says is", "things that the file says are")
                warnings.warn(f"{count} not done: {first}; all are in left_out of the broker", stacklevel=2)
        except BaseException:  # a warning may be an error
            embedded.close()
            raise
        return embedded

    # Life

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if not self._closed:
            warnings.warn(f"unclosed broker {self.name!r}", ResourceWarning, source=self, stacklevel=1)

    def close(self) -> None:
        """Stop: connections that are left fail. Closing twice is harmless."""
        with ExitStack() as ending:  # the store and the clock end, even if a connection raises
            if self._connectors is not None:
                self._connectors.close()
            with self.outbox:
                if self._closed:
                    return
                if self._owns_clock:
                    ending.callback(self.clock.close)
                if self.store is not None:
                    ending.callback(self.store.close)
                self._closed = True
                _REGISTRY.unbind(self.name, self)
                left = list(self._connections.values())
                self._connections.clear()
            for connection in left:
                connection.sink.failed(f"broker {self.name!r} has stopped")
                connection.task.close()
            with self.outbox:
                for subscription in self._subscriptions.values():
                    subscription.forget()
                self._advisories.forget()
            self._listeners.clear()  # one may hold messages that know how they are acknowledged, and so the broker

    def _open(self) -> None:
        if self._closed:
            raise IllegalStateError(f"broker {self.name!r} is closed")

    def call_at(self, when: int, action: Callable[[], Any]) -> Timer:
        """Run ``action`` as a change of this broker when the clock reaches ``when``."""

        return self.clock.call_at(when, partial(self._change, action))

    def _change(self, action: Callable[[], Any]) -> None:
        with self.outbox:
            if not self._closed:
                action()

    def _write_later(self) -> None:
        if not self._closed and (self._write_timer is None or not self._write_timer.pending):
            self._write_timer = self.clock.call_at(self.clock.now() + WRITE_DELAY, self._write_left)

    def _write_left(self) -> None:
        if not self._closed and self.store is not None and not self.store.write():
            self._write_later()

    def settle(self) -> None:
        """Under a manual clock: run what workers were asked to do."""
        if isinstance(self.clock, ManualClock):
            self.clock.settle()

    # Connections

    def _listen(self, uris: tuple[ConnectorURI, ...]) -> None:
        if uris:
            from pyengine.activemq.transport.connector_thread import ConnectorThread

            self._connectors = ConnectorThread(self, uris)

    def add_connector(self, uri: str) -> TransportConnector:
        """Listen on one more address; see transport_connectors. Raises ConfigurationError."""
        check("Broker.add_connector.uri", uri, str)
        added = connector_uri(uri)
        self._authentication.check_open([added])
        self._open()
        if self._connectors is None:
            self._listen((added,))
        else:
            self._connectors.listen(added)
        return self.transport_connectors[-1]

    @property
    def transport_connectors(self) -> tuple[TransportConnector, ...]:
        """The addresses on which it listens; their ``url`` has the port that was bound."""
        return () if self._connectors is None else self._connectors.connectors

    def authenticate(self, user: str | None, password: str | None) -> tuple[str, ...]:
        """Let a client in that comes over the network; returns the groups of its user. Raises AuthenticationError for a
        user that is not known or has another password, and for one without a name where there are users and anonymous
        ones are not allowed."""
        return self._authentication.groups_of(user, password)

    def add_connection(self, info: ConnectionInfo, sink: ConnectionSink) -> None:
        """See Transport."""
        with self.outbox:
            self._open()
            if info.connection_id in self._connections:
                raise JMSError(f"connection {info.connection_id!r} exists")
            if info.client_id:
                if info.client_id in self._clients:
                    raise InvalidClientIDError(
                        f"Broker: {self.name} - Client: {info.client_id} already connected from "
                        f"{self._clients[info.client_id]}"
                    )
                self._clients[info.client_id] = info.connection_id
            self._connected += 1
            name = f"ActiveMQ Connection Dispatcher: vm://{self.name}#{self._connected}"
            task = DispatchTask(self.clock, name, sink, self.acknowledge)
            self._connections[info.connection_id] = Connection(info.connection_id, info.client_id, sink, task)
            if self._authorization is not None:
                self._authorization.connected(info)
            self._advisories.connection_added(info)

    def remove_connection(self, connection_id: str, *, last_delivered: str | None = None, lost: bool = False) -> None:
        """See Transport."""
        with ExitStack() as ending, self.outbox:
            connection = self._connections.pop(connection_id, None)
            if connection is None:
                return
            ending.callback(connection.task.close)  # it has gone, even if the rounds that follow raise
            if self._clients.get(connection.client_id) == connection_id:
                del self._clients[connection.client_id]
            if lost:
                for subscription in connection.subscriptions.values():
                    subscription.route = None
            self._consumers.remove(list(connection.subscriptions.values()), last_delivered, lost=lost)
            self._transactions.rollback_of(connection_id)
            for producer_id in self.producers.remove_of(connection_id):
                self._advisories.producer_removed(producer_id)
            for destination in list(connection.temporary):
                self._remove_destination(destination)
            self._advisories.connection_removed(connection_id)
            if self._authorization is not None:
                self._authorization.disconnected(connection_id)

    def _connection(self, connection_id: str) -> Connection:
        found = self._connections.get(connection_id)
        if found is None:
            raise JMSError(f"connection {connection_id!r} is not connected to broker {self.name!r}")
        return found

    # Producers and consumers

    def add_producer(self, connection_id: str, producer_id: str, destination: Destination | None = None) -> None:
        """See Transport."""
        with self.outbox:
            self._connection(connection_id)
            if self._authorization is not None and destination is not None:
                self._authorization.check(connection_id, destination, "write")
            with self.router.on_behalf_of(connection_id):
                for part in () if destination is None else composite_parts(destination):
                    self.router.find(part)
            self.producers.add(connection_id, producer_id, destination)
            self._advisories.producer_added(ProducerInfo(producer_id, connection_id, destination))

    def remove_producer(self, producer_id: str) -> None:
        """See Transport."""
        with self.outbox:
            self.producers.remove(producer_id)
            self._advisories.producer_removed(producer_id)

    def add_consumer(self, info: ConsumerInfo) -> int:
        """See Transport."""
        with self.outbox:
            self._open()
            connection = self._connection(info.connection_id)
            if info.consumer_id in self._subscriptions:
                return self._subscriptions[info.consumer_id].prefetch
            if not -128 <= info.priority <= 127:
                raise JMSError(f"consumer.priority = {info.priority}: must be -128 to 127")
            if self._authorization is not None:
                self._authorization.check(info.connection_id, info.destination, "read")
            return self._consumers.add(info, connection)

    def _make_destination(self, name: Destination, policy: Policy | None) -> AnyDestination:
        if self._authorization is not None:
            self._authorization.check_creation(self.router.creator, name)
        if name.kind.endswith("queue"):
            return QueueDestination(self._services, self.dead_letters, self.slow_consumers, name, policy)
        return TopicDestination(self._services, self.topics, self.slow_consumers, name, policy)

    def _attach(self, destination: AnyDestination) -> None:
        self._consumers.attach(destination)

    def consumers_at(self, destination: Destination) -> int:
        """How many consumers a destination has, durable subscriptions without their consumer included."""
        return self._consumers.count_at(destination)

    def set_prefetch(self, consumer_id: str, prefetch: int) -> None:
        """A consumer may hold so many messages from now on, or what its policy makes of that; harmless for one that is
        not there (AbstractRegion.processConsumerControl)."""
        with self.outbox:
            self._consumers.set_prefetch(consumer_id, prefetch)

    def last_produced(self, producer_id: str) -> int:
        """The number of the last message of a producer that came by ``produced``; -1: none, or other producers were
        there since."""
        return self._sequence_ids.last_produced(producer_id)

    def produced(self, producer_id: str, number: int) -> None:
        """The present change has this message of a producer, which may come again; the store keeps that with it."""
        self._sequence_ids.produced(producer_id, number)

    def remove_consumer(self, consumer_id: str, *, last_delivered: str | None = None, lost: bool = False) -> None:
        """See Transport. lost: it is unknown what its user got, so that all it held counts as redelivered."""
        with self.outbox:
            subscription = self._subscriptions.get(consumer_id)
            if subscription is not None:
                self._consumers.remove([subscription], last_delivered, lost=lost)

    def remove_consumers(self, consumer_ids: Iterable[str], *, last_delivered: str | None = None) -> None:
        """See Transport."""
        with self.outbox:
            known = [self._subscriptions[each] for each in consumer_ids if each in self._subscriptions]
            self._consumers.remove(known, last_delivered)

    def remove_subscription(self, client_id: str, name: str) -> None:
        """See Transport."""
        with self.outbox:
            removed = self.topics.durables.unsubscribe(client_id, name)
            connection_id = self._clients.get(client_id, "")
            self._advisories.subscription_removed(connection_id, client_id, name, removed.subscription.info.destination)

    # Messages

    def _send_within(self, transaction_id: str, destination: Destination, message: Message) -> None:
        transaction = self._transactions.find(transaction_id)
        message.connection_id = transaction.connection_id
        message.producer_transaction_id = transaction.transaction_id
        try:
            with self.router.on_behalf_of(transaction.connection_id):
                self.router.route(destination, message, self.clock.now(), transaction)
        except PyengineError as error:
            transaction.failed = error
            raise

    @property
    def scheduler_support(self) -> bool:
        """Whether messages with AMQ_SCHEDULED_DELAY and its like are delivered when they ask for it."""
        return self.interceptors is not None and self.interceptors.scheduler is not None

    def send_all(self, connection_id: str, destination: Destination, messages: list[Message]) -> None:
        """See Transport."""
        with self.outbox:
            self._open()
            if self.interceptors is not None:
                now = self.clock.now()
                messages = [each for each in messages if self._passes_on(connection_id, destination, each, now)]
            self.router.route_all(destination, messages, connection_id, self.clock.now())

    def _passes_on(self, connection_id: str, destination: Destination, message: Message, now: int) -> bool:
        assert self.interceptors is not None
        return not self.interceptors.takes(connection_id, destination, message, None, now)

    def _acknowledge_of(self, subscription: Subscription, ack: MessageAck) -> None:
        self._acknowledgements.take(subscription, ack)

    def pull(self, pull: MessagePull) -> None:
        """See Transport."""
        with self.outbox:
            self._consumers.pull(pull)

    # Transactions

    def begin(self, connection_id: str, transaction_id: str) -> None:
        """See Transport."""
        with self.outbox:
            self._open()
            self._connection(connection_id)
            self._transactions.begin(connection_id, transaction_id)

    def commit(self, transaction_id: str) -> None:
        """See Transport."""
        with self.outbox:
            self._transactions.commit(transaction_id)

    def rollback(self, transaction_id: str) -> None:
        """See Transport."""
        with self.outbox:
            self._transactions.rollback(transaction_id)

    # Destinations

    def add_destination(self, connection_id: str, destination: Destination) -> None:
        """See Transport."""
        with self.outbox:
            self._open()
            connection = self._connection(connection_id)
            for part in composite_parts(destination):
                with self.router.on_behalf_of(connection_id):
                    self.router.find(part, create_temporary=True)
                if part.is_temporary and part not in self._temporary:
                    self._temporary[part] = connection
                    connection.temporary[part] = None

    def has_destination(self, destination: Destination) -> bool:
        """See Transport."""
        return destination in self.router.destinations

    def remove_destination(self, connection_id: str, destination: Destination) -> None:
        """See Transport."""
        with self.outbox:
            for part in composite_parts(destination):
                user = self._consumers.user_of(part)
                if user is not None:
                    raise JMSError(f"destination {part} still has an active subscription: {user}")
                self._remove_destination(part)

    def _remove_destination(self, destination: Destination) -> None:
        owner = self._temporary.pop(destination, None)
        if owner is not None:
            del owner.temporary[destination]
        leaving = [each for each in self._consumers.of(destination) if each.covers(destination) and not each.spread]
        self._consumers.remove(leaving)
        if destination in self.router.destinations:
            self.router.remove(destination)
            self._advisories.destination_removed(destination)

    def is_slow(self, subscription: Subscription) -> bool:
        """Whether a consumer is marked slow."""
        return self.slow_consumers.is_slow(subscription)

    def _release_consumers(self, queue: QueueDestination) -> None:
        self._consumers.release(queue)

    @property
    def destination_views(self) -> list[DestinationView]:
        """What JMX shows of every destination."""
        return [self.view(destination) for destination in self.router.destinations]

    @property
    def connector_urls(self) -> dict[str, str]:
        """Scheme -> what its connector listens on."""
        return {each.uri.scheme: each.url for each in self.transport_connectors}

    @property
    def data_directory(self) -> str:
        """Where its store is, empty if it has none."""
        return self._directory

    # Events

    def on(self, event: type[E], callback: Callable[[E], object]) -> Callable[[], None]:
        """Call ``callback`` with every event of that class; Event itself: all of them.

        The classes are those of pyengine.activemq.broker.events.
        It is called in the broker's order, once the change that caused it is over, on the thread that made the change.
        An error of it is logged (``pyengine.activemq``): another caller may have made the change.
        Returns a function that ends it. Raises TypeError for another class, and for a callback that cannot be called.
        """
        return self._listeners.add(event, callback)
