from collections.abc import Sequence

from typing_extensions import disjoint_base

SMALLEST_SIZE: int

@disjoint_base
class Envelope:
    body: str | bytes | None
    destination: str | None
    original_destination: str | None
    reply_to: str | None
    type: str | None
    correlation_id: str | None
    message_id: str | None
    @property
    def delivery_mode(self) -> str: ...
    @delivery_mode.setter
    def delivery_mode(self, value: str | int) -> None: ...
    persistent: bool
    priority: int
    timestamp: int
    expiration: int
    redelivery_counter: int
    redelivered: bool
    delivery_count: int
    group_id: str | None
    group_sequence: int
    group_first_for_consumer: bool
    user_id: str | None
    producer_transaction_id: str | None
    broker_in_time: int
    broker_out_time: int
    @property
    def broker_path(self) -> tuple[str, ...] | None: ...
    @broker_path.setter
    def broker_path(self, value: Sequence[str] | None) -> None: ...
    broker_sequence: int
    connection_id: str | None
    target_consumer_id: str | None
    def received(self, destination: str | None, sequence: int, now: int) -> None: ...
    @property
    def size(self) -> int: ...
    @size.setter
    def size(self, value: int | None) -> None: ...
