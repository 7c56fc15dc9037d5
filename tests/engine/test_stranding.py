"""Exact selector errors: the broker's round ends where a selector raises, and what it had paged in is lost to it."""

from __future__ import annotations

from typing import Any

import pytest

import pyengine
from pyengine.activemq import HoldReason, Queue
from pyengine.errors import InvalidTopologyError

RAISES = pyengine.Selector("name - 1 = 2")  # a string minus a number


def queue(**settings: Any) -> Queue:
    return Queue(selector_errors="exact", **settings)


def send(to: Queue, *names: object) -> list[int]:
    handles = []
    for name in names:
        handles.append(to.send({"name": name}))
        got = to.run()
        to._check()
        assert all(delivery.message in handles for delivery in got)
    return handles


def test_a_message_that_raises_is_lost_and_later_ones_go_on() -> None:
    """O:q-sel-8: stranded for good, also after the bad consumer closed; a purge takes it."""
    it = queue()
    bad = it.add_consumer(selector=RAISES)
    it.run()
    lost, fits = send(it, "text", 3)
    assert it.unacknowledged(bad) == [fits]
    assert it.why(lost)[0] is HoldReason.STRANDED
    assert it.statistics["stranded"] == 1
    assert it.statistics["size"] == 2
    it.close(bad)
    healthy = it.add_consumer()
    assert [delivery.message for delivery in it.run()] == [fits]
    assert it.hold_counts() == {HoldReason.STRANDED: 1}
    assert it.purge() == 2
    assert it.statistics["size"] == it.statistics["stranded"] == 0
    it._check()
    assert it.unacknowledged(healthy) == [fits]


def test_a_healthy_consumer_ahead_in_rotation_just_gets_it() -> None:
    it = queue()
    healthy = it.add_consumer()
    it.add_consumer(selector=RAISES)
    it.run()
    first = send(it, "a")[0]
    assert it.unacknowledged(healthy) == [first]
    second = send(it, "b")[0]  # now the bad one is asked first
    assert it.why(second)[0] is HoldReason.STRANDED
    assert it.unacknowledged(healthy) == [first]


def test_the_rest_of_the_page_is_lost_with_it() -> None:
    it = queue(max_page_size=3)
    handles = [it.send({"name": name}) for name in (3, "text", 3, 3)]
    bad = it.add_consumer(selector=RAISES)
    it.run()
    it._check()
    assert it.unacknowledged(bad) == [handles[0], handles[3]]
    assert [it.why(handle)[0] for handle in handles[1:3]] == [HoldReason.STRANDED] * 2


def test_a_message_that_waits_ends_every_round_at_its_place() -> None:
    it = queue()
    other = it.add_consumer(selector=pyengine.Selector("name = 'nobody'"))
    it.run()
    waiting = send(it, "text", 3)
    bad = it.add_consumer(selector=RAISES)
    it.run()
    it._check()
    assert it.unacknowledged(bad) == []
    assert it.waiting() == waiting
    it.close(bad)
    it.close(other)
    taker = it.add_consumer()
    it.run()
    assert it.unacknowledged(taker) == waiting


def test_a_full_consumer_is_not_asked() -> None:
    it = queue()
    bad = it.add_consumer(selector=RAISES, prefetch=1)
    it.run()
    held, later = send(it, 3, "text")
    assert it.unacknowledged(bad) == [held]
    assert it.waiting() == [later]


def test_by_default_it_is_no_match() -> None:
    it = Queue()
    it.add_consumer(selector=RAISES)
    it.run()
    handle = it.send({"name": "text"})
    assert it.run() == []
    assert it.why(handle)[0] is HoldReason.SELECTOR
    with pytest.raises(InvalidTopologyError, match="'no_match' or 'exact'"):
        Queue(selector_errors="strict")
