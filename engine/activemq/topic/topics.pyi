from collections.abc import Callable, Hashable, Iterable
from typing import Any, Literal, Protocol, Self, TypeAlias

from typing_extensions import disjoint_base

from pyengine._engine.activemq.commands.message_ack import AckKind
from pyengine._engine.activemq.topic.eviction_strategies import Eviction, PendingLimit
from pyengine._engine.activemq.topic.ledger import Event, TopicDelivery
from pyengine._engine.activemq.topic.message_audit import Audit
from pyengine._engine.activemq.topic.recovery_policies import Recovery

class _Matches(Protocol):
    def matches(self, message: Any, /) -> bool: ...

_Asked: TypeAlias = Callable[[Any], object] | _Matches
_Outcome: TypeAlias = list[TopicDelivery | Event]

class _Pager(Protocol):
    def __call__(
        self, changes: list[Event], subscription: int | None, topic: int, after: tuple[int, int], limit: int, /
    ) -> Iterable[tuple[int, Any]]: ...

@disjoint_base
class TopicRegion:
    keep_durable_subscriptions_active: bool
    def __new__(
        cls,
        *,
        keep_durable_subscriptions_active: bool = True,
        expired_as_discarded: bool = False,
        pager: _Pager | None = None,
        page: int = 1000,
    ) -> Self: ...
    def add_topic(
        self,
        name: str,
        *,
        dispatch_policy: Literal[
            "simple", "round_robin", "strict_order", "priority", "priority_network", "client_id_filter"
        ] = "simple",
        recovery: Recovery | None = None,
        always_retroactive: bool = False,
        selector_errors: Literal["no_match", "exact"] = "no_match",
        client_id_property: str = "PTP_CLIENTID",
        suffix: str = ".PTP",
        minimum_message_size: int = 1024,
        now: int = 0,
    ) -> int: ...
    def remove_topic(self, topic: int) -> None: ...
    def add_subscription(
        self,
        *,
        selector: _Asked | None = None,
        priority: int = 0,
        prefetch: int = 32767,
        no_local: bool = False,
        connection: Hashable | None = None,
        client_id: str | None = None,
        name: Hashable | None = None,
        browser: bool = False,
        retroactive: bool = False,
        network_consumers: Iterable[Hashable] = (),
        pending_limit_strategy: PendingLimit | Callable[[int], int] | None = None,
        maximum_pending_message_limit: int = 0,
        eviction: Eviction | None = None,
        audit: Audit | None = None,
        use_prefetch_extension: bool = True,
        now: int = 0,
    ) -> int: ...
    def attach(self, subscription: int, topic: int, *, now: int = 0) -> _Outcome: ...
    def close(self, subscription: int) -> _Outcome: ...
    def subscribe(
        self,
        client_id: str,
        subscription_name: str,
        topics: Iterable[int],
        *,
        destination: Hashable | None = None,
        selector: _Asked | None = None,
        priority: int = 0,
        prefetch: int = 100,
        no_local: bool = False,
        connection: Hashable | None = None,
        name: Hashable | None = None,
        retroactive: bool = False,
        prioritized_messages: bool = False,
        use_prefetch_extension: bool = True,
        link_stealing: bool = False,
        active: bool = True,
        now: int = 0,
    ) -> tuple[int, _Outcome]: ...
    def activate(self, subscription: int, *, prefetch: int | None = None, now: int = 0) -> _Outcome: ...
    def leave_behind(self, subscription: int, topic: int, count: int) -> None: ...
    def deactivate(
        self, subscription: int, *, last_delivered: int | None = None, lost: bool = False, now: int = 0
    ) -> None: ...
    def unsubscribe(self, client_id: str, subscription_name: str) -> None: ...
    def remove_offline(self, timeout: int, *, now: int) -> list[tuple[str, str]]: ...
    def expire(self, topic: int, now: int, *, upto: int | None = None, active_too: bool = False) -> _Outcome: ...
    def send(
        self,
        topic: int,
        message: Any = None,
        *,
        priority: int | None = ...,
        expiration: int | None = ...,
        timestamp: int | None = ...,
        persistent: bool = ...,
        message_id: str | None = ...,
        size: int | None = ...,
        connection: Hashable | None = None,
        target: Hashable | None = None,
        discarding: int | None = None,
        handle: int = -1,
        now: int = 0,
    ) -> _Outcome: ...
    def acknowledge(
        self,
        subscription: int,
        last: int = -1,
        *,
        kind: AckKind = ...,
        first: int | None = None,
        count: int | None = None,
        transaction: Hashable | None = None,
        now: int = 0,
    ) -> _Outcome: ...
    def send_each(
        self,
        topic: int,
        messages: Iterable[Any],
        *,
        persistent: bool = ...,
        connection: Hashable | None = None,
        now: int = 0,
    ) -> _Outcome: ...
    def acknowledge_each(self, deliveries: Iterable[TopicDelivery | Event], *, now: int = 0) -> _Outcome: ...
    def mark_slow(self, subscription: int) -> _Outcome: ...
    @property
    def settled(self) -> list[tuple[int, Any]]: ...
    def commit(self, transaction: Hashable, *, now: int = 0) -> _Outcome: ...
    def rollback(self, transaction: Hashable, *, now: int = 0) -> _Outcome: ...
    def pull(self, subscription: int, *, quantity: int = 1, timeout: int = 0, now: int = 0) -> _Outcome: ...
    def set_prefetch(self, subscription: int, prefetch: int, *, now: int = 0) -> _Outcome: ...
    def pull_mark(self, subscription: int) -> int: ...
    def pull_timeout(self, subscription: int, mark: int) -> _Outcome: ...
    def tick(self, now: int) -> None: ...
    @property
    def next_handle(self) -> int: ...
    @property
    def expired_as_discarded(self) -> bool: ...
    @property
    def selector_errors(self) -> int: ...
    def durable_subscriptions(self) -> dict[tuple[str, str], int]: ...
    def topics_of(self, subscription: int) -> list[int]: ...
    def is_active(self, subscription: int) -> bool: ...
    def is_prioritized(self, subscription: int) -> bool: ...
    def consumers(self, topic: int) -> list[int]: ...
    def recoverable(self, topic: int) -> list[int]: ...
    def unacknowledged(self, subscription: int) -> list[int]: ...
    def waiting(self, subscription: int) -> list[int]: ...
    def is_slow(self, subscription: int) -> bool: ...
    def subscription_statistics(self, subscription: int) -> dict[str, int]: ...
    def statistics(self, topic: int) -> dict[str, int]: ...
    @property
    def messages(self) -> int: ...
    def _check(self) -> None: ...
