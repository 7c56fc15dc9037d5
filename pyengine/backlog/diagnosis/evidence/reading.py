"""Files in, evidence out. The kind of a file is found from its content, never from its name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, fields, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pyengine.backlog.diagnosis.evidence import (
    activemq_log,
    admin_query,
    arthas,
    broker_log,
    client_log,
    configuration,
    connections,
    jolokia,
    kafka_groups,
    kafka_log,
    monitors,
    prometheus,
    running_info,
    spark_progress,
    stacks,
    store_files,
    tables,
    web_console,
)
from pyengine.backlog.diagnosis.evidence.clocks import with_days
from pyengine.backlog.diagnosis.evidence.model import Evidence, Remark, Source
from pyengine.backlog.diagnosis.evidence.opening import Opened, open_text
from pyengine.backlog.diagnosis.evidence.titles import with_titles
from pyengine.backlog.diagnosis.evidence.transcript import without_margin
from pyengine.backlog.findings import say
from pyengine.backlog.sentence_templates import heard
from pyengine.dataclass import dataclass
from pyengine.errors import InvalidSourceError


class Reader(NamedTuple):
    """One kind of file. what: for people. read: (text, file, modification time in ms) -> Evidence."""

    what: str
    recognises: Callable[[str], bool]
    read: Callable[[str, str, int | None], Evidence]


def readers(properties: Mapping[str, str] | None = None) -> tuple[Reader, ...]:
    """Asked in this order: a running info may hold a stack listing, a log may hold Spark's JSON.

    properties: values of ``${placeholders}`` in a broker's configuration.
    """
    return (
        Reader("activemq.xml", configuration.recognises, partial(configuration.read, properties=properties)),
        Reader("Jolokia JSON", jolokia.recognises, jolokia.read),
        Reader("ActiveMQ's web console", web_console.recognises, web_console.read),
        Reader("mqadmin consumerStatus", running_info.recognises, running_info.read),
        Reader("JSON of the RocketMQ dashboard or of Burrow", monitors.recognises, monitors.read),
        Reader("consumerOffset, offsets, topics or subscriptionGroup.json", store_files.recognises, store_files.read),
        Reader("jstack or py-spy dump", stacks.recognises, stacks.read),
        Reader("Arthas thread", arthas.recognises, arthas.read),
        Reader("Spark streaming progress", spark_progress.recognises, spark_progress.read),
        Reader("Prometheus text", prometheus.recognises, prometheus.read),
        Reader("rocketmq_client.log", client_log.recognises, client_log.read),
        Reader("broker.log of RocketMQ", broker_log.recognises, broker_log.read),
        Reader("tables of mqadmin, activemq-admin and Kafka's tools", _is_table, _tables),
        Reader("activemq-admin query", admin_query.recognises, admin_query.read),
        Reader("ActiveMQ's log", activemq_log.recognises, activemq_log.read),
        Reader("log of a Kafka consumer", kafka_log.recognises, kafka_log.read),
        Reader("log with exceptions of RocketMQ's client", connections.recognises, client_log.read),
    )


TABLES = (kafka_groups, tables)  # people paste those of both into one file


def _is_table(text: str) -> bool:
    return any(room.recognises(text) for room in TABLES)


def _tables(text: str, file: str, modified: int | None) -> Evidence:
    found = Evidence()
    for room in TABLES:
        if room.recognises(text):
            found.add(room.read(text, file, modified))
    return found


KINDS = "; ".join(reader.what for reader in readers())


def read_files(
    paths: Iterable[str | Path], encoding: str = "", properties: Mapping[str, str] | None = None
) -> Evidence:
    """All evidence in the files; ``-`` is standard input, a folder stands for the files in it. A file counts once.

    encoding: of all files; empty: as each of them says, else UTF-8. properties: values of ``${placeholders}`` in a
    broker's configuration. What no reader recognises in a folder is a remark. Raises InvalidSourceError for a file that
    was named and is of no known kind, for a folder without any that is, and for what cannot be opened or is not what it
    looks like.
    """
    found, refused = read_what_can_be(paths, encoding, properties)
    if refused:
        raise refused[0]
    return found


def read_what_can_be(
    paths: Iterable[str | Path], encoding: str = "", properties: Mapping[str, str] | None = None
) -> tuple[Evidence, list[InvalidSourceError]]:
    """The same; files that ``read_files`` would refuse are left out, each with its reason."""
    reading = _Reading(encoding, properties)
    refused: list[InvalidSourceError] = []
    for path in sorted(paths, key=_is_backup):
        try:
            reading.take(path)
        except InvalidSourceError as error:
            refused.append(error)
    return reading.found, refused


@dataclass(slots=True)
class _Reading:
    encoding: str
    properties: Mapping[str, str] | None
    found: Evidence = field(default_factory=Evidence)
    places: set[str] = field(default_factory=set)
    understood: set[str] = field(default_factory=set)

    def take(self, path: str | Path) -> None:
        """A file, standard input or a folder."""
        if str(path) != "-" and Path(path).is_dir():
            self.folder(Path(path))
        elif str(path) == "-" or (not self.is_superseded(Path(path)) and self.is_new(Path(path))):
            opened = self.open(path)
            self.add(opened, reader_of(opened.text, self.properties))
            self.understood.add(os.path.realpath(path))

    def open(self, path: str | Path) -> Opened:
        opened = open_text(path, self.encoding)
        return replace(opened, text=as_written(opened.text, opened.modified))

    def is_superseded(self, file: Path) -> bool:
        """A ``.bak`` of RocketMQ beside its file: what was written before, as the times of copies do not tell."""
        return _is_backup(file) and os.path.realpath(str(file).removesuffix(".bak")) in self.understood

    def is_new(self, file: Path) -> bool:
        """A file named twice would be two sights of one moment."""
        if "\0" in str(file):  # which no file has: opening it raises
            return True
        place = os.path.realpath(file)  # of links in a circle too
        new = place not in self.places
        self.places.add(place)
        return new

    def add(self, opened: Opened, reader: Reader | None) -> None:
        self.found.add(_evidence(reader, opened.text, opened.name, opened.modified))
        self.found.remarks.extend(opened.remarks)

    def folder(self, folder: Path) -> None:
        known = False
        for file in sorted(
            (each for each in folder.rglob("*") if each.is_file()), key=lambda each: (_is_backup(each), each)
        ):
            if self.is_superseded(file):
                continue
            try:
                opened = self.open(file)
                reader = reader_of(opened.text, self.properties)
                if reader is None:
                    why = say("holds nothing that is known here")
                    self.found.remarks.append(Remark(str(file), 0, file.name, why))
                    continue
                known = True
                if self.is_new(file):
                    self.add(opened, reader)
                self.understood.add(os.path.realpath(file))
            except InvalidSourceError as error:
                self.found.remarks.append(Remark(str(file), 0, file.name, heard(error.problem)))
        if not known:
            raise InvalidSourceError(str(folder), "holds no file that is known here", f"read are: {KINDS}")


def _is_backup(file: str | Path) -> bool:
    return str(file).endswith(".bak")


def reader_of(text: str, properties: Mapping[str, str] | None = None) -> Reader | None:
    """The first reader that takes it."""
    return next((reader for reader in readers(properties) if reader.recognises(text)), None)


def as_written(text: str, modified: int | None) -> str:
    """The text without what a mail or docker added, with the day of times and the titles of rows that have none."""
    return with_titles(with_days(without_margin(text), modified))


def read_text(
    text: str, file: str, modified: int | None = None, properties: Mapping[str, str] | None = None
) -> Evidence:
    """The evidence in one file's text. modified: ms, the moment of the evidence if the file has none itself."""
    text = as_written(text, modified)
    return _evidence(reader_of(text, properties), text, file, modified)


def _evidence(reader: Reader | None, text: str, file: str, modified: int | None) -> Evidence:
    if reader is None:
        problem = "holds nothing that is known here" if text.strip() else "is empty"
        raise InvalidSourceError(file, problem, f"read are: {KINDS}")
    try:
        found = reader.read(text, file, modified)
    except InvalidSourceError:
        raise
    except ValueError as error:
        raise InvalidSourceError(file, f"looks like {reader.what} but cannot be read: {error}") from error
    if not found.sources:
        states = [each for kind in fields(found) for each in getattr(found, kind.name)]
        times = {each.time for each in states if getattr(each, "time", None) is not None}
        if not times and modified is not None:
            times = {modified}
        found.sources.append(Source(file, reader.what, tuple(sorted(times))))
    return found
