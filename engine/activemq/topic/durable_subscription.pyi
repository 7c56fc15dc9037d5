from typing import Self

from typing_extensions import disjoint_base

from pyengine._engine.activemq.topic.subscription import Subscription

@disjoint_base
class Cursor:
    topic: int
    def __new__(cls, topic: int) -> Self: ...

@disjoint_base
class DurableSubscription(Subscription):
    subscription_name: str
    destination: object
    active: bool
    keep_active: bool
    prioritized: bool
    offline_since: int | None
