"""The folder of one named broker: its lock, topics, groups and offsets, as the real broker lays them out.

``topics.json``, ``subscriptionGroup.json`` and ``consumerOffset.json`` in ``<folder>/config``, with ``.bak`` beside
each, ``<folder>/log/`` for the messages, and ``<folder>/lock``, which the process that has the folder holds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyengine._engine.rocketmq.commands.bodies import read_body, write_body
from pyengine._engine.wire import fastjson
from pyengine._engine.wire.fastjson import INT32, whole_of
from pyengine.errors import ConfigurationError, IllegalStateError, InvalidSourceError, ProtocolError
from pyengine.folder_lock import FolderLock
from pyengine.rocketmq.broker.offset_files import (
    DataVersion,
    consumer_offset_text,
    named_members,
    read_consumer_offsets,
    read_or_backup,
    replace_file,
)
from pyengine.rocketmq.broker.topic_config import READ_WRITE, TopicConfig
from pyengine.visible import logger

log = logger("pyengine.rocketmq.broker")

MOST_QUEUES = 1_000_000  # of a topic on a broker; every client keeps them all
READ_QUEUES = 16  # TopicConfig.defaultReadQueueNums
ROCKSDB = ("consumerOffsets", "topics", "rdb")  # folders of a real broker that keeps no offsets or topics in JSON


class BrokerFiles:
    """The files of a broker.

    Raises IllegalStateError if another broker has the folder, here or in another process, InvalidSourceError if it
    cannot be written, or has what a real broker kept in RocksDB.
    """

    def __init__(self, directory: Path, name: str) -> None:
        if name in (".", "..") or any(mark in name for mark in '/\\:*?"<>|\0'):
            raise ConfigurationError("names", name, "this name cannot be a folder's", "a durable broker needs one")
        self.folder = directory.absolute() / name  # wherever the process goes later
        self.log_folder = self.folder / "log"
        self.offsets_path = self.folder / "config" / "consumerOffset.json"
        self.topics_path = self.folder / "config" / "topics.json"
        self.groups_path = self.folder / "config" / "subscriptionGroup.json"
        for kept in ROCKSDB:
            database = self.offsets_path.with_name(kept)
            if (database / "CURRENT").exists():
                hint = "let mqadmin rocksDBConfigToJson write consumerOffset.json and topics.json, then move it away"
                raise InvalidSourceError(str(database), "is a RocksDB database, which is not read here", hint)
        try:
            self.log_folder.mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock(self.folder)
        except BlockingIOError as error:
            raise IllegalStateError(f"{self.folder}: another broker has this folder") from error
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            problem = f"cannot be opened: {getattr(error, 'strerror', error)}"
            raise InvalidSourceError(str(self.folder), problem, "name a folder to write to") from error

    @property
    def are_ours(self) -> bool:
        """False in a process that was forked from the one that opened the folder."""
        return self._lock.is_ours

    def read_topics(self) -> dict[str, int]:
        """Topic -> number of queues."""
        return read_or_backup(self.topics_path, read_topics) or {}

    def read_configs(self) -> dict[str, TopicConfig]:
        """The topics of which not all queues can be read and written, or that are otherwise special."""
        return read_or_backup(self.topics_path, read_configs) or {}

    def write_topics(self, topics: Mapping[str, int], configs: Mapping[str, TopicConfig]) -> None:
        """Replace topics.json, in the form that the real broker reads; a line in the log if that cannot be done."""
        table = {}
        for topic, queues in sorted(topics.items()):
            table[topic] = (configs.get(topic) or TopicConfig(queues, queues)).entry(topic)
        document = {"dataVersion": {"counter": 0, "stateVersion": 0, "timestamp": 0}, "topicConfigTable": table}
        self._replace(self.topics_path, json.dumps(document, ensure_ascii=False, indent="\t"))

    def read_groups(self) -> dict[str, Any]:
        """SubscriptionGroupWrapper of subscriptionGroup.json or its ``.bak``; empty without either."""
        return read_or_backup(self.groups_path, read_groups) or {}

    def write_groups(self, wrapper: dict[str, Any]) -> None:
        """Replace subscriptionGroup.json; a line in the log if that cannot be done."""
        self._replace(self.groups_path, write_body("SubscriptionGroupWrapper", wrapper).decode())

    def read_offsets(self) -> tuple[dict[str, dict[int, int]], DataVersion]:
        """What consumerOffset.json or its ``.bak`` says; nothing without either. Raises InvalidSourceError."""
        return read_or_backup(self.offsets_path, read_consumer_offsets) or ({}, DataVersion())

    def write_offsets(self, table: Mapping[str, Mapping[int, int]], version: DataVersion) -> bool:
        """Replace consumerOffset.json; False, with a line in the log, if that cannot be done now."""
        return self._replace(self.offsets_path, consumer_offset_text(table, version))

    def _replace(self, path: Path, text: str) -> bool:
        try:
            replace_file(path, text)
        except OSError as error:
            log.error("persist file %s exception", path, exc_info=error)
            return False
        return True

    def close(self) -> None:
        """Let go of the folder."""
        self._lock.release()


def read_topics(text: str, source: str) -> dict[str, int]:
    """Topic -> readQueueNums of a broker's topics.json, 16 where it names none. Raises InvalidSourceError."""
    document = named_members(fastjson.loads(text, source), "the document", source)
    table = named_members(fastjson.member(document, "topicConfigTable"), "topicConfigTable", source)
    topics: dict[str, int] = {}
    for topic, config in table.items():
        what = f"topicConfigTable.{topic}"
        if config is None:
            raise InvalidSourceError(source, f"{what} = null is not a topic's configuration")
        config = named_members(config, what, source)
        found = fastjson.member(config, "readQueueNums")
        queues = whole_of(found, INT32, f"{what}.readQueueNums", source, absent=READ_QUEUES)
        if not 0 <= queues <= MOST_QUEUES:
            problem = f"{what}.readQueueNums = {queues} is not a number from 0 to {MOST_QUEUES}"
            raise InvalidSourceError(source, problem)
        topics[topic] = queues
    return topics


def read_groups(text: str, source: str) -> dict[str, Any]:
    """The SubscriptionGroupWrapper in a broker's subscriptionGroup.json. Raises InvalidSourceError."""
    try:
        return read_body("SubscriptionGroupWrapper", text.encode()) or {}
    except ProtocolError as error:
        raise InvalidSourceError(source, f"is not a subscriptionGroup.json: {error}") from error


def read_configs(text: str, source: str) -> dict[str, TopicConfig]:
    """Those of a broker's topics.json that are not plain: topic -> how it lies. Raises InvalidSourceError."""
    table = fastjson.member(fastjson.loads(text, source), "topicConfigTable")
    configs: dict[str, TopicConfig] = {}
    for topic, queues in read_topics(text, source).items():
        numbers = {
            name: whole_of(
                fastjson.member(table[topic], name), INT32, f"topicConfigTable.{topic}.{name}", source, absent=absent
            )
            for name, absent in (("writeQueueNums", queues), ("perm", READ_WRITE), ("topicSysFlag", 0))
        }
        config = TopicConfig(
            queues, numbers["writeQueueNums"], numbers["perm"], bool(fastjson.member(table[topic], "order")),
            numbers["topicSysFlag"],
        )  # fmt: skip
        if config != TopicConfig(config.queues, config.queues):
            configs[topic] = config
    return configs
