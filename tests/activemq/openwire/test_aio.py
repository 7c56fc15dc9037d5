"""The client for asyncio over the network: what waits for the broker does not hold up the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from pyengine import Message
from pyengine.activemq import CLIENT_ACKNOWLEDGE, SESSION_TRANSACTED, Broker, aio
from pyengine.errors import AuthenticationError, InvalidSelectorError, JMSError
from tests.activemq.openwire.relay import Relay

WAIT = 10


def play(script: Callable[[Broker, str], Awaitable[object]], **settings: object) -> None:
    async def bounded() -> None:
        with Broker(transport_connectors=["tcp://127.0.0.1:0"], **settings) as broker:  # type: ignore[arg-type]
            async with asyncio.timeout(3 * WAIT):
                await script(broker, broker.transport_connectors[0].url)

    asyncio.run(bounded())


@pytest.mark.parametrize("options", ["", "?jms.prefetchPolicy.all=0"])
def test_queues_acknowledgements_and_transactions(options: str) -> None:
    async def script(broker: Broker, url: str) -> None:
        async with aio.ConnectionFactory(url + options).create_connection() as connection:
            session = await connection.create_session()
            producer = await session.create_producer("q")
            consumer = await session.create_consumer("q")
            receiving = asyncio.create_task(consumer.receive(WAIT))
            await asyncio.sleep(0.02)
            await producer.send("a")
            assert (await receiving).body == "a"
            assert await consumer.receive(0.05) is None
            assert await consumer.receive_no_wait() is None
            await producer.send_batch(["b", "c"])
            found = []
            async for message in consumer:
                found.append(message.body)
                if len(found) == 2:
                    break
            assert found == ["b", "c"]
            await consumer.close()

            clients = await connection.create_session(CLIENT_ACKNOWLEDGE)
            await producer.send("d")
            consumer = await clients.create_consumer("q")
            assert (await consumer.receive(WAIT)).body == "d"
            await clients.recover()
            again = await consumer.receive(WAIT)
            assert (again.body, again.redelivered) == ("d", True)
            await clients.acknowledge()
            await clients.close()

            transacted = await connection.create_session(SESSION_TRANSACTED)
            await (await transacted.create_producer("t")).send("e")
            await transacted.rollback()
            await (await transacted.create_producer("t")).send("f")
            await transacted.commit()
            consumer = await transacted.create_consumer("t")
            assert (await consumer.receive(WAIT)).body == "f"
            await transacted.commit()
            own = await session.create_temporary_queue()
            await session.delete_temporary(own)
            with pytest.raises(InvalidSelectorError):
                await session.create_consumer("q", "a =")
        assert [broker.view(each).queue_size for each in ("q", "t")] == [0, 0]

    play(script)


def test_the_loop_goes_on_while_the_broker_has_not_answered() -> None:
    async def script(broker: Broker, url: str) -> None:
        relay = Relay(broker.transport_connectors[0].port, 0.05)
        factory = aio.ConnectionFactory(f"tcp://127.0.0.1:{relay.port}")
        connecting = asyncio.create_task(asyncio.to_thread(factory.create_connection))
        steps = [await counted(connecting)]
        async with connecting.result() as connection:
            session = await connection.create_session()
            producer = await session.create_producer("q")
            steps.append(await counted(asyncio.create_task(producer.send(Message(body="x")))))
            steps.append(await counted(asyncio.create_task(session.create_consumer("q"))))
        relay.close()
        assert min(steps) >= 5, steps

    async def counted(task: asyncio.Task[object]) -> int:
        """How often the loop came round until it was done."""
        steps = 0
        while not task.done():
            steps += 1
            await asyncio.sleep(0.005)
        return steps

    play(script)


def test_a_receive_that_is_cancelled_loses_nothing() -> None:
    async def script(broker: Broker, url: str) -> None:
        async with aio.ConnectionFactory(url).create_connection() as connection:
            session, sending = await connection.create_session(), await connection.create_session()
            consumer, producer = await session.create_consumer("q"), await sending.create_producer("q")
            found = []
            for number in range(60):
                receiving = asyncio.create_task(consumer.receive())
                await producer.send(str(number))
                receiving.cancel()
                await asyncio.wait([receiving])
                if not receiving.cancelled():
                    found.append((await receiving).body)
            while len(found) < 60:
                found.append((await consumer.receive(WAIT)).body)
            assert found == [str(number) for number in range(60)]

    play(script)


def test_a_broker_that_goes_and_one_that_lets_nobody_in() -> None:
    async def script(broker: Broker, url: str) -> None:
        with pytest.raises(AuthenticationError):
            aio.ConnectionFactory(url).create_connection()
        connection = aio.ConnectionFactory(url, user_name="me", password="secret").create_connection()
        async with connection:
            session = await connection.create_session()
            consumer = await session.create_consumer("q")
            receiving = asyncio.create_task(consumer.receive())
            await asyncio.sleep(0.05)
            broker.close()
            assert await receiving is None
            with pytest.raises(JMSError):
                await connection.create_session()

    play(script, users={"me": "secret"})
