"""The policy entry behind a destination's finding: which one applies, and its settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyengine.backlog.diagnosis.evidence import DestinationState
from pyengine.backlog.findings import Finding, Said, say
from pyengine.backlog.lint.rules.broker import entry_of
from pyengine.destinations import Destination
from pyengine.topology import BrokerConfiguration, Policy
from pyengine.topology.schema import java_name
from pyengine.topology.writing import settings_of

DEFAULTS = Policy("")
# What of an entry has to do with a finding: policy fields, and attributes that only the file knows.
MATTERS: dict[str, tuple[str, ...]] = {
    "no_consumer": ("gc_inactive_destinations",),
    "dead_letters": ("dead_letter_strategy",),
    "exclusive_disjoint": ("all_consumers_exclusive_by_default",),
    "selector_matches_nothing": ("max_page_size",),
    "page_starved": ("max_page_size",),
    "group_owner_stopped": ("message_group_map_factory_type", "slow_consumer_strategy"),
    "consumer_stopped": ("queue_prefetch", "slow_consumer_strategy"),
    "prefetch_hoarding": ("queue_prefetch", "strict_order_dispatch"),
    "slow": ("queue_prefetch", "strict_order_dispatch", "all_consumers_exclusive_by_default"),
    "blocked_producers": ("memoryLimit", "producerFlowControl", "pending_message_limit_strategy"),
    "expiring": ("expire_messages_period", "dead_letter_strategy"),
    "slow_subscriber": ("topic_prefetch", "pending_message_limit_strategy", "message_eviction_strategy",
                        "slow_consumer_strategy"),
    "durable_offline": ("durable_topic_prefetch",),
    "start_delayed": ("consumers_before_dispatch_starts", "time_before_dispatch_starts"),
}  # fmt: skip


def broker_of(brokers: Sequence[BrokerConfiguration], state: DestinationState) -> BrokerConfiguration | None:
    """The configuration of the broker a state comes from: the one of its name, or the only one there is."""
    named = [each for each in brokers if each.name == state.broker]
    return named[0] if named else brokers[0] if len(brokers) == 1 else None


def explained(finding: Finding, state: DestinationState, broker: BrokerConfiguration) -> Finding:
    """The finding with the settings of its destination's policy that matter for it."""
    matters = MATTERS.get(finding.code)
    if not matters:
        return finding
    policy = broker.policy_of(Destination(state.name, state.kind))
    if policy is None:
        said = say(
            "no policy entry of {file} covers it: {settings}", file=broker.file, settings=_of(DEFAULTS, {}, matters)
        )
    else:
        entry = entry_of(broker, policy)
        said = say("{entry} counts here: {settings}", entry=entry.where, settings=_of(policy, entry.left_out, matters))
    return replace(finding, evidence=(*finding.evidence, said))


def _of(policy: Policy, left_out: object, matters: Sequence[str]) -> Said:
    """Settings by the broker's names; of those that are not written, the default."""
    written = settings_of(policy)
    known = left_out if isinstance(left_out, dict) else {}
    parts = []
    for key in matters:
        if key not in Policy.__dataclass_fields__:
            parts += [f"{key} {known[key]}"] if key in known else []
        elif key in written:
            parts.append(f"{java_name(key)} {_text(written[key])}")
        else:
            parts.append(f"{java_name(key)} {_text(_default(key))}")
    return say("{settings}", settings=", ".join(parts))


def _default(key: str) -> object:
    value = getattr(DEFAULTS, key)
    if value is None:
        return "none"
    return {"dead_letter_strategy": "shared", "message_eviction_strategy": "oldest"}.get(key, value)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return " ".join(f"{java_name(str(key))} {_text(item)}" for key, item in value.items())
    return str(value)
