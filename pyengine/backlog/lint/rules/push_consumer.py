"""Traps in a RocketMQ push consumer's parameters: what has no effect, and what does something else than it says.

Given as a mapping of parameters, or as text: TOML or a properties file, in Java's names or in snake_case, with or
without a prefix (``rocketmq.consumer.pull-batch-size``).
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from pyengine import Selector
from pyengine._engine.rocketmq.broker.consume_queue import MAX_TRANSFER_COUNT
from pyengine._engine.rocketmq.client.allocation import averagely
from pyengine._engine.rocketmq.client.consume_orderly import suspend_time
from pyengine._engine.rocketmq.client.consume_timestamp import parse_consume_timestamp
from pyengine._engine.rocketmq.client.rebalance import shared_threshold
from pyengine._engine.rocketmq.client.validators import check_consumer_group, check_ranges
from pyengine.backlog.diagnosis.evidence.numbers import whole
from pyengine.backlog.findings import Finding, Said, Severity, say
from pyengine.backlog.sentence_templates import heard
from pyengine.errors import InvalidSelectorError, InvalidSourceError, MQClientError, did_you_mean, json_problem
from pyengine.rocketmq.consumer.parameters import ConsumerParameters, java_name
from pyengine.topology.properties import parse_properties

DEFAULTS = {each.name: each.default for each in fields(ConsumerParameters)}
# What a file may say about the consumer beside its parameters.
ABOUT = (
    "consumer_group", "orderly", "read_queue_nums", "clients", "topic", "selector_type", "selector_expression",
    "subscription",
)  # fmt: skip
NO_EFFECT = {
    "adjust_thread_pool_nums_threshold": "MQClientInstance.adjustThreadPool",
    "pull_time_delay_mills_when_exception": "DefaultMQPushConsumerImpl",
}
_UNKNOWN = re.compile(r"\$\{|@[\w.-]+@")
MEMORY = 1024  # MiB of cached bodies beyond which a client's heap should be known


def read(text: str, file: str = "") -> dict[str, Any] | None:
    """The parameters that a file gives, by their snake_case names; None if it gives none.

    Names of other things are left out: a properties file usually holds more than one library's.
    """
    if text.lstrip().startswith("{"):
        try:
            given = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidSourceError(file, f"is not valid JSON: {json_problem(error)}") from error
    else:
        try:
            given = tomllib.loads(text)
        except (ValueError, RecursionError):
            given = {name: value.strip() for name, value in parse_properties(text, bare_names=False).items()}
    if not isinstance(given, dict) or {"source", "policy", "variant"} & given.keys():
        return None
    known = dict(_flat(given))
    return known if known.keys() & (DEFAULTS.keys() | {"consumer_group"}) else None


def _flat(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in given.items():
        if isinstance(value, Mapping):
            yield from _flat(value)
        else:
            prefix, _, last = key.replace("-", "_").rpartition(".")
            name = re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match[1].lower(), last)
            if name in DEFAULTS or name in ABOUT or not prefix or "consumer" in prefix:
                yield name, value


MOST = 1_000_000  # queues of a topic, clients of a group


class Consumer:
    """Parameters as given, with the real defaults for the rest. Raises InvalidSourceError for what is not a number."""

    def __init__(self, given: Mapping[str, Any], queues: int, members: int, where: Said | None = None) -> None:
        self.given = dict(given)
        self.queues = queues or self.number("read_queue_nums", 0)
        self.members = members or self.number("clients", 0)
        for name, value in (("read_queue_nums", self.queues), ("clients", self.members)):
            if not 0 <= value <= MOST:
                raise InvalidSourceError(name, f"is out of range: {value}", f"0 to {MOST}")
        self.where = where or place_of(str(given.get("consumer_group", "DEFAULT_CONSUMER")))
        self.orderly = _true(given.get("orderly")) or "orderly" in str(given.get("message_listener", "")).lower()
        self.broadcasting = str(given.get("message_model", "CLUSTERING")).upper().endswith("BROADCASTING")

    def number(self, name: str, default: int | None = None) -> int:
        value = self.given.get(name, DEFAULTS[name] if default is None else default)
        try:
            return whole(name, value)
        except ValueError as error:
            shown = repr(value)[:60]
            raise InvalidSourceError(
                name, f"is not a whole number: {shown}", "write digits only, of 64 bits"
            ) from error

    def trap(self, code: str, severity: Severity, evidence: tuple[Said, ...], advice: Said, source: str) -> Finding:
        return Finding(code, severity, self.where, evidence, advice, source)


def _value_unknown(consumer: Consumer) -> Iterator[Finding]:
    for name, default in DEFAULTS.items():
        written = str(consumer.given.get(name) or "")
        if not isinstance(default, Enum) or not written or is_filled_in(written):
            continue
        known = [each.name for each in type(default)]
        # Spring and people write BROADCASTING, broadcasting and MessageModel.BROADCASTING.
        if written.rpartition(".")[2].replace("-", "_").strip().upper() not in known:
            yield consumer.trap(
                "value_unknown",
                Severity.ERROR,
                (say("{name}: {value}", name=java_name(name), value=written),),
                heard(did_you_mean(written.upper(), known) or f"known: {', '.join(known)}"),
                type(default).__name__,
            )


def is_filled_in(value: str) -> bool:
    """Whether something else puts the value in: a placeholder, or what a build replaces."""
    return _UNKNOWN.search(value) is not None


def _true(value: object) -> bool:
    return str(value).lower() in ("true", "yes", "on", "1")


def place_of(group: str, path: str = "", profile: str = "") -> Said:
    """Which consumer it is: by its group, or without one by the place of its settings, and by its profile."""
    if group:
        if profile:
            return say("consumer group {group}, profile {profile}", group=group, profile=profile)
        return say("consumer group {group}", group=group)
    if profile:
        return say("consumer of {path}, profile {profile}", path=path, profile=profile)
    return say("consumer of {path}", path=path)


def findings(
    parameters: Mapping[str, Any], queues: int = 0, members: int = 0, where: Said | None = None
) -> Iterator[Finding]:
    """Every trap. queues: readable queues of the topic; members: clients of the group; 0: not known. where: which
    consumer it is; None: the one of its group."""
    consumer = Consumer(parameters, queues, members, where)
    for rule in RULES:
        yield from rule(consumer)


def refused(consumer: Consumer) -> Iterator[Finding]:
    """refused, group_refused, value_unknown, timeout_not_positive, unknown_parameter: what start() throws, and what
    nobody reads."""
    yield from _group_refused(consumer)
    yield from _value_unknown(consumer)
    values = {java_name(name): consumer.number(name) for name, default in DEFAULTS.items() if type(default) is int}
    try:
        check_ranges(values)
    except MQClientError as error:
        problem = str(error).partition("\n")[0]
        yield consumer.trap(
            "refused",
            Severity.ERROR,
            (heard(problem),),
            say("start() throws MQClientException. Give a value in the range."),
            "DefaultMQPushConsumerImpl.checkConfig",
        )
    if consumer.number("consume_timeout") <= 0 and not consumer.orderly:
        yield consumer.trap(
            "timeout_not_positive",
            Severity.ERROR,
            (say("consumeTimeout {minutes}", minutes=consumer.number("consume_timeout")),),
            say("Starting a concurrent consumer throws IllegalArgumentException. Give minutes, 1 or more."),
            "ConsumeMessageConcurrentlyService.start",
        )
    for name in consumer.given:
        meant = "" if name in DEFAULTS or name in ABOUT else did_you_mean(name, [*DEFAULTS, *ABOUT])
        if meant:
            yield consumer.trap(
                "unknown_parameter",
                Severity.WARNING,
                (say("{name}: no parameter of a push consumer", name=name),),
                heard(meant),
                "DefaultMQPushConsumer",
            )


def _group_refused(consumer: Consumer) -> Iterator[Finding]:
    name = consumer.given.get("consumer_group")
    if name is None or is_filled_in(str(name)):
        return
    try:
        check_consumer_group(str(name))
    except MQClientError as error:
        yield consumer.trap(
            "group_refused",
            Severity.ERROR,
            (heard(str(error).partition("\n")[0]),),
            say("start() throws MQClientException. A group has letters, digits, _, -, % and |, at most 120 of them."),
            "Validators.checkGroup, DefaultMQPushConsumerImpl.checkConfig",
        )


def threads(consumer: Consumer) -> Iterator[Finding]:
    """thread_max_unused: the pool never grows beyond consumeThreadMin."""
    low, high = consumer.number("consume_thread_min"), consumer.number("consume_thread_max")
    if high > low:
        yield consumer.trap(
            "thread_max_unused",
            Severity.WARNING,
            (say("consumeThreadMin {low}, consumeThreadMax {high}", low=low, high=high),),
            say(
                "The pool's queue is unbounded, so it never grows past {low:thread|threads}. Raise consumeThreadMin.",
                low=low,
            ),
            "ConsumeMessageConcurrentlyService, ThreadPoolExecutor",
        )
    if consumer.orderly and consumer.queues and low > consumer.queues:
        yield consumer.trap(
            "orderly_threads_idle",
            Severity.INFO,
            (say("orderly, consumeThreadMin {low}, {queues:queue|queues}", low=low, queues=consumer.queues),),
            say(
                "In order each queue has one thread at a time: at most {queues} of {low:thread works|threads work}.",
                queues=consumer.queues,
                low=low,
            ),
            "ConsumeMessageOrderlyService",
        )


def batches(consumer: Consumer) -> Iterator[Finding]:
    """pull_batch_capped, batch_larger_than_pull, pull_interval_limits: how much comes at once."""
    batch, asked = consumer.number("consume_message_batch_max_size"), consumer.number("pull_batch_size")
    pulled = min(asked, MAX_TRANSFER_COUNT)
    if asked > MAX_TRANSFER_COUNT:
        yield consumer.trap(
            "pull_batch_capped",
            Severity.WARNING,
            (say("pullBatchSize {asked}", asked=asked),),
            say(
                "The broker gives {limit:message|messages} at most in one pull (8 from disk), regardless of the "
                "request: "
                "raise maxTransferCountOnMessageInMemory and maxTransferBytesOnMessageInMemory there too.",
                limit=MAX_TRANSFER_COUNT,
            ),
            "MessageStoreConfig, DefaultMessageStore.getMessage",
        )
    if batch > pulled:
        yield consumer.trap(
            "batch_larger_than_pull",
            Severity.INFO,
            (say("consumeMessageBatchMaxSize {batch}, pullBatchSize {asked}", batch=batch, asked=asked),),
            say("A listener never sees more than one pull's messages: {pulled}.", pulled=pulled)
            if not consumer.orderly
            else say(
                "In order a batch may be made of several pulls; with little traffic it holds one pull's "
                "messages: {pulled}.",
                pulled=pulled,
            ),
            "ConsumeMessageConcurrentlyService.submitConsumeRequest",
        )
    interval = consumer.number("pull_interval")
    if interval > 0:
        yield consumer.trap(
            "pull_interval_limits",
            Severity.WARNING,
            (say("pullInterval {interval} ms, pullBatchSize {asked}", interval=interval, asked=asked),),
            say(
                "A queue brings {rate:message|messages} a second at most. Use 0 unless that is what you want.",
                rate=round(pulled * 1000 / interval, 1),
            ),
            "DefaultMQPushConsumerImpl.pullMessage",
        )


def thresholds(consumer: Consumer) -> Iterator[Finding]:
    """topic_threshold_overwrites, span_before_count, cache_memory: flow control that is not what was meant."""
    for name, for_queue in (
        ("pull_threshold_for_topic", "pull_threshold_for_queue"),
        ("pull_threshold_size_for_topic", "pull_threshold_size_for_queue"),
    ):
        topic = consumer.number(name)
        if topic == -1:
            continue
        own = consumer.queues and max(1, consumer.queues // max(1, consumer.members)) + 1
        shared = (
            (
                say(
                    "with {own:queue|queues} of its own, the retry queue included: {limit} each",
                    own=own,
                    limit=shared_threshold(topic, own),
                ),
            )
            if own
            else ()
        )
        yield consumer.trap(
            "topic_threshold_overwrites",
            Severity.WARNING,
            (
                say(
                    "{name} {topic}, {for_queue} {limit}",
                    name=java_name(name),
                    topic=topic,
                    for_queue=java_name(for_queue),
                    limit=consumer.number(for_queue),
                ),
                *shared,
            ),
            say(
                "It is divided by all assigned queues of all topics, the retry queue included, and "
                "overwrites {for_queue} for good at each change. Set {for_queue} instead.",
                for_queue=java_name(for_queue),
            ),
            "RebalancePushImpl.messageQueueChanged",
        )
    span, count = consumer.number("consume_concurrently_max_span"), consumer.number("pull_threshold_for_queue")
    if count > span and not consumer.orderly:
        yield consumer.trap(
            "span_before_count",
            Severity.INFO,
            (say("pullThresholdForQueue {count}, consumeConcurrentlyMaxSpan {span}", count=count, span=span),),
            say("With offsets in a row the span limit stops the pull first; the higher count is never reached."),
            "DefaultMQPushConsumerImpl.pullMessage",
        )
    size = consumer.number("pull_threshold_size_for_queue")
    own = consumer.queues if consumer.broadcasting else -(-consumer.queues // max(1, consumer.members))
    if own * size > MEMORY and consumer.number("pull_threshold_size_for_topic") == -1:
        yield consumer.trap(
            "cache_memory",
            Severity.INFO,
            (
                say(
                    "{own:queue|queues} x pullThresholdSizeForQueue {size} MiB = {total} MiB",
                    own=own,
                    size=size,
                    total=own * size,
                ),
            ),
            say("A client that lags may hold that much in memory. Lower the size, or give it the heap."),
            "DefaultMQPushConsumerImpl.pullMessage",
        )


def failures(consumer: Consumer) -> Iterator[Finding]:
    """first_failure_is_dead, orderly_never_gives_up, broadcasting_drops_failures: where failed messages go."""
    times = consumer.number("max_reconsume_times")
    if consumer.broadcasting:
        retries = "max_reconsume_times" in consumer.given
        yield consumer.trap(
            "broadcasting_drops_failures",
            Severity.WARNING,
            (
                say("messageModel BROADCASTING, maxReconsumeTimes {times}", times=times)
                if retries
                else say("messageModel BROADCASTING"),
            ),
            say(
                "A message whose listener fails is logged and dropped: no retry topic, no dead letters, "
                "regardless of maxReconsumeTimes. Offsets lie in a local file that processes of one host "
                "share unless instanceName differs."
            ),
            "ConsumeMessageConcurrentlyService.processConsumeResult",
        )
    elif times == 0:
        yield consumer.trap(
            "first_failure_is_dead",
            Severity.WARNING,
            (say("maxReconsumeTimes 0"),),
            say("The first failure goes to the dead-letter topic. -1 means 16 retries."),
            "AbstractSendMessageProcessor.consumerSendMsgBack",
        )
    elif times == -1 and consumer.orderly:
        yield consumer.trap(
            "orderly_never_gives_up",
            Severity.WARNING,
            (say("orderly, maxReconsumeTimes -1"),),
            say(
                "In order -1 means without end: one message that always fails stops its queue for ever. "
                "Give a number, then it goes to the dead letters."
            ),
            "ConsumeMessageOrderlyService.getMaxReconsumeTimes",
        )


def without_effect(consumer: Consumer) -> Iterator[Finding]:
    """no_effect, orderly_no_timeout, suspend_clamped, timestamp_unused: parameters without effect;
    timestamp_refused, timestamp_misread: one that start() refuses, or reads as another moment."""
    for name, source in NO_EFFECT.items():
        if name in consumer.given and consumer.number(name) != DEFAULTS[name]:
            yield consumer.trap(
                "no_effect",
                Severity.WARNING,
                (say("{name} {value}", name=java_name(name), value=consumer.given[name]),),
                say("The real client reads it and does nothing with it. Remove it."),
                source,
            )
    if consumer.orderly:
        ignored = [name for name in ("consume_timeout", "consume_concurrently_max_span") if name in consumer.given]
        if ignored:
            yield consumer.trap(
                "orderly_no_timeout",
                Severity.WARNING,
                (say("orderly, {names}", names=", ".join(f"{java_name(n)} {consumer.given[n]}" for n in ignored)),),
                say(
                    "In order there is no timeout and no span limit: a listener that does not return blocks "
                    "its queue for ever. Give the calls inside it timeouts of their own."
                ),
                "ConsumeMessageOrderlyService",
            )
        asked = consumer.number("suspend_current_queue_time_millis")
        if (used := suspend_time(-1, asked)) != asked:
            yield consumer.trap(
                "suspend_clamped",
                Severity.INFO,
                (say("suspendCurrentQueueTimeMillis {asked}", asked=asked),),
                say("The pause after a failure is {used} ms: it is kept within 10 .. 30000.", used=used),
                "ConsumeMessageOrderlyService.submitConsumeRequestLater",
            )
    where = str(consumer.given.get("consume_from_where", ""))
    stamp = str(consumer.given.get("consume_timestamp") or "")
    if stamp and (read := _as_read(stamp)) != stamp:
        evidence = (say("consumeTimestamp {stamp}", stamp=stamp),)
        wanted = say(
            "Fourteen digits are wanted, yyyyMMddHHmmss, without blanks, dashes or colons: {example}.",
            example=_fourteen_digits(stamp),
        )
        if not read:
            yield consumer.trap(
                "timestamp_refused",
                Severity.ERROR,
                evidence,
                say("start() throws MQClientException, regardless of consumeFromWhere. {wanted}", wanted=wanted),
                "DefaultMQPushConsumerImpl.checkConfig",
            )
        else:
            yield consumer.trap(
                "timestamp_misread",
                Severity.ERROR,
                evidence,
                say("start() takes it, and the client reads it as {read}. {wanted}", read=read, wanted=wanted),
                "UtilAll.parseDate, SimpleDateFormat",
            )
    if consumer.given.get("consume_timestamp") and not where.upper().endswith("TIMESTAMP"):
        yield consumer.trap(
            "timestamp_unused",
            Severity.WARNING,
            (
                say(
                    "consumeTimestamp {stamp}, consumeFromWhere {where}",
                    stamp=consumer.given["consume_timestamp"],
                    where=where or "CONSUME_FROM_LAST_OFFSET",
                ),
            ),
            say("It counts only with CONSUME_FROM_TIMESTAMP, and only for a group without committed offsets."),
            "RebalancePushImpl.computePullFromWhere",
        )


def _as_read(stamp: str) -> str:
    """The moment that the client makes of a consumeTimestamp, as it should be written; empty if start() refuses it."""
    wall = parse_consume_timestamp(stamp)
    if wall is None:
        return ""
    try:
        return f"{datetime(1970, 1, 1) + timedelta(milliseconds=wall):%Y%m%d%H%M%S}".rjust(14, "0")
    except OverflowError:
        return f"{wall} ms"


def _fourteen_digits(stamp: str) -> str:
    """The moment that a value seems to mean, in the client's form, or any."""
    digits = "".join(re.findall("[0-9]", stamp))[:14].ljust(14, "0")
    return digits if _as_read(digits) == digits else "20240131235959"


def group(consumer: Consumer) -> Iterator[Finding]:
    """clients_without_queues, uneven_queues, shared_client_id: the members of a group and the topic's queues."""
    if consumer.queues and consumer.members > 1 and not consumer.broadcasting:
        owners = averagely(consumer.queues, consumer.members)
        counts = [int((owners == client).sum()) for client in range(consumer.members)]
        size = say("{queues:queue|queues}, {clients:client|clients}", queues=consumer.queues, clients=consumer.members)
        if min(counts) == 0:
            yield consumer.trap(
                "clients_without_queues",
                Severity.WARNING,
                (size,),
                say(
                    "{idle:client gets|clients get} no queue and {idle:|stands|stand} by. Add queues to the topic, or "
                    "take clients away.",
                    idle=counts.count(0),
                ),
                "AllocateMessageQueueAveragely",
            )
        elif max(counts) > min(counts):
            yield consumer.trap(
                "uneven_queues",
                Severity.INFO,
                (size,),
                say(
                    "Some clients get {most:queue|queues}, others {least}: use a number of queues that the number "
                    "of clients divides.",
                    most=max(counts),
                    least=min(counts),
                ),
                "AllocateMessageQueueAveragely",
            )
    name = str(consumer.given.get("instance_name", "DEFAULT"))
    if name != "DEFAULT" and not consumer.broadcasting:
        yield consumer.trap(
            "shared_client_id",
            Severity.WARNING,
            (say("instanceName {name}", name=name),),
            say(
                "All processes of one host with this name have one client id: the group takes them for "
                "one, so each gets the same queues and others get none. Leave it unset, or add the "
                "process id."
            ),
            "ClientConfig.changeInstanceNameToPID",
        )


def selector(consumer: Consumer) -> Iterator[Finding]:
    """selector_refused, selector_misread: a filter of SQL92 that brokers cannot read, or read otherwise."""
    text = _sql92(consumer.given)
    if not text or is_filled_in(text):
        return
    try:
        surprises = Selector(text, dialect="rocketmq").surprises
    except InvalidSelectorError as error:
        found = (say("at {position} of {selector}", position=error.position, selector=text), heard(error.problem))
        advice = heard(error.hint) if error.hint else say("start() throws MQClientException. Correct the expression.")
        yield consumer.trap("selector_refused", Severity.ERROR, found, advice, "SelectorParser, checkClientInBroker")
        return
    for position, words in surprises:
        yield consumer.trap(
            "selector_misread",
            Severity.WARNING,
            (say("at {position} of {selector}", position=position, selector=text), heard(words)),
            say("Write what is meant; `Selector(text).surprises` checks it."),
            "SelectorParser",
        )


def _sql92(given: Mapping[str, Any]) -> str:
    """The filter of a consumer whose type is SQL92, or of Spring Cloud Stream, in which it follows ``sql:``."""
    subscription = str(given.get("subscription") or "").strip()
    if subscription.startswith("sql:"):
        return subscription.removeprefix("sql:").strip()
    if str(given.get("selector_type", "")).strip().upper() != "SQL92":
        return ""
    return str(given.get("selector_expression") or "").strip()


RULES = (refused, selector, threads, batches, thresholds, failures, without_effect, group)
