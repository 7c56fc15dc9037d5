"""Exceptions that the driver raises as themselves: an error of ours inside a worker, not Spark's report about it, and
Ctrl-C."""

from __future__ import annotations

import base64
import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyengine.errors import PyengineError

if TYPE_CHECKING:
    from pyengine.backlog.tables.rows import Reject

_MARK = "pyengine-error:"


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
        found = re.search(re.escape(_MARK) + r"([A-Za-z0-9+/=]+):", str(error))
        if found is None:
            raise
        original = pickle.loads(base64.b64decode(found.group(1)))
        raise original from None


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
