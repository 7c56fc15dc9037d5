"""The names of lint's rules, for ``--select`` and ``--ignore``; a test compares them with what the rules give."""

from __future__ import annotations

from collections.abc import Iterable

from pyengine.errors import ConfigurationError, did_you_mean

CODES: frozenset[str] = frozenset(
    {
        "abort_first_look",
        "abort_idle",
        "abort_never",
        "abort_waiting_pull",
        "acknowledge_mode_ignored",
        "addresses_without_failover",
        "always_false",
        "batch_larger_than_pull",
        "broadcasting_drops_failures",
        "cache_memory",
        "client_never_redelivers",
        "clients_without_queues",
        "dead_letters_discarded",
        "dead_letters_dropped",
        "default_prefetch",
        "durable_needs_one_consumer",
        "durable_without_client_id",
        "every_consumer_gets_all",
        "everybody_exclusive",
        "eviction_drops_others",
        "eviction_never_asked",
        "exclusive_by_default",
        "exclusive_disjoint",
        "expiry_off",
        "failure_is_lost",
        "few_buckets",
        "filter_without_selector",
        "first_failure_is_dead",
        "forward_loop",
        "gc_loses_copies",
        "gc_never_runs",
        "group_map_forgets",
        "group_refused",
        "group_twice",
        "groups_and_selectors",
        "limit_behind_prefetch",
        "limit_zero_drops",
        "listener_annotation",
        "local_only",
        "name_servers_joined",
        "never_starts",
        "no_consumer",
        "no_effect",
        "not_covered",
        "not_forwarded",
        "not_proven",
        "number_refused",
        "option_inside_brackets",
        "option_refused",
        "orderly_never_gives_up",
        "orderly_no_timeout",
        "orderly_threads_idle",
        "overlapping",
        "prefetch_below_zero",
        "prefetch_extension_off",
        "prefetch_for_slow_work",
        "prefetch_hides_work",
        "prefix_in_name",
        "priority_behind_prefetch",
        "pull_batch_capped",
        "pull_interval_limits",
        "quality_of_service_off",
        "recovery_not_used",
        "redeliveries_multiply",
        "redelivers_for_ever",
        "redelivery_refused",
        "redelivery_reorders",
        "refused",
        "retroactive_recovers_nothing",
        "selector_aware_loses",
        "selector_misread",
        "selector_refused",
        "shared_client_id",
        "slow_never_noticed",
        "slow_subscriber_blocks",
        "small_page",
        "span_before_count",
        "start_not_guaranteed",
        "start_waits",
        "strict_order_and_groups",
        "strict_order_fills_one",
        "surprising_selector",
        "suspend_clamped",
        "thread_max_unused",
        "timeout_not_positive",
        "timestamp_misread",
        "timestamp_refused",
        "timestamp_unused",
        "topic_threshold_overwrites",
        "undefined_order",
        "uneven_queues",
        "unknown_parameter",
        "unused_policy",
        "value_unknown",
        "wrong_kind",
    }
)


def checked(option: str, codes: Iterable[str]) -> frozenset[str]:
    """Names of rules, of which several may stand in one string with commas between. Raises ConfigurationError for one
    that no rule has."""
    asked = [code.strip() for text in codes for code in text.split(",")]
    for code in asked:
        if code not in CODES:
            hint = did_you_mean(code, sorted(CODES)) or "docs/diagnose.md lists the names"
            raise ConfigurationError(option, code, "is not the name of a rule", hint)
    return frozenset(asked)
