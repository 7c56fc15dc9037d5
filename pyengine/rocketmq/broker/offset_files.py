"""RocketMQ's offset files: what they say, byte for byte as fastjson 1.2 prints it, and how they are replaced.

``consumerOffset.json`` of a broker and ``offsets.json`` of a broadcasting client, with ``.bak`` beside them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pyengine._engine.wire import fastjson
from pyengine._engine.wire.fastjson import INT32, INT64, quoted, whole_of
from pyengine.dataclass import dataclass
from pyengine.disk_sync import sync_file, sync_folder
from pyengine.errors import InvalidSourceError
from pyengine.rocketmq.tables.allocation import MessageQueue
from pyengine.visible import logger

log = logger("pyengine.rocketmq")


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class DataVersion:
    """RocketMQ's DataVersion. timestamp: ms."""

    counter: int = 0
    state_version: int = 0
    timestamp: int = 0


def consumer_offset_text(table: Mapping[str, Mapping[int, int]], version: DataVersion) -> str:
    """The content of consumerOffset.json. table: {"topic@group": {queue id: offset}}."""
    groups: dict[str, set[str]] = {}
    for key in table:
        parts = key.rstrip("@").split("@")
        if len(parts) == 2:
            groups.setdefault(parts[1], set()).add(parts[0])
    members = ",".join(
        f"\n\t\t{quoted(group)}:[{','.join(map(quoted, sorted(topics)))}]" for group, topics in sorted(groups.items())
    )
    offsets = ",".join(
        f"\n\t\t{quoted(key)}:{{{','.join(f'{queue}:{offset}' for queue, offset in sorted(queues.items()))}\n\t\t}}"
        if queues
        else f"\n\t\t{quoted(key)}:{{}}"
        for key, queues in sorted(table.items())
    )
    return (
        f'{{\n\t"dataVersion":{{\n\t\t"counter":{version.counter},\n\t\t"stateVersion":{version.state_version},'
        f'\n\t\t"timestamp":{version.timestamp}\n\t}},'
        f'\n\t"groupTopicMap":{_object(members)},\n\t"offsetTable":{_object(offsets)}\n}}'
    )


def read_consumer_offsets(
    text: str, source: str = "consumerOffset.json"
) -> tuple[dict[str, dict[int, int]], DataVersion]:
    """What consumerOffset.json says: the offset table and the data version; everything else in it is ignored.

    Raises InvalidSourceError for content that the broker could not read either.
    """
    document = _document(text, source, levels=2)
    table: dict[str, dict[int, int]] = {}
    for name, queues in _mapping(fastjson.member(document, "offsetTable"), "offsetTable", source).items():
        if not isinstance(name, str) or queues is None:
            raise InvalidSourceError(source, f"offsetTable: {name!r}: {queues!r} is not a topic@group with its queues")
        table[name] = {}
        for queue, offset in _mapping(queues, f"offsetTable.{name}", source).items():
            number = whole_of(queue, INT32, f"queue id of {name}", source)
            table[name][number] = whole_of(offset, INT64, f"offset of {name} {queue}", source)
    version = named_members(fastjson.member(document, "dataVersion"), "dataVersion", source)
    numbers = (
        whole_of(fastjson.member(version, name), INT64, f"dataVersion.{name}", source, absent=0)
        for name in ("counter", "stateVersion", "timestamp")
    )
    return table, DataVersion(*numbers)


def local_offset_text(table: Mapping[MessageQueue, int]) -> str:
    """The content of a broadcasting client's offsets.json."""
    entries = ",".join(
        f'{{\n\t\t\t"brokerName":{quoted(queue.broker_name)},\n\t\t\t"queueId":{queue.queue_id},'
        f'\n\t\t\t"topic":{quoted(queue.topic)}\n\t\t}}:{offset}'
        for queue, offset in sorted(table.items())
    )
    return f'{{\n\t"offsetTable":{_object(entries)}\n}}'


def read_local_offsets(text: str, source: str = "offsets.json") -> dict[MessageQueue, int]:
    """What a broadcasting client's offsets.json says. Raises InvalidSourceError for what cannot be read."""
    table: dict[MessageQueue, int] = {}
    document = _document(text, source, levels=1)
    for key, offset in _mapping(fastjson.member(document, "offsetTable"), "offsetTable", source).items():
        fields = named_members(dict(key) if isinstance(key, tuple) else {}, f"offsetTable: {key!r}", source)
        queue = MessageQueue(
            _text(fastjson.member(fields, "topic")),
            _text(fastjson.member(fields, "brokerName")),
            whole_of(fastjson.member(fields, "queueId"), INT32, "queueId", source, absent=0),
        )
        if not queue.topic:
            raise InvalidSourceError(source, f"offsetTable: {key!r} is not a message queue")
        table[queue] = whole_of(offset, INT64, f"offset of {queue}", source)
    return table


def replace_file(path: Path, text: str, *, sync: bool = True) -> None:
    """Give a file new content and keep the old one as ``.bak``; a crash leaves the old or the new file, whole.

    Makes the folder if need be. sync: survive a power failure too.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".new")
    with fresh.open("wb") as file:
        file.write(text.encode("utf-8", "replace"))
        if sync:
            file.flush()
            sync_file(file.fileno())
    if path.exists():
        spare = path.with_name(path.name + ".bak.new")
        with contextlib.suppress(FileNotFoundError):
            spare.unlink()
        try:
            os.link(path, spare)
        except OSError:
            from shutil import copyfile  # it takes time to import

            copyfile(path, spare)
        os.replace(spare, path.with_name(path.name + ".bak"))
    os.replace(fresh, path)
    if sync:
        sync_folder(path.parent)


def read_or_backup(path: Path, read: Callable[[str, str], _T]) -> _T | None:
    """What a file says; if it is missing, empty or cannot be read, what its ``.bak`` says; None without either.

    read: function(text, source) that raises InvalidSourceError. Raises its error for the ``.bak``.
    """
    backup = path.with_name(path.name + ".bak")
    damaged = False
    for place in (path, backup):
        try:
            text = place.read_text("utf-8")
            if text:
                return read(text, str(place))
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:  # ValueError: no UTF-8, a NUL in the path, or what read raises
            if place is backup:
                problem = error.problem if isinstance(error, InvalidSourceError) else f"cannot be read: {error}"
                raise InvalidSourceError(
                    str(place), problem, "correct it, or move it away to start without it"
                ) from error
            log.error("load %s failed, and try to load backup file", place, exc_info=error)
            damaged = True
    if damaged:
        log.error("%s has no backup: starting without what it says; the next but one that is written replaces it", path)
    return None


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _object(entries: str) -> str:
    if not entries:
        return "{}"
    return f"{{{entries}\n\t}}"


def _document(text: str, source: str, *, levels: int) -> Mapping[str, Any]:
    return named_members(fastjson.loads(text, source, typed=("offsetTable", levels)), "the document", source)


def named_members(value: object, what: str, source: str) -> Mapping[str, Any]:
    """An object that Java reads into a class, {} for null. Raises InvalidSourceError for others, and for a member whose
    name is none: what it holds would be lost.
    """
    found = _mapping(value, what, source)
    for key in found:
        if not isinstance(key, str):
            problem = f"{what}: {key!r} is not a name of a member"
            raise InvalidSourceError(source, problem, "put it in quotes, or remove it")
    return found


def _mapping(value: object, what: str, source: str) -> Mapping[Any, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidSourceError(source, f"{what} is {value!r}, not an object")
    return value
