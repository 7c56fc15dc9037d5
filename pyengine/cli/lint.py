"""``pyengine lint``: configuration files in, traps out."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from pyengine.backlog.evidence.opening import open_whole
from pyengine.backlog.findings import Finding, Language, say
from pyengine.backlog.lint import lint, lint_broker, lint_consumer
from pyengine.backlog.traps import push_consumer
from pyengine.cli.findings import show_finding
from pyengine.errors import InvalidSourceError
from pyengine.topology import BrokerConfiguration, Topology

Found = list[tuple[str, Finding]]


def ask(files: Sequence[str], encoding: str = "", properties: Mapping[str, str] | None = None) -> Found:
    """The findings of each file, with its name.

    A broker's configuration among the files gives its policies to the topologies beside it. properties: values of
    its ``${placeholders}``. Raises InvalidSourceError, InvalidTopologyError.
    """
    texts = {each.name: each.text for each in (open_whole(file, encoding) for file in files)}
    brokers: list[BrokerConfiguration] = []
    topologies: list[tuple[str, Topology]] = []
    found: Found = []
    for name, text in texts.items():
        if _is_broker(text):
            brokers.append(BrokerConfiguration.from_text(text, name, properties=properties))
            found += [(name, finding) for finding in lint_broker(brokers[-1])]
        elif (parameters := push_consumer.read(text, name)) is not None:
            try:
                found += [(name, finding) for finding in lint_consumer(parameters)]
            except InvalidSourceError as error:
                raise InvalidSourceError(f"{name}: {error.source}", error.problem, error.hint) from error
        else:
            topologies.append((name, Topology.from_text(text, name)))
    if len(brokers) > 1 and topologies:
        raise InvalidSourceError(
            brokers[1].file, "is a second broker", "give topologies together with one broker's file"
        )
    for name, topology in topologies:
        found += [(name, finding) for finding in lint(topology, brokers[0] if brokers else None)]
    return found


def _is_broker(text: str) -> bool:
    """An activemq.xml, or the same in TOML: policies or virtual destinations and no source of messages."""
    if text.lstrip().startswith("<"):
        return True
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError):
        return False  # the topology's reader says what is wrong, with the line
    keys = ("policy", "default_policy", "virtual_topic", "composite_queue", "composite_topic", "redelivery_plugin")
    return "source" not in table and any(key in table for key in keys)


def as_dict(found: Found) -> dict[str, object]:
    """The JSON document."""
    return {"findings": [{"file": file, **finding.as_dict()} for file, finding in found]}


def show(found: Found, console: Console, language: Language = "en") -> None:
    """By file, the worst first."""
    for file in dict.fromkeys(file for file, _ in found):
        console.print(Text(file, "underline"), soft_wrap=True)
        for name, finding in found:
            if name == file:
                show_finding(finding, console, language)
    if not found:
        console.print(say("no traps found").in_language(language))
