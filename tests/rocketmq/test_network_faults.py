"""A consumer and a producer of ours on our own server, through a proxy that cuts connections by a seed.

What is sent and confirmed is consumed; nothing is committed past what was not consumed.
``PYENGINE_FAULTS=100`` plays so many schedules.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from pyengine import rocketmq

SCHEDULES = int(os.environ.get("PYENGINE_FAULTS", "3"))
MESSAGES = 30


class Proxy:
    """Passes bytes on, and now and then cuts a connection: between frames, or within one."""

    def __init__(self, seed: int, target: str) -> None:
        self._random = random.Random(seed)
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.cutting = True
        self.cuts = 0
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()
        for each in list(self._open):
            self._end(each)

    def _end(self, each: socket.socket) -> None:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
        self._open.discard(each)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                host, _, port = self._target.rpartition(":")
                server = socket.create_connection((host, int(port)))
            except OSError:
                return
            self._open |= {client, server}
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        left = self._random.randrange(300, 5000)  # bytes until it is cut
        with contextlib.suppress(OSError):
            while data := one.recv(4096):
                if self.cutting and len(data) >= left:
                    other.sendall(data[:left])
                    self.cuts += 1
                    break
                left -= len(data)
                if self._random.random() < 0.05:
                    time.sleep(self._random.random() * 0.02)
                other.sendall(data)
        self._end(one)
        self._end(other)


@contextlib.contextmanager
def through(seed: int, broker: rocketmq.Broker) -> Iterator[tuple[str, Proxy]]:
    """The name server's address behind which the broker is reached through a proxy."""
    proxy = Proxy(seed, broker.broker_addresses[0])
    served = broker._listening()._served
    port = int(proxy.address.rpartition(":")[2])
    served._ports = dict.fromkeys(served._ports, port)
    try:
        yield broker.name_server_address, proxy
    finally:
        proxy.close()


@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_everything_confirmed_is_consumed(seed: int) -> None:
    seen: list[bytes] = []
    confirmed: list[bytes] = []

    def listen(messages: list[rocketmq.MessageExt], context: object) -> rocketmq.ConsumeConcurrentlyStatus:
        seen.extend(bytes(message.body or b"") for message in messages)
        return rocketmq.ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    with rocketmq.Broker(listen="127.0.0.1:0") as broker:
        broker.create_topic("orders", 4)
        with through(seed, broker) as (names, proxy), rocketmq.Producer(namesrv_addr=names) as producer:
            consumer = rocketmq.DefaultMQPushConsumer(
                "billing",
                namesrv_addr=names,
                consume_from_where=rocketmq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
                poll_name_server_interval=200,
                heartbeat_broker_interval=500,
                persist_consumer_offset_interval=200,
                pull_time_delay_mills_when_exception=50,
            )
            consumer.subscribe("orders", "*")
            consumer.register_message_listener(listen)
            consumer.start()
            try:
                for number in range(MESSAGES):
                    body = f"m{number} ".encode() * 50
                    try:
                        producer.send("orders", body)
                    except (rocketmq.RemotingError, rocketmq.MQClientError):
                        time.sleep(0.05)
                    else:
                        confirmed.append(body)
                    for queue, offset in broker.consumer_offsets("billing", "orders").items():
                        consumed = set(seen)
                        for place in range(offset):
                            message = broker.message(queue, place)
                            assert message is not None
                            assert message.body in consumed
                proxy.cutting = False
                deadline = time.monotonic() + 60
                while not set(confirmed) <= set(seen):
                    assert time.monotonic() < deadline, f"seed {seed}: {len(set(confirmed) - set(seen))} are missing"
                    time.sleep(0.02)
                assert proxy.cuts
            finally:
                consumer.shutdown()
        stored = {bytes(message.body or b"") for message in broker.messages("orders")}
        assert set(confirmed) <= stored
        assert set(seen) <= stored
