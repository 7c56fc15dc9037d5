"""Acknowledgements that more than one queue's core decides: of topics, of transactions, of consumers of several queues.

What one queue's core alone decides, the region says there at once (RegionBroker).
"""

from __future__ import annotations

from pyengine._engine.activemq.commands.message_ack import AckKind
from pyengine.activemq.broker.queues import acknowledged
from pyengine.activemq.broker.subscription import Subscription
from pyengine.activemq.broker.topics import Topics
from pyengine.activemq.broker.transaction import Transaction
from pyengine.activemq.broker.transactions import Transactions
from pyengine.activemq.transport.commands import MessageAck
from pyengine.clock import Clock
from pyengine.errors import JMSError


class Acknowledgements:
    """The acknowledgements of one broker's consumers."""

    def __init__(self, clock: Clock, topics: Topics, transactions: Transactions) -> None:
        self._clock = clock
        self._topics = topics
        self._transactions = transactions

    def take(self, subscription: Subscription, ack: MessageAck) -> None:
        """One acknowledgement. Raises JMSError if it does not fit what its consumer holds."""
        if ack.transaction_id is not None and ack.kind is AckKind.POISON:
            raise JMSError(
                f"Poison ack cannot be transacted: message {ack.last_message_id} of consumer {ack.consumer_id}"
            )
        transaction = None if ack.transaction_id is None else self._transactions.find(ack.transaction_id)
        try:
            self._take_held(subscription, ack, transaction)
        except JMSError as error:
            # No caller waits for it: the transaction can only be rolled back (rollbackOnlyOnAsyncException).
            if transaction is not None and transaction.failed is None:
                transaction.failed = error
            raise

    def _take_held(self, subscription: Subscription, ack: MessageAck, transaction: Transaction | None) -> None:
        if subscription.topic is not None:
            self._topics.acknowledge(subscription, ack, transaction)
            return
        astray = subscription.astray(ack) if ack.kind is AckKind.POISON else None
        if subscription.spread:
            before = 0 if transaction is None else acknowledged(transaction, subscription, ack.last_message_id)
            for queue, part in subscription.parts_of(ack, before):
                queue.acknowledge(subscription, part, transaction, self._clock.now())
            subscription.wake(queue)
        else:
            queue = next((each for each in subscription.queues if subscription.find(ack.last_message_id, each)), None)
            if queue is None:
                raise JMSError(
                    f"unmatched acknowledge: message {ack.last_message_id} is not held by consumer {ack.consumer_id}"
                )
            queue.acknowledge(subscription, ack, transaction, self._clock.now())
        if astray is not None:
            raise JMSError(
                f"unmatched acknowledge: message {ack.last_message_id} does not come behind {ack.first_message_id} at "
                f"consumer {ack.consumer_id}, whose messages from there on were given up"
            )
