"""examples/service: the same program on a broker in its process, on one over TCP, and on the real ones.

``python -m pytest examples/service``, which ``make test`` includes, runs the services' own tests.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyengine import activemq, rocketmq
from tests.activemq.stomp.real import RELEASES, RealBroker
from tests.examples.processor_time import at_most
from tests.house.examples import ROOT, blocks
from tests.interop import INTEROP, started_or_skipped
from tests.rocketmq.live.real import Real
from tests.rocketmq.live.scripts import start


def printed(script: str, *arguments: str) -> list[str]:
    command = [sys.executable, str(ROOT / "examples/service" / script), *arguments]
    with at_most(8):
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=120,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
    # A pull that the broker holds while its consumer leaves the group is answered so, as the real broker does.
    unexpected = re.sub(r"execute the pull request exception, .*\nCODE: 24 .*\n(?:See https://.*\n)?", "", done.stderr)
    assert (done.returncode, unexpected) == (0, "")
    return done.stdout.splitlines()


BILLED = ["invoice: invoice for 17", "dead letter: many"]


@pytest.mark.parametrize(
    ("page", "script"),
    [("docs/rocketmq-interop.md", "rocketmq_billing.py"), ("docs/stomp.md", "activemq_billing.py")],
)
def test_the_page_shows_what_the_service_prints(page: str, script: str) -> None:
    command = f"$ python examples/service/{script}"
    (shown,) = (block.splitlines() for block in blocks(page, "console") if block.startswith(f"{command}\n"))
    assert shown[: shown.index(next(line for line in shown[1:] if line.startswith("$")))] == [command, *BILLED]


def test_the_rocketmq_service_runs_in_its_process() -> None:
    assert printed("rocketmq_billing.py") == BILLED


def test_the_rocketmq_service_runs_over_tcp() -> None:
    with rocketmq.Broker(listen="127.0.0.1:0") as served:
        assert printed("rocketmq_billing.py", served.name_server_address) == BILLED


@pytest.fixture(scope="module")
def real_rocketmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("rocketmq")
    jvm = started_or_skipped(lambda: Real(home))
    yield start(jvm, home, home / "store", " ".join(["1s"] * 18))
    jvm.close()


@INTEROP
def test_the_rocketmq_service_runs_on_the_real_broker(real_rocketmq: str) -> None:
    assert printed("rocketmq_billing.py", real_rocketmq) == BILLED


def test_the_activemq_service_runs_in_its_process() -> None:
    assert printed("activemq_billing.py") == BILLED


def test_the_activemq_service_runs_over_tcp() -> None:
    with activemq.Broker(transport_connectors=["stomp://127.0.0.1:0"]) as broker:
        assert printed("activemq_billing.py", f"127.0.0.1:{broker.transport_connectors[0].port}") == BILLED


@INTEROP
@pytest.mark.parametrize("release", RELEASES)
def test_the_activemq_service_runs_on_the_real_broker(release: str, tmp_path: Path) -> None:
    broker = started_or_skipped(lambda: RealBroker(release, tmp_path / "log"))
    try:
        assert printed("activemq_billing.py", f"127.0.0.1:{broker.port}") == BILLED
    finally:
        broker.close()
