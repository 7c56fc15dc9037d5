"""Where memory ends, at whichever allocation, the core raises MemoryError and goes on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = r"""
import sys, faulthandler
import _testcapi
import pyengine
from pyengine import activemq, rocketmq

SELECTORS = {f"k{n}": f"p{n % 7} = 'x{n}' AND q > {n} OR r LIKE 'a%b{n}'" for n in range(90)}
MESSAGE = {"p1": "x1", "q": 10**6, "r": "a b4", "s": 1.5}


class Record:
    def __init__(self, offset):
        self.queue_offset, self.body = offset, "body"


def subscriptions():
    made = pyengine.Subscriptions(SELECTORS)
    yield lambda: made.match(MESSAGE)
    yield lambda: made.match_batch([MESSAGE] * 3)
    number = iter(range(10**6))
    yield lambda: made.add(f"new{next(number)}", "p1 = 'y'")
    yield lambda: made.replace("k1", "p2 = 'z'")
    yield lambda: (made.add(key := f"gone{next(number)}", "p3 = 'y'"), made.remove(key))
    yield lambda: pyengine.Subscriptions(SELECTORS)
    yield lambda: same(made)
    made.optimize()
    same(made)
    made._check()


def same(made):
    assert made.match(MESSAGE) == [key for key in made if made[key].matches(MESSAGE)]


def queue():
    made = activemq.Queue()
    wanted = made.add_consumer(selector=pyengine.Selector("p1 = 'x1'"), prefetch=10**6)
    made.add_consumer(prefetch=10**6)
    number = iter(range(10**6))
    yield lambda: made.send(dict(MESSAGE), group=f"g{next(number)}", connection=f"c{next(number)}")
    yield lambda: made.run()
    yield lambda: [made.acknowledge(wanted, handle) for handle in made.unacknowledged(wanted)[:3]]
    yield lambda: made.snapshot(save=lambda body: b"")
    yield lambda: activemq.Queue.restore(made.snapshot(save=lambda body: b""), load=lambda data: {})
    yield made._check


def process_queue():
    made = rocketmq.ProcessQueue()
    number = iter(range(10**6))
    yield lambda: made.put_messages([Record(next(number)) for _ in range(40)])
    yield lambda: made.take_messages(3)
    yield lambda: made.make_message_to_consume_again(made.take_messages(2))
    yield lambda: (made.take_messages(1), made.commit())
    yield lambda: made.remove_messages(made.cached_offsets[:5])
    yield made._check


def tried(call):
    # Allocation k and every later one of the call fails; then only that one.
    for stop in (0, 1):
        for k in range(1, 100_000):
            _testcapi.set_nomemory(k, k + stop if stop else 0)
            try:
                call()
            except MemoryError:
                _testcapi.remove_mem_hooks()
                continue
            finally:
                _testcapi.remove_mem_hooks()
            break


for steps in {"subscriptions": subscriptions, "queue": queue, "process_queue": process_queue}[sys.argv[1]]():
    steps()
    tried(steps)
print("done")
"""


@pytest.mark.parametrize("room", ["subscriptions", "queue", "process_queue"])
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
