"""Traps in a configuration, before it hurts: each with what shows it and how to mend it.

What selectors do together is proven by the solver (:mod:`pyengine.backlog.proof`), and every example shown was
evaluated by the engine. Without the extra ``lint`` those rules are left out and a finding says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from pyengine import Selector
from pyengine.backlog import proof
from pyengine.backlog.findings import Finding, Severity
from pyengine.backlog.proof import Stage
from pyengine.destinations import parse_destination
from pyengine.errors import MissingExtraError
from pyengine.topology import Consumer, Policy, Topology

MANY = 12  # selectors of one queue beyond which pairs are not compared one with another


@dataclass(frozen=True, slots=True)
class Linted:
    """One queue with its consumers and the policy that covers it."""

    topology: Topology
    name: str
    consumers: tuple[Consumer, ...]
    policy: Policy

    @property
    def where(self) -> str:
        return f"queue {self.name}"

    @property
    def selectors(self) -> list[str]:
        """The different selectors."""
        return [text for text in dict.fromkeys(each.selector for each in self.consumers) if text]

    def names(self, selector: str) -> str:
        return ", ".join(each.name for each in self.consumers if each.selector == selector)


def lint(topology: Topology) -> list[Finding]:
    """Every trap in a topology, the worst first. Raises InvalidSelectorError for a selector the broker refuses."""
    found = [finding for queue in _queues(topology) for rule in RULES for finding in rule(queue)]
    try:
        found += [finding for queue in _queues(topology) for proven in PROOFS for finding in proven(queue)]
    except MissingExtraError as error:
        found.append(
            Finding("not_proven", Severity.INFO, "selectors", ("what they do together was not looked at",), str(error))
        )
    found += _policies(topology)
    unique = list(dict.fromkeys(found))
    return sorted(unique, key=lambda finding: -finding.severity)


def _queues(topology: Topology) -> list[Linted]:
    """Every queue that is named: declared, or a consumer's own that is no wildcard; a wildcard stands for itself."""
    names = [entry.name for entry in topology.destinations]
    for consumer in topology.consumers:
        names += [part.name for part in parse_destination(consumer.destination) if part.kind == "queue"]
    return [
        Linted(topology, name, topology.consumers_of(name), topology.policy_of(name)) for name in dict.fromkeys(names)
    ]


def surprising_selector(queue: Linted) -> Iterator[Finding]:
    """surprising_selector: the broker reads a selector differently from what its text seems to say."""
    for selector in queue.selectors:
        for position, advice in Selector(selector).surprises:
            yield Finding(
                "surprising_selector",
                Severity.WARNING,
                f"consumer {queue.names(selector)}",
                (f"at {position} of {selector}", advice),
                "Write what is meant; `Selector(text).surprises` checks it.",
            )


def no_consumer(queue: Linted) -> Iterator[Finding]:
    """no_consumer: a declared queue that no consumer covers."""
    if not queue.consumers:
        yield Finding(
            "no_consumer",
            Severity.WARNING,
            queue.where,
            ("declared, and no consumer's destination covers it",),
            "Its messages will wait for ever. Add a consumer.",
        )


def never_starts(queue: Linted) -> Iterator[Finding]:
    """never_starts: dispatch waits for more consumers than there are, so it always waits for the time."""
    needed = queue.policy.consumers_before_dispatch_starts
    if needed > len(queue.consumers) > 0:
        wait = queue.policy.time_before_dispatch_starts or 1000
        yield Finding(
            "never_starts",
            Severity.WARNING,
            queue.where,
            (f"consumersBeforeDispatchStarts {needed}, consumers {len(queue.consumers)}",),
            f"Each start of the first consumer waits {wait} ms for the others. Lower it to the consumers there are.",
        )


def everybody_exclusive(queue: Linted) -> Iterator[Finding]:
    """everybody_exclusive: allConsumersExclusiveByDefault with several consumers: one works, the others stand by."""
    if queue.policy.all_consumers_exclusive_by_default and len(queue.consumers) > 1:
        yield Finding(
            "everybody_exclusive",
            Severity.INFO,
            queue.where,
            (f"allConsumersExclusiveByDefault with {len(queue.consumers)} consumers",),
            "Only the elected one is served. If the others are meant to work too, remove the setting.",
        )


def groups_and_selectors(queue: Linted) -> Iterator[Finding]:
    """groups_and_selectors: message groups on a queue whose consumers select differently."""
    if queue.topology.source.group and len({each.selector for each in queue.consumers}) > 1:
        yield Finding(
            "groups_and_selectors",
            Severity.WARNING,
            queue.where,
            (
                f"messages carry a group ({queue.topology.source.group})",
                *(f"{each.name}: {each.selector or 'no selector'}" for each in queue.consumers[:4]),
            ),
            "A message of a group goes to its owner or to nobody: if the owner's selector refuses it, it waits until "
            "the owner leaves. Give each selection a queue of its own.",
        )


def local_only(queue: Linted) -> Iterator[Finding]:
    """local_only: every consumer of a queue refuses messages of one and the same connection."""
    connections = {each.connection for each in queue.consumers if each.no_local and each.connection}
    if queue.consumers and len(connections) == 1 and all(each.no_local for each in queue.consumers):
        yield Finding(
            "local_only",
            Severity.WARNING,
            queue.where,
            (f"all consumers have no_local and connection {next(iter(connections))}",),
            "What that connection sends to this queue is never delivered. Remove no_local from one of them.",
        )


def default_prefetch(queue: Linted) -> Iterator[Finding]:
    """default_prefetch: several consumers share a queue with the default prefetch of 1000."""
    wide = [each for each in queue.consumers if queue.topology.prefetch_of(each, queue.name) >= 1000]
    if len(wide) > 1 and not any(each.exclusive for each in queue.consumers):
        yield Finding(
            "default_prefetch",
            Severity.INFO,
            queue.where,
            (f"{len(wide)} consumers take up to 1000 messages each before they acknowledge one",),
            "Right for fast work. For work slower than some ten milliseconds set queuePrefetch to 1 .. 10, or one "
            "consumer may hold the backlog while the others are idle.",
        )


RULES = (
    surprising_selector,
    no_consumer,
    never_starts,
    everybody_exclusive,
    groups_and_selectors,
    local_only,
    default_prefetch,
)


def always_false(queue: Linted) -> Iterator[Finding]:
    """always_false: proven: no message at all matches."""
    for selector in queue.selectors:
        if proof.always_false(selector).proven:
            yield Finding(
                "always_false",
                Severity.ERROR,
                f"consumer {queue.names(selector)}",
                (f"proven: no message matches {selector}",),
                "Mind that NOT binds tighter than =, and that a string never equals a number.",
            )


def not_covered(queue: Linted) -> Iterator[Finding]:
    """not_covered: an example of a message that no consumer of the queue takes."""
    if not queue.consumers or any(not each.selector for each in queue.consumers) or not queue.selectors:
        return
    answer = proof.gap(queue.selectors)
    if answer.message is None or answer.stage is None or answer.stage is Stage.OTHER_TYPE:
        return
    usual = answer.stage is Stage.USUAL
    yield Finding(
        "not_covered",
        Severity.ERROR if usual else Severity.WARNING,
        queue.where,
        (
            f"no consumer takes this message: {answer.message}" + ("" if usual else f" ({answer.stage.value})"),
            *(f"{queue.names(selector)}: {selector}" for selector in queue.selectors[:5]),
        ),
        "Such messages wait for ever, and a page of them (maxPageSize 200) hides everything behind. Add a consumer "
        "for the rest.",
    )


def exclusive_disjoint(queue: Linted) -> Iterator[Finding]:
    """exclusive_disjoint: an exclusive consumer's selector refuses what another consumer of the queue wants."""
    for owner in queue.consumers:
        if not owner.exclusive or not owner.selector:
            continue
        for other in queue.consumers:
            if other is owner or other.selector == owner.selector:
                continue
            answer = proof.beyond(owner.selector, other.selector or "TRUE")
            if answer.message is not None and answer.stage is not Stage.OTHER_TYPE:
                yield Finding(
                    "exclusive_disjoint",
                    Severity.ERROR,
                    queue.where,
                    (
                        f"{owner.name} is exclusive and takes only {owner.selector}",
                        f"{other.name} takes {other.selector or 'everything'}, for instance {answer.message}",
                    ),
                    f"While {owner.name} is elected, {other.name} is served nothing and such messages wait. Remove the "
                    "selector of the exclusive consumer, or use two queues.",
                )


def overlapping(queue: Linted) -> Iterator[Finding]:
    """overlapping: two different selectors on one queue that both take one message."""
    if len(queue.selectors) > MANY:
        return
    for one, other in combinations(queue.selectors, 2):
        answer = proof.overlap(one, other)
        if answer.message is not None and answer.stage is Stage.USUAL:
            yield Finding(
                "overlapping",
                Severity.INFO,
                queue.where,
                (f"both take {answer.message}", f"{queue.names(one)}: {one}", f"{queue.names(other)}: {other}"),
                "On a queue one of them gets it, whoever is first in rotation. Fine if both may.",
            )


PROOFS = (always_false, not_covered, exclusive_disjoint, overlapping)


def _policies(topology: Topology) -> Iterator[Finding]:
    """unused_policy: an entry that is the most specific for no consumer's destination and no declared queue."""
    if not topology.policies or topology.source.destination_columns:
        return
    names = {queue.name for queue in _queues(topology)}
    used = {topology.policy_of(name).destination for name in names}
    for policy in topology.policies:
        if policy.destination not in used:
            yield Finding(
                "unused_policy",
                Severity.INFO,
                f"policy {policy.destination}",
                ("covers no queue that is declared or consumed, or another entry is more specific for each",),
                "Entries are not merged: only the most specific one counts, whole.",
            )


def lint_consumer(parameters: Mapping[str, Any]) -> list[Finding]:
    """Traps in a RocketMQ push consumer's parameters, given by their snake_case names; absent ones have their defaults.

    Source: spec rocketmq 2.7, 6, 7. Ranges are not checked here: the consumer does that when it starts.
    """
    found = list(_consumer_rules(parameters))
    return sorted(found, key=lambda finding: -finding.severity)


def _consumer_rules(given: Mapping[str, Any]) -> Iterator[Finding]:
    def value(name: str, default: int) -> int:
        return int(given.get(name, default))

    where = f"consumer group {given.get('consumer_group', 'DEFAULT_CONSUMER')}"

    def trap(code: str, severity: Severity, seen: Sequence[str], advice: str) -> Finding:
        return Finding(code, severity, where, tuple(seen), advice)

    low, high = value("consume_thread_min", 20), value("consume_thread_max", 20)
    if high > low:
        yield trap(
            "thread_max_unused",
            Severity.WARNING,
            (f"consumeThreadMin {low}, consumeThreadMax {high}",),
            f"The pool's queue is unbounded, so it never grows past {low} threads. Raise consumeThreadMin.",
        )
    batch, pulled = value("consume_message_batch_max_size", 1), value("pull_batch_size", 32)
    if batch > pulled:
        yield trap(
            "batch_larger_than_pull",
            Severity.INFO,
            (f"consumeMessageBatchMaxSize {batch}, pullBatchSize {pulled}",),
            f"A listener never sees more than one pull's messages: {pulled}.",
        )
    if value("pull_threshold_for_topic", -1) != -1 or value("pull_threshold_size_for_topic", -1) != -1:
        yield trap(
            "topic_threshold_overwrites",
            Severity.WARNING,
            (f"pullThresholdForTopic {given.get('pull_threshold_for_topic', -1)}",),
            "It is divided by all assigned queues of all topics, the retry queue included, and overwrites "
            "pullThresholdForQueue for good at each change. Set pullThresholdForQueue instead.",
        )
    if value("consume_timeout", 15) <= 0:
        yield trap(
            "timeout_not_positive",
            Severity.ERROR,
            (f"consumeTimeout {given['consume_timeout']}",),
            "Starting a concurrent consumer throws IllegalArgumentException.",
        )
    if value("max_reconsume_times", -1) == 0:
        yield trap(
            "first_failure_is_dead",
            Severity.WARNING,
            ("maxReconsumeTimes 0",),
            "The first failure goes to the dead-letter topic. -1 means 16 retries.",
        )
    if str(given.get("message_model", "CLUSTERING")).upper() == "BROADCASTING":
        yield trap(
            "broadcasting_drops_failures",
            Severity.WARNING,
            ("messageModel BROADCASTING",),
            "A message whose listener fails is logged and dropped: no retry topic, no dead letters. Offsets lie in a "
            "local file that processes of one host share unless instanceName differs.",
        )
    span, count = value("consume_concurrently_max_span", 2000), value("pull_threshold_for_queue", 1000)
    if count > span:
        yield trap(
            "span_before_count",
            Severity.INFO,
            (f"pullThresholdForQueue {count}, consumeConcurrentlyMaxSpan {span}",),
            "With offsets in a row the span limit stops the pull first; the higher count is never reached.",
        )
