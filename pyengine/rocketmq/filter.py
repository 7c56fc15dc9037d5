"""What a broker filters by before it sends: tags by hash code, or SQL92 over the properties (spec rocketmq 8)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from pyengine._engine.selector import Selector
from pyengine.errors import MQClientError, SelectorEvaluationError
from pyengine.rocketmq.remoting import SubscriptionData

log = logging.getLogger("pyengine.rocketmq.broker")


@dataclass(frozen=True, slots=True)
class Filter:
    """What a subscription asks of the broker. codes: None for all. selector: of an SQL92 subscription."""

    codes: frozenset[int] | None = None
    selector: Selector | None = None

    def matches(self, properties: Mapping[str, str]) -> bool:
        """An expression that cannot be evaluated does not match (spec rocketmq 8.3)."""
        if self.selector is None:
            return True
        try:
            return self.selector.matches(properties)
        except SelectorEvaluationError as error:
            log.error("Message Filter error, %s", error)
            return False


def filter_of(subscription: SubscriptionData) -> Filter:
    """What a subscription asks of the broker.

    Raises InvalidSelectorError for an expression that is none, MQClientError for a type that no broker filters by.
    """
    if subscription.expression_type in ("", "TAG"):
        return Filter() if subscription.sub_string == "*" else Filter(subscription.code_set)
    if subscription.expression_type != "SQL92":
        raise MQClientError(f"no filter of the type {subscription.expression_type}")
    return Filter(selector=Selector(subscription.sub_string, dialect="rocketmq"))
