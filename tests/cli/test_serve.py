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
from pyengine.errors import InvalidSourceError
from pyengine.rocketmq.server.accounts import read_accounts

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


# The file of RocketMQ 4.9 with another second account.
PLAIN_ACL = """
globalWhiteRemoteAddresses:
  - 10.10.103.*
accounts:
  - accessKey: RocketMQ
    secretKey: 12345678
    whiteRemoteAddress:
    admin: false
    topicPerms:
      - topicA=DENY
  - accessKey: rocketmq2
    secretKey: 0123456
"""


def test_accounts_come_from_the_plain_acl_of_a_broker(tmp_path: Path) -> None:
    file = tmp_path / "plain_acl.yml"
    file.write_text(PLAIN_ACL, encoding="utf-8")
    with serving("--accounts", str(file)) as (process, names):
        for keys in (("RocketMQ", "12345678"), ("rocketmq2", "0123456")):
            with rocketmq.Producer(namesrv_addr=names, rpc_hook=rocketmq.SessionCredentials(*keys)) as producer:
                assert producer.send("orders", b"tea").status is rocketmq.SendStatus.SEND_OK
        wrong = {
            "No accessKey is configured": None,
            "Check signature failed for accessKey=rocketmq2": rocketmq.SessionCredentials("rocketmq2", "123456"),
            "No acl config for rocketmq3": rocketmq.SessionCredentials("rocketmq3", "0123456"),
        }
        for words, given in wrong.items():
            with (
                rocketmq.Producer(namesrv_addr=names, rpc_hook=given) as producer,
                pytest.raises(rocketmq.MQBrokerError, match=words),
            ):
                producer.send("orders", b"milk")
        process.kill()
        assert process.stderr is not None
        assert [line.partition(":")[2].split(":")[0].strip() for line in process.stderr] == [
            "globalWhiteRemoteAddresses", "accounts[0].admin", "accounts[0].topicPerms"
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("accounts:\n- accessKey: a\n  secretKey: 12345678", "accounts[0].accessKey has at most 6 characters"),
        ("accounts:\n- accessKey: RocketMQ", "accounts[0].secretKey is missing"),
        ("accounts:\n- accessKey: [a]\n  secretKey: b", "accounts[0].accessKey is not a text"),
        ("accounts:\n" + "- {accessKey: RocketMQ, secretKey: 12345678}\n" * 2, "accessKey RocketMQ is there twice"),
        ("accounts: [", "not valid YAML in line 1"),
        ("accounts: [RocketMQ]", "accounts[0].accessKey is missing"),
        ("", "it has no accounts"),
    ],
)
def test_a_file_of_accounts_that_cannot_be_used_says_where(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "plain_acl.yml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidSourceError) as caught:
        read_accounts(file)
    assert words in str(caught.value)
