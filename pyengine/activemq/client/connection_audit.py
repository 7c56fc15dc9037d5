"""Which messages a connection was given before: after a failover the broker may dispatch them again (ConnectionAudit).

The audit of a queue is the connection's, of a topic each consumer's.
"""

from __future__ import annotations

import threading

from pyengine._engine.activemq.topic.message_audit import Audit, producer_and_number
from pyengine._engine.message.message import Message

MOST = 1000  # queues and consumers whose audits are kept, those that were used last


class ConnectionAudit:
    """depth, producers: of each audit (``jms.auditDepth``, ``jms.auditMaximumProducerNumber``)."""

    def __init__(self, depth: int = 2048, producers: int = 64) -> None:
        self._depth, self._producers = depth, producers
        self._lock = threading.Lock()
        self._audits: dict[str, dict[str, Audit]] = {"queue": {}, "topic": {}}
        self._expected: dict[str, set[str]] = {}  # consumer id -> ids of messages that may come to it again

    def _audit(self, consumer_id: str, message: Message, make: bool) -> Audit | None:
        where = message.destination or ""
        queue = where.partition("://")[0].endswith("queue")
        key, audits = (where, self._audits["queue"]) if queue else (consumer_id, self._audits["topic"])
        found = audits.pop(key, None)
        if found is None and make:
            found = Audit(self._depth, self._producers)
        if found is not None:
            audits[key] = found
            if len(audits) > MOST:
                del audits[next(iter(audits))]
        return found

    def is_duplicate(self, consumer_id: str, message: Message) -> bool:
        """Whether it came before; it counts as one that did from now on."""
        producer, number = producer_and_number(message.message_id)
        if producer is None:
            return False
        with self._lock:
            audit = self._audit(consumer_id, message, True)
            assert audit is not None
            return audit.is_duplicate(producer, number)

    def rollback(self, consumer_id: str, message: Message) -> None:
        """It did not come."""
        producer, number = producer_and_number(message.message_id)
        if producer is not None:
            with self._lock:
                audit = self._audit(consumer_id, message, False)
                if audit is not None:
                    audit.rollback(producer, number)

    def expect(self, consumer_id: str, message_id: str) -> None:
        """A consumer had a message in a transaction when the transport was interrupted: it may come again."""
        with self._lock:
            self._expected.setdefault(consumer_id, set()).add(message_id)

    def expect_nothing(self, consumer_id: str) -> None:
        """The transaction of a consumer has ended."""
        with self._lock:
            self._expected.pop(consumer_id, None)

    def expected(self, message_id: str) -> bool:
        """Whether some consumer of the connection had it in a transaction that is open."""
        with self._lock:
            return any(message_id in each for each in self._expected.values())

    def forget(self, consumer_id: str) -> None:
        """A consumer has gone."""
        with self._lock:
            self._audits["topic"].pop(consumer_id, None)
