"""Traps in a broker's configuration: its policy entries, virtual destinations and plugins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from pyengine import Selector
from pyengine._engine.activemq.client.redelivery_policy import RedeliveryPolicy
from pyengine.backlog.findings import Finding, Said, Severity, say
from pyengine.backlog.lint import proof
from pyengine.backlog.lint.proof import Stage
from pyengine.backlog.lint.rules import entries, topic_entries
from pyengine.backlog.lint.rules.entries import Entry
from pyengine.backlog.sentence_templates import heard
from pyengine.destinations import ANY_ELEMENT, ANY_REST, Destination, entry_pattern, parse_destination
from pyengine.topology import BrokerConfiguration, Policy
from pyengine.topology.policy import CompositeQueue, CompositeTopic, FilteredDestination, VirtualTopic

DEFAULT_ENTRY = "(default entry)"
CLIENT_REDELIVERIES = RedeliveryPolicy().maximum_redeliveries


def entry_of(broker: BrokerConfiguration, policy: Policy) -> Entry:
    """A policy entry with its place in the file and what of it is not modelled."""
    line, element = broker.places.get(policy.destination, (0, ""))
    named = element or policy.destination or DEFAULT_ENTRY
    where = (
        say("{file}:{line}: {element}", file=broker.file, line=line, element=named)
        if line
        else say("policy {element}", element=named)
    )
    purge = str(broker.schedule_period_for_destination_purge)
    left_out = {**broker.left_out_of_broker, "schedulePeriodForDestinationPurge": purge}
    return Entry(policy, where, {**left_out, **broker.left_out_of(element)})


def in_entry(policy: Policy) -> Iterator[Finding]:
    """Traps of a policy entry that stands in a topology."""
    return _in_entry(Entry(policy, say("policy {element}", element=policy.destination or DEFAULT_ENTRY)))


def _in_entry(entry: Entry) -> Iterator[Finding]:
    for rule in (*entries.RULES, *topic_entries.RULES):
        yield from rule(entry)


def findings(broker: BrokerConfiguration) -> Iterator[Finding]:
    """Every trap that needs no solver."""
    listed = [*broker.policies.entries, *([broker.policies.default] if broker.policies.default else [])]
    for policy in listed:
        yield from _in_entry(entry_of(broker, policy))
    for rule in RULES:
        yield from rule(broker)


def undefined_order(broker: BrokerConfiguration) -> Iterator[Finding]:
    """undefined_order: two entries that cover each other's names: which of them counts is left to hash codes."""
    patterns = [entry_pattern(policy.destination) for policy in broker.policies.entries]
    for one, other in sorted(_covering_each_other(patterns)):
        first, second = (entry_of(broker, broker.policies.entries[place]).where for place in (one, other))
        yield Finding(
            "undefined_order",
            Severity.WARNING,
            first,
            (say("{one} and {other} cover each other", one=patterns[one], other=patterns[other]), second),
            say(
                "For a destination that both cover, the broker's choice differs from start to start. "
                "Make one of them more specific, with a literal element."
            ),
            "DestinationMapEntry, DestinationMap.chooseValue",
        )


def _covering_each_other(patterns: Sequence[Destination]) -> set[tuple[int, int]]:
    """The places of patterns each of which covers the other's text, found along a tree of their elements.

    One of the two ends with ``>``: two names, or patterns with ``*`` alone, cover each other only if they are equal.
    """
    tree: _Tree = {}
    found: set[tuple[int, int]] = set()
    wild = [place for place, each in enumerate(patterns) if each.is_pattern and "," not in each.name]
    for place in wild:
        branch = tree
        for element in (patterns[place].kind, *patterns[place].elements):
            branch = branch.setdefault(element, {})
        branch.setdefault(None, {})[str(place)] = {}
    for place in wild:
        one = patterns[place]
        if one.elements[-1] != ANY_REST:
            continue
        for other in _candidates(tree[one.kind], one.elements):
            if patterns[other] != one and one.matches(patterns[other]) and patterns[other].matches(one):
                found.add((min(place, other), max(place, other)))
    return found


# Patterns by their elements, level by level; None has the places of those that end there, as keys.
_Tree: TypeAlias = "dict[str | None, _Tree]"


def _candidates(tree: _Tree, elements: tuple[str, ...]) -> Iterator[int]:
    """Places of the patterns that may cover, and be covered by, one that ends with ``>``: as far as the shorter of
    the two goes their elements are equal or ``*``, and the longer one has nothing but ``*`` and ``>`` behind."""
    end = len(elements)
    while end and elements[end - 1] == ANY_REST:
        end -= 1
    open_from = end
    while open_from and elements[open_from - 1] == ANY_ELEMENT:
        open_from -= 1
    level = [tree]
    for depth in range(end + 1):
        if depth >= open_from:
            for branch in level:
                yield from _open_ends(branch)
        if depth == end:
            return
        element = elements[depth]
        if element == ANY_ELEMENT:
            level = [below for branch in level for name, below in branch.items() if name is not None]
        else:
            level = [branch[name] for branch in level for name in (element, ANY_ELEMENT) if name in branch]


def _open_ends(branch: _Tree) -> Iterator[int]:
    """Places of the patterns that end here, or behind nothing but ``*`` and ``>``."""
    waiting = [branch]
    while waiting:
        branch = waiting.pop()
        yield from (int(place) for place in branch.get(None, {}) if place is not None)
        waiting += [branch[name] for name in (ANY_ELEMENT, ANY_REST) if name in branch]


def gc_loses_copies(broker: BrokerConfiguration) -> Iterator[Finding]:
    """gc_loses_copies: a consumer queue of a virtual topic is deleted while its consumer is away."""
    for policy in broker.policies.entries:
        entry = entry_of(broker, policy)
        if not policy.gc_inactive_destinations or entry.kind != "queue":
            continue
        pattern = entry_pattern(policy.destination)
        for topic in broker.virtual_destinations:
            if not isinstance(topic, VirtualTopic):
                continue
            sample = Destination(f"{topic.prefix}{topic.name}{topic.postfix}".replace("*", "x").replace(">", "x"))
            if pattern.matches(sample):
                yield entry.trap(
                    "gc_loses_copies",
                    Severity.WARNING,
                    (
                        say(
                            "gcInactiveDestinations true covers {prefix}{name}, the queues of a virtual topic",
                            prefix=topic.prefix,
                            name=topic.name,
                        ),
                    ),
                    say(
                        "A queue whose consumer is away and that is empty is deleted after {timeout} ms; what is "
                        "sent to the topic then is copied nowhere. Give these queues an entry without "
                        "gcInactiveDestinations.",
                        timeout=policy.inactive_timeout_before_gc,
                    ),
                    "BaseDestination.canGC, VirtualTopicInterceptor",
                )


def filters(broker: BrokerConfiguration) -> Iterator[Finding]:
    """filter_without_selector, surprising_selector: filtered destinations of a composite."""
    for composite in broker.virtual_destinations:
        if not isinstance(composite, CompositeQueue):
            continue
        for target in composite.forward_to:
            if not isinstance(target, FilteredDestination):
                continue
            if not target.selector.strip():
                yield Finding(
                    "filter_without_selector",
                    Severity.WARNING,
                    _where(composite),
                    (say("filteredDestination {name} has no selector", name=target.destination),),
                    say("Without a selector nothing is forwarded there. Write the destination itself into forwardTo."),
                    "FilteredDestination.matches",
                )
                continue
            for position, advice in Selector(target.selector).surprises:
                yield Finding(
                    "surprising_selector",
                    Severity.WARNING,
                    _where(composite),
                    (
                        say("at {position} of {selector}", position=position, selector=target.selector),
                        heard(advice),
                    ),
                    say("Write what is meant; `Selector(text).surprises` checks it."),
                    "SelectorParser",
                )


def _where(composite: CompositeQueue) -> Said:
    if isinstance(composite, CompositeTopic):
        return say("compositeTopic {name}", name=composite.name)
    return say("compositeQueue {name}", name=composite.name)


def forward_loop(broker: BrokerConfiguration) -> Iterator[Finding]:
    """forward_loop: composites that forward to one another without end."""
    composites = [each for each in broker.virtual_destinations if isinstance(each, CompositeQueue)]
    targets = {
        _source(each): [
            part
            for target in each.forward_to
            for part in parse_destination(target.destination if isinstance(target, FilteredDestination) else target)
        ]
        for each in composites
    }
    for each in composites:
        path = _loop(_source(each), targets)
        if path:
            yield Finding(
                "forward_loop",
                Severity.ERROR,
                _where(each),
                (say("it forwards to itself: {path}", path=" -> ".join(map(str, path))),),
                say(
                    "Each message is forwarded again and again until the sender's thread runs out of stack. "
                    "Forward to a destination that no composite covers."
                ),
                "CompositeDestinationFilter.send",
            )


def _source(composite: CompositeQueue) -> Destination:
    return Destination(composite.name, "topic" if isinstance(composite, CompositeTopic) else "queue")


def _loop(start: Destination, targets: dict[Destination, list[Destination]]) -> list[Destination]:
    """A way from a composite back to it, or nothing."""
    ways, visited = [[start]], set()
    while ways:
        way = ways.pop(0)
        for following in targets.get(way[-1], []):
            for source in targets:
                if source.matches(following):
                    if source == start:
                        return [*way, start]
                    if source not in visited:
                        visited.add(source)
                        ways.append([*way, source])
    return []


def selector_aware(broker: BrokerConfiguration) -> Iterator[Finding]:
    """selector_aware_loses: a virtual topic that copies only what a connected consumer selects."""
    for topic in broker.virtual_destinations:
        if isinstance(topic, VirtualTopic) and topic.selector_aware:
            yield Finding(
                "selector_aware_loses",
                Severity.WARNING,
                say("virtualTopic {name}", name=topic.name),
                (say("selectorAware true"),),
                say(
                    "While no consumer of a queue is connected nothing is copied to it: those messages are "
                    "lost for it. Add virtualSelectorCacheBrokerPlugin, or leave selectorAware false."
                ),
                "SelectorAwareVirtualTopicInterceptor",
            )


def redelivery_refused(broker: BrokerConfiguration) -> Iterator[Finding]:
    """redelivery_refused: the redelivery plugin without the scheduler that it needs."""
    if broker.redelivery_plugin is None or not broker.file.endswith(".xml"):
        return
    if not broker.scheduler_support:
        yield Finding(
            "redelivery_refused",
            Severity.ERROR,
            say("redeliveryPlugin"),
            (say("schedulerSupport is not true on the broker element"),),
            say('The broker refuses to start with this plugin. Add schedulerSupport="true".'),
            "RedeliveryPlugin.installPlugin",
        )


def discarding(broker: BrokerConfiguration) -> Iterator[Finding]:
    """dead_letters_discarded: the plugin that drops dead letters, regardless of the entries."""
    plugin = broker.discarding_plugin
    if plugin is None or not (plugin.drop_all or plugin.drop_only.strip()):
        return
    yield Finding(
        "dead_letters_discarded",
        Severity.WARNING if plugin.drop_all else Severity.INFO,
        say("discardingDLQBrokerPlugin"),
        (
            say("dropAll true, which is the default")
            if plugin.drop_all
            else say("dropOnly {names}", names=plugin.drop_only.strip()),
        ),
        say(
            "A message that fails or expires there is gone, regardless of its entry's deadLetterStrategy. To "
            "drop those "
            'of some destinations alone set dropAll="false" and name them in dropOnly, as regular expressions.'
        )
        if plugin.drop_all
        else say("A message that fails or expires there is gone, regardless of its entry's deadLetterStrategy."),
        "DiscardingDLQBroker.sendToDeadLetterQueue",
    )


def tries(broker: BrokerConfiguration, client: int) -> Iterator[tuple[Said, Said]]:
    """How often a message is tried where the client has redeliveries too, and what to do. client: its maximum, or -1.

    The broker sends a message again with the redeliveries that it counts, and the client counts on from there.
    """
    plugin = broker.redelivery_plugin
    policies = [] if plugin is None else [*(policy for _, policy in plugin.policies), plugin.default]
    known = [policy.maximum_redeliveries for policy in policies if policy is not None]
    most = -1 if -1 in known else max(known, default=0)
    if client == 0 or most == 0:
        return
    count = say(
        "redeliveryPlugin maximumRedeliveries {most}, the client's maximumRedeliveries {client}",
        most=most,
        client=client,
    )
    if client == -1:
        yield count, say("The client never gives a message up, so that the plugin has nothing to do.")
    elif most == -1:
        yield count, say("A message that always fails comes again without end.")
    else:
        total = sum(max(1, 1 + client - sent) for sent in range(most + 1))
        yield (
            count,
            say(
                "A message that always fails is tried {total} times: whenever the broker sends it again the client has "
                "redeliveries of its own. Set the client's jms.redeliveryPolicy.maximumRedeliveries to 0 if the "
                "plugin's number is meant.",
                total=total,
            ),
        )


def redeliveries_multiply(broker: BrokerConfiguration) -> Iterator[Finding]:
    """redeliveries_multiply: of clients that have the default number."""
    for count, advice in tries(broker, CLIENT_REDELIVERIES):
        yield Finding(
            "redeliveries_multiply",
            Severity.INFO,
            say("redeliveryPlugin"),
            (count, say("{client} is the client's default", client=CLIENT_REDELIVERIES)),
            advice,
            "RedeliveryPlugin, RedeliveryPolicy",
        )


RULES = (
    undefined_order,
    gc_loses_copies,
    filters,
    forward_loop,
    selector_aware,
    redelivery_refused,
    redeliveries_multiply,
    discarding,
)


def proofs(broker: BrokerConfiguration) -> Iterator[Finding]:
    """always_false, not_forwarded: what the filters of a composite do together. Raises MissingExtraError without z3."""
    for composite in broker.virtual_destinations:
        if not isinstance(composite, CompositeQueue):
            continue
        filtered = [each for each in composite.forward_to if isinstance(each, FilteredDestination)]
        selectors = [each.selector for each in filtered if each.selector.strip()]
        for selector in dict.fromkeys(selectors):
            if proof.always_false(selector).proven:
                yield Finding(
                    "always_false",
                    Severity.ERROR,
                    _where(composite),
                    (say("proven: no message matches {selector}", selector=selector),),
                    say("Mind that NOT binds tighter than =, and that a string never equals a number."),
                    "SelectorParser",
                )
        stays = composite.send_when_not_matched or not composite.forward_only
        if selectors and not stays and len(filtered) == len(composite.forward_to):
            answer = proof.gap(selectors)
            if answer.message is not None and answer.stage is not Stage.OTHER_TYPE:
                yield Finding(
                    "not_forwarded",
                    Severity.ERROR if answer.stage is Stage.USUAL else Severity.WARNING,
                    _where(composite),
                    (
                        say("forwardOnly true, and no filter takes this message: {message}", message=answer.message),
                        *(
                            say("{name}: {selector}", name=each.destination, selector=each.selector)
                            for each in filtered[:5]
                        ),
                    ),
                    say(
                        'Such messages are dropped without a trace. Set sendWhenNotMatched="true", or '
                        'forwardOnly="false", or add a destination for the rest.'
                    ),
                    "CompositeDestinationFilter.send",
                )
