"""The broker's lock: who makes a change that another thread handed over, and when."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from pyengine.activemq import AckKind, AcknowledgeMode, Broker, ConnectionFactory
from pyengine.activemq._runtime.dispatch_task import DispatchTask
from pyengine.activemq._runtime.outbox import Outbox
from pyengine.activemq.broker.events import ConsumerStarted
from pyengine.activemq.transport.commands import ConnectionSink, MessageAck, MessageDispatch
from pyengine.clock import ManualClock, SystemClock
from tests.activemq.held import held
from tests.activemq.wire import until


@contextmanager
def at_work(outbox: Outbox) -> Iterator[None]:
    """Another thread is making a change meanwhile."""
    with held(outbox):
        yield
        outbox._check()
    outbox._check()


def test_a_change_handed_over_is_made_by_the_thread_at_work_before_any_later_one():
    made: list[str] = []
    outbox = Outbox(answered=lambda what: outbox.post(made.append, what) if "post" in what else made.append(what))
    with at_work(outbox):
        assert not outbox.begin(wait=False)
        outbox.hand_over("1")
        outbox.hand_over("posted by 2")
        assert made == []
    assert made == ["1", "posted by 2"]


def test_one_handed_over_to_nobody_is_made_at_once():
    made: list[int] = []
    outbox = Outbox(answered=lambda _: made.append(outbox.depth))
    outbox.hand_over("it")
    assert made == [1]
    assert outbox.depth == 0


@pytest.mark.parametrize("begin", [Outbox.__enter__, Outbox.begin])
def test_what_begins_later_finds_it_made(begin):
    made: list[int] = []
    outbox = Outbox(answered=lambda _: made.append(outbox.depth))
    outbox.handed_over.append("it")  # as if its thread had given the lock back just now
    assert begin(outbox)
    assert made == [1]
    outbox.leave()


def test_it_is_no_part_of_a_change_that_has_begun_inside_another():
    made: list[int] = []
    outbox = Outbox(answered=made.append)
    with outbox:
        outbox.handed_over.append(1)
        with outbox:
            assert made == []
        assert made == []
    assert made == [1]


def test_no_change_of_many_threads_is_lost_or_made_twice_or_beside_another():
    made, inside = [], []

    def change(number: int) -> None:
        inside.append(number)
        assert inside == [number]
        made.append(number)
        inside.clear()

    outbox = Outbox(answered=change)

    def work(first: int) -> None:
        for number in range(first, first + 5_000):
            if number % 3 == 0:
                with outbox:
                    change(number)
            elif outbox.begin(wait=False):
                change(number)
                outbox.leave()
            else:
                outbox.hand_over(number)

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [Thread(target=work, args=(10_000 * n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(usual)
    assert not outbox.handed_over
    assert sorted(made) == [10_000 * n + each for n in range(4) for each in range(5_000)]
    for n in range(4):  # each thread's in its own order
        assert [each for each in made if each // 10_000 == n] == list(range(10_000 * n, 10_000 * n + 5_000))


def test_an_acknowledgement_does_not_wait_for_another_threads_change_and_counts_in_all_that_follows():
    with Broker(name="outbox") as broker:
        factory = ConnectionFactory("vm://outbox", broker=broker)
        with factory.create_connection() as connection:
            heard = []
            connection.exception_listener = heard.append
            session = connection.create_session(AcknowledgeMode.INDIVIDUAL_ACKNOWLEDGE)
            consumer = session.create_consumer("q")
            session.create_producer("q").send_batch(["a", "b"])
            first = consumer.receive(5)
            with at_work(broker.outbox):
                first.acknowledge()
            assert broker.view("q").dequeue_count == 1
            with at_work(broker.outbox):
                first.acknowledge()
            until(lambda: heard)
            assert "is not held by consumer" in str(heard[0])


def test_a_connection_that_ends_in_the_middle_of_a_dispatch_does_not_fail_its_sender():
    class Late(SystemClock):
        def worker(self, name):
            worker, closer = super().worker(name), Thread(target=lambda: task.close())
            submit = worker.submit

            def late(action):
                closer.start()
                closer.join(0.2)
                submit(action)

            worker.submit = late
            return worker

    got = []
    task = DispatchTask(Late(), "ends", ConnectionSink(got.append), lambda ack, failed: None)
    task(MessageDispatch("c", None, None, 0))
    task.close()
    task(MessageDispatch("c", None, None, 0))
    assert len(got) <= 1


def test_the_answer_of_a_delivery_is_a_change_of_its_own_before_the_next_delivery():
    order: list[object] = []
    outbox = Outbox(answered=lambda answer: (order.append((answer, outbox.depth)), outbox.post(order.append, "posted")))

    def ask(argument: str) -> str:
        order.append((argument, outbox.depth))
        return argument.upper()

    with outbox:
        outbox.post(ask, "a")
        outbox.post(ask, "b")
    assert order == [("a", 0), ("A", 1), ("b", 0), ("B", 1), "posted", "posted"]


def test_what_was_handed_over_before_an_answer_is_made_before_it():
    order: list[object] = []
    outbox = Outbox(answered=order.append)

    def ask(argument: str) -> str:
        outbox.handed_over.append("handed over")
        return argument

    with outbox:
        outbox.post(ask, "answer")
    assert order == ["handed over", "answer"]


def test_what_a_callback_of_an_event_returns_is_no_answer():
    with Broker(name="returns") as broker:
        broker.on(ConsumerStarted, lambda event: "not an acknowledgement")
        with ConnectionFactory("vm://returns", broker=broker).create_connection() as connection:
            connection.create_session().create_consumer("q")


def test_an_acknowledgement_that_a_listener_s_delivery_answers_with_may_fail():
    errors: list[Exception] = []
    with (
        Broker(name="answers", clock=ManualClock()) as broker,
        ConnectionFactory(
            "vm://answers?jms.dispatchAsync=false&jms.alwaysSessionAsync=false", broker=broker
        ).create_connection() as connection,
    ):
        connection.exception_listener = errors.append
        session = connection.create_session()

        def listen(message):
            before = (consumer.consumer_id, consumer.destination, AckKind.INDIVIDUAL, message.message_id)
            broker.acknowledge(MessageAck(*before))

        consumer = session.create_consumer("q", listener=listen)
        session.create_producer("q").send("x")
        (error,) = errors
        assert f"is not held by consumer {consumer.consumer_id}" in str(error)
