"""The tests of the RocketMQ service: no cluster, no port, no sleep; a day passes in no time.

Run them with ``python -m pytest examples/service/test_rocketmq_billing.py``.
"""

from rocketmq_billing import billing

from pyengine import rocketmq


def bodies(broker, topic):
    return [bytes(message.body) for message in broker.messages(topic)] if topic in broker.topics() else []


def test_paid_orders_become_invoices(rocketmq_broker, rocketmq_clock):
    with billing("orders", "invoices", broker=rocketmq_broker):
        producer = rocketmq.Producer(rocketmq_broker)
        producer.send("orders", b"17", tags="paid")
        producer.send("orders", b"18", tags="open")
        rocketmq_clock.advance(30_000)
        assert bodies(rocketmq_broker, "invoices") == [b"invoice for 17"]


def test_what_cannot_be_read_is_tried_for_two_minutes_then_dead(rocketmq_broker, rocketmq_clock):
    with billing("orders", "invoices", broker=rocketmq_broker):
        rocketmq.Producer(rocketmq_broker).send("orders", b"many", tags="paid")
        rocketmq_clock.advance(60_000)  # tried at once, after 10 s, after 30 s more
        assert bodies(rocketmq_broker, "%DLQ%billing") == []
        rocketmq_clock.advance(60_000)  # and after a minute more
        assert bodies(rocketmq_broker, "%DLQ%billing") == [b"many"]
    assert bodies(rocketmq_broker, "invoices") == []


def test_a_service_that_was_away_goes_on_where_it_was(rocketmq_broker, rocketmq_clock):
    producer = rocketmq.Producer(rocketmq_broker)
    for order in (b"1", b"2"):
        with billing("orders", "invoices", broker=rocketmq_broker):
            producer.send("orders", order, tags="paid")
            rocketmq_clock.advance(30_000)
        rocketmq_clock.advance(24 * 60 * 60 * 1000)
    assert bodies(rocketmq_broker, "invoices") == [b"invoice for 1", b"invoice for 2"]
