from collections.abc import Callable
from enum import IntEnum
from typing import Any, Self

from typing_extensions import disjoint_base

from pyengine._engine.activemq.client.redelivery_policy import RedeliveryPolicy
from pyengine._engine.activemq.client.session_commands import Exchange
from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch
from pyengine._engine.message.message import Message

class Offer(IntEnum):
    KEPT = 0
    LISTEN = 1
    QUEUED = 2

@disjoint_base
class Consumption:
    session: Exchange
    consumer_id: str
    destination: Any
    owner: Any
    listener: Callable[[Message], object] | None
    available: Callable[[], object] | None
    prefetch: int
    topic: bool
    browser: bool
    durable: bool
    listening: bool
    started: bool
    ended: bool
    redelivery_policy: RedeliveryPolicy
    optimize_acknowledge: bool
    last_sequence: int
    last_delivered: str | None
    expired_messages: int
    def __new__(
        cls,
        session: Exchange,
        consumer_id: str,
        destination: Any,
        prefetch: int,
        *,
        redelivery_policy: RedeliveryPolicy,
        topic: bool = False,
        browser: bool = False,
        durable: bool = False,
        prioritized: bool = False,
        optimize_acknowledge: bool = False,
        optimize_acknowledge_time_out: int = 0,
        transacted_individual_ack: bool = False,
        non_blocking_redelivery: bool = False,
        consumer_expiry_check: bool = True,
        delay_by_counter: bool = False,
        now: int = 0,
        audit: Any = None,
    ) -> Self: ...
    @property
    def missing_messages(self) -> int: ...
    def acknowledge_one(self, dispatch: MessageDispatch) -> None: ...
    def deliver_acks(self) -> None: ...
    def offer(self, dispatch: MessageDispatch, now: int) -> Offer: ...
    def receive(self, now: int) -> MessageDispatch | None: ...
    def receive_batch(self, size: int, now: int) -> list[MessageDispatch]: ...
    def give(self, dispatch: MessageDispatch, acknowledge: Callable[[], None] | None) -> Message: ...
    @property
    def ready(self) -> bool: ...
    def wants_pull(self) -> bool: ...
    def failed(
        self, dispatch: MessageDispatch, now: int, cause: str, chance: Callable[[], float] | None = None
    ) -> None: ...
    def rollback(self, now: int, chance: Callable[[], float] | None = None) -> None: ...
    def redeliver(self, dispatches: list[MessageDispatch], now: int) -> None: ...
    def listen(self, listening: bool) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> bool: ...
    @property
    def closed(self) -> bool: ...
    @property
    def waiting_messages(self) -> int: ...
    @property
    def delivered_messages(self) -> list[Message]: ...
    def check_open(self) -> None: ...
