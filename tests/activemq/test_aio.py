"""The client for asyncio: what the event loop does meanwhile, and that nothing is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pyengine.activemq import (
    CLIENT_ACKNOWLEDGE,
    SESSION_TRANSACTED,
    AcknowledgeMode,
    Broker,
    Closing,
    aio,
    connection,
    connection_factory,
    consumer,
    producer,
    session,
)
from pyengine.activemq._runtime.session_executor import SessionExecutor
from pyengine.errors import IllegalStateError, InvalidMessageError, InvalidSelectorError, JMSError

WAIT = 30  # seconds, as good as for ever
# What connection, session and transport say to each other, listeners, and what only a user of threads needs.
INSIDE = {
    connection.Connection: {"check_temporary", "check_unused", "discard", "redelivery_policy_of", "report", "route"}
    | {"count_consumer", "sessions", "temporary"},
    session.Session: (set(dir(SessionExecutor)) - {"session_id", "transacted"})
    | {"close_consumer", "consumers", "dispose", "drain", "forget_all"}
    | {"lose", "producer_closed", "start", "start_transaction", "stop"},
    consumer.MessageConsumer: {"listening_thread", "message_listener"},
    producer.MessageProducer: {"producer_id"},
    connection_factory.ConnectionFactory: {"over_network"},
}


@asynccontextmanager
async def sessions(broker: Broker, count: int = 1, mode: Any = AcknowledgeMode.AUTO_ACKNOWLEDGE, options: str = ""):
    async with aio.ConnectionFactory(f"vm://localhost?{options}", broker=broker).create_connection() as connected:
        yield [await connected.create_session(mode) for _ in range(count)]


def play(script: Callable[[Broker], Awaitable[object]], **settings: Any) -> None:
    """Run a script against a broker that lives by the system's clock."""

    async def bounded() -> None:
        with Broker(**settings) as broker:
            async with asyncio.timeout(2 * WAIT):
                await script(broker)

    asyncio.run(bounded())


@pytest.mark.parametrize("blocking", INSIDE, ids=lambda each: each.__name__)
def test_the_nouns_are_the_same(blocking):
    def public(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert public(blocking) - INSIDE[blocking] == public(getattr(aio, blocking.__name__)) & public(blocking)


def test_other_tasks_go_on_while_one_receives():
    async def script(broker):
        async with sessions(broker, 2) as (ours, theirs):
            waiting = await ours.create_consumer("q")
            receiving = asyncio.create_task(waiting.receive(WAIT))
            steps = 0
            while not receiving.done():
                if steps == 5:
                    await (await theirs.create_producer("q")).send("sent")
                steps += 1
                await asyncio.sleep(0.001)
            assert (await receiving).body == "sent"
            assert steps > 5
            assert await waiting.receive(0.01) is None
            assert await waiting.receive_no_wait() is None

    play(script)


def test_a_receive_that_is_cancelled_loses_nothing():
    async def script(broker):
        async with sessions(broker, 2) as (ours, theirs):
            waiting, sender = await ours.create_consumer("q"), await theirs.create_producer("q")
            found = []
            for number in range(200):
                receiving = asyncio.create_task(waiting.receive())
                await asyncio.sleep(0)
                if number % 2:
                    await sender.send(str(number))
                receiving.cancel()
                await asyncio.wait([receiving])
                if not receiving.cancelled():
                    found.append((await receiving).body)
            while len(found) < 100:
                found.append((await waiting.receive(WAIT)).body)
            assert found == [str(number) for number in range(1, 200, 2)]

    play(script)


def test_a_batch_that_is_cancelled_loses_nothing():
    async def script(broker):
        async with sessions(broker) as (ours,):
            waiting = await ours.create_consumer("q")
            await (await ours.create_producer("q")).send_batch(["a", "b"])
            receiving = asyncio.create_task(waiting.receive_batch(2))
            await asyncio.sleep(0)
            receiving.cancel()
            await asyncio.wait([receiving])
            assert receiving.cancelled()
            found = []
            while len(found) < 2:  # the second may come a moment later
                found += [message.body for message in await waiting.receive_batch(2, WAIT)]
            assert found == ["a", "b"]

    play(script)


@pytest.mark.parametrize("dispatch_async", ["false", "true"])
def test_a_loop_that_is_closed_under_its_task_troubles_nobody_else(dispatch_async):
    async def wait_for_a_message() -> tuple[Any, ...]:
        factory = aio.ConnectionFactory(f"vm://localhost?jms.dispatchAsync={dispatch_async}", broker=broker)
        waiting = factory.create_connection()
        consumer = await (await waiting.create_session()).create_consumer("queue")
        receiving = asyncio.create_task(consumer.receive())
        await asyncio.sleep(0)
        return waiting, receiving

    with Broker() as broker:
        loop = asyncio.new_event_loop()
        waiting, receiving = loop.run_until_complete(wait_for_a_message())
        loop.close()
        with connection_factory.ConnectionFactory(broker=broker).create_connection() as sending:
            alive = sending.create_session()
            alive.create_producer("queue").send("for somebody")
            waiting.blocking.close()
            found = alive.create_consumer("queue").receive(WAIT)
        assert found is not None
        assert found.body == "for somebody"
        receiving._log_destroy_pending = False


@pytest.mark.parametrize("end", ["consumer", "session", "connection", "lost", "broker"])
def test_iteration_ends_when_the_consumer_does(end):
    async def script(broker):
        async with aio.ConnectionFactory("vm://localhost", broker=broker).create_connection() as connected:
            ours = await connected.create_session()
            waiting = await ours.create_consumer("q")
            await (await (await connected.create_session()).create_producer("q")).send_batch(["a", "b"])
            seen = []

            async def listen():
                async for message in waiting:
                    seen.append(message.body)

            listening = asyncio.create_task(listen())
            while len(seen) < 2:
                await asyncio.sleep(0.001)
            if end == "broker":
                broker.close()
            elif end == "lost":
                await connected.close(Closing.LOST)
            else:
                await {"consumer": waiting, "session": ours, "connection": connected}[end].close()
            await listening
            assert seen == ["a", "b"]
            assert waiting.closed or end == "broker"

    play(script)


def test_two_tasks_cannot_receive_from_one_consumer():
    async def script(broker):
        async with sessions(broker) as (ours,):
            waiting = await ours.create_consumer("q")
            receiving = asyncio.create_task(waiting.receive())
            await asyncio.sleep(0)
            with pytest.raises(IllegalStateError, match="another task is receiving from ID:"):
                await waiting.receive()
            with pytest.raises(IllegalStateError, match="another task is receiving from ID:"):
                await waiting.receive_batch(2)
            receiving.cancel()
            await asyncio.wait([receiving])
            assert await waiting.receive(0.01) is None

    play(script)


def test_many_consumers_share_a_queue_in_one_loop():
    async def script(broker):
        async with sessions(broker, 11) as (first, *others):
            seen = []

            async def work(own):
                async for message in await own.create_consumer("q"):
                    seen.append(message.body)

            working = [asyncio.create_task(work(own)) for own in others]
            assert await (await first.create_producer("q")).send_batch(str(n) for n in range(500)) == 500
            while len(seen) < 500:
                await asyncio.sleep(0.001)
            for own in others:
                await own.close()
            await asyncio.gather(*working)
            assert sorted(map(int, seen)) == list(range(500))

    play(script)


@pytest.mark.parametrize("prefetch", [0, 1])
def test_prefetch_0_asks_the_broker_for_each_message(prefetch):
    async def script(broker):
        async with sessions(broker, 2, options=f"jms.prefetchPolicy.all={prefetch}") as (ours, theirs):
            waiting, sender = await ours.create_consumer("q"), await theirs.create_producer("q")
            assert await waiting.receive(0.01) is None
            assert await waiting.receive_no_wait() is None
            receiving = asyncio.create_task(waiting.receive(WAIT))
            await asyncio.sleep(0.01)
            await sender.send("late")
            assert (await receiving).body == "late"
            await sender.send_batch(list("abc"))
            found = []
            while len(found) < 3:
                found += [message.body for message in await waiting.receive_batch(2, WAIT)]
            assert found == ["a", "b", "c"]

    play(script)


def test_requests_are_answered_through_a_temporary_queue():
    async def script(broker):
        async with sessions(broker, 2) as (asking, answering):
            replies = await asking.create_temporary_queue()
            async with await asking.create_consumer(replies) as answers, await answering.create_producer() as back:
                questions = await answering.create_consumer("questions")
                await (await asking.create_producer("questions")).send("how much")
                assert (await questions.receive(WAIT)).body == "how much"
                await back.send("250", replies)
                assert (await answers.receive(WAIT)).body == "250"
                with pytest.raises(JMSError):
                    await asking.delete_temporary(replies)
            await asking.delete_temporary(replies)
            assert (await asking.create_temporary_topic()).kind == "temp-topic"

    play(script)


@pytest.mark.parametrize("non_blocking", ["false", "true"])
@pytest.mark.parametrize("mode", [SESSION_TRANSACTED, CLIENT_ACKNOWLEDGE])
def test_a_task_that_waits_gets_what_comes_back_after_its_delay(make, clock, mode, non_blocking):
    async def script(broker):
        options = f"jms.nonBlockingRedelivery={non_blocking}&jms.redeliveryPolicy.initialRedeliveryDelay=700"
        async with sessions(broker, 1, mode, options) as (ours,), sessions(broker) as (theirs,):
            waiting = await ours.create_consumer("q")
            await (await theirs.create_producer("q")).send_batch(["bad", "good"])
            found = []

            async def consume() -> None:
                async for message in waiting:
                    found.append((message.body, message.redelivery_counter))
                    if found[-1] == ("bad", 0):
                        await (ours.rollback() if ours.transacted else ours.recover())
                    elif len(found) == 3:
                        return

            consuming = asyncio.create_task(consume())
            while len(found) < (1 if non_blocking == "false" else 2):
                await asyncio.sleep(0)
            while not consuming.done():
                clock.advance(100)
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            assert sorted(found) == [("bad", 0), ("bad", 1), ("good", 0)]
            assert 700 <= clock.now() - began <= 800

    began = clock.now()
    asyncio.run(asyncio.wait_for(script(make()), WAIT))


def test_a_task_that_waits_gets_what_came_before_the_connection_was_started():
    async def script(broker):
        connection = aio.ConnectionFactory(broker=broker).create_connection()
        session = await connection.create_session()
        await (await session.create_producer("q")).send("early")
        receiving = asyncio.create_task((await session.create_consumer("q")).receive())
        while not broker.view("q").in_flight_count:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        assert not receiving.done()
        await connection.start()
        assert (await receiving).body == "early"
        await connection.close()

    play(script)


def test_transactions_and_acknowledgements(make, clock):
    async def script(broker):
        async with sessions(broker, 1, SESSION_TRANSACTED) as (ours,), sessions(broker, 1, CLIENT_ACKNOWLEDGE) as (by,):
            assert ours.transacted
            assert ours.acknowledge_mode is SESSION_TRANSACTED
            sender = await ours.create_producer("q")
            sender.priority, sender.time_to_live_ms, sender.delivery_mode = 9, 5000, "NON_PERSISTENT"
            sender.disable_message_timestamp = True
            with pytest.raises(InvalidMessageError):
                sender.priority = 10
            await sender.send("taken back")
            await ours.rollback()
            await sender.send("kept")
            await ours.commit()
            waiting = await by.create_consumer("q", "JMSPriority = 9")
            assert waiting.message_selector == "JMSPriority = 9"
            found = await waiting.receive(1)
            assert (found.body, found.priority, found.timestamp, found.delivery_mode) == (
                "kept",
                9,
                0,
                "NON_PERSISTENT",
            )
            await by.recover()
            assert (await waiting.receive(1)).redelivery_counter == 1
            await by.acknowledge()
            before = clock.now()
            assert await waiting.receive(60) is None
            assert clock.now() == before + 60_000
            with pytest.raises(InvalidSelectorError):
                await by.create_consumer("q", "a == 1")
            await sender.close()
            with pytest.raises(IllegalStateError):
                await sender.send("late")
        assert broker.view("q").queue_size == 0

    asyncio.run(script(make()))
