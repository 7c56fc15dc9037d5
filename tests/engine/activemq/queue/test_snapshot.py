"""Snapshots of a queue: what they hold, how small they are, and that damaged ones are refused and never crash."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pyengine import Selector
from pyengine._engine.serialization.codec import SharedValues, seal, unseal
from pyengine.activemq import Queue
from pyengine.errors import SnapshotError

MAGIC, VERSION = b"PYEQ", 2


def busy_queue(kind: str = "cached?cacheSize=4") -> Queue:
    """Messages in every place, groups, an exclusive wish, a transaction, a browser."""
    queue = Queue(max_page_size=6, prioritized_messages=True, message_group_map_factory_type=kind)
    one = queue.add_consumer(prefetch=3, connection="c1", no_local=True)
    two = queue.add_consumer(prefetch=2, priority=3, name="named")
    for n in range(24):
        queue.send(None, group=f"g{n % 5}", priority=n % 10, expiration=90 if n == 7 else 0)
        queue.run(now=n)
    held = queue.unacknowledged(two)
    queue.acknowledge(two, held[0])
    queue.acknowledge(two, held[1], transaction=("t", 1))
    queue.add_consumer(browser=True, prefetch=5)
    queue.run(now=200)
    queue.close(one, lost=True, now=201)
    return queue


@pytest.mark.parametrize("kind", ["cached?cacheSize=4", "simple", "bucket?bucketCount=3"])
def test_a_busy_queue_comes_back_whole(kind: str) -> None:
    queue = busy_queue(kind)
    again = Queue.restore(queue.snapshot())
    again._check()
    assert again.snapshot() == queue.snapshot()
    assert again.statistics == queue.statistics
    assert list(again.group_owners) == list(queue.group_owners)
    assert again.take_removed() == queue.take_removed()
    again.commit(("t", 1))
    queue.commit(("t", 1))
    assert [each.message for each in again.run(300)] == [each.message for each in queue.run(300)]


def test_selectors_texts_and_tuples_need_no_help_and_objects_do() -> None:
    queue = Queue()
    queue.add_consumer(
        selector=Selector("a = 1"), connection=("tuple", 2**70, "\U0001f600\udc00", 1.5, b"x", None, True)
    )
    queue.send({"a": 2})
    with pytest.raises(SnapshotError, match="save="):
        queue.snapshot()
    data = queue.snapshot(save=lambda thing: repr(thing).encode())
    with pytest.raises(SnapshotError, match="load="):
        Queue.restore(data)
    again = Queue.restore(data, load=lambda data: {"a": 2})
    assert again.object_of_handle(again.handles()[0]) == {"a": 2}
    assert again.add_consumer(selector=Selector("a = 2")) == 1
    assert [each.consumer for each in again.run()] == [1]


def test_damaged_bytes_are_refused() -> None:
    data = busy_queue().snapshot()
    for position in range(len(data)):
        with pytest.raises(SnapshotError):
            Queue.restore(data[:position])
        broken = bytearray(data)
        broken[position] ^= 1 << position % 8
        with pytest.raises(SnapshotError):
            Queue.restore(bytes(broken))
    with pytest.raises(SnapshotError, match=f"version {VERSION + 1}"):
        Queue.restore(seal(MAGIC, VERSION + 1, b""))


def test_a_question_that_is_no_pair_is_refused() -> None:
    queue = Queue()
    queue.add_consumer(selector=Selector("a = 1"))
    data = queue.snapshot()
    start, end = unseal(MAGIC, VERSION, data)
    content = data[start:end]
    selector, connection = content.index(b"\x08activemq") - 1, content.index(b"a = 1") + 5
    kind, asked, nobody = content[selector - 2], content[selector:connection], content[connection : connection + 2]
    whole = bytes([kind, 2]) + asked + nobody
    assert whole in content
    for wrong in (
        bytes([kind, 0]),
        bytes([kind, 1]) + asked,
        bytes([kind, 3]) + asked + nobody + nobody,
        bytes([kind, 2]) + asked + asked,
        bytes([kind, 2]) + asked + nobody[:1] + b"\x02",
        asked,
        nobody,
    ):
        with pytest.raises(SnapshotError, match="question"):
            Queue.restore(seal(MAGIC, VERSION, content.replace(whole, wrong)))


def test_wrong_bytes_with_a_right_checksum_never_crash() -> None:
    """Only what a checksum cannot see: what is read makes a whole queue or is refused."""
    data = busy_queue().snapshot()
    start, end = unseal(MAGIC, VERSION, data)
    draw = random.Random(20261121)
    whole = 0
    for _ in range(4_000):
        content = bytearray(data[start:end])
        for _ in range(draw.choice([1, 1, 2, 8])):
            content[draw.randrange(len(content))] = draw.randrange(256)
        try:
            queue = Queue.restore(seal(MAGIC, VERSION, bytes(content)), load=lambda data: data)
        except SnapshotError:
            continue
        whole += 1
        queue.run(1000)
        queue.purge()
    assert whole


def test_a_snapshot_is_small() -> None:
    """A drained queue costs what its settings cost; a waiting message of a batch costs at most twelve bytes."""
    queue = Queue(max_page_size=None)
    for _ in range(3):
        queue.add_consumer()
    empty = len(queue.snapshot())
    assert empty < 140
    queue.offer_batch(10_000)
    assert len(queue.snapshot()) < empty + 40
    held = Queue(max_page_size=None)
    held.add_consumer(prefetch=1)
    held.offer_batch(10_000, groups=held.intern_groups(["g"])[np.zeros(10_000, np.int64)], acknowledge="never")
    assert len(held.snapshot()) < 12 * 10_000


def test_forgotten_groups_are_not_carried() -> None:
    queue = Queue(message_group_map_factory_type="cached?cacheSize=2")
    queue.add_consumer()
    queue.offer_batch(1_000, groups=queue.intern_groups([f"group-{n}" for n in range(1_000)]))
    assert len(queue.snapshot()) < 200


def test_queues_share_group_names_and_selectors() -> None:
    queues = [Queue(), Queue()]
    for queue in queues:
        queue.add_consumer(selector=Selector("price > 10"))
        queue.offer_batch(
            40, groups=queue.intern_groups([f"group-{n}" for n in range(40)]), matches=np.full(40, 3, "u8")
        )
    shared = SharedValues()
    written = [queue.snapshot(shared=shared) for queue in queues]
    assert len(shared) == 41
    assert len(written[0]) < len(queues[0].snapshot()) - 300
    read = SharedValues.restore(shared.snapshot())
    for queue, data in zip(queues, written, strict=True):
        again = Queue.restore(data, shared=read)
        again._check()
        assert again.snapshot() == queue.snapshot()
        assert again.intern_groups(["group-7"]).tolist() == queue.intern_groups(["group-7"]).tolist()
        for other in (None, SharedValues()):
            with pytest.raises(SnapshotError):
                Queue.restore(data, shared=other)
    with pytest.raises(SnapshotError):
        SharedValues.restore(shared.snapshot()[:-1])
