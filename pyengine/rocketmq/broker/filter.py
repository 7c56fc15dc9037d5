"""What a broker filters by before it sends: tags by hash code, or SQL92 over the properties (spec rocketmq 8)."""

from __future__ import annotations

from collections.abc import Mapping

from pyengine._engine.matching.selector import Selector
from pyengine._engine.rocketmq.broker.consumer_groups import ConsumerGroups
from pyengine._engine.rocketmq.client.validators import suggested
from pyengine.dataclass import dataclass
from pyengine.errors import MQBrokerError, MQClientError, PyengineError, SelectorEvaluationError
from pyengine.rocketmq.remoting.mq_client_api import (
    FILTER_DATA_NOT_EXIST,
    SUBSCRIPTION_NOT_EXIST,
    SUBSCRIPTION_NOT_LATEST,
    SUBSCRIPTION_PARSE_FAILED,
    PullMessageRequest,
    SubscriptionData,
)
from pyengine.rocketmq.subscription import MessageSelector, build_subscription
from pyengine.visible import logger

log = logger("pyengine.rocketmq.broker")


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


def pull_filter(request: PullMessageRequest, groups: ConsumerGroups) -> Filter:
    """What a pull is filtered by: its own expression, else what its group subscribed to (PullMessageProcessor).

    groups: their subscriptions, each a Filter or the error that it is. Raises MQBrokerError.
    """
    topic = request.queue.topic
    if request.sub_expression is not None:
        selector = MessageSelector(request.sub_expression, request.expression_type or "TAG")
        try:
            subscription = build_subscription(topic, selector)
        except PyengineError as error:
            raise MQBrokerError(SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed") from error
        try:
            return filter_of(subscription)
        except PyengineError as error:
            # An expression that comes with the pull and makes no sense filters nothing.
            log.error("parse error: expr=%s, topic=%s, error=%s", subscription.sub_string, topic, error)
            return Filter()
    if request.consumer_group not in groups:
        raise MQBrokerError(SUBSCRIPTION_NOT_EXIST, suggested("the consumer's group info not exist"))
    known = groups.subscription(request.consumer_group, topic)
    if known is None:
        raise MQBrokerError(SUBSCRIPTION_NOT_EXIST, suggested("the consumer's subscription not exist"))
    if known[0] < request.sub_version:
        raise MQBrokerError(SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest")
    wanted = known[1]
    if isinstance(wanted, PyengineError):
        raise MQBrokerError(
            FILTER_DATA_NOT_EXIST, "The broker's consumer filter data is not exist!Your expression may be wrong!"
        ) from wanted
    assert isinstance(wanted, Filter)
    return wanted
