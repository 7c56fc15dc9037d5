"""The core's broker rooms against lists and dicts: a queue's index, and locks for ordered consumption."""

from __future__ import annotations

import bisect

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pyengine._engine.rocketmq.broker.consume_queue import ConsumeQueue, PullCode
from pyengine._engine.rocketmq.broker.queue_locks import RebalanceLocks


class IndexMachine(RuleBasedStateMachine):
    """Appending, deleting, pulling and searching, one list entry an offset."""

    def __init__(self) -> None:
        super().__init__()
        self.index = ConsumeQueue()
        self.entries: list[tuple[int, int, int, int]] = []  # position, size, code, time of all offsets ever
        self.first = 0

    @rule(size=st.sampled_from([1, 100, 200_000]), code=st.integers(0, 2), later=st.integers(0, 3))
    def append(self, size: int, code: int, later: int) -> None:
        position = self.entries[-1][0] + self.entries[-1][1] if self.entries else 0
        time = (self.entries[-1][3] if self.entries else 0) + later
        assert self.index.append(position, size, code, time) == len(self.entries)
        self.entries.append((position, size, code, time))

    @rule(offset=st.integers(-1, 30))
    def delete_below(self, offset: int) -> None:
        fresh = max(self.first, min(offset, len(self.entries)))
        assert self.index.delete_below(offset) == fresh - self.first
        self.first = fresh

    @rule(offset=st.integers(0, 30))
    def delete_before_a_position(self, offset: int) -> None:
        if offset < len(self.entries):
            self.index.delete_before(self.entries[offset][0])
            self.first = max(self.first, offset)

    @rule(time=st.integers(-1, 60))
    def search(self, time: int) -> None:
        times = [entry[3] for entry in self.entries[self.first :]]
        assert self.index.search(time) == self.first + bisect.bisect_left(times, time)
        assert self.index.expired_end(time) == self.first + bisect.bisect_left(times, time)

    @rule(
        offset=st.integers(0, 40),
        count=st.integers(1, 40),
        codes=st.one_of(st.none(), st.frozensets(st.integers(0, 2))),
        odd=st.booleans(),
    )
    def pull(self, offset: int, count: int, codes: frozenset[int] | None, odd: bool) -> None:
        code, following, found = self.index.pull(offset, count, codes, (lambda at: at % 2 == 1) if odd else None)
        end = len(self.entries)
        if end == 0:
            assert (code, following) == (PullCode.NOT_FOUND if offset == 0 else PullCode.OFFSET_MOVED, 0)
        elif offset < self.first or offset > end:
            assert (code, following) == (PullCode.OFFSET_MOVED, self.first if offset < self.first else end)
        elif offset == end:
            assert (code, following) == (PullCode.NOT_FOUND, end)
        else:
            wanted = [
                at
                for at in range(offset, end)
                if (codes is None or self.entries[at][2] in codes) and (not odd or at % 2 == 1)
            ]
            expected: list[int] = []
            stop = end
            for at in range(offset, end):
                size = sum(self.entries[taken][1] for taken in expected)
                if expected and (len(expected) >= min(count, 32) or size + self.entries[at][1] > 262_144):
                    stop = at
                    break
                if at in wanted:
                    expected.append(at)
            assert (found, following) == (expected, stop)
            assert code == (PullCode.SUCCESS if found else PullCode.RETRY_IMMEDIATELY)

    @invariant()
    def agrees(self) -> None:
        self.index._check()
        assert (self.index.min_offset, self.index.max_offset) == (self.first, len(self.entries))
        for offset in range(self.first, len(self.entries)):
            assert self.index.position(offset) == self.entries[offset][0]


IndexMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestIndex = IndexMachine.TestCase

steps = st.lists(
    st.tuples(
        st.sampled_from(["lock", "unlock"]),
        st.sampled_from("GH"),
        st.sampled_from(["c1", "c2"]),
        st.sets(st.integers(0, 2), min_size=1),
        st.sampled_from([0, 1, 30_000, 60_000, 60_001]),
    ),
    max_size=30,
)


@given(steps)
def test_locks_belong_to_one_client_until_they_are_given_back_or_sixty_seconds_old(
    script: list[tuple[str, str, str, set[int], int]],
) -> None:
    locks = RebalanceLocks()
    held: dict[tuple[str, int], tuple[str, int]] = {}
    now = 0
    for what, group, client, queues, later in script:
        now += later
        free = {
            queue
            for queue in queues
            if (group, queue) not in held or held[group, queue][0] == client or now - held[group, queue][1] > 60_000
        }
        if what == "lock":
            assert locks.lock(group, client, queues, now) == free
            held.update({(group, queue): (client, now) for queue in free})
        else:
            own = {queue for queue in queues if held.get((group, queue), ("", 0))[0] == client}
            assert locks.unlock(group, client, queues) == own
            for queue in own:
                del held[group, queue]
        locks._check()
        for name in "GH":
            alive = {queue: owner for (g, queue), (owner, at) in held.items() if g == name and now - at <= 60_000}
            assert locks.all_expired(name, now) == (not alive)
            assert all(locks.owner(name, queue, now) == alive.get(queue) for queue in range(3))


@pytest.mark.parametrize(
    ("times", "answers"),
    [  # of the real 5.3.3 store, for the times 0, 10, 20 ... 60
        ([0, 50, 20, 20, 40, 50, 20, 50, 40], [0, 1, 1, 1, 4, 9, 9]),
        ([0, 30, 20, 10], [0, 1, 4, 4, 4, 4, 4]),
        ([30, 30, 0, 0, 0, 40, 50, 40, 30], [0, 0, 0, 5, 9, 9, 9]),
        ([40, 10, 40, 0, 30, 0, 10, 30, 50], [0, 0, 0, 0, 8, 8, 9]),
        ([50, 0, 30, 50, 50, 50, 10, 0, 30], [0, 0, 0, 0, 9, 9, 9]),
        ([0, 10, 0, 0, 0, 30, 30], [2, 5, 5, 5, 7, 7, 7]),
        ([40, 50, 50, 30, 40, 50, 50, 40], [0, 0, 0, 0, 4, 8, 8]),
        ([40, 30, 10, 20, 50], [0, 0, 0, 0, 4, 4, 5]),
        ([20, 50, 10, 40], [0, 0, 0, 1, 1, 4, 4]),
        ([40, 10, 40, 40, 50, 40, 20], [0, 0, 0, 7, 7, 7, 7]),
        ([20, 40, 30, 40, 50, 50], [0, 0, 0, 2, 3, 4, 6]),
        ([50, 50, 50, 0, 40, 50], [0, 0, 0, 0, 0, 0, 6]),
    ],
)
def test_a_search_by_time_where_the_clock_was_set_back(times: list[int], answers: list[int]) -> None:
    index = ConsumeQueue()
    for place, time in enumerate(times):
        index.append(place * 100, 90, 0, time)
    assert [index.search(time) for time in range(0, 61, 10)] == answers


@pytest.mark.parametrize(
    ("times", "first", "answers"),
    [  # of the real 5.3.3 store with four messages a file of its index, those below the first deleted
        ([40, 40, 20, 40, 40, 30, 50, 10, 10, 30, 60, 30, 40], 0, [0, 0, 0, 0, 0, 13, 13]),
        ([50, 10, 40, 50, 20, 30, 50, 40], 0, [0, 0, 0, 0, 0, 3, 8]),
        ([20, 20, 60, 10, 50, 40, 50, 60, 20, 10], 0, [0, 0, 4, 4, 4, 6, 7]),
        ([60, 10, 20, 50, 10, 40, 20, 20, 10, 10, 30], 0, [0, 0, 0, 0, 0, 0, 11]),
        ([10, 40, 60, 60, 30, 10, 60, 20, 60], 0, [0, 0, 1, 1, 1, 2, 2]),
        ([50, 10, 40, 50, 30, 10], 1, [1, 1, 2, 2, 2, 3, 6]),
        ([50, 20, 40, 50, 60, 10, 40, 20, 20], 3, [3, 3, 3, 3, 3, 3, 9]),
        ([50, 40, 20, 10, 40, 20, 60, 40], 3, [3, 3, 4, 4, 6, 8, 8]),
        ([30, 50, 40, 60, 10], 3, [3, 3, 3, 3, 3, 3, 3]),
    ],
)
def test_a_search_by_time_over_several_files_of_the_index(times: list[int], first: int, answers: list[int]) -> None:
    index = ConsumeQueue()
    for place, time in enumerate(times):
        index.append(place * 100, 90, 0, time)
    index.delete_below(first)
    assert [index.search(time, 4) for time in range(0, 61, 10)] == answers


@pytest.mark.parametrize(("back_at", "answer"), [(300_000, 0), (299_999, 300_001)])
def test_a_file_of_the_index_holds_300000_messages(back_at: int, answer: int) -> None:
    index = ConsumeQueue()
    for place in range(300_001):
        index.append(place * 100, 90, 0, 50 if place < back_at else 20)
    assert index.search(30) == answer
