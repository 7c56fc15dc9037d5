"""Selectors that read what changes on a message while it is on the queue are asked again; others are not."""

from __future__ import annotations

from typing import Any

import pytest

from pyengine import Message, Selector
from pyengine._engine.activemq.queue.queue import Queue

AS_DICT = {"k": 1}
AS_MESSAGE = Message({"k": 1})


def returned(queue: Queue, sent: Any) -> None:
    """Send a message and have a consumer take it and lose its connection."""
    first = queue.add_consumer()
    queue.send(sent)
    assert len(queue.run()) == 1
    queue.close(first, lost=True)
    queue.run()


@pytest.mark.parametrize("sent", [AS_DICT, AS_MESSAGE])
@pytest.mark.parametrize("text", ["JMSRedelivered", "JMSXDeliveryCount = 2", "JMSXGroupFirstForConsumer AND k = 1"])
@pytest.mark.parametrize("waits", [False, True])
def test_a_message_that_comes_back_is_matched_as_it_is(sent: Any, text: str, waits: bool) -> None:
    queue = Queue()
    first = queue.add_consumer(prefetch=1)
    queue.send(sent, group="g")
    queue.run()
    texts = (text, f"NOT ({text})")
    numbers = [queue.add_consumer(selector=Selector(each)) for each in texts] if waits else []
    got = [each.consumer for each in queue.close(first, lost=True)]
    numbers += [] if waits else [queue.add_consumer(selector=Selector(each)) for each in texts]
    assert [*got, *(each.consumer for each in queue.run())] == numbers[:1]
    assert (dict(AS_DICT), AS_MESSAGE.redelivery_counter, AS_MESSAGE.group_first_for_consumer) == ({"k": 1}, 0, False)
    queue._check()


def test_a_message_sent_with_a_counter_has_it() -> None:
    for sent, settings in (({}, {"redeliveries": 2}), (Message(redelivery_counter=2), {})):
        queue = Queue()
        number = queue.add_consumer(selector=Selector("JMSXDeliveryCount = 3"))
        queue.send(sent, **settings)
        assert [each.redeliveries for each in queue.run()] == [2]
        queue.close(number, lost=True)
        again = queue.add_consumer(selector=Selector("JMSXDeliveryCount = 4"))
        assert [(each.consumer, each.redeliveries) for each in queue.run()] == [(again, 3)]


def test_a_browser_sees_the_mark_of_the_same_round() -> None:
    queue = Queue()
    texts = ("JMSXGroupFirstForConsumer", "JMSXGroupFirstForConsumer = FALSE")
    marked, plain = (queue.add_consumer(selector=Selector(text), browser=True) for text in texts)
    queue.add_consumer()
    queue.send({}, group="g")
    seen = [(each.consumer, each.message is None) for each in queue.run()]
    assert (marked, False) in seen
    assert (plain, False) not in seen


def test_only_selectors_that_read_such_a_header_are_asked_again() -> None:
    asked: list[object] = []
    queue = Queue()
    queue.add_consumer(selector=lambda body: bool(asked.append(body)))
    changing = queue.add_consumer(selector=Selector("JMSRedelivered"))
    returned(queue, {"k": 1})
    assert len(asked) == 1
    assert queue.counters_of(changing)["held"] == 1


def test_a_property_of_that_name_is_none_of_the_headers() -> None:
    queue = Queue()
    number = queue.add_consumer(selector=Selector("JMSRedelivered IS NULL", dialect="rocketmq"))
    returned(queue, {})
    assert queue.counters_of(number)["held"] == 1


def test_a_restored_queue_asks_again_too() -> None:
    queue = Queue()
    first = queue.add_consumer(prefetch=1)
    waiting = queue.add_consumer(selector=Selector("JMSRedelivered"), prefetch=2)
    queue.send({"k": 1})
    queue.run()
    bodies: list[object] = []
    data = queue.snapshot(save=lambda body: str(bodies.append(body) or len(bodies) - 1).encode())
    again = Queue.restore(data, load=lambda place: bodies[int(place)])
    assert [each.consumer for each in again.close(first, lost=True)] == [waiting]
    again._check()


def test_what_one_consumer_has_of_its_own_is_in_a_snapshot() -> None:
    queue = Queue(max_browse_page_size=5)
    plain, fixed = queue.add_consumer(prefetch=1), queue.add_consumer(prefetch=1, use_prefetch_extension=False)
    browser = queue.add_consumer(browser=True, max_browse_page_size=2)
    data = queue.snapshot()
    again = Queue.restore(data)
    assert again.snapshot() == data
    for each in (queue, again):
        for _ in range(6):
            each.send({}, persistent=False)
        dispatched = each.run()
        assert [delivery.message is None for delivery in dispatched if delivery.consumer == browser] == [
            False, False, True,
        ]  # fmt: skip
        for consumer in (plain, fixed):
            (held,) = each.unacknowledged(consumer)
            each.acknowledge(consumer, held, transaction="t")
        assert [delivery.consumer for delivery in each.run()] == [plain]
