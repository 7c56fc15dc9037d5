"""The offsets of a broadcasting consumer, in a file of its own (spec rocketmq 5.3)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pyengine.attributes import named_arguments
from pyengine.errors import ConfigurationError, InvalidSourceError, MQClientError
from pyengine.rocketmq.broker.offset_files import local_offset_text, read_local_offsets, read_or_backup, replace_file
from pyengine.rocketmq.consumer.offset_store import ReadOffsetType, RememberedOffsets, check_queue, listed_queues
from pyengine.rocketmq.remoting.mq_client_api import plain_text
from pyengine.rocketmq.tables.allocation import MessageQueue
from pyengine.visible import logger

log = logger("pyengine.rocketmq")


LONGEST_NAME = 255  # bytes of a file's name


def check_folder_names(option: str, text: str) -> None:
    """Check that a name, or each of its parts between slashes, names a folder below the one it is put into.

    Raises ConfigurationError for one that leads elsewhere, and for one that no folder can have.
    """
    hint = "it becomes a folder's name; a client id is made of client_ip, instance_name and unit_name"
    place = next((at for at, mark in enumerate(text) if not mark.isprintable() and mark != " "), -1)
    if place >= 0:
        problem = f"{text[place]!r} at {place} cannot stand in a folder's name"
        raise ConfigurationError(option, repr(text), problem, hint)
    path = Path(text)
    if path.is_absolute() or path.drive or ".." in path.parts or not path.parts:
        raise ConfigurationError(option, repr(text), "names a folder outside that of the offsets", hint)
    long = next((part for part in path.parts if len(part.encode()) > LONGEST_NAME), None)
    if long is not None:
        problem = f"longer than the {LONGEST_NAME} bytes that a folder's name may have"
        raise ConfigurationError(option, repr(text), problem, hint)


@named_arguments
class LocalFileOffsetStore(RememberedOffsets):
    """LocalFileOffsetStore: ``<directory>/<client id>/<group>/offsets.json``, readable by the real client and back.

    directory: ``~/.rocketmq_offsets`` by default, as rocketmq.client.localOffsetStoreDir. Every write replaces the
    file as a whole and keeps the old one as ``.bak``, so that a crash leaves one that can be read. Thread-safe; two
    processes with the same client id overwrite each other's entries, as the real ones do. Raises ConfigurationError for
    a client id or a group that is not a string or would leave the directory, and for a directory that is not a path.
    """

    def __init__(self, client_id: str, group: str, *, directory: str | Path | None = None) -> None:
        super().__init__()
        plain_text("client_id", client_id)
        plain_text("group", group)
        if directory is not None and not isinstance(directory, str | Path):
            raise ConfigurationError("directory", repr(directory), "a path is needed")
        check_folder_names("client_id", client_id)
        check_folder_names("group", group)
        folder = Path(directory) if directory is not None else Path.home() / ".rocketmq_offsets"
        self.path = folder.absolute() / client_id / group / "offsets.json"  # wherever the process goes later

    def load(self) -> None:
        """Fill the memory from the file. Raises MQClientError if neither it nor its ``.bak`` can be read."""
        stored = self._read()
        with self._lock:
            for queue, offset in stored.items():
                self._table.remove(queue)
                self._table.update(queue, offset)

    def read_offset(self, queue: MessageQueue | None, where: ReadOffsetType) -> int:
        """The offset; -1 if there is none, or it cannot be read. Reading from the file remembers what it finds."""
        check_queue(queue)
        if queue is None:
            return -1
        remembered = self._remembered(queue, where)
        if remembered is not None:
            return remembered
        try:
            stored = self._read()
        except MQClientError:
            return -1
        if queue not in stored:
            return -1
        self.update_offset(queue, stored[queue])
        return stored[queue]

    def persist_all(self, queues: Iterable[MessageQueue] | None) -> None:
        """Write the offsets of these queues into the file; the entries of others stay. No queues: nothing at all."""
        wanted = set(listed_queues(queues))
        if wanted:
            with self._lock:
                self._merge({queue: offset for queue, offset in self._table.items() if queue in wanted})

    def persist(self, queue: MessageQueue | None) -> None:
        """Write one offset into the file, if there is one."""
        check_queue(queue)
        if queue is None:
            return
        with self._lock:
            offset = self._table.get(queue)
            if offset is not None:
                self._merge({queue: offset})

    def remove_offset(self, queue: MessageQueue | None) -> None:
        """Forget an offset in memory, and that it was frozen; the file keeps it."""
        check_queue(queue)
        if queue is not None:
            with self._lock:
                self._table.remove(queue)

    def _merge(self, offsets: dict[MessageQueue, int]) -> None:
        try:
            stored = self._read()
        except MQClientError as error:
            log.error("readLocalOffset exception, %s (%s)", error, self.path)
            return
        try:
            replace_file(self.path, local_offset_text({**stored, **offsets}))
        except OSError as error:
            log.error("persistAll consumer offset Exception, %s", self.path, exc_info=error)

    def _read(self) -> dict[MessageQueue, int]:
        try:
            return read_or_backup(self.path, read_local_offsets) or {}
        except InvalidSourceError as error:
            raise MQClientError(f"readLocalOffset Exception, maybe fastjson version too low: {error}") from error
