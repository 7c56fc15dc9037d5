from collections.abc import Callable, Hashable, Iterable
from enum import IntEnum
from typing import Any, Literal, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import disjoint_base

class HoldReason(IntEnum):
    NOT_HELD = 0
    NO_CONSUMER = 1
    START_DELAY = 2
    PAUSED = 3
    NOT_PAGED_IN = 4
    TARGET_ABSENT = 5
    SELECTOR = 6
    NO_LOCAL = 7
    EXCLUSIVE_NO_CREDIT = 8
    EXCLUSIVE_SELECTOR = 9
    EXCLUSIVE_NO_LOCAL = 10
    EXCLUSIVE_GROUP = 11
    GROUP_NO_CREDIT = 12
    GROUP_SELECTOR = 13
    GROUP_NO_LOCAL = 14
    NO_CREDIT = 15
    UNCOMMITTED = 16
    AWAITING_WAKEUP = 17

class Verdict(IntEnum):
    TAKES = 0
    BROWSES = 1
    FULL = 2
    PAUSES = 3
    NOT_TARGET = 4
    REFUSES_LOCAL = 5
    REFUSES = 6
    STANDS_BY = 7
    OWNED_BY_OTHER = 8

class AckKind(IntEnum):
    INDIVIDUAL = 4
    STANDARD = 2
    DELIVERED = 0
    POISON = 1
    EXPIRED = 6

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
class Queue:
    max_page_size: int | None
    max_browse_page_size: int | None
    strict_order_dispatch: bool
    prioritized_messages: bool
    lazy_dispatch: bool
    consumers_before_dispatch_starts: int
    time_before_dispatch_starts: int
    def __new__(
        cls,
        *,
        max_page_size: int | None = 200,
        max_browse_page_size: int | None = 400,
        use_consumer_priority: bool = True,
        strict_order_dispatch: bool = False,
        prioritized_messages: bool = False,
        lazy_dispatch: bool = False,
        use_prefetch_extension: bool = True,
        all_consumers_exclusive_by_default: bool = False,
        message_group_map_factory_type: str = "cached",
        consumers_before_dispatch_starts: int = 0,
        time_before_dispatch_starts: int = 0,
    ) -> Self: ...
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
    ) -> int: ...
    def close(
        self, consumer: int, *, last_delivered: int | None = None, lost: bool = False, now: int = 0
    ) -> list[Delivery]: ...
    def send(
        self,
        message: Any = None,
        *,
        group: str | None = ...,
        group_sequence: int | None = ...,
        priority: int | None = ...,
        expiration: int | None = ...,
        connection: Hashable | None = None,
        target: Hashable | None = None,
    ) -> int: ...
    def run(self, now: int = 0) -> list[Delivery]: ...
    def acknowledge(
        self,
        consumer: int,
        last: int,
        *,
        kind: AckKind = ...,
        first: int | None = None,
        count: int = 1,
        transaction: Hashable | None = None,
    ) -> None: ...
    def commit(self, transaction: Hashable) -> None: ...
    def rollback(self, transaction: Hashable) -> None: ...
    def pull(self, consumer: int, *, quantity: int = 1, timeout: int = 0, now: int = 0) -> list[Delivery]: ...
    def pull_timeout(self, consumer: int) -> list[Delivery]: ...
    def wakeup(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def remove_message(self, handle: int) -> None: ...
    def purge(self) -> int: ...
    def expire(self, now: int) -> int: ...
    def remove_group(self, group: str) -> int | None: ...
    def remove_all_groups(self) -> None: ...
    @property
    def starts_at(self) -> int | None: ...
    @property
    def wakeups(self) -> int: ...
    @property
    def consumer_order(self) -> list[int]: ...
    @property
    def exclusive_consumer(self) -> int | None: ...
    @property
    def group_owners(self) -> dict[str, int]: ...
    def assigned_groups(self, consumer: int) -> int: ...
    def unacknowledged(self, consumer: int) -> list[int]: ...
    def waiting(self) -> list[int]: ...
    def take_removed(self) -> list[tuple[int, str]]: ...
    @property
    def statistics(self) -> dict[str, int]: ...
    def why(self, handle: int) -> tuple[HoldReason, int | None]: ...
    def why_each(self, handle: int) -> dict[int, Verdict]: ...
    def held(self) -> tuple[NDArray[np.int64], NDArray[np.int8], NDArray[np.int64]]: ...
    def hold_counts(self) -> dict[HoldReason, int]: ...
    def intern_groups(self, names: Iterable[str | None]) -> NDArray[np.int32]: ...
    def predicate_of(self, consumer: int) -> int: ...
    def offer_batch(
        self,
        size: int,
        *,
        groups: ArrayLike | None = None,
        group_sequences: ArrayLike | None = None,
        priorities: ArrayLike | None = None,
        expirations: ArrayLike | None = None,
        matches: ArrayLike | None = None,
        arrivals: ArrayLike | None = None,
        acknowledge: Literal["at_once", "never"] | Iterable[int] = "at_once",
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...
    def _check(self) -> None: ...
