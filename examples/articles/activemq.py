"""What articles say of ActiveMQ, and what the broker does: each function shows one row of docs/articles.md.

python examples/articles/activemq.py            all rows
python examples/articles/activemq.py NAME ...   some of them
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyengine import Message, activemq
from pyengine.clock import ManualClock
from pyengine.errors import JMSError
from pyengine.topology import Policy
from pyengine.topology.policy import ConstantPendingMessageLimitStrategy, FixedCountSubscriptionRecoveryPolicy


def owners(queue: activemq.Queue) -> list[int]:
    """Consumers of what one round of a queue dispatches."""
    return [delivery.consumer for delivery in queue.run()]


@contextmanager
def session_of(
    *policies: Policy, client_id: str | None = None, mode: int = activemq.AUTO_ACKNOWLEDGE
) -> Iterator[tuple[activemq.Broker, Any]]:
    """A broker in memory whose time stands still, and a session of a started connection."""
    with (
        activemq.Broker(policies=policies, clock=ManualClock()) as broker,
        activemq.ConnectionFactory(broker=broker).create_connection(client_id=client_id) as connection,
    ):
        yield broker, connection.create_session(activemq.AcknowledgeMode(mode))


def refused(session: Any, destination: str, **arguments: Any) -> Any:
    """What create_consumer raises."""
    try:
        session.create_consumer(destination, **arguments)
    except JMSError as error:
        return error
    raise AssertionError(f"{destination} is taken")


def newest_exclusive() -> None:
    """Of several exclusive consumers the oldest gets the messages, not the newest."""
    queue = activemq.Queue()
    oldest = queue.add_consumer(exclusive=True)
    queue.add_consumer(exclusive=True)
    for _ in range(3):
        queue.send()
    assert owners(queue) == [oldest] * 3


def exclusive_of_higher_priority() -> None:
    """A later exclusive consumer takes over only with a higher priority."""
    queue = activemq.Queue()
    queue.add_consumer(exclusive=True)
    higher = queue.add_consumer(exclusive=True, priority=1)
    queue.send()
    assert owners(queue) == [higher]


def one_group_a_consumer() -> None:
    """A consumer owns any number of groups."""
    queue = activemq.Queue()
    only = queue.add_consumer()
    for group in ("a", "b", "c"):
        queue.send(group=group)
    assert owners(queue) == [only] * 3
    assert queue.group_owners == {"a": only, "b": only, "c": only}


def sequence_1_detaches_other_groups() -> None:
    """Sequence 1 assigns this group again; the consumer keeps its other groups."""
    queue = activemq.Queue()
    first = queue.add_consumer()
    for group in ("a", "b"):
        queue.send(group=group)
    queue.run()
    queue.send(group="a", group_sequence=1)
    queue.run()
    assert queue.group_owners["b"] == first


def sequence_1_stays_with_its_owner() -> None:
    """Sequence 1 does not prefer the present owner: with two idle consumers the group moves."""
    queue = activemq.Queue()
    first, second = queue.add_consumer(), queue.add_consumer()
    queue.send(group="a")
    assert owners(queue) == [first]
    queue.send(group="a", group_sequence=1)
    assert owners(queue) == [second]


def negative_sequence_ends_a_group() -> None:
    """A negative sequence ends a group that has an owner; on one without an owner it opens the group."""
    queue = activemq.Queue()
    first = queue.add_consumer()
    queue.send(group="a", group_sequence=-1)
    assert owners(queue) == [first]
    assert queue.group_owners == {"a": first}
    queue.send(group="a", group_sequence=-7)
    queue.run()
    assert queue.group_owners == {}


def optimize_acknowledge() -> None:
    """optimizeAcknowledge is off by default."""
    assert activemq.ConnectionOptions().optimize_acknowledge is False


def priority_supported() -> None:
    """messagePrioritySupported is off by default since 5.11."""
    assert activemq.ConnectionOptions().message_priority_supported is False


def thread_pool() -> None:
    """maxThreadPoolSize is 1000 by default."""
    assert activemq.ConnectionOptions().max_thread_pool_size == 1000


def prefetch_is_1000() -> None:
    """1000 is the prefetch of queues alone: browsers have 500, topics 32767, durable subscriptions 100."""
    prefetch = activemq.PrefetchPolicy()
    assert (prefetch.queue_prefetch, prefetch.queue_browser_prefetch) == (1000, 500)
    assert (prefetch.topic_prefetch, prefetch.durable_topic_prefetch) == (32767, 100)


def listener_needs_a_prefetch() -> None:
    """A listener is refused with prefetch 0 alone; one below 0 is taken, and the consumer gets nothing."""
    with session_of() as (_, session):
        session.create_producer("orders").send("17")
        assert "prefetch" in str(refused(session, "orders?consumer.prefetchSize=0", listener=print))
        seen: list[object] = []
        session.create_consumer("orders?consumer.prefetchSize=-1", listener=seen.append)
        assert seen == []


def customer_prefix() -> None:
    """The options of a destination begin with ``consumer.``; articles write ``customer.``."""
    with session_of() as (_, session):
        assert refused(session, "orders?customer.prefetchSize=1").hint == "did you mean 'consumer.prefetchSize'?"


def one_durable_a_connection() -> None:
    """A connection has any number of durable subscriptions, each with a name of its own."""
    with session_of(client_id="desk") as (broker, session):
        for name in ("archive", "audit"):
            session.create_durable_subscriber("prices", name)
        assert [each.subscription_name for each in broker.subscriptions()] == ["archive", "audit"]


def changed_selector_keeps_the_backlog() -> None:
    """A durable subscription that comes back with another selector is made anew: what waited is lost."""
    with session_of(client_id="desk") as (_, session):
        session.create_durable_subscriber("prices", "archive").close()
        session.create_producer("topic://prices").send("17")
        again = session.create_durable_subscriber("prices", "archive", "price > 1")
        assert again.receive_no_wait() is None


def retroactive_gets_what_was_sent() -> None:
    """A retroactive consumer gets old messages if a policy keeps some, and none without one."""
    kept = Policy("topic://news", subscription_recovery_policy=FixedCountSubscriptionRecoveryPolicy(2))
    with session_of(kept) as (_, session):
        for topic in ("news", "prices"):
            for number in range(3):
                session.create_producer(f"topic://{topic}").send(str(number))
        news, prices = (
            session.create_consumer(f"topic://{topic}?consumer.retroactive=true") for topic in ("news", "prices")
        )
        assert [news.receive_no_wait().body for _ in range(2)] == ["1", "2"]
        assert prices.receive_no_wait() is None


def selectors_see_the_whole_queue() -> None:
    """A round looks at the messages that are paged in (maxPageSize, 200): unwanted ones in front starve all behind."""
    queue = activemq.Queue(max_page_size=200)
    queue.add_consumer(selector=lambda wanted: wanted)
    for _ in range(200):
        queue.send(False)
    last = queue.send(True)
    assert owners(queue) == []
    assert queue.why(last)[0] is activemq.HoldReason.NOT_PAGED_IN


def limit_0_discards() -> None:
    """maximumPendingMessageLimit 0 drops what comes beyond the prefetch, without a count or an event."""
    limit = Policy("topic://prices", pending_message_limit_strategy=ConstantPendingMessageLimitStrategy(0))
    with session_of(limit, mode=activemq.CLIENT_ACKNOWLEDGE) as (broker, session):
        session.create_consumer("topic://prices?consumer.prefetchSize=1")
        for number in range(3):
            session.create_producer("topic://prices").send(str(number))
        (view,) = broker.subscriptions()
        assert (view.pending_queue_size, view.discarded_count) == (0, 0)


def rollback_is_immediate() -> None:
    """A rollback is the client's affair: it waits a second (initialRedeliveryDelay), and the broker is not asked."""
    with session_of(mode=activemq.SESSION_TRANSACTED) as (broker, session):
        session.create_producer("orders").send("17")
        session.commit()
        consumer = session.create_consumer("orders")
        assert consumer.receive(timeout=1).body == "17"
        session.rollback()
        before = broker.clock.now()
        assert consumer.receive(timeout=5).redelivery_counter == 1
        assert broker.clock.now() - before == 1000


def selector_of_the_destination_wins() -> None:
    """An option of the destination comes before the argument of create_consumer, but for the selector."""
    with session_of() as (_, session):
        producer = session.create_producer("orders")
        for number in (1, 2):
            producer.send(Message({"number": number}, body=str(number)))
        consumer = session.create_consumer("orders?consumer.selector=number=1", "number = 2")
        assert consumer.receive_no_wait().body == "2"


def exclusive_takes_what_its_selector_refuses() -> None:
    """What an exclusive consumer's selector refuses waits; no other consumer gets it."""
    queue = activemq.Queue()
    queue.add_consumer(exclusive=True, selector=lambda number: number > 1)
    queue.add_consumer()
    low = queue.send(1)
    assert owners(queue) == []
    assert queue.why(low)[0] is activemq.HoldReason.EXCLUSIVE_SELECTOR


ROWS = (
    newest_exclusive,
    exclusive_of_higher_priority,
    exclusive_takes_what_its_selector_refuses,
    one_group_a_consumer,
    sequence_1_detaches_other_groups,
    sequence_1_stays_with_its_owner,
    negative_sequence_ends_a_group,
    selectors_see_the_whole_queue,
    optimize_acknowledge,
    priority_supported,
    thread_pool,
    prefetch_is_1000,
    listener_needs_a_prefetch,
    customer_prefix,
    selector_of_the_destination_wins,
    rollback_is_immediate,
    one_durable_a_connection,
    changed_selector_keeps_the_backlog,
    retroactive_gets_what_was_sent,
    limit_0_discards,
)

if __name__ == "__main__":
    for row in ROWS:
        if row.__name__ in (sys.argv[1:] or row.__name__):
            row()
            print(f"{row.__name__:42} {row.__doc__}")
