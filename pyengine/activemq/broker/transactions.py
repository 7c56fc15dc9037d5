"""The local transactions that are open at a broker."""

from __future__ import annotations

from pyengine.activemq.broker.transaction import Transaction
from pyengine.errors import JMSError


class Transactions:
    """Open transactions by their ids; those of one connection end with it."""

    def __init__(self) -> None:
        self._open: dict[str, Transaction] = {}
        self._of_connection: dict[str, dict[str, Transaction]] = {}

    def begin(self, connection_id: str, transaction_id: str) -> None:
        """Open one. Raises JMSError for an id that is open."""
        if transaction_id in self._open:
            raise JMSError(f"transaction {transaction_id!r} has already been started")
        transaction = Transaction(transaction_id, connection_id)
        self._open[transaction_id] = transaction
        self._of_connection.setdefault(connection_id, {})[transaction_id] = transaction

    def find(self, transaction_id: str) -> Transaction:
        """An open one; JMSError."""
        found = self._open.get(transaction_id)
        if found is None:
            raise JMSError(f"transaction {transaction_id!r} has not been started")
        return found

    def commit(self, transaction_id: str) -> None:
        """Apply its steps. One that failed is rolled back, and JMSError says why."""
        transaction = self.find(transaction_id)
        if transaction.failed is not None:
            self.rollback(transaction_id)
            raise JMSError(f"the transaction was rolled back: {transaction.failed}") from transaction.failed
        self._forget(transaction).commit()

    def rollback(self, transaction_id: str) -> None:
        """Take its steps back."""
        self._forget(self.find(transaction_id)).rollback()

    def rollback_of(self, connection_id: str) -> None:
        """Take back what a connection has left open."""
        for transaction in list(self._of_connection.get(connection_id, {}).values()):
            self._forget(transaction).rollback()

    def _forget(self, transaction: Transaction) -> Transaction:
        del self._open[transaction.transaction_id]
        of_connection = self._of_connection[transaction.connection_id]
        del of_connection[transaction.transaction_id]
        if not of_connection:
            del self._of_connection[transaction.connection_id]
        return transaction
