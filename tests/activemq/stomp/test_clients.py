"""Programs of others on our broker answer as on the real one: what that answered is recorded; ``make interop`` asks it.

Every script is played by stomp.py 9 with the recorded answers here. With PYENGINE_INTEROP it is played by stomp.py,
go-stomp and stompjs on ours and, in the same run, on the real brokers 5.18 and 6.3 (Java, Maven, Go, Node and npm).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import stomp

from bench.contest import RivalMissingError
from pyengine.activemq import Broker
from tests.activemq.stomp.play_stomp_py import Player
from tests.activemq.stomp.real import BUILD, RELEASES, RealBroker
from tests.activemq.stomp.scripts import SCRIPTS
from tests.interop import INTEROP_ASKED, started_or_skipped

HERE = Path(__file__).parent
RECORDED = HERE / "recorded.json"  # of stomp.py on 5.18.6, by ``python -m tests.activemq.stomp.test_clients``
CLIENTS = ("stomp.py", "go-stomp", "stompjs")


@pytest.mark.parametrize("name", SCRIPTS)
def test_stomp_py_sees_what_it_sees_of_the_real_broker(name: str) -> None:
    expected = json.loads(RECORDED.read_text("utf-8"))[name]
    with Broker(transport_connectors=["stomp://127.0.0.1:0"], scheduler_support=True) as broker:
        port = broker.transport_connectors[0].port
        player = Player(lambda: stomp.Connection12([("127.0.0.1", port)]), pause=0.03)
        assert player.play(SCRIPTS[name]) == expected


def command(client: str) -> list[str]:
    """How a client's player is started; it is compiled, or brought, on first use. Raises RivalMissingError."""
    if client == "stomp.py":
        return [sys.executable, str(HERE / "play_stomp_py.py")]
    tool = {"go-stomp": "go", "stompjs": "npm"}[client]
    if shutil.which(tool) is None:
        raise RivalMissingError(f"no {tool} on PATH")
    BUILD.mkdir(parents=True, exist_ok=True)
    if client == "go-stomp":
        program = BUILD / "play-go"
        subprocess.run(["go", "build", "-o", program, "."], cwd=HERE / "go", check=True, timeout=600)
        return [str(program)]
    folder = BUILD / "js"
    shutil.copytree(HERE / "js", folder, dirs_exist_ok=True)
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=folder, check=True, timeout=600)
    return ["node", str(folder / "play.mjs")]


def play(started: list[str], port: int, name: str) -> list[str]:
    """A script's transcript by a client's player."""
    done = subprocess.run(
        [*started, str(port)], input=json.dumps(SCRIPTS[name]), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    transcript: list[str] = json.loads(done.stdout)
    return transcript


@pytest.fixture(scope="module", params=RELEASES)
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealBroker]:
    if not INTEROP_ASKED:
        pytest.skip("run by make interop")
    broker = started_or_skipped(lambda: RealBroker(request.param, tmp_path_factory.mktemp("real") / "jvm.log"))
    play(command("stomp.py"), broker.port, "bad selector")  # what it loads on first use takes a while
    yield broker
    broker.close()


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_see_the_same_of_both(client: str, real: RealBroker) -> None:
    started = started_or_skipped(lambda: command(client))
    differing = {}
    for name in SCRIPTS:
        real.renew()
        expected = play(started, real.port, name)
        with Broker(transport_connectors=["stomp://127.0.0.1:0"], scheduler_support=True) as broker:
            got = play(started, broker.transport_connectors[0].port, name)
        if got != expected:
            differing[name] = {"real": expected, "ours": got}
    assert differing == {}


def record() -> None:
    """Write what stomp.py sees of the real broker."""
    broker = RealBroker(RELEASES[0], BUILD / "record.log")
    answers = {}
    for name in ("bad selector", *SCRIPTS):
        broker.renew()
        answers[name] = play(command("stomp.py"), broker.port, name)
    broker.close()
    RECORDED.write_text(json.dumps({name: answers[name] for name in SCRIPTS}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    record()
