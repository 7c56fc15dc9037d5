"""Where memory ends, at whichever allocation, the core raises MemoryError and goes on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = r"""
import sys
import _testcapi
import numpy as np
import pyengine
from pyengine import activemq, rocketmq
from pyengine._engine.activemq.commands.message_ack import AckKind, MessageAck
from pyengine._engine.activemq.region.prefetch_subscription import PrefetchSubscription
from pyengine._engine.activemq.region.region_queue import RegionQueue
from pyengine._engine.activemq.topic.topics import TopicRegion
from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch
from pyengine._engine.lowlevel.memory import fail_allocations
from pyengine.activemq._runtime.dispatch_task import DispatchTask
from pyengine.clock import ManualClock

SELECTORS = {f"k{n}": f"p{n % 7} = 'x{n}' AND q > {n} OR r LIKE 'a%b{n}'" for n in range(90)}
MESSAGE = {"p1": "x1", "q": 10**6, "r": "a b4", "s": 1.5}


class Record:
    def __init__(self, offset):
        self.queue_offset, self.body = offset, "body"


def fresh(names=iter(range(1000, 10**9))):  # above 256: no number is there already
    return next(names)


def subscriptions():
    made = pyengine.Subscriptions(SELECTORS)
    yield made._check, PYTHON, CORE
    yield lambda: made.match(MESSAGE)
    yield lambda: made.match_batch([MESSAGE] * 3)
    yield lambda: made.add(f"new{fresh()}", "p1 = 'y'")
    yield lambda: made.replace("k1", "p2 = 'z'")
    yield lambda: (made.add(key := f"gone{fresh()}", "p3 = 'y'"), made.remove(key))
    yield lambda: pyengine.Subscriptions(SELECTORS)
    yield lambda: same(made)
    made.optimize()
    same(made)


def same(made):
    assert made.match(MESSAGE) == [key for key in made if made[key].matches(MESSAGE)]


def queue(**settings):
    made = activemq.Queue(**settings)
    given = {}
    joined = [None]
    number = 1

    def check():
        # Ids are those that come next: a call that failed has added nobody.
        nonlocal number
        made._check()
        if joined[0] is not None:
            assert joined[0] == number + 1
            number = joined[0]
            joined[0] = None

    def note(deliveries):
        for each in deliveries:
            assert (each.consumer, each.message) not in given or each.redeliveries, "handed out twice"
            given[each.consumer, each.message] = each
        return deliveries

    def send(many=1):
        for _ in range(many):
            made.send(dict(MESSAGE), group=f"g{fresh()}", connection=f"c{fresh()}")

    yield check, PYTHON, CORE
    wanted = made.add_consumer(selector=pyengine.Selector("p1 = 'x1'"), prefetch=10**6)
    made.add_consumer(prefetch=10**6)
    yield send
    yield lambda: note(made.run())
    yield lambda: [made.acknowledge(wanted, handle) for handle in made.unacknowledged(wanted)[:3]]
    yield lambda: made.snapshot(save=lambda body: b"")
    yield lambda: activemq.Queue.restore(made.snapshot(save=lambda body: b""), load=lambda data: {})

    def joins(**settings):
        joined[0] = made.add_consumer(selector=pyengine.Selector(f"p1 = 'x{fresh()}' OR q > 0"), **settings)

    yield joins
    yield lambda: joins(browser=True)
    yield lambda: joins(connection=f"c{fresh()}", no_local=True, name=f"n{fresh()}")
    yield lambda: note(made.run())

    leaving = []

    def leave(**settings):
        nonlocal number
        if not leaving:
            number += 1
            leaving.append(made.add_consumer(selector=pyengine.Selector("q > 0"), prefetch=5))
            send(20)
            note(made.run())
        made.close(leaving[0], **settings)
        leaving.clear()

    yield leave
    yield lambda: leave(lost=True)
    yield lambda: leave(lost=True, matching={made.predicate_of(wanted): range(100)})
    given.clear()
    transaction = f"t{fresh()}"

    # No comprehensions: where CPython 3.11 has no memory for one's function, it returns without an error.
    def acknowledge(**settings):
        made.rollback(transaction)
        send()
        note(made.run())
        for handle in made.unacknowledged(wanted)[-2:]:
            made.acknowledge(wanted, handle, **settings)

    yield lambda: acknowledge(transaction=transaction)
    yield lambda: made.commit(transaction)
    yield lambda: acknowledge(kind=AckKind.POISON)
    yield lambda: made.send(dict(MESSAGE), expiration=5)
    yield lambda: made.run(now=10**6)
    yield lambda: made.send(dict(MESSAGE), expiration=10**7)
    yield lambda: made.expire(10**8)
    yield lambda: made.purge()
    send(30)
    yield lambda: made.run()


def plain_queue():
    yield from queue(message_group_map_factory_type="simple")
    yield from queue(message_group_map_factory_type="bucket", max_page_size=None, prioritized_messages=True)


def long_queue():
    # So much waits, in so many groups, that every array grows, and the index is lost and made again.
    made = activemq.Queue()
    full = made.add_consumer(prefetch=1)
    yield made._check, CORE

    def send():
        made.send({"n": 1}, group=f"g{fresh()}", priority=fresh() % 10)

    def round_of(many):
        for _ in range(many):
            send()
        return made.run()

    for size in (70, 140, 150):
        yield lambda: round_of(size)
    served = []

    def serve():
        served.extend(made.run())
        while held := made.unacknowledged(full):
            made.acknowledge(full, held[0])
            served.extend(made.run())

    yield serve
    assert made.statistics["waiting"] == made.statistics["in_flight"] == 0
    assert [each.message for each in served] == list(dict.fromkeys(each.message for each in served))


def region_queue():
    made = RegionQueue(cursor="memory")
    made.owner = object()
    made.destination = "Q"
    watchers = []
    number = iter(range(10**9))

    def sent(many=1):
        messages = []
        for _ in range(many):
            messages.append(pyengine.Message({"p1": "x1", "q": 1}, message_id=f"m{next(number)}"))
        return messages

    def put(many=1):
        for message in sent(many):
            made.put(message)

    def joined(**settings):
        subscription = PrefetchSubscription()
        subscription.consumer_id = f"c{fresh()}"
        subscription.route = subscription
        return made.subscribe(subscription, **settings), subscription

    def check():
        # What a subscription holds is what the queue says, but for dispatches that wait to be made.
        made._check()
        for id, subscription in watchers:
            here = made.unacknowledged(id)
            for key in subscription.held:
                assert subscription.find(key, made.owner)[1] in here

    yield check, PYTHON, CORE
    watchers.append(joined(selector=pyengine.Selector("p1 = 'x1'"), prefetch=10**6))
    yield put
    yield made.run
    yield lambda: joined(selector=pyengine.Selector(f"p1 = 'x{fresh()}' AND q < 0"))
    yield lambda: joined(connection=f"c{fresh()}", no_local=True, prefetch=-1)
    leaving = []

    def leave(**settings):
        if not leaving:
            leaving.append(joined(selector=pyengine.Selector("q > 0"), prefetch=5)[0])
            put(10)
            made.run()
            for handle in made.unacknowledged(leaving[0])[:1]:
                made.take_off_message(handle)
        made.unsubscribe(leaving[0], **settings)
        leaving.clear()

    yield leave
    yield lambda: leave(lost=True)
    made.run()
    id, subscription = watchers[0]
    held = made.unacknowledged(id)
    assert [subscription.find(key, made.owner)[1] for key in subscription.held] == held
    for message_id in list(subscription.held):
        made.answer(subscription, id, MessageAck("c", None, AckKind.INDIVIDUAL, message_id), 0)
    assert not subscription.held and not made.unacknowledged(id)


def batches():
    made = activemq.Queue()
    yield made._check, CORE  # numpy itself does not survive failures of Python's allocations
    busy = made.add_consumer(selector=pyengine.Selector("p1 = 'x1'"), prefetch=3)
    made.add_consumer(prefetch=2)
    matches = np.array([[1], [3], [1]] * 20, np.uint64)
    groups = made.intern_groups(["a", "b", None] * 20)
    def offer(**settings):
        consumers, sequences, order = made.offer_batch(60, matches=matches, groups=groups, **settings)
        assert len(consumers) == 60

    yield offer
    yield lambda: offer(acknowledge="never")
    yield lambda: offer(acknowledge=[busy], expirations=np.ones(60, np.int64), arrivals=np.arange(60))
    again = []

    def leave():
        if not again:
            again.append(made.add_consumer(prefetch=2, matching=[]))
        made.close(again[0], lost=True, matching={made.predicate_of(busy): range(100)})
        again.clear()

    yield leave
    yield lambda: made.purge()


def process_queue():
    made = rocketmq.ProcessQueue()
    yield made._check, PYTHON, CORE
    number = iter(range(10**6))
    yield lambda: made.put_messages([Record(next(number)) for _ in range(40)])
    yield lambda: made.take_messages(3)
    yield lambda: made.make_message_to_consume_again(made.take_messages(2))
    yield lambda: (made.take_messages(1), made.commit())
    yield lambda: made.remove_messages(made.cached_offsets[:5])


def topics():
    made = TopicRegion()
    yield made._check, CORE
    topic = made.add_topic("T")
    watcher = made.add_subscription(selector=pyengine.Selector("p1 = 'x1'"), prefetch=10)
    made.attach(watcher, topic)
    lasting, _ = made.subscribe("c", "s", [topic], selector=pyengine.Selector("q > 0"))
    yield lambda: made.send(topic, dict(MESSAGE), connection=f"c{fresh()}")
    yield lambda: [made.send(topic, dict(MESSAGE)) for _ in range(9)]
    yield lambda: [made.acknowledge(watcher, handle) for handle in made.unacknowledged(watcher)[:3]]
    yield lambda: [made.acknowledge(lasting, handle) for handle in made.unacknowledged(lasting)[:3]]
    transaction = f"t{fresh()}"
    yield lambda: [made.acknowledge(lasting, handle, transaction=transaction)
                   for handle in made.unacknowledged(lasting)[:2]]
    yield lambda: made.commit(transaction)
    yield lambda: made.add_subscription(selector=pyengine.Selector(f"p1 = 'y{fresh()}'"))
    yield lambda: made.subscribe(f"c{fresh()}", "s", [topic], selector=pyengine.Selector(f"p1 = 'y{fresh()}'"))


def runtime():
    # What a broker's connection hands out by itself, and what a session's listener gets.
    clock = ManualClock()
    broker = activemq.Broker(clock=clock)
    connection = activemq.ConnectionFactory("vm://localhost", broker=broker).create_connection()
    connection.start()
    session = connection.create_session()
    heard = []
    session.create_consumer("Q").message_listener = heard.append
    producer = session.create_producer("Q")

    class Sink:
        dispatch_all = None

        def dispatch(self, dispatch):
            return None

    task = DispatchTask(clock, "task", Sink(), None)
    given = MessageDispatch("c", None, None)
    yield lambda: None, PYTHON
    yield lambda: task(given)
    clock.advance(1)
    for _ in range(3):
        producer.send(pyengine.Message(body="x"))
    yield session.wake_up
    clock.advance(1)
    assert len(heard) == 3
    yield task.close
    connection.close()
    broker.close()


PYTHON, CORE = _testcapi.set_nomemory, fail_allocations


def tried(call, check, *allocators):
    # Allocation k and every later one of the call fails; then only that one.
    for fail in allocators:
        for stop in (0, 1):
            for k in range(1, 100_000):
                fail(k, k + stop if stop else 0)
                try:
                    call()
                except MemoryError:
                    _testcapi.remove_mem_hooks()
                    fail_allocations(0)
                    check()
                    continue
                finally:
                    _testcapi.remove_mem_hooks()
                    fail_allocations(0)
                check()
                break
    call()
    check()


for step in globals()[sys.argv[1]]():
    if type(step) is tuple:  # how it is checked, and whose allocations fail
        how = step
        continue
    step()
    how[0]()
    tried(step, *how)
print("done")
"""

ROOMS = [
    "subscriptions",
    "queue",
    "plain_queue",
    "long_queue",
    "region_queue",
    "batches",
    "process_queue",
    "topics",
    "runtime",
]


@pytest.mark.parametrize("room", ROOMS)
def test_the_kth_allocation_fails(room: str, tmp_path: Path) -> None:
    """A process of its own for each room: a mistake there is a segmentation fault."""
    pytest.importorskip("_testcapi", reason="this Python is built without its test modules")
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", PROGRAM, room],
        capture_output=True,
        encoding="utf-8",
        env=os.environ,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-3000:]
