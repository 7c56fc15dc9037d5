"""Files in, evidence out. What a file is, is told by what stands in it, never by its name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from pyengine.backlog.evidence import (
    client_log,
    configuration,
    jolokia,
    running_info,
    spark_progress,
    stacks,
    store_files,
    tables,
)
from pyengine.backlog.evidence.model import Evidence, Remark
from pyengine.backlog.findings import say
from pyengine.backlog.heard import heard
from pyengine.errors import InvalidSourceError


class Reader(NamedTuple):
    """One kind of file. what: for people. read: (text, file, modification time in ms) -> Evidence."""

    what: str
    recognises: Callable[[str], bool]
    read: Callable[[str, str, int | None], Evidence]


# Asked in this order: a running info may hold a stack listing, a log may hold Spark's JSON.
READERS = (
    Reader("activemq.xml", configuration.recognises, configuration.read),
    Reader("Jolokia JSON", jolokia.recognises, jolokia.read),
    Reader("mqadmin consumerStatus", running_info.recognises, running_info.read),
    Reader("consumerOffset, offsets, topics or subscriptionGroup.json", store_files.recognises, store_files.read),
    Reader("jstack or py-spy dump", stacks.recognises, stacks.read),
    Reader("Spark streaming progress", spark_progress.recognises, spark_progress.read),
    Reader("rocketmq_client.log", client_log.recognises, client_log.read),
    Reader("dstat, consumerProgress or kafka-consumer-groups table", tables.recognises, tables.read),
)
KINDS = "; ".join(reader.what for reader in READERS)


def read_files(paths: Iterable[str | Path]) -> Evidence:
    """All evidence in the files; ``-`` is standard input, a folder stands for the files in it.

    What no reader recognises in a folder is a remark. Raises InvalidSourceError for a file that was named and is of no
    known kind, for a folder without any that is, and for what cannot be opened or is not what it looks like.
    """
    found = Evidence()
    for path in paths:
        if str(path) == "-":
            found.add(read_text(sys.stdin.read(), "standard input"))
            continue
        if Path(path).is_dir():
            _read_folder(Path(path), found)
        else:
            found.add(read_text(*_opened(Path(path))))
    return found


def _opened(file: Path) -> tuple[str, str, int]:
    """(text, name, modification time in ms)."""
    try:
        return file.read_text("utf-8-sig"), str(file), file.stat().st_mtime_ns // 1_000_000
    except UnicodeDecodeError as error:
        raise InvalidSourceError(str(file), f"is not text in UTF-8 (byte {error.start})") from error
    except OSError as error:
        raise InvalidSourceError(str(file), f"cannot be read: {error.strerror}") from error


def _read_folder(folder: Path, found: Evidence) -> None:
    known = False
    for file in sorted(each for each in folder.rglob("*") if each.is_file()):
        try:
            text, name, modified = _opened(file)
        except InvalidSourceError as error:
            found.remarks.append(Remark(str(file), 0, file.name, heard(error.problem)))
            continue
        if any(reader.recognises(text) for reader in READERS):
            found.add(read_text(text, name, modified))
            known = True
        else:
            found.remarks.append(Remark(str(file), 0, file.name, say("holds nothing that is known here")))
    if not known:
        raise InvalidSourceError(str(folder), "holds no file that is known here", f"read are: {KINDS}")


def read_text(text: str, file: str, modified: int | None = None) -> Evidence:
    """The evidence in one file's text. modified: ms, the moment the file speaks of unless it says so itself."""
    for reader in READERS:
        if reader.recognises(text):
            try:
                return reader.read(text, file, modified)
            except InvalidSourceError:
                raise
            except ValueError as error:
                raise InvalidSourceError(file, f"looks like {reader.what} but cannot be read: {error}") from error
    raise InvalidSourceError(file, "holds nothing that is known here", f"read are: {KINDS}")
