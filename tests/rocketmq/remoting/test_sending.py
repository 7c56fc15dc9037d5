"""Which brokers a producer tries, avoids and asks again (MQFaultStrategy), also where brokers fail."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from pyengine import rocketmq
from pyengine._engine.rocketmq.client.send_faults import SendFaults, isolation
from pyengine._engine.wire.remoting import RemotingCommand
from pyengine.errors import ConfigurationError
from pyengine.rocketmq import Message, MessageQueue, MQBrokerError, RemotingTimeoutError, SendOptions, SendStatus
from pyengine.rocketmq.server import broker_requests

QUEUES = [MessageQueue("T", broker, number) for broker in ("a", "b") for number in range(2)]


@pytest.mark.parametrize(
    ("latency", "avoided"),
    [(0, 0), (49, 0), (99, 0), (549, 0), (550, 2000), (1799, 2000), (1800, 5000), (3000, 6000), (5000, 10_000),
     (14_999, 10_000), (15_000, 30_000)],
)  # fmt: skip
def test_a_slow_broker_is_avoided(latency: int, avoided: int) -> None:
    assert isolation(latency) == avoided
    faults = SendFaults(draw, enabled=True)
    lines = faults.update("a", latency, 1000, isolated=False, reachable=True)
    assert lines == ([f"a will be isolated for {avoided} ms."] if avoided else [])
    assert faults.is_available("a", 1000) == (avoided == 0)
    assert faults.is_available("a", 1000 + avoided)


def draw() -> int:
    return 7


def chosen(faults: SendFaults, now: int, last: str | None = None, count: int = 40) -> Counter[str]:
    return Counter(faults.select("T", QUEUES, last, now).broker_name for _ in range(count))


def test_without_faults_only_the_last_broker_is_avoided() -> None:
    faults = SendFaults(draw)
    assert faults.update("a", 9999, 0, isolated=True, reachable=False) == []
    assert chosen(faults, 0) == {"a": 20, "b": 20}
    assert chosen(faults, 0, last="a") == {"b": 40}
    assert [faults.select("T", QUEUES[:2], "a", 0).queue_id for _ in range(2)] in ([0, 1], [1, 0])  # there is no other


def test_with_faults_available_ones_come_first_then_reachable_ones() -> None:
    faults = SendFaults(draw, enabled=True)
    faults.update("a", 3, 0, isolated=True, reachable=True)  # for 10 s, as a failure counts
    assert chosen(faults, 9999) == {"b": 40}
    assert chosen(faults, 10_000) == {"a": 20, "b": 20}
    faults.update("a", 3, 0, isolated=True, reachable=False)
    faults.update("b", 2000, 0, isolated=False, reachable=True)
    assert chosen(faults, 100) == {"b": 40}  # neither is available, one is reachable
    faults.update("b", 3, 0, isolated=True, reachable=False)
    assert set(chosen(faults, 100)) == {"a", "b"}  # then any


def test_a_detector_finds_brokers_again() -> None:
    faults = SendFaults(draw, enabled=True)
    (_, line) = faults.update("a", 3, 0, isolated=True, reachable=False)
    assert line == "a is unreachable, it will not be used until it's reachable"
    assert faults.due(5, 2000) == ["a"]
    assert faults.due(2004, 2000) == []
    assert faults.detected("a", False) == []
    assert faults.detected("a", True) == ["a is reachable now, then it can be used."]
    assert faults.is_reachable("a")
    assert faults.detected("a", None) == []
    assert faults.due(9999, 2000) == []


class Failing:
    """A cluster of two brokers; answers of the named one to sends are replaced. An answer of None never comes."""

    def __init__(self, broker: rocketmq.Broker, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broker = broker
        self.codes: dict[str, int | None] = {}
        self.tries: list[str] = []
        real = broker_requests.BrokerRequests._send

        def send(requests: Any, connection: Any, request: RemotingCommand) -> RemotingCommand | None:
            name = requests.node.name
            self.tries.append(name)
            if name not in self.codes:
                return real(requests, connection, request)
            code = self.codes[name]
            if code is None:
                return None
            answer = real(requests, connection, request)
            answer.code, answer.remark = code, "as the test says"
            return answer

        monkeypatch.setattr(broker_requests.BrokerRequests, "_send", send)

    def producer(self, **options: Any) -> rocketmq.Producer:
        return rocketmq.Producer(namesrv_addr=self.broker.name_server_address, send_options=SendOptions(**options))


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Failing]:
    # Requests are looked up when a broker is made.
    made: list[rocketmq.Broker] = []
    holder = Failing.__new__(Failing)
    Failing.__init__(holder, None, monkeypatch)  # type: ignore[arg-type]
    broker = rocketmq.Broker(names=["a", "b"], listen="127.0.0.1:0")
    made.append(broker)
    broker.create_topic("T", 2)
    holder.broker = broker
    yield holder
    broker.close()


@pytest.mark.parametrize("code", [1, 2, 14, 16, 17, 204, 205])
def test_what_may_pass_is_tried_at_another_broker(failing: Failing, code: int) -> None:
    failing.codes["a"] = code
    with failing.producer() as producer:
        for _ in range(4):
            assert producer.send(Message("T", b"m")).queue.broker_name == "b"


def test_what_is_refused_for_good_is_not_tried_again(failing: Failing) -> None:
    failing.codes |= {"a": 13, "b": 13}
    with failing.producer() as producer, pytest.raises(MQBrokerError):
        producer.send(Message("T", b"m"))
    assert len(failing.tries) == 1


def test_a_retry_is_stored_with_its_count_which_its_message_loses(failing: Failing) -> None:
    counts = {"RECONSUME_TIME": "3", "MAX_RECONSUME_TIMES": "5"}
    message = Message("%RETRY%G", b"again", properties=dict(counts))
    failing.broker.create_topic(message.topic, 1)
    failing.codes["a"] = 1  # stored there, too: the next try has the count again
    with failing.producer() as producer:
        for _ in range(2):
            message.properties |= counts
            producer.send(message)
            assert counts.keys().isdisjoint(message.properties)
    queues = failing.broker.topic_subscribe_info(message.topic)
    assert queues is not None
    stored = [(queue, at) for queue in queues for at in range(failing.broker.max_offset(queue))]
    assert {queue.broker_name for queue, _ in stored} == {"a", "b"}
    for queue, at in stored:
        found = failing.broker.message(queue, at)
        assert found is not None
        assert found.reconsume_times == 3
        assert counts.items() <= found.properties.items()


@pytest.mark.parametrize(("tries", "left"), [(0, 1), (2, 3), (4, 5)])
def test_as_often_as_the_options_say(failing: Failing, tries: int, left: int) -> None:
    failing.codes |= {"a": 1, "b": 1}
    with failing.producer(retry_times_when_send_failed=tries) as producer, pytest.raises(MQBrokerError):
        producer.send(Message("T", b"m"))
    assert len(failing.tries) == left


def test_a_message_that_is_not_as_safe_as_it_should_be(failing: Failing) -> None:
    failing.codes["a"] = 12
    with failing.producer() as producer:
        found = {producer.send(Message("T", b"m")).status for _ in range(4)}
    assert found == {SendStatus.SEND_OK, SendStatus.FLUSH_SLAVE_TIMEOUT}
    with failing.producer(retry_another_broker_when_not_store_ok=True) as producer:
        assert {producer.send(Message("T", b"m")).status for _ in range(4)} == {SendStatus.SEND_OK}
    failing.codes["b"] = 12
    with failing.producer(retry_another_broker_when_not_store_ok=True) as producer:
        assert producer.send(Message("T", b"m")).status is SendStatus.FLUSH_SLAVE_TIMEOUT


def test_all_tries_together_have_one_timeout(failing: Failing) -> None:
    failing.codes |= {"a": None, "b": None}
    with failing.producer(send_msg_timeout=300) as producer, pytest.raises(RemotingTimeoutError):
        producer.send(Message("T", b"m"))
    assert len(failing.tries) in (1, 2)


def test_a_broker_that_failed_is_avoided(failing: Failing) -> None:
    failing.codes["a"] = 1
    with failing.producer(send_latency_fault_enable=True) as producer:
        for _ in range(10):
            producer.send(Message("T", b"m"))
    assert failing.tries.count("a") <= 1
    assert failing.tries.count("b") == 10


def test_an_asynchronous_send_goes_to_another_broker_only_without_an_answer(failing: Failing) -> None:
    failing.codes["a"] = 1
    with failing.producer() as producer:
        outcomes = [producer.send_async(Message("T", b"m")) for _ in range(4)]
        errors = [each.exception(10) for each in outcomes]
    assert sorted(type(each).__name__ for each in errors) == ["MQBrokerError"] * 2 + ["NoneType"] * 2


def test_a_detector_asks_brokers(failing: Failing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyengine.rocketmq.remoting.cluster.DETECTION", 50)
    failing.codes["a"] = 1
    with failing.producer(send_latency_fault_enable=True, start_detector_enable=True) as producer:
        while "a" not in failing.tries:
            producer.send(Message("T", b"m"))
        cluster: Any = producer.broker
        assert not cluster.sending.faults.is_reachable("a")
        found = threading.Event()
        for _ in range(200):
            if cluster.sending.faults.is_reachable("a"):
                found.set()
                break
            found.wait(0.05)
        assert found.is_set()


def test_options_that_cannot_be_used() -> None:
    with rocketmq.Broker() as broker, pytest.raises(ConfigurationError, match=r"send_options.*namesrv_addr"):
        rocketmq.Producer(broker, send_options=SendOptions())
