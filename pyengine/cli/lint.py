"""``pyengine lint``: configuration files in, traps out."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from pyengine.backlog.findings import Finding, Language, say
from pyengine.backlog.lint import lint, lint_broker, lint_consumer, under_policies
from pyengine.backlog.traps import push_consumer
from pyengine.cli.findings import show_finding
from pyengine.errors import InvalidSourceError
from pyengine.topology import BrokerConfiguration, Topology

Found = list[tuple[str, Finding]]


def ask(files: Sequence[str]) -> Found:
    """The findings of each file, with its name.

    A broker's configuration among the files gives its policies to the topologies beside it.
    """
    texts = {("standard input" if file == "-" else file): _text(file) for file in files}
    brokers: list[BrokerConfiguration] = []
    topologies: list[tuple[str, Topology]] = []
    found: Found = []
    for name, text in texts.items():
        if _is_broker(text):
            brokers.append(BrokerConfiguration.from_text(text, name))
            found += [(name, finding) for finding in lint_broker(brokers[-1])]
        elif (parameters := push_consumer.read(text, name)) is not None:
            found += [(name, finding) for finding in lint_consumer(parameters)]
        else:
            topologies.append((name, Topology.from_text(text, name)))
    if len(brokers) > 1 and topologies:
        raise InvalidSourceError(
            brokers[1].file, "is a second broker", "give topologies together with one broker's file"
        )
    for name, topology in topologies:
        joined = under_policies(topology, brokers[0]) if brokers else topology
        found += [(name, finding) for finding in lint(joined)]
    return found


def _text(file: str) -> str:
    try:
        if file == "-":
            return sys.stdin.buffer.read().decode("utf-8-sig")
        return Path(file).read_text("utf-8-sig")
    except OSError as error:
        raise InvalidSourceError(file, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidSourceError(file, f"is not text in UTF-8 (byte {error.start})") from error


def _is_broker(text: str) -> bool:
    """An activemq.xml, or the same in TOML: policies or virtual destinations and no source of messages."""
    if text.lstrip().startswith("<"):
        return True
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
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
