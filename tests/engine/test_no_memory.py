"""Where memory ends, at whichever allocation, the core raises MemoryError and goes on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = r"""
import sys
import _testcapi
import pyengine
from pyengine import activemq, rocketmq
from pyengine._engine.activemq.queue.queue import AckKind
from pyengine._engine.activemq.topic.topics import TopicRegion
from pyengine._engine.lowlevel.memory import fail_allocations

SELECTORS = {f"k{n}": f"p{n % 7} = 'x{n}' AND q > {n} OR r LIKE 'a%b{n}'" for n in range(90)}
MESSAGE = {"p1": "x1", "q": 10**6, "r": "a b4", "s": 1.5}


class Record:
    def __init__(self, offset):
        self.queue_offset, self.body = offset, "body"


def fresh(names=iter(range(1000, 10**9))):  # above 256: no number is there already
    return next(names)


def subscriptions():
    made = pyengine.Subscriptions(SELECTORS)
    yield made._check, lambda: None
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

    def check():
        made._check()
        statistics = made.statistics
        assert statistics["enqueues"] == statistics["dequeues"] + len(made)

    def note(deliveries):
        for each in deliveries:
            assert each.message not in given or each.redeliveries, "handed out twice"
            given[each.message] = each
        return deliveries

    def send(many=1):
        for _ in range(many):
            made.send(dict(MESSAGE), group=f"g{fresh()}", connection=f"c{fresh()}")

    yield check, lambda: None
    wanted = made.add_consumer(selector=pyengine.Selector("p1 = 'x1'"), prefetch=10**6)
    made.add_consumer(prefetch=10**6)
    yield send
    yield lambda: note(made.run())
    yield lambda: [made.acknowledge(wanted, handle) for handle in made.unacknowledged(wanted)[:3]]
    yield lambda: made.snapshot(save=lambda body: b"")
    yield lambda: activemq.Queue.restore(made.snapshot(save=lambda body: b""), load=lambda data: {})

    # A call that fails has done nothing: the same one works, and only once.
    def joins(**settings):
        before = made.statistics["consumers"]
        try:
            number = made.add_consumer(selector=pyengine.Selector(f"p1 = 'x{fresh()}' OR q > 0"), **settings)
        except MemoryError:
            assert made.statistics["consumers"] == before
            raise
        assert made.statistics["consumers"] == before + 1
        return number

    yield joins
    yield lambda: joins(browser=True)
    yield lambda: joins(connection=f"c{fresh()}", no_local=True, name=f"n{fresh()}")
    yield lambda: note(made.run())

    leaving = []

    def leave(**settings):
        if not leaving:
            leaving.append(made.add_consumer(selector=pyengine.Selector("q > 0"), prefetch=5))
            send(20)
            note(made.run())
        made.close(leaving[0], **settings)
        leaving.clear()

    yield leave
    yield lambda: leave(lost=True)
    given.clear()
    transaction = f"t{fresh()}"
    yield lambda: (send(), note(made.run()), [
        made.acknowledge(wanted, handle, transaction=transaction) for handle in made.unacknowledged(wanted)[-2:]])
    yield lambda: made.commit(transaction)
    yield lambda: (send(2), made.run(now=2**50))
    yield lambda: [made.acknowledge(wanted, handle, kind=AckKind.POISON) for handle in made.unacknowledged(wanted)[:1]]
    yield lambda: [made.send(dict(MESSAGE), expiration=5) for _ in range(3)]
    yield lambda: made.expire(10**6)
    yield lambda: made.purge()
    yield lambda: (send(30), made.run())


def plain_queue():
    yield from queue(message_group_map_factory_type="simple")
    yield from queue(message_group_map_factory_type="bucket", max_page_size=None, prioritized_messages=True)


def long_queue():
    # So much waits, in so many groups, that every array grows, and the index is lost and made again.
    made = activemq.Queue()
    full = made.add_consumer(prefetch=1)
    yield made._check, lambda: None
    number = 0

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


def process_queue():
    made = rocketmq.ProcessQueue()
    yield made._check, lambda: None
    number = iter(range(10**6))
    yield lambda: made.put_messages([Record(next(number)) for _ in range(40)])
    yield lambda: made.take_messages(3)
    yield lambda: made.make_message_to_consume_again(made.take_messages(2))
    yield lambda: (made.take_messages(1), made.commit())
    yield lambda: made.remove_messages(made.cached_offsets[:5])


def topics():
    made = TopicRegion()
    yield made._check, lambda: None
    topic = made.add_topic()
    watcher = made.subscribe([topic], selector=pyengine.Selector("p1 = 'x1'"), prefetch=10)
    lasting = made.subscribe([topic], selector=pyengine.Selector("q > 0"), client_id="c", subscription_name="s")
    yield lambda: made.send(topic, dict(MESSAGE), connection=f"c{fresh()}")
    yield lambda: [made.send(topic, dict(MESSAGE)) for _ in range(9)]
    yield lambda: [made.acknowledge(watcher, handle) for handle in made.unacknowledged(watcher)[:3]]
    yield lambda: [made.acknowledge(lasting, handle) for handle in made.unacknowledged(lasting)[:3]]
    transaction = f"t{fresh()}"
    yield lambda: [made.acknowledge(lasting, handle, transaction=transaction)
                   for handle in made.unacknowledged(lasting)[:2]]
    yield lambda: made.commit(transaction)
    yield lambda: made.subscribe([topic], selector=pyengine.Selector(f"p1 = 'y{fresh()}'"))


def tried(call, check):
    # Allocation k fails, and then every later one too: Python's, the core's own.
    for fail in (_testcapi.set_nomemory, fail_allocations):
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
                break
    call()
    check()


check = None
for step in globals()[sys.argv[1]]():
    if type(step) is tuple:
        check, _ = step
        continue
    step()
    tried(step, check)
print("done")
"""

ROOMS = ["subscriptions", "queue", "plain_queue", "long_queue", "process_queue", "topics"]


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
