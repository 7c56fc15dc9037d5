"""A channel that connects again, to the same broker or another one, and restores the connection's state there
(FailoverTransport)."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Protocol

from pyengine._engine.wire.data_structure import DataStructure
from pyengine._engine.wire.openwire_messages import id_text
from pyengine._engine.wire.openwire_types import TYPES
from pyengine.activemq.options import BrokerURL
from pyengine.activemq.transport.connection_state import ConnectionStateTracker, Tracked
from pyengine.activemq.transport.failover_options import FailoverOptions, address_of
from pyengine.activemq.transport.openwire_channel import Channel, ChannelFailedError, ChannelListener
from pyengine.clock import Clock, Timer, Worker
from pyengine.errors import IllegalStateError, JMSError, PyengineError
from pyengine.visible import logger

LOG = logger("pyengine.activemq")
FIRST_DELAY = 10  # ms: FailoverTransport.DEFAULT_INITIAL_RECONNECT_DELAY
INFINITE = -1
_MESSAGE = TYPES["Message"]


class BrokerChannel(Channel, Protocol):
    """A channel to one broker (openwire_channel.OpenWireChannel)."""

    listener: ChannelListener
    failure: str | None


@dataclass(slots=True, eq=False)
class _Backup:
    """A connection that stands ready. greeting: the BrokerInfo that came on it."""

    address: str
    channel: BrokerChannel
    lost: bool = False
    greeting: list[DataStructure] = field(default_factory=list)


@lru_cache(maxsize=256)
def _place(address: str) -> tuple[str, int]:
    """The place that an address leads to, for comparison."""
    parts = address_of(address)
    try:
        return socket.gethostbyname(parts.name), parts.port
    except OSError:
        return parts.name.lower(), parts.port


class FailoverChannel:
    """One channel over the addresses of failover.

    addresses: in order. connect: makes a channel to one of them, which is not started. clock: of its waits and of the
    worker that connects. chance: decides the order with ``randomize``.
    """

    def __init__(
        self,
        addresses: tuple[str, ...],
        options: FailoverOptions,
        connect: Callable[[BrokerURL], BrokerChannel],
        clock: Clock,
        chance: random.Random | None = None,
    ) -> None:
        self._options = options
        self._connect = connect
        self._clock = clock
        self._chance = random.Random() if chance is None else chance
        self._listener = ChannelListener(lambda command: None, lambda reason: None)
        self._tracker = ConnectionStateTracker(
            track_messages=options.track_messages,
            track_transaction_producers=options.track_transaction_producers,
            max_cache_size=options.max_cache_size,
        )
        self._requests: dict[int, DataStructure | Tracked] = {}
        self._addresses = list(addresses)
        self._updated: list[str] = []
        self._changed = threading.Condition()  # held while a command is sent or a connection restored
        self._swapping = threading.Lock()  # of ``_connected`` alone: a thread that writes holds the other one
        self._connected: BrokerChannel | None = None
        self._candidate: BrokerChannel | None = None
        self._last: BrokerChannel | None = None  # the one that was closed with this
        self._address: str | None = None
        self._failed_address: str | None = None
        self._failure: str | None = None  # no broker is looked for any more
        self._closed = False
        self._shutting_down = False
        self._worker: Worker | None = None
        self._timer: Timer | None = None
        self._due = 0  # no attempt before
        self._delay = options.reconnect_delay
        self._failures = 0
        self._delayed = False  # the first wait after a failure is over, or under way
        self._first = True
        self._rebalance = False
        self._sent_elsewhere = False
        self._at_priority = False
        self._priority_ready = False
        self._backups: list[_Backup] = []

    def __str__(self) -> str:
        return self._address or "unconnected"

    @property
    def address(self) -> str | None:
        """The address of the broker that is connected; None: none is."""
        return self._address

    def start(self, listener: ChannelListener) -> None:
        """See Channel. Does not wait for a broker: the first command does."""
        self._listener = listener
        self._worker = self._clock.worker("ActiveMQ Failover Worker")
        self._wake()

    def close(self) -> None:
        """See Channel."""
        self._closed = True
        with self._swapping:
            connected, self._connected = self._connected, None
        for channel in (connected, self._candidate, *(each.channel for each in self._backups)):
            if channel is not None:
                channel.close()
        with self._changed:
            self._changed.notify_all()
        if self._timer is not None:
            self._timer.cancel()
        self._last = connected

    def join(self) -> None:
        """See Channel."""
        if self._worker is not None:
            self._worker.close()
        if self._last is not None:
            self._last.join()

    # Commands out

    def oneway(self, command: DataStructure) -> None:
        """See Channel: waits for a broker when there is none, except with a command that a new broker need not get.
        Raises ChannelFailedError if none is looked for any more, or a message has waited for ``timeout``."""
        with self._changed:
            if self._connected is None and self._is_answered_here(command):
                return
            while not self._closed:
                channel = self._wait_for_broker(command)
                if channel is None:
                    return
                tracked = self._tracker.track(command)
                if tracked is not None and tracked.on_response is not None:
                    self._requests[command.command_id] = tracked
                elif tracked is None and command.response_required:
                    self._requests[command.command_id] = command
                try:
                    channel.oneway(command)
                except IllegalStateError:  # it was closed meanwhile
                    failure = "closed"
                except ChannelFailedError as error:
                    failure = str(error)
                else:
                    self._tracker.track_back(command)
                    if command.kind.name == "ShutdownInfo":
                        self._shutting_down = True
                    return
                again = tracked is None and self._can_reconnect()
                if again:  # it is sent here, and not by what connects
                    self._requests.pop(command.command_id, None)
                self._fail(channel, failure)
                if not again:
                    return

    def _is_answered_here(self, command: DataStructure) -> bool:
        """Whether a command need not reach the next broker, which knows nothing of what it is about."""
        name = command.kind.name
        if name == "ShutdownInfo":
            return True
        if name in ("RemoveInfo", "MessageAck"):
            self._tracker.track(command)
            if command.response_required:
                self._listener.received(TYPES["Response"](correlation_id=command.command_id))
            return True
        if name == "MessagePull":
            if command.timeout != 0:
                nothing = TYPES["MessageDispatch"](consumer_id=command.consumer_id, destination=command.destination)
                self._listener.received(nothing)
            return True
        return False

    def _wait_for_broker(self, command: DataStructure) -> BrokerChannel | None:
        """The channel to send on; None: it was closed."""
        limit = self._options.timeout if command.kind.extends(_MESSAGE) and self._options.timeout > 0 else None

        def is_decided() -> bool:
            known = self._connected is not None or self._failure is not None
            return known or self._closed or not self._will_reconnect()

        timed_out = not self._clock.wait(self._changed, is_decided, limit)
        channel = self._connected
        if channel is not None or self._closed:
            return channel
        if self._failure is not None:
            raise ChannelFailedError(f"the connection failed: {self._failure}")
        if timed_out:
            raise ChannelFailedError(f"Failover timeout of {limit} ms reached.")
        raise ChannelFailedError(f"Reconnect attempts of {self._options.max_reconnect_attempts} exceeded")

    # Commands in

    def _received(self, channel: BrokerChannel, command: DataStructure) -> None:
        if channel is self._connected or channel is self._candidate:
            self._take(command)

    def _take(self, command: DataStructure) -> None:
        name = command.kind.name
        if name.endswith("Response"):
            request = self._requests.pop(command.correlation_id, None)
            if isinstance(request, Tracked) and request.on_response is not None:
                request.on_response(command)
        elif name == "ConnectionControl":
            self._submit(partial(self._controlled, command))
        elif name == "ConsumerControl" and command.close and command.consumer_id is not None:
            self._tracker.remove_consumer(id_text(command.consumer_id))
        self._listener.received(command)

    def _controlled(self, command: DataStructure) -> None:
        """The broker names other addresses, for the client to know or to go to."""
        elsewhere = (command.reconnect_to or "").strip()
        if elsewhere and self._options.reconnect_supported and self._is_usable(elsewhere):
            with self._changed:
                self._addresses = [elsewhere]
                self._sent_elsewhere = self._rebalance = True
            self._wake()
        self._update(command.rebalance_connection, command.connected_brokers or "")

    def _is_usable(self, address: str) -> bool:
        try:
            address_of(address, self._options.nested)
        except PyengineError as error:
            LOG.error("Failed to parse broker address %s: %s", address, error)
            return False
        return True

    def _update(self, rebalance: bool, text: str) -> None:
        """Other addresses are known; they come before those that the client was given."""
        if not self._options.update_uris_supported:
            return
        found = [each for part in text.split(",") if (each := part.strip()) and self._is_usable(each)]
        if not found or set(found) == set(self._updated):
            return
        with self._changed:
            self._updated = list(dict.fromkeys(found))
            if self._failed_address in self._updated:
                self._failed_address = None
            self._rebalance |= rebalance
        self._wake()

    # Failures

    def _lost(self, channel: BrokerChannel, reason: str) -> None:
        self._fail(channel, reason)

    def _fail(self, channel: BrokerChannel, reason: str) -> None:
        """The connected channel broke. Nothing happens for another one."""
        if self._shutting_down:
            return
        if not self._drop(channel):
            return
        with self._changed:
            if self._connected is not None or self._closed:
                return
            again = self._can_reconnect()
            attempts = "" if again else " not"
            LOG.warning(
                "Transport (%s) failed,%s attempting to automatically reconnect: %s", self._address, attempts, reason
            )
            self._failed_address, self._address = self._address, None
            self._at_priority = False
            if again:
                self._listener.interrupted()
                self._wake()
            else:
                self._give_up(reason)

    def _drop(self, channel: BrokerChannel | None) -> bool:
        """Leave a channel; whether it was the connected one."""
        with self._swapping:
            mine = channel is not None and self._connected is channel
            if mine:
                self._connected = None
        if channel is not None and mine:
            channel.close()
        return mine

    def _give_up(self, reason: str) -> None:
        self._failure = reason
        self._changed.notify_all()
        self._listener.lost(reason)

    def _limit(self) -> int:
        if self._first and self._options.startup_max_reconnect_attempts != INFINITE:
            return self._options.startup_max_reconnect_attempts
        return self._options.max_reconnect_attempts

    def _can_reconnect(self) -> bool:
        return not self._closed and self._limit() != 0

    def _will_reconnect(self) -> bool:
        return self._first or self._limit() != 0

    # Connecting, on the worker

    def _wake(self, delay: int = 0) -> None:
        """Do the next step of connecting, after ``delay`` ms."""
        if self._closed:
            return
        if delay <= 0:
            self._submit(self._iterate)
            return
        with suppress(IllegalStateError):  # the clock is closed
            self._timer = self._clock.call_at(self._clock.now() + delay, partial(self._submit, self._iterate))

    def _submit(self, action: Callable[[], None]) -> None:
        if self._worker is not None:
            with suppress(IllegalStateError):  # it is closed
                self._worker.submit(action)

    def _next_delay(self) -> int:
        """How long to wait now; the next time it is longer (doDelay)."""
        delay = self._delay
        if self._options.use_exponential_back_off:
            self._delay = min(int(delay * self._options.back_off_multiplier), self._options.max_reconnect_delay)
        return delay

    def _iterate(self) -> None:
        if self._closed or self._failure is not None:
            return
        if self._connected is not None and not self._rebalance and not self._priority_ready:
            self._build_backups()
            if self._priority_ready:
                self._wake()
            elif self._options.priority_backup and not self._at_priority:
                self._wake(max(1, self._next_delay()))
            return
        ahead = self._due - self._clock.now()
        if ahead > 0:
            self._wake(ahead)
            return
        self._reconnect()

    def _put_off(self) -> None:
        delay = self._next_delay()
        self._due = self._clock.now() + delay
        self._wake(delay)

    def _connect_list(self) -> list[str]:
        """The addresses in the order in which they are tried: the one that failed last comes last."""
        found = list(dict.fromkeys([*self._updated, *self._addresses]))
        failed = self._failed_address
        last = [failed] if failed is not None and failed in found else []
        found = [each for each in found if each not in last]
        if self._options.randomize:
            self._chance.shuffle(found)
        return found + last

    def _same(self, one: str | None, other: str | None) -> bool:
        return one is not None and other is not None and _place(one) == _place(other)

    def _is_priority(self, address: str) -> bool:
        if not self._options.priority_backup:
            return False
        first = self._options.priority_uris or tuple(self._addresses[:1])
        return any(self._same(each, address) for each in first)

    def _read_addresses(self) -> None:
        where = self._options.update_uris_url
        if where:
            try:
                text = Path(where.removeprefix("file://")).read_text("utf-8")
            except OSError as error:
                LOG.error("Failed to read updateURIsURL %s: %s", where, error)
            else:
                self._update(self._options.rebalance_update_uris, text.replace("\n", ""))

    def _reconnect(self) -> None:
        self._read_addresses()
        addresses = self._connect_list()
        if self._rebalance and self._connected is not None:
            self._rebalance = False
            if self._at_priority or (not self._sent_elsewhere and self._same(addresses[0], self._address)):
                return
            self._leave()
        self._rebalance = self._sent_elsewhere = False
        if not self._options.use_exponential_back_off or self._delay == FIRST_DELAY:
            self._delay = self._options.initial_reconnect_delay
        backup = self._take_backup()
        if backup is not None and self._priority_ready:
            self._priority_ready = False
            self._leave()
        delays = backup is None and not self._first and not self._failures and self._options.initial_reconnect_delay > 0
        if delays and not self._delayed:
            self._delayed = True
            self._put_off()
            return
        failure = "No uris available to connect to."
        if backup is not None:
            refused = self._try(backup.address, backup)
            if refused is None:
                return
            failure = refused
        for address in addresses:
            if self._closed or self._connected is not None:
                return
            refused = self._try(address)
            if refused is None:
                return
            failure = refused
        self._failed_round(addresses, failure)

    def _failed_round(self, addresses: list[str], failure: str) -> None:
        with self._changed:
            limit = self._limit()
            self._failures += 1
            if limit != INFINITE and self._failures >= limit:
                LOG.error("Failed to connect to %s after: %d attempt(s)", addresses, self._failures)
                self._give_up(failure)
                return
        often = self._options.warn_after_reconnect_attempts
        if often > 0 and (self._failures == 1 or self._failures % often == 0):
            text = "Failed to connect to %s after: %d attempt(s) with %s, continuing to retry."
            LOG.warning(text, addresses, self._failures, failure)
        self._put_off()

    def _leave(self) -> None:
        """Go from a broker that is there to another one."""
        channel = self._connected
        if self._drop(channel):
            with self._changed:
                self._address = None
                self._at_priority = False
                self._listener.interrupted()

    def _try(self, address: str, backup: _Backup | None = None) -> str | None:
        """Connect to one address, and restore there what the last broker knew. Returns why it could not be, None if
        it is done."""
        channel = None
        try:
            channel = backup.channel if backup is not None else self._connect(address_of(address, self._options.nested))
            listener = ChannelListener(partial(self._received, channel), partial(self._lost, channel))
            self._candidate = channel
            if self._closed:
                channel.close()
                return "closed"
            if backup is not None:
                channel.listener = listener
                for command in backup.greeting:
                    self._take(command)
            else:
                channel.start(listener)
            with self._changed:
                if not self._first:
                    self._restore(channel)
                self._publish(channel, address)
        except PyengineError as error:
            if channel is not None:
                channel.close()
            return str(error)
        finally:
            self._candidate = None
        if channel.failure is not None:  # before it was the connected one
            self._fail(channel, channel.failure)
            return None
        self._listener.resumed()
        self._wake()
        return None

    def _publish(self, channel: BrokerChannel, address: str) -> None:
        with self._swapping:
            if self._closed:
                raise ChannelFailedError("closed")
            self._connected = channel
        LOG.info("Successfully %s to %s", "connected" if self._first else "reconnected", address)
        self._address = address
        self._at_priority = self._is_priority(address)
        self._delay = self._options.initial_reconnect_delay
        self._failures = self._due = 0
        self._first = self._delayed = False
        self._changed.notify_all()

    def _restore(self, channel: BrokerChannel) -> None:
        channel.oneway(TYPES["ConnectionControl"](fault_tolerant=True))
        self._tracker.restore(channel.oneway, self._take)
        for command in list(self._requests.values()):
            if not isinstance(command, Tracked):
                channel.oneway(command)

    # Connections that stand ready

    def _take_backup(self) -> _Backup | None:
        self._backups = [each for each in self._backups if not each.lost]
        if not self._backups or not (self._options.backup or self._options.priority_backup):
            return None
        first = 0 if self._priority_ready or not self._options.randomize else None
        return self._backups.pop(self._chance.randrange(len(self._backups)) if first is None else first)

    def _wants_backups(self) -> bool:
        options = self._options
        missing = options.backup and len(self._backups) < options.backup_pool_size
        return missing or (options.priority_backup and not (self._priority_ready or self._at_priority))

    def _build_backups(self) -> None:
        self._backups = [each for each in self._backups if not each.lost]
        for address in dict.fromkeys([*self._options.priority_uris, *self._connect_list()]):
            if self._closed or not self._wants_backups():
                return
            known = any(self._same(each.address, address) for each in self._backups)
            if not known and not self._same(address, self._address):
                self._stand_by(address)

    def _stand_by(self, address: str) -> None:
        try:
            channel = self._connect(address_of(address, self._options.nested))
            backup = _Backup(address, channel)

            def lost(reason: str) -> None:
                backup.lost = True
                self._wake()

            channel.start(ChannelListener(backup.greeting.append, lost))
        except JMSError as error:
            LOG.debug("Failed to build backup %s: %s", address, error)
            return
        if self._closed:
            channel.close()
            return
        if self._is_priority(address):
            self._priority_ready = True
            self._backups.insert(0, backup)
            for each in self._backups[max(1, self._options.backup_pool_size) :]:
                each.channel.close()
            del self._backups[max(1, self._options.backup_pool_size) :]
        else:
            self._backups.append(backup)
