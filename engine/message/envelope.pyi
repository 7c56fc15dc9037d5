from collections.abc import Sequence
from typing import Protocol

from typing_extensions import disjoint_base

from pyengine._engine.message.body import Body

SMALLEST_SIZE: int

class _Named(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...

@disjoint_base
class Envelope:
    body: str | bytes | Body | None
    data_structure: object | None
    @property
    def destination(self) -> str | None: ...
    @destination.setter
    def destination(self, value: str | _Named | None) -> None: ...
    @property
    def original_destination(self) -> str | None: ...
    @original_destination.setter
    def original_destination(self, value: str | _Named | None) -> None: ...
    @property
    def reply_to(self) -> str | None: ...
    @reply_to.setter
    def reply_to(self, value: str | _Named | None) -> None: ...
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
