"""A RocketMQ service: each order becomes an invoice, an order that cannot be read becomes a dead letter.

    python examples/service/rocketmq_billing.py                     # on a broker in this process
    python examples/service/rocketmq_billing.py 10.0.0.1:9876       # on your cluster: its name servers

One argument is different. Both print what was billed and what is a dead letter.
"""

from __future__ import annotations

import contextlib
import queue
import sys
import time
import uuid
from collections.abc import Iterator
from typing import Any

from pyengine import rocketmq

DONE = rocketmq.ConsumeConcurrentlyStatus.CONSUME_SUCCESS
LATER = rocketmq.ConsumeConcurrentlyStatus.RECONSUME_LATER


@contextlib.contextmanager
def billing(orders: str, invoices: str, group: str = "billing", tries: int = 3, **where: Any) -> Iterator[None]:
    """The service, as long as the block runs. tries: after the first. where: ``namesrv_addr=`` or ``broker=``."""
    with rocketmq.Producer(**where) as producer:

        def handle(messages: list[rocketmq.MessageExt], context: object) -> rocketmq.ConsumeConcurrentlyStatus:
            for message in messages:
                try:
                    order = int(message.body)
                except ValueError:
                    return LATER
                producer.send(invoices, f"invoice for {order}".encode(), keys=str(order))
            return DONE

        consumer = rocketmq.DefaultMQPushConsumer(
            group,
            consume_from_where=rocketmq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            max_reconsume_times=tries,
            await_termination_millis_when_shutdown=5_000,  # let the listener end
            **where,
        )
        consumer.subscribe(orders, "paid")
        consumer.register_message_listener(handle)
        consumer.start()
        try:
            yield
        finally:
            consumer.shutdown()


def is_there(producer: rocketmq.Producer, topic: str) -> bool:
    """Whether the cluster has a topic of dead letters."""
    try:
        return bool(producer.broker.publish_queues(topic))
    except rocketmq.MQClientError:
        return False


@contextlib.contextmanager
def inbox(topic: str, group: str, **where: Any) -> Iterator[queue.Queue[str]]:
    """What comes to a topic. A consumer looks for new topics every 20 s, so there is one before it starts."""
    opening = b"open"
    with rocketmq.Producer(**where) as producer:
        if not topic.startswith("%DLQ%"):
            producer.send(topic, opening)
        end = time.monotonic() + 60
        while not is_there(producer, topic):
            if time.monotonic() > end:
                raise TimeoutError(f"nothing came to {topic} in a minute")
            time.sleep(0.1)
    came: queue.Queue[str] = queue.Queue()

    def handle(messages: list[rocketmq.MessageExt], context: object) -> rocketmq.ConsumeConcurrentlyStatus:
        for message in messages:
            if message.body != opening:
                came.put(bytes(message.body or b"").decode())
        return DONE

    first = rocketmq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    consumer = rocketmq.DefaultMQPushConsumer(
        group, consume_from_where=first, await_termination_millis_when_shutdown=5_000, **where
    )
    consumer.subscribe(topic)
    consumer.register_message_listener(handle)
    consumer.start()
    try:
        yield came
    finally:
        consumer.shutdown()


def main() -> None:
    """Bill three orders, of which one is not paid and one cannot be read."""
    where: dict[str, Any] = {"namesrv_addr": sys.argv[1]} if sys.argv[1:] else {"broker": rocketmq.Broker()}
    run = uuid.uuid4().hex[:8]  # a run has topics and groups of its own
    orders, invoices, group = f"orders-{run}", f"invoices-{run}", f"billing-{run}"
    with rocketmq.Producer(**where) as producer:
        for body, tag in ((b"17", "paid"), (b"18", "open"), (b"many", "paid")):
            producer.send(orders, body, tags=tag)
    with billing(orders, invoices, group, tries=0, **where):
        with inbox(invoices, f"printer-{run}", **where) as came:
            print("invoice:", came.get(timeout=60))
        with inbox(f"%DLQ%{group}", f"clerk-{run}", **where) as came:
            print("dead letter:", came.get(timeout=60))


if __name__ == "__main__":
    main()
