"""Why a message waits, in words: the core's hold reasons with the topology's names filled in."""

from __future__ import annotations

from pyengine.topology import Consumer, Topology


def explain(reason: str, topology: Topology, destination: str, consumer: str = "") -> str:
    """A sentence or two for one hold reason: what stops these messages, and what would let them go.

    reason: a name of HoldReason in lower case. consumer: the one the reason names, or "".
    """
    queue = topology.consumers_of(destination)
    named = next((each for each in queue if each.name == consumer), None)
    others = [each for each in queue if each.name != consumer]
    who = f"consumer {consumer!r}" if consumer else "the elected consumer"
    takes = _takes(named)
    match reason:
        case "no_consumer":
            return "No consumer is on this queue. Add one whose destination covers it."
        case "start_delay":
            return (
                "Dispatch has not started: the policy waits for consumers (consumers_before_dispatch_starts) or time."
            )
        case "paused":
            return "The queue is paused."
        case "not_paged_in":
            window = topology.policy_of(destination).max_page_size
            size = f"{window:,}" if window else "all"
            return (
                f"Never looked at: the {size} messages in front of them fill the paging window (max_page_size), and "
                "nobody may take those. The other reasons of this queue say why; once they are gone, these move up."
            )
        case "target_absent":
            return "Addressed to a consumer that is not here."
        case "selector":
            return f"No consumer's selector matches ({_selectors(queue)}). Add a consumer that takes the rest."
        case "no_local":
            return "Every consumer that could take them refuses messages of its own connection (no_local)."
        case "exclusive_selector":
            return (
                f"{_capital(who)} is exclusive and its selector refuses them{takes}. "
                f"While it is here {_names(others)} may take nothing, matching or not. Widen or remove the selector, "
                "or make it not exclusive."
            )
        case "exclusive_no_credit":
            return f"{_capital(who)} is exclusive and full: unacknowledged messages use up its prefetch."
        case "exclusive_no_local":
            return f"{_capital(who)} is exclusive and refuses messages of its own connection (no_local)."
        case "exclusive_browser":
            return f"{_capital(who)} is a browser and was elected exclusive: it takes nothing, and nobody else may."
        case "exclusive_group":
            return (
                f"Their group belongs to {who}, which stands by while another consumer is exclusive. "
                "They wait until it leaves or the group starts anew (JMSXGroupSeq 1)."
            )
        case "group_selector":
            return (
                f"Their group belongs to {who}, whose selector refuses them{takes}. A group's messages go to its owner "
                "or to nobody, until it leaves or the group starts anew (JMSXGroupSeq 1)."
            )
        case "group_no_credit":
            return f"Their group belongs to {who}, which is full: it acknowledges nothing and its prefetch is used up."
        case "group_no_local":
            return f"Their group belongs to {who}, which refuses messages of its own connection (no_local)."
        case "no_credit":
            return "Every consumer that matches is full: unacknowledged messages use up its prefetch."
        case "uncommitted":
            return "Acknowledged in a transaction that is still open."
        case "awaiting_wakeup":
            return "The next round hands them out."
        case "expired":
            return "They expired before anybody could take them; the broker moves such messages to the dead letters."
        case "stranded":
            return "A selector could not be evaluated when they came, and the broker's round lost them until a restart."
        case "evaluation_error":
            return "A selector cannot be evaluated on them; the broker leaves such messages on the queue for ever."
        case _:
            return reason.replace("_", " ").capitalize() + "."


def _takes(consumer: Consumer | None) -> str:
    return f": it takes only {consumer.selector}" if consumer is not None and consumer.selector else ""


def _selectors(consumers: tuple[Consumer, ...]) -> str:
    return "; ".join(f"{each.name}: {each.selector or 'no selector'}" for each in consumers)


def _names(consumers: list[Consumer]) -> str:
    names = [repr(each.name) for each in consumers]
    if not names:
        return "another consumer"
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
