"""Columns that names of folders say, as Hive, Spark and Arrow write them: ``day=1/hour=13/part-0.parquet``.

A column is of int or long if all of its values are whole numbers within that, else of texts; Spark also reads dates.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Collection, Container, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pyengine.backlog.tables.declared_types import arrow_type
from pyengine.backlog.tables.rows import required_pyarrow
from pyengine.topology.model import JavaTypeName

# (column, its text, null for none; Java type)
FolderColumns = tuple[tuple[str, str | None, JavaTypeName], ...]
_NULL = "__HIVE_DEFAULT_PARTITION__"
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


def folder_columns(pattern: str, paths: Sequence[str]) -> dict[str, FolderColumns]:
    """The columns of each file by its path. pattern: the folder or glob that the paths were found by."""
    root = _root(pattern)
    if root is None:
        return {}
    found = {path: _said(Path(path).relative_to(root).parent) for path in paths}
    names = dict.fromkeys(name for columns in found.values() for name in columns)
    kinds = {name: _kind([columns.get(name) for columns in found.values()]) for name in names}
    return {path: tuple((name, columns.get(name), kinds[name]) for name in names) for path, columns in found.items()}


def _root(pattern: str) -> Path | None:
    """The folder below which names of folders are columns; None for a single file."""
    path = Path(pattern)
    if path.is_dir():
        return path
    if path.exists() or not glob.has_magic(pattern):
        return None
    whole = list(path.parts)
    magic = next(place for place, part in enumerate(whole) if glob.has_magic(part))
    return Path(*whole[:magic])


def _said(folder: Path) -> dict[str, str | None]:
    pairs = (part.partition("=") for part in folder.parts)
    return {unquote(name): None if text == _NULL else unquote(text) for name, is_one, text in pairs if is_one and name}


def _kind(texts: Collection[str | None]) -> JavaTypeName:
    said = [text for text in texts if text is not None]
    if not said or not all(_WHOLE.fullmatch(text) for text in said):
        return "string"
    return "int" if all(-(1 << 31) <= int(text) < 1 << 31 for text in said) else "long"


def with_folder_columns(
    table: Any, columns: FolderColumns, types: Mapping[str, Any], wanted: Container[str] | None
) -> Any:
    """A table of a file with the columns that its folders say; a column of the file itself counts before.

    types: declared ones, for which a column stays a string. wanted: the columns that are read; None: all.
    """
    arrow = required_pyarrow()
    for name, text, java in columns:
        if name in table.column_names or (wanted is not None and name not in wanted):
            continue
        kind = arrow.string() if name in types else arrow_type(java)
        value = arrow.scalar(text, arrow.string()).cast(kind)
        table = table.append_column(name, arrow.repeat(value, table.num_rows))
    return table
