"""Exact selector errors: the broker's round ends where a selector raises, and what it had paged in is lost to it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyengine
from pyengine.activemq import Delivery, HoldReason, Queue
from pyengine.errors import InvalidTopologyError, SelectorEvaluationError

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


class Interrupted(BaseException):
    """What no selector means to raise, as Ctrl-C."""


class Fickle:
    """A selector of the caller's own code, whose answer is what ``mood`` says when it is asked."""

    mood: ClassVar[list[str]] = []

    def __init__(self, wants: int) -> None:
        self.wants = wants

    def __call__(self, sent: Mapping[str, int]) -> bool:
        match self.mood.pop() if self.mood else "answers":
            case "raises":
                raise SelectorEvaluationError("fickle", "it cannot say")
            case "breaks":
                raise Interrupted
        return sent["n"] % 2 == self.wants


STEPS = st.lists(st.tuples(st.sampled_from(["send", "send", "run", "acknowledge", "join", "close", "look", "pull"]),
                           st.lists(st.sampled_from(["raises", "raises", "answers", "breaks"]), max_size=6)),
                 max_size=30)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    steps=STEPS,
    page=st.sampled_from([None, 2, 200]),
    prioritized=st.booleans(),
    grouped=st.booleans(),
    prefetch=st.sampled_from([0, 1, 3, 100]),
)
def test_a_round_that_a_selector_breaks_loses_no_message_and_no_delivery(
    steps: list[tuple[str, list[str]]], page: int | None, prioritized: bool, grouped: bool, prefetch: int
) -> None:
    it = queue(max_page_size=page, prioritized_messages=prioritized)
    Fickle.mood = []
    holds: dict[int, list[int]] = {it.add_consumer(selector=Fickle(which), prefetch=prefetch): [] for which in (0, 1)}
    sent: set[int] = set()

    def take(deliveries: list[Delivery]) -> None:
        for each in deliveries:
            if each.message is not None:
                assert all(each.message not in held for held in holds.values())
                holds[each.consumer].append(each.message)

    for step, mood in steps:
        consumer = next(iter(holds), None)
        Fickle.mood = list(mood)
        with suppress(Interrupted):
            if step == "send":
                number = len(sent)
                headers = {"JMSXGroupID": f"g{number % 3}"} if grouped else {}
                sent.add(it.send({"n": number, "JMSPriority": number % 3 + 3, **headers}))
            elif step == "join":
                joined = it.add_consumer(selector=Fickle(len(holds) % 2), prefetch=prefetch)
                holds[joined] = []
            elif step == "run":
                take(it.run())
            elif step == "look":
                take(it.expire(0))
            elif consumer is None:
                continue
            elif step == "acknowledge" and holds[consumer]:
                gone = holds[consumer].pop(0)
                sent.remove(gone)
                it.acknowledge(consumer, gone)
            elif step == "pull":
                take(it.pull(consumer))
            elif step == "close":
                del holds[consumer]
                take(it.close(consumer))
        Fickle.mood = []
        it._check()
        assert it.statistics["size"] == len(sent)
    take(it.run())
    assert {each: it.unacknowledged(each) for each in holds} == holds
    stranded = it.statistics["stranded"]
    for each in list(holds):
        del holds[each]
        take(it.close(each))
    last = it.add_consumer()
    while got := it.run():
        for each in got:
            sent.remove(each.message)
            it.acknowledge(last, each.message)
    assert it.statistics["size"] == len(sent) == it.statistics["stranded"] == stranded


def test_what_a_broken_call_handed_out_comes_with_the_next_one() -> None:
    it = queue()
    taker = it.add_consumer(selector=Fickle(0), prefetch=2)
    other = it.add_consumer(selector=Fickle(0), prefetch=2)
    it.run()
    Fickle.mood = []
    fits = [it.send({"n": 0}), it.send({"n": 2})]
    Fickle.mood = ["raises"]
    doubtful = it.send({"n": 4})
    Fickle.mood = ["breaks"]
    with pytest.raises(Interrupted):
        it.run()
    it._check()
    assert it.statistics["in_flight"] == 2
    assert it.waiting() == [doubtful]
    assert [(each.consumer, each.message) for each in it.close(taker)] == [(other, fits[1]), (other, fits[0])]
    assert it.run() == []
    assert it.waiting() == [doubtful]
    it._check()
