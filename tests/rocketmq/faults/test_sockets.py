"""A consumer and a producer of ours through a proxy that cuts connections by a seed, on our brokers and a real one.

What is sent and confirmed is consumed; nothing is committed past what was not consumed; what comes again was not
committed when a connection was cut. ``PYENGINE_SOCKET_FAULTS=100`` plays so many schedules, half of them on the real
broker.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from pyengine import rocketmq
from pyengine.rocketmq import ConsumeConcurrentlyStatus, MessageQueue
from tests.interop import started_or_skipped
from tests.rocketmq.faults.proxy import Detour
from tests.rocketmq.live.real import Real
from tests.rocketmq.live.scripts import start

ASKED = int(os.environ.get("PYENGINE_SOCKET_FAULTS", "0"))
MESSAGES, PATIENCE = 30, 300


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not ASKED:
        pytest.skip("run by make faults")
    home = tmp_path_factory.mktemp("faults")
    jvm = started_or_skipped(lambda: Real(home))
    try:
        yield start(jvm, home, home / "store", " ".join(["1s"] * 18))
    finally:
        jvm.close()


class Group:
    """A group's only member and a producer behind the proxies. names: the name server's address."""

    def __init__(self, names: str, seed: int, topic: str) -> None:
        self.topic = topic
        self.group = f"group-{seed}"
        self.detour = Detour(seed, self._cut)
        self.direct = rocketmq.Cluster(names)
        self.producing = rocketmq.Cluster(names, connect=self.detour)
        self.consuming = rocketmq.Cluster(names, connect=self.detour)
        self.consumer = rocketmq.DefaultMQPushConsumer(
            self.group, broker=self.consuming,
            consume_from_where=rocketmq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, poll_name_server_interval=200,
            heartbeat_broker_interval=500, persist_consumer_offset_interval=200,
            pull_time_delay_mills_when_exception=50,
        )  # fmt: skip
        self.consumer.subscribe(topic, "*")
        self.consumer.register_message_listener(self._listen)
        self.confirmed: set[bytes] = set()
        self.consumed: Counter[tuple[MessageQueue, int]] = Counter()
        self.bodies: set[bytes] = set()
        self.cuts = 0
        self.allowed = 0
        self._committed: dict[MessageQueue, int] = {}
        self._lock = threading.Lock()

    def _listen(self, messages: list[rocketmq.MessageExt], context: object) -> ConsumeConcurrentlyStatus:
        with self._lock:
            for each in messages:
                self.consumed[MessageQueue(self.topic, each.broker_name, each.queue_id), each.queue_offset] += 1
                self.bodies.add(bytes(each.body or b""))
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    def _cut(self) -> None:
        """What was consumed, or cached, and not seen committed may come again."""
        with self._lock:
            self.cuts += 1
            self.allowed += len(self.consumed) - sum(self._committed.values())
        with self.consumer.default_mq_push_consumer_impl.context.lock:
            held = list(self.consumer.default_mq_push_consumer_impl.process_queues.values())
            self.allowed += sum(len(each.cached_offsets) for each in held)

    def check(self) -> None:
        """Nothing is committed past what was not consumed."""
        for queue in self.direct.topic_subscribe_info(self.topic) or ():
            try:
                committed = self.direct.query_consumer_offset(self.group, queue)
            except rocketmq.OffsetNotFoundError:
                continue
            with self._lock:
                self._committed[queue] = committed
                missing = [place for place in range(committed) if not self.consumed[queue, place]]
            assert not missing, f"{queue} is committed to {committed}, without {missing}"

    def play(self) -> None:
        """Send, be cut, and have everything consumed in the end."""
        with rocketmq.Producer(self.producing) as producer:
            self.consumer.start()  # a start that is cut raises, as the real one's: faults/schedule.py has that
            self.detour.calm = False
            try:
                for number in range(MESSAGES):
                    body = f"m{number} ".encode() * 50
                    try:
                        producer.send(self.topic, body)
                    except (rocketmq.RemotingError, rocketmq.MQClientError, rocketmq.MQBrokerError):
                        time.sleep(0.05)
                    else:
                        self.confirmed.add(body)
                    if number % 5 == 4:
                        self.check()
                self.detour.calm = True
                deadline = time.monotonic() + PATIENCE
                while not self.confirmed <= self.bodies:
                    assert time.monotonic() < deadline, f"{len(self.confirmed - self.bodies)} are missing"
                    time.sleep(0.02)
                assert self.cuts
            finally:
                self.consumer.shutdown()
        self.check()
        repeats = sum(times - 1 for times in self.consumed.values())
        assert repeats <= self.allowed, f"{repeats} messages came again, {self.allowed} may have"

    def close(self) -> None:
        for each in (self.direct, self.producing, self.consuming):
            each.close()
        self.detour.close()


@pytest.mark.parametrize("seed", range(ASKED // 2 if ASKED else 2))
def test_everything_confirmed_is_consumed(seed: int) -> None:
    with rocketmq.Broker(listen="127.0.0.1:0") as broker:
        broker.create_topic("orders", 4)
        group = Group(broker.name_server_address, seed, "orders")
        try:
            group.play()
        finally:
            group.close()
        stored = {bytes(message.body or b"") for message in broker.messages("orders")}
        assert group.confirmed <= stored
        assert group.bodies <= stored


@pytest.mark.parametrize("seed", range(ASKED // 2 or 1))
def test_everything_a_real_broker_confirms_is_consumed(seed: int, real: str) -> None:
    group = Group(real, seed, f"orders-{seed}")
    try:
        group.play()
    finally:
        group.close()
