from collections.abc import Callable, Hashable, Iterable
from typing import Any, Never, TypeAlias

from typing_extensions import disjoint_base

from pyengine._engine.activemq.commands.message_ack import MessageAck
from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch
from pyengine._engine.activemq.queue.queue import Queue
from pyengine._engine.activemq.region.prefetch_subscription import PrefetchSubscription
from pyengine._engine.activemq.region.shared_credit import SharedCredit
from pyengine._engine.message.message import Message

_Posted: TypeAlias = list[tuple[Callable[[MessageDispatch], object], MessageDispatch]]

@disjoint_base
class RegionQueue(Queue):
    owner: Any
    destination: Any
    direct: bool
    noting: bool
    minimum_message_size: int
    max_expire_page_size: int
    look_planned: bool
    cached: bool
    reader: Callable[[], object]
    @property
    def due(self) -> bool: ...
    @property
    def bytes(self) -> int: ...
    def snapshot(self, **settings: Any) -> Never: ...
    @property
    def persistent_stored(self) -> int: ...
    @property
    def in_flight_count(self) -> int: ...
    def leave_behind(self, limit: int) -> list[Message]: ...
    def add_consumer(self, **settings: Any) -> Never: ...
    def subscribe(self, subscription: PrefetchSubscription, **settings: Any) -> int: ...
    def unsubscribe(
        self, consumer: int, *, last_delivered: int | None = None, lost: bool = False, now: int = 0
    ) -> _Posted: ...
    def spread(self, consumer: int, credit: SharedCredit) -> None: ...
    def share(self) -> None: ...
    def note(self) -> None: ...
    def put(self, message: Message, wake: bool = True) -> None: ...
    def run(self, now: int = 0, limit: int = -1) -> _Posted: ...  # type: ignore[override]
    def pull(self, consumer: int, *, quantity: int = 1, timeout: int = 0, now: int = 0) -> _Posted: ...  # type: ignore[override]
    def expire(self, now: int, *, limit: int = 400) -> _Posted: ...  # type: ignore[override]
    def pull_timeout(self, consumer: int, *, now: int = 0) -> _Posted: ...  # type: ignore[override]
    def offer_all(
        self, messages: list[Message], destination: str, connection_id: str, sequence: int, now: int
    ) -> _Posted | None: ...
    @property
    def news(self) -> bool: ...
    def take_noted(self) -> list[Message]: ...
    def answer(
        self,
        subscription: PrefetchSubscription,
        consumer: int,
        ack: MessageAck,
        now: int,
        transaction: Hashable | None = None,
    ) -> list[Message]: ...
    def complete_transaction(
        self, transaction: Hashable, subscription: PrefetchSubscription, messages: Iterable[Message]
    ) -> list[Message]: ...
    def take_off_message(self, handle: int) -> Message: ...
    def forget(self, message: Message) -> None: ...
