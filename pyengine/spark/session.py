"""A Spark session of our own, for callers who bring none. A caller's session is never configured, only used."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import as_file, files
from types import FrameType
from typing import TYPE_CHECKING

from pyengine.errors import ConfigurationError, MissingExtraError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


LOCAL = "local[*]"


def require_spark() -> None:
    """Raise MissingExtraError unless pyspark and what its Arrow functions need are installed."""
    try:
        import pandas  # noqa: F401
        import pyarrow  # noqa: F401
        import pyspark  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("spark", "pyspark, pyarrow and pandas") from error


def running_session() -> SparkSession | None:
    """The session that runs in this process, Classic or Connect; None without one."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkException:
        return None


def require_count(option: str, count: int | None) -> None:
    """Raise ConfigurationError unless a number of tasks or files is one, or None for the default."""
    if count is not None and (type(count) is not int or count < 1):
        raise ConfigurationError(option, count, "must be a whole number, 1 or more")


def require_path(option: str, path: str | os.PathLike[str]) -> None:
    """Raise ConfigurationError for what is an address of Spark's, s3://..., not a path of the file system."""
    if re.match(r"[a-zA-Z][\w.+-]+:/", os.fspath(path)):
        raise ConfigurationError(
            option, str(path), "is an address, not a path of the file system",
            "name a folder that the driver and every worker see under one path",
        )  # fmt: skip


def start_session(master: str = LOCAL, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start a session for one job: no web page, no progress bar of Spark's own, times in UTC.

    master: as Spark's ``--master``. settings: Spark options that win over ours. The caller stops the session. Starts
    Java as ``find_java`` finds it and makes the workers run this interpreter unless PYSPARK_PYTHON, or the setting
    spark.pyspark.python, says another.
    Raises MissingExtraError, MissingJavaError, ConfigurationError for a master or settings Spark cannot start with.
    """
    require_spark()
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    ours = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
    }
    if master.startswith("local"):
        ours["spark.driver.host"] = "127.0.0.1"
        ours["spark.driver.bindAddress"] = "127.0.0.1"
    with as_file(files("pyengine.spark") / "log4j2.properties") as quiet:
        ours["spark.driver.extraJavaOptions"] = f"-Dlog4j.configurationFile={quiet.as_uri()}"
        builder = SparkSession.builder.master(master).appName("pyengine")
        for key, value in {**ours, **(settings or {})}.items():
            builder = builder.config(key, value)
        with _environment((settings or {}).get("spark.pyspark.python", sys.executable)), _uninterrupted():
            try:
                return builder.getOrCreate()
            except (Py4JError, PySparkException) as error:
                said = str(error).splitlines()[:2]  # the call, and Java's answer
                problem = f"Spark does not start: {said[-1].removeprefix(': ')}"
                hint = "give local[*], spark://HOST:7077, yarn or k8s://HOST; what Spark printed says more"
                raise ConfigurationError("master", master, problem, hint) from error


@contextmanager
def own_session(master: str) -> Iterator[SparkSession]:
    """A session of ``start_session`` for the block, stopped behind it.

    On the main thread Ctrl-C cancels its jobs and is a KeyboardInterrupt where Spark then fails or the block ends:
    within a call of Java it would leave py4j an answer that is not read, and py4j's handling of it closes later
    connections. A second Ctrl-C is raised at once.
    """
    session = start_session(master)
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is None:
        try:
            yield session
        finally:
            session.stop()
        return
    came = False
    over = threading.Event()

    def note(*_: object) -> None:
        nonlocal came
        came = True
        signal.signal(signal.SIGINT, before)

    def cancel() -> None:
        while not over.wait(0.1):
            if came:
                session.sparkContext.setLogLevel("OFF")  # what tasks say that are ended in the middle
                session.sparkContext.cancelAllJobs()

    signal.signal(signal.SIGINT, note)
    canceller = threading.Thread(target=cancel, name="pyengine-cancel", daemon=True)
    canceller.start()
    try:
        yield session
    except Exception as error:
        if came:
            raise KeyboardInterrupt from error
        raise
    finally:
        over.set()
        canceller.join()
        session.stop()
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """A KeyboardInterrupt waits for the end of the block, a second one does not.

    Interrupted while Java starts, pyspark takes away the folder in which Java would tell its port, and Java, which then
    cannot, stays for ever.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is None:
        yield
        return
    came = False

    def note(*_: object) -> None:
        nonlocal came
        came = True
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        now = signal.getsignal(signal.SIGINT)
        if now is note:
            signal.signal(signal.SIGINT, before)
        elif now is not before and callable(now):  # Spark's context has set its own
            signal.signal(signal.SIGINT, _interrupt_after(now))
    if came:
        raise KeyboardInterrupt


def _interrupt_after(cancel: Callable[[int, FrameType | None], object]) -> Callable[[int, FrameType | None], None]:
    """A handler that always interrupts: Spark 4.1's does not where py4j, in the middle of a call, cancels no jobs."""

    def handler(number: int, frame: FrameType | None) -> None:
        try:
            cancel(number, frame)
        finally:
            raise KeyboardInterrupt

    return handler


@contextmanager
def _environment(python: str) -> Iterator[None]:
    """JAVA_HOME and PYSPARK_PYTHON while the JVM starts, and as they were afterwards."""
    from pyengine.spark.java import find_java  # not before: python -m pyengine.spark.java would find itself imported

    java = find_java()
    before = {name: os.environ.get(name) for name in ("JAVA_HOME", "PYSPARK_PYTHON")}
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ.setdefault("PYSPARK_PYTHON", python)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
