"""``pyengine lint``: configuration files in, traps out."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rich.console import Console

from pyengine.backlog.diagnosis.evidence.opening import open_whole
from pyengine.backlog.findings import Finding, Language, say
from pyengine.backlog.lint import unsupported_files
from pyengine.backlog.lint.checks import lint, lint_broker, lint_consumer, lint_consumers, lint_spring
from pyengine.backlog.lint.codes import checked
from pyengine.backlog.lint.rules import push_consumer, spring
from pyengine.cli.findings import show_finding
from pyengine.cli.tables import plain
from pyengine.errors import InvalidSourceError, PyengineError
from pyengine.topology import BrokerConfiguration, Topology
from pyengine.topology.spring_boot import SpringConfiguration

Found = list[tuple[str, Finding]]


class Answer(NamedTuple):
    """The findings of each file, with its name, and what could not be read: file and error."""

    found: Found
    refused: list[tuple[str, PyengineError]]
    texts: dict[str, str]

    def chosen(self, select: Iterable[str], ignore: Iterable[str]) -> Answer:
        """Without the findings that are not wanted. Raises ConfigurationError for a name that no rule has."""
        wanted, unwanted = checked("--select", select), checked("--ignore", ignore)
        found = [each for each in self.found if (not wanted or each[1].code in wanted) and each[1].code not in unwanted]
        return self._replace(found=found)

    @property
    def exit_code(self) -> int:
        """2 if a file was not understood; 1 for warnings and errors."""
        return 2 if self.refused else int(any(finding.severity for _, finding in self.found))


def ask(files: Sequence[str], encoding: str = "", properties: Mapping[str, str] | None = None) -> Answer:
    """The findings of each file; a file that cannot be read does not keep the others from theirs.

    A broker's configuration among the files gives its policies to the topologies beside it. properties: values of
    its ``${placeholders}``. Raises the error of the only file if that cannot be read.
    """
    reading = _Reading(properties)
    for file in files:
        try:
            opened = open_whole(file, encoding)
        except PyengineError as error:
            reading.refused.append((str(file), error))
        else:
            reading.read(opened.name, opened.text)
    reading.join()
    if len(reading.refused) == 1 and not reading.understood:
        raise reading.refused[0][1]
    return Answer(reading.found, reading.refused, reading.texts)


class _Reading:
    """Files in their order. understood: how many said something."""

    def __init__(self, properties: Mapping[str, str] | None) -> None:
        self.properties = properties
        self.found: Found = []
        self.refused: list[tuple[str, PyengineError]] = []
        self.texts: dict[str, str] = {}
        self.understood = 0
        self.brokers: list[BrokerConfiguration] = []
        self.topologies: list[tuple[str, Topology]] = []
        self.springs: list[tuple[str, SpringConfiguration]] = []

    def read(self, name: str, text: str) -> None:
        """Take in one file; its own findings follow at once, those of a topology when all files are there."""
        self.texts[name] = text
        try:
            self._read(name, text)
        except InvalidSourceError as error:
            refusal = error if error.source == name else InvalidSourceError(
                f"{name}: {error.source}", error.problem, error.hint
            )  # fmt: skip
            self.refused.append((name, refusal))
        except PyengineError as error:
            self.refused.append((name, error))
        else:
            self.understood += 1

    def _read(self, name: str, text: str) -> None:
        if _is_broker(text):
            for broker in BrokerConfiguration.each_from_text(text, name, properties=self.properties):
                self._add(name, lint_broker(broker))
                self.brokers.append(broker)
        elif spring.is_spring(text, name):
            configuration = SpringConfiguration.from_text(text, name, properties=self.properties)
            if not spring.is_known(configuration):
                problem = "is a Spring Boot file without settings of RocketMQ or ActiveMQ"
                hint = "give the one with rocketmq.*, spring.activemq.*, spring.jms.* or the RocketMQ binder"
                raise InvalidSourceError(name, problem, hint)
            self._add(name, lint_spring(configuration))
            self.springs.append((name, configuration))
        elif other := unsupported_files.of_other_program(text):
            raise InvalidSourceError(name, *other)
        elif several := spring.grouped_consumers(text):
            self._add(name, lint_consumers(several))
        elif (parameters := push_consumer.read(text, name)) is not None:
            self._add(name, lint_consumer(parameters))
        elif unknown := unsupported_files.without_settings(text, name):
            raise InvalidSourceError(name, *unknown)
        else:
            self.topologies.append((name, Topology.from_text(text, name)))

    def join(self) -> None:
        """Answer what needs several files."""
        broker = self.brokers[0] if len(self.brokers) == 1 else None
        if broker is not None:
            for name, configuration in self.springs:
                self._add(name, list(spring.tries_multiply(configuration, broker)))
        if len(self.brokers) > 1 and self.topologies:
            second = self.brokers[1].file
            hint = "give topologies together with one broker's file; here they are read by themselves"
            self.refused.append((second, InvalidSourceError(second, "is a second broker", hint)))
        for name, topology in self.topologies:
            try:
                self._add(name, lint(topology, broker))
            except PyengineError as error:
                self.refused.append((name, error))
                self.understood -= 1

    def _add(self, name: str, findings: Sequence[Finding]) -> None:
        self.found += [(name, finding) for finding in findings]


def _is_broker(text: str) -> bool:
    """An activemq.xml, or the same in TOML: policies or virtual destinations and no source of messages."""
    if text.lstrip().startswith("<"):
        return True
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError):
        return False  # the topology's reader reports what is wrong, with the line
    keys = ("policy", "default_policy", "virtual_topic", "composite_queue", "composite_topic", "redelivery_plugin")
    return "source" not in table and any(key in table for key in keys)


def as_dict(answer: Answer) -> dict[str, object]:
    """The JSON document."""
    return {
        "findings": [{"file": file, **finding.as_dict()} for file, finding in answer.found],
        "not_read": [{"file": file, "why": str(error)} for file, error in answer.refused],
    }


def show(answer: Answer, console: Console, language: Language = "en") -> None:
    """By file, the worst first."""
    for file in dict.fromkeys(file for file, _ in answer.found):
        console.print(plain(file, "underline"), soft_wrap=True)
        for name, finding in answer.found:
            if name == file:
                show_finding(finding, console, language)
    understood = answer.texts.keys() - {file for file, _ in answer.refused}
    if not answer.found and (understood or not answer.refused):
        console.print(say("no traps found").in_language(language))
