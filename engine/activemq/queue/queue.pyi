from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import disjoint_base

from pyengine._engine.activemq.commands.message_ack import AckKind
from pyengine._engine.activemq.queue.hold_reasons import HoldReason as HoldReason
from pyengine._engine.activemq.queue.hold_reasons import Verdict as Verdict
from pyengine._engine.activemq.queue.inspection import Inspection
from pyengine._engine.serialization.codec import SharedValues

class _Matches(Protocol):
    def matches(self, message: Any, /) -> bool: ...

_Asked: TypeAlias = Callable[[Any], object] | _Matches

@disjoint_base
class Delivery:
    consumer: int
    message: int | None
    body: Any
    redeliveries: int
    group_first: bool
    def __init__(self, consumer: int, message: int | None, body: Any, redeliveries: int, group_first: bool) -> None: ...

@disjoint_base
class Queue(Inspection):
    def add_consumer(
        self,
        *,
        selector: _Asked | None = None,
        exclusive: bool = False,
        priority: int = 0,
        prefetch: int = 1000,
        no_local: bool = False,
        connection: Hashable | None = None,
        name: Hashable | None = None,
        browser: bool = False,
        matching: Iterable[int] | None = None,
        use_prefetch_extension: bool | None = None,
        max_browse_page_size: int | None = ...,
    ) -> int: ...
    def close(
        self,
        consumer: int,
        *,
        last_delivered: int | None = None,
        lost: bool = False,
        now: int = 0,
        matching: Mapping[int, Iterable[int]] | None = None,
    ) -> list[Delivery]: ...
    def renew(self) -> None: ...
    def send(
        self,
        message: Any = None,
        *,
        group: str | None = ...,
        group_sequence: int | None = ...,
        priority: int | None = ...,
        expiration: int | None = ...,
        persistent: bool = ...,
        connection: Hashable | None = None,
        target: Hashable | None = None,
        redeliveries: int = ...,
        wake: bool = True,
    ) -> int: ...
    def run(self, now: int = 0, limit: int = -1) -> list[Delivery]: ...
    def acknowledge(
        self,
        consumer: int,
        last: int,
        *,
        kind: AckKind = ...,
        first: int | None = None,
        count: int = 1,
        transaction: Hashable | None = None,
    ) -> list[Any]: ...
    def acknowledge_each(self, deliveries: Iterable[Delivery]) -> None: ...
    def commit(self, transaction: Hashable) -> None: ...
    def rollback(self, transaction: Hashable) -> None: ...
    def pull(self, consumer: int, *, quantity: int = 1, timeout: int = 0, now: int = 0) -> list[Delivery]: ...
    def set_prefetch(self, consumer: int, prefetch: int) -> None: ...
    def pull_timeout(self, consumer: int, *, now: int = 0) -> list[Delivery]: ...
    def share_credit(self, consumer: int, elsewhere: int, extension: int) -> None: ...
    def wakeup(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def remove_message(self, handle: int) -> None: ...
    def purge(self) -> int: ...
    def expire(self, now: int, *, limit: int = 400) -> list[Delivery]: ...
    def expire_stored(self, now: int) -> None: ...
    def remove_group(self, group: str) -> int | None: ...
    def remove_all_groups(self) -> None: ...
    def take_failed(self) -> list[tuple[Any, Any]]: ...
    def take_slow(self) -> list[int]: ...
    def take_removed(self) -> list[tuple[int, str, Any, int]]: ...
    def intern_groups(self, names: Iterable[str | None]) -> NDArray[np.int32]: ...
    def offer_batch(
        self,
        size: int,
        *,
        groups: ArrayLike | None = None,
        group_sequences: ArrayLike | None = None,
        priorities: ArrayLike | None = None,
        expirations: ArrayLike | None = None,
        persistent: ArrayLike | None = None,
        matches: ArrayLike | None = None,
        arrivals: ArrayLike | None = None,
        acknowledge: Literal["at_once", "never"] | Iterable[int] = "at_once",
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...
    def snapshot(self, *, save: Callable[[Any], bytes] | None = None, shared: SharedValues | None = None) -> bytes: ...
    @classmethod
    def restore(
        cls, data: bytes, *, load: Callable[[bytes], Any] | None = None, shared: SharedValues | None = None
    ) -> Queue: ...
