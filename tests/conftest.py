"""Property tests have no deadline, and may be slow to draw: time says how busy the machine is, not what is right.
They try the same examples each time; ``make test PYTEST_ARGS=--hypothesis-profile=random`` tries others.

What is another program's work (linters, type checkers, counting instructions) begins when the tests are collected and
goes on beside them, one program after the other; the tests that ask for it wait for their answer.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from subprocess import CompletedProcess

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("random", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("random"), derandomize=True)
settings.load_profile("same")

Program = Callable[[], CompletedProcess[str]]
BESIDE = pytest.StashKey[dict[Program, Future[CompletedProcess[str]]]]()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Begin what the collected tests ask for with ``@pytest.mark.beside(program=...)``."""
    programs = {mark.kwargs["program"]: None for item in session.items for mark in item.iter_markers("beside")}
    if session.config.option.collectonly or not programs:
        return
    pool = ThreadPoolExecutor(1, "beside")
    session.stash[BESIDE] = {program: pool.submit(program) for program in programs}
    pool.shutdown(wait=False)


@pytest.fixture
def beside(request: pytest.FixtureRequest) -> CompletedProcess[str]:
    """What the program of the test's mark said."""
    (mark,) = request.node.iter_markers("beside")
    return request.session.stash[BESIDE][mark.kwargs["program"]].result()


def pytest_sessionfinish(session: pytest.Session) -> None:
    for waiting in session.stash.get(BESIDE, {}).values():
        waiting.cancel()
