"""Traps of queues and their consumers, as a topology names them: the queues of each consumer, and its selector.

What selectors do together is proven by the solver (:mod:`pyengine.backlog.lint.proof`), and every example shown was
evaluated by the engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from pyengine import Selector
from pyengine.backlog.findings import Finding, Said, Severity, say
from pyengine.backlog.lint import proof
from pyengine.backlog.lint.proof import Stage
from pyengine.backlog.sentence_templates import heard
from pyengine.dataclass import dataclass
from pyengine.destinations import parse_destination
from pyengine.topology import Consumer, Policy, Topology

STAGES = {
    Stage.USUAL: say("every property is there, with the type that the selectors compare it with"),
    Stage.MISSING: say("a property is missing"),
    Stage.OTHER_TYPE: say("a property has another type than the selectors expect"),
}
MANY = 12  # selectors of one queue beyond which pairs are not compared one with another


@dataclass(frozen=True, slots=True)
class Linted:
    """One queue with its consumers and the policy that covers it."""

    topology: Topology
    name: str
    consumers: tuple[Consumer, ...]
    policy: Policy

    @property
    def where(self) -> Said:
        return say("queue {name}", name=self.name)

    @property
    def selectors(self) -> list[str]:
        """The different selectors."""
        return [text for text in dict.fromkeys(each.selector for each in self.consumers) if text]

    def names(self, selector: str) -> str:
        return ", ".join(each.name for each in self.consumers if each.selector == selector)


def findings(topology: Topology) -> Iterator[Finding]:
    """Every trap that needs no solver. Raises InvalidSelectorError for a selector the broker refuses."""
    yield from prefetch_below_zero(topology)
    for queue in _queues(topology):
        for rule in RULES:
            yield from rule(queue)


def proofs(topology: Topology) -> Iterator[Finding]:
    """What selectors do together. Raises MissingExtraError without z3."""
    for queue in _queues(topology):
        for rule in PROOFS:
            yield from rule(queue)


def _queues(topology: Topology) -> list[Linted]:
    """Every queue that is named: declared, or a consumer's own that is not a wildcard; a wildcard stands for itself."""
    names = [entry.name for entry in topology.destinations]
    for consumer in topology.consumers:
        names += [part.name for part in parse_destination(consumer.destination) if part.kind == "queue"]
    return [
        Linted(topology, name, topology.consumers_of(name), topology.policy_of(name)) for name in dict.fromkeys(names)
    ]


def prefetch_below_zero(topology: Topology) -> Iterator[Finding]:
    """prefetch_below_zero: a consumer, of queues or topics, that asks for one and so gets nothing."""
    for consumer in topology.consumers:
        if consumer.prefetch is not None and consumer.prefetch < 0:
            yield Finding(
                "prefetch_below_zero",
                Severity.ERROR,
                say("consumer {names}", names=consumer.name),
                (say("prefetch {prefetch}", prefetch=consumer.prefetch),),
                say("It counts as full and is given nothing. Give a number of messages, 0 if it pulls."),
                "PrefetchSubscription.isFull, TopicSubscription.isFull",
            )


def surprising_selector(queue: Linted) -> Iterator[Finding]:
    """surprising_selector: the broker reads a selector differently from what its text seems to say."""
    for selector in queue.selectors:
        for position, advice in Selector(selector).surprises:
            yield Finding(
                "surprising_selector",
                Severity.WARNING,
                say("consumer {names}", names=queue.names(selector)),
                (
                    say("at {position} of {selector}", position=position, selector=selector),
                    heard(advice),
                ),
                say("Write what is meant; `Selector(text).surprises` checks it."),
                "SelectorParser",
            )


def no_consumer(queue: Linted) -> Iterator[Finding]:
    """no_consumer: a declared queue that no consumer covers."""
    if not queue.consumers:
        yield Finding(
            "no_consumer",
            Severity.WARNING,
            queue.where,
            (say("declared, and no consumer's destination covers it"),),
            say("Its messages will wait for ever. Add a consumer."),
            "Queue.iterate",
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
            (
                say(
                    "consumersBeforeDispatchStarts {needed}, consumers {consumers}",
                    needed=needed,
                    consumers=len(queue.consumers),
                ),
            ),
            say(
                "Each start of the first consumer waits {wait} ms for the others. Lower it to the consumers there are.",
                wait=wait,
            ),
            "Queue.iterate",
        )


def everybody_exclusive(queue: Linted) -> Iterator[Finding]:
    """everybody_exclusive: allConsumersExclusiveByDefault with several consumers: one works, the others stand by."""
    if queue.policy.all_consumers_exclusive_by_default and len(queue.consumers) > 1:
        yield Finding(
            "everybody_exclusive",
            Severity.INFO,
            queue.where,
            (
                say(
                    "allConsumersExclusiveByDefault with {consumers} consumers",
                    consumers=len(queue.consumers),
                ),
            ),
            say("Only the elected one is served. If the others are meant to work too, remove the setting."),
            "Queue.addSubscription",
        )


def groups_and_selectors(queue: Linted) -> Iterator[Finding]:
    """groups_and_selectors: message groups on a queue whose consumers select differently."""
    if queue.topology.source.group and len({each.selector for each in queue.consumers}) > 1:
        yield Finding(
            "groups_and_selectors",
            Severity.WARNING,
            queue.where,
            (
                say("messages carry a group ({group})", group=queue.topology.source.group),
                *(
                    say("{name}: {selector}", name=each.name, selector=each.selector or say("no selector"))
                    for each in queue.consumers[:4]
                ),
            ),
            say(
                "A message of a group goes to its owner only: if the owner's selector refuses "
                "it, it waits until the owner leaves. Give each selection a queue of its own."
            ),
            "Queue.assignMessageGroup",
        )


def local_only(queue: Linted) -> Iterator[Finding]:
    """local_only: every consumer of a queue refuses messages of one and the same connection."""
    connections = {each.connection for each in queue.consumers if each.no_local and each.connection}
    if queue.consumers and len(connections) == 1 and all(each.no_local for each in queue.consumers):
        yield Finding(
            "local_only",
            Severity.WARNING,
            queue.where,
            (say("all consumers have no_local and connection {connection}", connection=next(iter(connections))),),
            say("What that connection sends to this queue is never delivered. Remove no_local from one of them."),
            "NoLocalExpression",
        )


def default_prefetch(queue: Linted) -> Iterator[Finding]:
    """default_prefetch: several consumers share a queue with the default prefetch of 1000, or a larger one."""
    taken = [queue.topology.prefetch_of(each) for each in queue.consumers]
    wide = [prefetch for prefetch in taken if prefetch >= 1000]
    if len(wide) > 1 and not any(each.exclusive for each in queue.consumers):
        yield Finding(
            "default_prefetch",
            Severity.INFO,
            queue.where,
            (
                say(
                    "{count} consumers take up to {prefetch} messages each before they acknowledge one",
                    count=len(wide),
                    prefetch=max(wide),
                ),
            ),
            say(
                "Right for fast work. For work slower than some ten milliseconds set queuePrefetch to 1 "
                ".. 10, or one consumer may hold the backlog while the others are idle."
            ),
            "Queue.doActualDispatch, PrefetchSubscription.isFull",
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
                say("consumer {names}", names=queue.names(selector)),
                (say("proven: no message matches {selector}", selector=selector),),
                say("Mind that NOT binds tighter than =, and that a string never equals a number."),
                "SelectorParser",
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
            say("no consumer takes this message: {message}", message=answer.message)
            if usual
            else say(
                "no consumer takes this message: {message} ({stage})",
                message=answer.message,
                stage=STAGES[answer.stage],
            ),
            *(
                say("{names}: {selector}", names=queue.names(selector), selector=selector)
                for selector in queue.selectors[:5]
            ),
        ),
        say(
            "Such messages wait for ever, and a page of them (maxPageSize {page}) hides everything "
            "behind. Add a consumer for the rest.",
            page=page,
        )
        if (page := queue.policy.max_page_size)
        else say("Such messages wait for ever. Add a consumer for the rest."),
        "Queue.doPageInForDispatch",
    )


def exclusive_disjoint(queue: Linted) -> Iterator[Finding]:
    """exclusive_disjoint: an exclusive consumer's selector refuses what another consumer of the queue wants."""
    for owner in queue.consumers:
        by_policy = queue.policy.all_consumers_exclusive_by_default
        if not (owner.exclusive or by_policy) or not owner.selector:
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
                        say("{name} is exclusive and takes only {selector}", name=owner.name, selector=owner.selector)
                        if owner.exclusive
                        else say(
                            "{name} is exclusive by the policy (allConsumersExclusiveByDefault) and takes only "
                            "{selector}",
                            name=owner.name,
                            selector=owner.selector,
                        ),
                        say(
                            "{name} takes {selector}, for instance {message}",
                            name=other.name,
                            selector=other.selector or say("everything"),
                            message=answer.message,
                        ),
                    ),
                    say(
                        "While {name} is elected, {other} is served nothing and such messages wait. Remove the "
                        "selector of the exclusive consumer, or use two queues.",
                        name=owner.name,
                        other=other.name,
                    ),
                    "QueueDispatchSelector",
                )


def overlapping(queue: Linted) -> Iterator[Finding]:
    """overlapping: two different selectors on one queue that both take one message."""
    if len(queue.selectors) > MANY or queue.policy.all_consumers_exclusive_by_default:
        return
    for one, other in combinations(queue.selectors, 2):
        answer = proof.overlap(one, other)
        if answer.message is not None and answer.stage is Stage.USUAL:
            yield Finding(
                "overlapping",
                Severity.INFO,
                queue.where,
                (
                    say("both take {message}", message=answer.message),
                    say("{names}: {selector}", names=queue.names(one), selector=one),
                    say("{names}: {selector}", names=queue.names(other), selector=other),
                ),
                say("On a queue one of them gets it, the first in rotation. Fine if both may."),
                "Queue.doActualDispatch",
            )


PROOFS = (always_false, not_covered, exclusive_disjoint, overlapping)


def policies(topology: Topology) -> Iterator[Finding]:
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
                say("policy {destination}", destination=policy.destination),
                (say("covers no queue that is declared or consumed, or another entry is more specific for each"),),
                say("Entries are not merged: only the most specific one counts, whole."),
                "DestinationMap.chooseValue",
            )
