"""``pyengine serve rocketmq`` in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pyengine import rocketmq

ROOT = Path(__file__).parents[2]


@contextmanager
def serving(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and the address of its name server."""
    command = [sys.executable, "-m", "pyengine", "serve", "rocketmq", "--listen", "127.0.0.1:0", *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            words = process.stdout.readline().split()
            assert words[:2] == ["name", "server"], process.stderr.read()
            assert process.stdout.readline().startswith("broker 127.0.0.1:")
            yield process, words[2]
        finally:
            process.kill()


def test_the_clock_moves_by_lines_and_the_store_is_kept(tmp_path: Path) -> None:
    with serving("--manual-clock", "--data", str(tmp_path)) as (process, names):
        assert process.stdin is not None
        assert process.stdout is not None
        with rocketmq.Producer(namesrv_addr=names) as producer, rocketmq.Cluster(names) as cluster:
            producer.send("orders", b"late", delay_time_level=3)
            queues = cluster.topic_subscribe_info("orders") or []
            now = 0
            for step, delivered in ((9_999, 0), (1, 1)):
                process.stdin.write(f"advance {step}\n")
                process.stdin.flush()
                word, number = process.stdout.readline().split()
                assert word == "now"
                assert now == 0 or int(number) == now + step
                now = int(number)
                assert sum(cluster.max_offset(queue) for queue in queues) == delivered
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    with rocketmq.Broker(tmp_path) as broker:
        assert [message.body for message in broker.messages("orders")] == [b"late"]


@pytest.mark.parametrize(
    ("options", "words"),
    [(("--listen", "nowhere"), "not an address"), (("--listen", "0.0.0.0:0"), "everybody in the network")],
)
def test_what_cannot_be_served_is_one_message(options: tuple[str, ...], words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pyengine", "serve", "rocketmq", *options],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
