"""Tables whose log says which of their files count: Delta, Iceberg, Hudi and Paimon. Read as a plain folder they give
rows that were deleted or replaced."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from pyengine.errors import InvalidSourceError

_OF_DELTA = re.compile(r"\d{20}\b|_last_checkpoint")  # names in its log

# What no reader here reads, and Spark's name for it.
FOREIGN = {".orc": "orc", ".avro": "avro"}


def refuse_tables(paths: Iterable[str | Path]) -> None:
    """Raise InvalidSourceError if a file or folder lies in such a table, or is one."""
    known: set[Path] = set()
    for path in paths:
        place = Path(path).absolute()
        for folder in (place, *place.parents):
            if folder in known:
                break
            known.add(folder)
            if kind := _table(folder):
                name = kind.lower()
                raise InvalidSourceError(
                    str(folder),
                    f"is a table of {kind}, whose log says which files count: others are deleted or replaced",
                    f'read it by its log: spark.read.format("{name}").load("{folder}") is a DataFrame for dispatch;'
                    " for run and write_shards write it as Parquet into a folder of its own and name that",
                )


def _table(folder: Path) -> str:
    """Whose table a folder is, or nothing."""
    log = folder / "_delta_log"
    if log.is_dir() and (not any(log.iterdir()) or any(_OF_DELTA.match(each.name) for each in log.iterdir())):
        return "Delta"
    if (folder / ".hoodie").is_dir():
        return "Hudi"
    if any((folder / "metadata").glob("*.metadata.json")) or (folder / "metadata" / "version-hint.text").is_file():
        return "Iceberg"
    if all((folder / part).is_dir() for part in ("snapshot", "manifest", "schema")):
        return "Paimon"
    return ""


def foreign_hint(suffixes: Iterable[str], path: str) -> str:
    """How a file that only Spark reads becomes one that is read here, or nothing."""
    found = next((FOREIGN[suffix] for suffix in suffixes if suffix in FOREIGN), "")
    return f'write it as Parquet first: spark.read.format("{found}").load("{path}").write.parquet(...)' if found else ""
