"""Exceptions that the driver raises as themselves: an error of ours inside a worker, not Spark's report about it, and
Ctrl-C."""

from __future__ import annotations

import base64
import io
import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyengine import errors
from pyengine.errors import PyengineError

if TYPE_CHECKING:
    from pyengine.backlog.tables.rows import Reject

_MARK = "pyengine-error:"


# Values that an error may quote, beside those that pickle has no name for.
_VALUES = {
    ("builtins", "bytearray"), ("builtins", "complex"), ("builtins", "frozenset"), ("builtins", "set"),
    ("datetime", "date"), ("datetime", "datetime"), ("datetime", "time"), ("datetime", "timedelta"),
    ("datetime", "timezone"), ("decimal", "Decimal"), ("pathlib", "PosixPath"), ("pathlib", "WindowsPath"),
    ("uuid", "UUID"), ("numpy", "dtype"), ("numpy._core.multiarray", "scalar"), ("numpy.core.multiarray", "scalar"),
}  # fmt: skip


class _Errors(pickle.Unpickler):
    """Reads errors of ours and nothing else: the text of Spark's report may quote what a message said."""

    def find_class(self, module: str, name: str) -> Any:
        """Raises UnpicklingError for everything that an error of ours is not made of."""
        if module == errors.__name__:
            found = getattr(errors, name, None)
            if name.startswith("_rebuild_") or (isinstance(found, type) and issubclass(found, PyengineError)):
                return found
        if (module, name) in _VALUES:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is not part of an error of pyengine")


def _sent(text: str) -> PyengineError | None:
    """The error that a worker sent, in the text of Spark's report; None if there is none."""
    for packed in re.findall(re.escape(_MARK) + r"([A-Za-z0-9+/=]+):", text):
        try:
            found = _Errors(io.BytesIO(base64.b64decode(packed))).load()
        except Exception:  # not ours: a reader of pickles may raise anything, and Spark's own error is raised instead
            continue
        if isinstance(found, PyengineError):
            return found
    return None


class WorkerError(Exception):
    """What a worker raises: Spark brings only its text to the driver, so the text carries the error."""

    def __init__(self, error: PyengineError) -> None:
        packed = base64.b64encode(pickle.dumps(error)).decode("ascii")
        super().__init__(f"{type(error).__name__}: {error}\n{_MARK}{packed}:")


@contextmanager
def sent_to_driver() -> Iterator[None]:
    """Around the work of a worker: a PyengineError leaves as a WorkerError."""
    try:
        yield
    except PyengineError as error:
        raise WorkerError(error) from None


@contextmanager
def raised_on_driver() -> Iterator[None]:
    """Around a Spark action: the error that a worker sent is raised here."""
    try:
        yield
    except Exception as error:
        original = _sent(str(error))
        if original is None:
            raise
        raise original from None


@contextmanager
def reason_first(batch: int) -> Iterator[None]:
    """Around a micro-batch: the error begins with its reason, where Spark shows a traceback and the reason last.

    A cause without a traceback is what Python prints first.
    """
    try:
        yield
    except Exception as error:
        kind = type(error)
        name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        lines = str(error).strip().splitlines() or [""]
        raise error from RuntimeError(f"micro-batch {batch}: {name}: {lines[0]}")


@contextmanager
def interrupted_as_such() -> Iterator[None]:
    """Around calls of Java: Ctrl-C is a KeyboardInterrupt, also where py4j failed in cleaning up behind it."""
    try:
        yield
    except Exception as error:
        before: BaseException | None = error
        while before is not None:
            if isinstance(before, KeyboardInterrupt):
                raise KeyboardInterrupt from error
            before = before.__context__
        raise


def problem_of(reject: Reject) -> str:
    """The problem of a rejected row, in one line."""
    return f"{reject.column} = {reject.value!r}: {reject.reason}"
