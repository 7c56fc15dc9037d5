"""Carries out what becomes of messages that could not be consumed."""

from __future__ import annotations

from pyengine._engine.activemq.region.dead_letter_rules import DeadLetterRule, resend_delay
from pyengine._engine.activemq.topic.message_audit import Audit
from pyengine._engine.message.message import Message
from pyengine.activemq.broker.events import DeadLetter, MessageExpired, Redelivery
from pyengine.activemq.broker.services import BrokerServices, Routes
from pyengine.dataclass import dataclass
from pyengine.destinations import Destination, parse_destination
from pyengine.errors import ConfigurationError
from pyengine.topology.policy import (
    DEFAULT_DEAD_LETTER_STRATEGY,
    DeadLetterStrategy,
    DiscardingDeadLetterStrategy,
    DiscardingPlugin,
    IndividualDeadLetterStrategy,
    Policy,
    RedeliveryPlugin,
    SharedDeadLetterStrategy,
)


@dataclass(frozen=True, slots=True)
class Unconsumed:
    """A message that could not be consumed. destination: where it was. redeliveries: the broker's counter. durable:
    the key of the durable subscription that could not consume it."""

    destination: Destination
    policy: Policy | None
    message: Message
    cause: str
    redeliveries: int = 0
    durable: str | None = None


def expiry_cause(message: Message) -> str:
    """What the broker writes on a message that expired."""
    return f"java.lang.Throwable: Message Expired. Expiration:{message.expiration}"


def rule_of(strategy: DeadLetterStrategy, release: str = "newest") -> DeadLetterRule:
    """The core's rule for a strategy, with an audit of its own."""
    audit = None
    if strategy.enable_audit:
        audit = Audit(strategy.max_audit_depth, strategy.max_producers_to_audit)
    names: dict[str, str] = {}
    if isinstance(strategy, SharedDeadLetterStrategy):
        names["dead_letter_queue"] = str(parse_destination(strategy.dead_letter_queue)[0])
    elif isinstance(strategy, IndividualDeadLetterStrategy):
        for side, as_queue in (
            ("queue", strategy.use_queue_for_queue_messages),
            ("topic", strategy.use_queue_for_topic_messages),
        ):
            names[f"{side}_kind"] = "queue" if as_queue else "topic"
            names[f"{side}_prefix"] = getattr(strategy, f"{side}_prefix")
            names[f"{side}_suffix"] = getattr(strategy, f"{side}_suffix")
    return DeadLetterRule(
        "discarding"
        if isinstance(strategy, DiscardingDeadLetterStrategy)
        else ("shared" if isinstance(strategy, SharedDeadLetterStrategy) else "individual"),
        process_non_persistent=strategy.process_non_persistent,
        process_expired=strategy.process_expired,
        audit=audit,
        audit_apart=release != "5.17" and audit is not None and isinstance(strategy, IndividualDeadLetterStrategy),
        names=names,
    )


class DeadLetters:
    """The dead-letter strategies of one broker, each with its audit, and the plugins before them."""

    def __init__(
        self,
        services: BrokerServices,
        routes: Routes,
        plugin: RedeliveryPlugin | None,
        discarding: DiscardingPlugin | None = None,
    ) -> None:
        self._services = services
        self._routes = routes
        self._plugin = plugin
        self._discarding = discarding
        self._rules: dict[int, tuple[DeadLetterStrategy, DeadLetterRule]] = {}
        self._jobs = 0
        for name, policy in () if plugin is None else (*plugin.policies, ("", plugin.default)):
            if policy is None:
                continue
            for option in ("initial_redelivery_delay", "redelivery_delay"):
                if getattr(policy, option) < 1000:
                    raise ConfigurationError(
                        f"{name or 'default'}.{option}", getattr(policy, option), "must be at least 1000 ms"
                    )

    def handle(self, failed: Unconsumed) -> None:
        """Move the message to its dead-letter destination, send it again later, or drop it."""
        now = self._services.clock.now()
        message = failed.message
        expired = 0 < message.expiration < now
        if expired:
            self._services.report(MessageExpired(failed.destination, message))
        discarded = self._discarding is not None and self._discarding.drops(failed.destination)
        asked_first = discarded and self._discarding is not None and self._discarding.before_redelivery
        if self._plugin is not None and not expired and not asked_first:
            policy = self._plugin.policy_of(failed.destination)
            if policy is None and not self._plugin.fallback_to_dead_letter:
                return
            if policy is not None:
                from random import random  # it loads OpenSSL

                chances = [random() for _ in range(failed.redeliveries)]
                delay = resend_delay(policy, failed.redeliveries, chances)
                if delay is not None:
                    self._again(failed, delay, now)
                    return
                if not self._plugin.send_to_dlq_if_max_retries_exceeded:
                    return
        sent_to = None if discarded else self._move(failed, now, expired)
        self._services.report(DeadLetter(failed.destination, message, sent_to, failed.cause))

    def forgive(self, policy: Policy | None, message: Message) -> None:
        """A dead letter was moved back: it may become one again."""
        strategy = DEFAULT_DEAD_LETTER_STRATEGY if policy is None else policy.dead_letter_strategy
        if strategy is not None:
            came_from = message.original_destination or message.destination or ""
            self._rule(strategy).forgive(message.message_id or "", came_from)

    def _rule(self, strategy: DeadLetterStrategy) -> DeadLetterRule:
        # A strategy object is one strategy however many entries name it, as one bean is in the broker.
        found = self._rules.get(id(strategy))
        if found is None:
            found = self._rules[id(strategy)] = (strategy, rule_of(strategy, self._services.release))
        return found[1]

    def _move(self, failed: Unconsumed, now: int, expired: bool) -> Destination | None:
        strategy = DEFAULT_DEAD_LETTER_STRATEGY if failed.policy is None else failed.policy.dead_letter_strategy
        if strategy is None:
            return None
        message = failed.message
        per_subscriber = isinstance(strategy, IndividualDeadLetterStrategy) and (
            strategy.destination_per_durable_subscriber
        )
        target = self._rule(strategy).destination(
            message.message_id or "",
            str(failed.destination),
            persistent=message.persistent,
            expired=expired,
            carries=message.destination,
            subscription=failed.durable if per_subscriber else None,
        )
        if target is None:
            return None
        letter = message.copy()
        if strategy.expiration > 0:
            letter.expiration = now + strategy.expiration
        else:
            if not letter.property_exists("originalExpiration"):
                letter.set_long_property("originalExpiration", letter.expiration)
            letter.expiration = 0
        if not letter.persistent:
            letter.persistent = True
            letter.set_string_property("originalDeliveryMode", "NON_PERSISTENT")
        if failed.cause:
            letter.set_string_property("dlqDeliveryFailureCause", failed.cause)
        (destination,) = parse_destination(target)
        self._routes.find(destination).dlq = True
        self._routes.resend(letter, destination)
        return destination

    def _again(self, failed: Unconsumed, delay: int, now: int) -> None:
        message = failed.message.copy()
        message.set_long_property("redeliveryDelay", delay)
        message.redelivery_counter = failed.redeliveries + 1
        self._jobs += 1
        message.set_string_property("scheduledJobId", f"ID:{self._services.name}-scheduled-{self._jobs}")
        self._services.report(Redelivery(failed.destination, message, delay, failed.redeliveries + 1))

        def send() -> None:
            sent = self._services.clock.now()
            if message.timestamp > 0 and message.expiration > 0 and sent > message.timestamp:
                message.expiration += sent - message.timestamp
                message.timestamp = sent
            self._routes.route(failed.destination, message, sent)

        self._services.call_at(now + delay, send)
