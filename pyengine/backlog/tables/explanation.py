"""Why a message waits, in words: the core's hold reasons with the topology's names filled in."""

from __future__ import annotations

from pyengine.backlog.findings import Said, say
from pyengine.backlog.sentence_templates import heard
from pyengine.topology import Consumer, Topology


def explain(reason: str, topology: Topology, destination: str, consumer: str = "") -> Said:
    """A sentence or two for one hold reason: what stops these messages, and what would let them go.

    reason: a name of HoldReason in lower case. consumer: the one the reason names, or "".
    """
    queue = topology.consumers_of(destination)
    named = next((each for each in queue if each.name == consumer), None)
    others = [each for each in queue if each.name != consumer]
    who = say("consumer {name}", name=repr(consumer)) if consumer else say("the elected consumer")
    first = say("Consumer {name}", name=repr(consumer)) if consumer else say("The elected consumer")
    takes = _takes(named)
    match reason:
        case "no_consumer":
            return say("No consumer is on this queue. Add one whose destination covers it.")
        case "start_delay":
            return say(
                "Dispatch has not started: the policy waits for consumers (consumers_before_dispatch_starts) or time."
            )
        case "paused":
            return say("The queue is paused.")
        case "not_paged_in":
            window = topology.policy_of(destination).max_page_size
            return say(
                "Never looked at: the {size:message|messages} in front of them {size:|fills|fill} the paging window "
                "(max_page_size), and no consumer may take {size:|that one|those}. The other reasons of this queue say "
                "why; once they are gone, these move up.",
                size=f"{window:,}" if window else say("all"),
            )
        case "target_absent":
            return say("Addressed to a consumer that is not here.")
        case "selector":
            return say(
                "No consumer's selector matches ({selectors}). Add a consumer that takes the rest.",
                selectors=_selectors(queue),
            )
        case "no_local":
            return say("Every consumer that could take them refuses messages of its own connection (no_local).")
        case "exclusive_selector":
            return say(
                "{consumer} is exclusive and its selector refuses them{takes}. "
                "While it is here {others} may take nothing, matching or not. Widen or remove the selector, "
                "or make it not exclusive.",
                consumer=first,
                takes=takes,
                others=_names(others),
            )
        case "exclusive_no_credit":
            return say("{consumer} is exclusive and full: unacknowledged messages use up its prefetch.", consumer=first)
        case "exclusive_no_local":
            return say("{consumer} is exclusive and refuses messages of its own connection (no_local).", consumer=first)
        case "exclusive_browser":
            return say(
                "{consumer} is a browser and was elected exclusive: it takes nothing, and no other one may.",
                consumer=first,
            )
        case "exclusive_group":
            return say(
                "Their group belongs to {consumer}, which stands by while another consumer is exclusive. "
                "They wait until it leaves or the group starts again (JMSXGroupSeq 1).",
                consumer=who,
            )
        case "group_selector":
            return say(
                "Their group belongs to {consumer}, whose selector refuses them{takes}. A group's messages go to its "
                "owner only, until it leaves or the group starts again (JMSXGroupSeq 1).",
                consumer=who,
                takes=takes,
            )
        case "group_no_credit":
            return say(
                "Their group belongs to {consumer}, which is full: it acknowledges nothing and its prefetch is used "
                "up.",
                consumer=who,
            )
        case "group_no_local":
            return say(
                "Their group belongs to {consumer}, which refuses messages of its own connection (no_local).",
                consumer=who,
            )
        case "no_credit":
            return say("Every consumer that matches is full: unacknowledged messages use up its prefetch.")
        case "uncommitted":
            return say("Acknowledged in a transaction that is still open.")
        case "awaiting_wakeup":
            return say("The next round hands them out.")
        case "expired":
            return say(
                "They expired before a consumer could take them; the broker moves such messages to the dead letters."
            )
        case "stranded":
            return say(
                "A selector could not be evaluated when they came, and the broker's round lost them until a restart."
            )
        case "evaluation_error":
            return say("A selector cannot be evaluated on them; the broker leaves such messages on the queue for ever.")
        case _:
            return heard(reason.replace("_", " ").capitalize() + ".")


def _takes(consumer: Consumer | None) -> str:
    if consumer is None or not consumer.selector:
        return ""
    return say(": it takes only {selector}", selector=consumer.selector)


def _selectors(consumers: tuple[Consumer, ...]) -> str:
    return "; ".join(f"{each.name}: {each.selector or '-'}" for each in consumers)


def _names(consumers: list[Consumer]) -> str:
    names = [repr(each.name) for each in consumers]
    if not names:
        return say("another consumer")
    if len(names) == 1:
        return names[0]
    return say("{names} and {last}", names=", ".join(names[:-1]), last=names[-1])
