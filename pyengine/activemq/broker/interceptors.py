"""What sees a message that a client sends before the router does (BrokerFilter): plugins, then the scheduler."""

from __future__ import annotations

from pyengine._engine.message.message import Message
from pyengine.activemq.broker.authorization import Authorization
from pyengine.activemq.broker.scheduler import Scheduled, Scheduler, asks_for_scheduler
from pyengine.activemq.broker.statistics import Statistics
from pyengine.activemq.broker.transactions import Transactions
from pyengine.clock import Clock
from pyengine.destinations import Destination
from pyengine.topology.policy import ForcePersistencyModePlugin, TimeStampingPlugin


class Interceptors:
    """The plugins of a broker and its scheduler, None without it."""

    def __init__(
        self,
        clock: Clock,
        transactions: Transactions,
        stamping: TimeStampingPlugin | None,
        forcing: ForcePersistencyModePlugin | None,
        scheduler: Scheduler | None,
        authorization: Authorization | None = None,
        statistics: Statistics | None = None,
    ) -> None:
        self._clock = clock
        self._transactions = transactions
        self._stamping = stamping
        self._forcing = forcing
        self.scheduler = scheduler
        self._authorization = authorization
        self._statistics = statistics

    def takes(
        self, connection_id: str, destination: Destination, message: Message, transaction_id: str | None, now: int
    ) -> bool:
        """Let plugins change a message that is sent; True if the scheduler has it now, or it was a question that is
        answered. Raises AuthenticationError for a user without the right to send it."""
        stamping, scheduler = self._stamping, self.scheduler
        if self._authorization is not None:
            self._authorization.check_send(connection_id, destination)
        if self._statistics is not None and self._statistics.answers(destination, message, now):
            return True
        if self._forcing is not None:
            message.persistent = self._forcing.persistence_flag
        of_a_network = message.broker_path is not None
        if stamping is not None and message.timestamp > 0 and (stamping.process_network_messages or not of_a_network):
            message.timestamp, message.expiration = stamping.stamp(message.timestamp, message.expiration, now)
        if scheduler is None:
            return False
        if scheduler.manage(destination, message, now):
            return True
        if not asks_for_scheduler(message):
            return False
        if transaction_id is None:
            scheduler.schedule(destination, message, now)
        else:
            step = Scheduled(scheduler, self._clock, destination, message)
            self._transactions.find(transaction_id).steps.append(step)
        return True
