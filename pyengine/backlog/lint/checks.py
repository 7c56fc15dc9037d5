"""Traps in a configuration, before it hurts: each with what shows it, the class that has the rule, and how to mend it.

Without the extra ``lint`` (z3) rules that need a proof are left out, and a finding reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyengine.backlog.findings import Finding, Severity, say
from pyengine.backlog.lint import proof
from pyengine.backlog.lint.rules import broker as brokers
from pyengine.backlog.lint.rules import push_consumer, queues, spring
from pyengine.backlog.sentence_templates import heard
from pyengine.errors import MissingExtraError
from pyengine.topology import BrokerConfiguration, Policy, Topology
from pyengine.topology.checked import check_arguments
from pyengine.topology.spring_boot import SpringConfiguration

PROOF_SECONDS = 60.0


def lint(topology: Topology, broker: BrokerConfiguration | None = None) -> list[Finding]:
    """Every trap in a topology, the worst first. Raises InvalidSelectorError for a selector the broker refuses.

    broker: one whose policies replace the topology's; what is wrong with them by themselves is :func:`lint_broker`'s.
    """
    check_arguments("lint", lint, locals())
    joined = topology if broker is None else _under_policies(topology, broker)
    found = [*queues.findings(joined), *_proven(lambda: queues.proofs(joined))]
    if broker is None:
        found += queues.policies(topology)
        default = [] if topology.default_policy == Policy("") else [topology.default_policy]
        for policy in (*topology.policies, *default):
            found += brokers.in_entry(policy)
    return _worst_first(found)


def lint_broker(broker: BrokerConfiguration) -> list[Finding]:
    """Every trap in a broker's configuration (an ``activemq.xml``), the worst first."""
    check_arguments("lint_broker", lint_broker, locals())
    return _worst_first([*brokers.findings(broker), *_proven(lambda: brokers.proofs(broker))])


def lint_consumer(parameters: Mapping[str, Any], queues_of_topic: int = 0, members: int = 0) -> list[Finding]:
    """Traps in a RocketMQ push consumer's parameters, the worst first; see ``traps.push_consumer``.

    parameters: by their snake_case names; absent ones have their defaults. queues_of_topic, members: readable queues of
    the topic and clients of the group, if they are known.
    """
    return _worst_first(push_consumer.findings(parameters, queues_of_topic, members))


def lint_consumers(consumers: Sequence[spring.SpringConsumer]) -> list[Finding]:
    """Traps of several push consumers, each by itself, the worst first."""
    return _worst_first(spring.of_consumers(consumers))


def lint_spring(configuration: SpringConfiguration) -> list[Finding]:
    """Traps in a Spring Boot file (application.yml, application.properties), the worst first: its RocketMQ consumers,
    each by itself, and its JMS client of ActiveMQ. Raises InvalidSourceError for a parameter that is not a number."""
    check_arguments("lint_spring", lint_spring, locals())
    return _worst_first(spring.findings(configuration))


def _under_policies(topology: Topology, broker: BrokerConfiguration) -> Topology:
    """The same consumers under the policies of a broker, which replace those of the topology."""
    return replace(
        topology, policies=broker.policies.entries, default_policy=broker.policies.default or Policy("")
    )  # fmt: skip


def _proven(ask: Callable[[], Iterator[Finding]], seconds: float = PROOF_SECONDS) -> list[Finding]:
    """What is proven in the time there is; then a finding says why the rest is not."""
    found: list[Finding] = []
    try:
        with proof.within(seconds):
            found.extend(ask())
        return found
    except MissingExtraError as error:
        skipped, advice = say("what they do together was not looked at"), heard(str(error))
    except proof.OutOfTimeError as error:
        skipped = say(
            "stopped after {seconds:.0f} s and {asked:question|questions} to the solver",
            seconds=seconds,
            asked=error.asked,
        )
        advice = say("Lint fewer queues at a time, or ask pyengine.backlog.lint.proof about the selectors you doubt.")
    return [*found, Finding("not_proven", Severity.INFO, say("selectors"), (skipped,), advice)]


def _worst_first(found: Iterable[Finding]) -> list[Finding]:
    return sorted(dict.fromkeys(found), key=lambda finding: -finding.severity)
