"""The tests of the ActiveMQ service: whatever host it names, its connections lead to a broker in the test.

Run them with ``python -m pytest examples/service/test_activemq_billing.py``.
"""

from activemq_billing import start


def send(service, body, **headers):
    service.send("/queue/orders", body, headers={"region": "EU", "persistent": "true", **headers})


def bodies(broker, queue):
    return [message.body for message in broker.browse(queue)]


def test_orders_of_our_region_become_invoices(activemq_stomp_memory):
    service = start("broker.example", 61613)
    send(service, "17")
    send(service, "18", region="US")
    assert bodies(activemq_stomp_memory, "invoices") == [b"invoice for 17"]
    (held,) = activemq_stomp_memory.held("orders")
    assert held.reason.name == "SELECTOR"  # 18: no consumer's selector takes it


def test_what_cannot_be_read_is_a_dead_letter(activemq_stomp_memory):
    send(start("broker.example", 61613), "many")
    assert bodies(activemq_stomp_memory, "ActiveMQ.DLQ") == [b"many"]


def test_an_order_that_came_while_the_service_was_away_expires(activemq_stomp_memory, activemq_clock):
    service = start("broker.example", 61613)
    service.unsubscribe("1")
    send(service, "17", expires=str(activemq_clock.now() + 3_600_000))
    activemq_clock.advance(3_600_000 + 30_000)  # the broker looks every 30 s
    assert bodies(activemq_stomp_memory, "orders") == []
    assert len(bodies(activemq_stomp_memory, "ActiveMQ.DLQ")) == 1
