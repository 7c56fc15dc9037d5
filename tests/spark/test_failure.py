"""What the driver makes of the text that Spark reports of a worker: errors of ours, and nothing that a message said."""

from __future__ import annotations

import base64
import datetime
import decimal
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from pyengine import errors
from pyengine.spark.failure import WorkerError, raised_on_driver, sent_to_driver


class Hostile:
    """As a message could quote it: makes a folder when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.path),)


def quoted(value: object) -> str:
    return f"pyengine-error:{base64.b64encode(pickle.dumps(value)).decode()}:"


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidMessageError("price", decimal.Decimal("1.5"), "is wrong"),
        errors.InvalidMessageError("n", np.float32(1.5), "is wrong"),
        errors.InvalidMessageError("at", datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), "is wrong"),
        errors.InvalidSelectorError("a == 1", 3, "no operator", expected="=", hint="write ="),
        errors.InvalidTopologyError("is wrong", file="a.toml", line=3, key="queue", value=[1]),
        errors.OutputError("out", "cannot be written"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_a_worker_is_raised_on_the_driver(error: errors.PyengineError) -> None:
    with pytest.raises(WorkerError) as sent, sent_to_driver():
        raise error
    with pytest.raises(type(error)) as raised, raised_on_driver():
        raise RuntimeError(f"Job aborted: {sent.value}\n\tat org.apache.spark")
    assert str(raised.value) == str(error)


def test_what_a_message_quotes_is_not_run(tmp_path: Path) -> None:
    text = quoted(Hostile(tmp_path / "made"))
    with pytest.raises(RuntimeError), raised_on_driver():
        raise RuntimeError(f"cannot cast {text}")
    error = errors.InvalidMessageError("price", text, "is wrong")
    with pytest.raises(WorkerError) as sent, sent_to_driver():
        raise error
    with pytest.raises(errors.InvalidMessageError), raised_on_driver():
        raise RuntimeError(str(sent.value))
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("value", ["text", 7, os.system, eval], ids=["text", "number", "system", "eval"])
def test_what_is_not_an_error_is_left_to_spark(value: object) -> None:
    with pytest.raises(RuntimeError, match="Job aborted"), raised_on_driver():
        raise RuntimeError(f"Job aborted: {quoted(value)}")
