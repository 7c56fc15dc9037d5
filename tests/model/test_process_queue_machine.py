"""ProcessQueue against its model: the same answers, state and invariants after every random step."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pyengine.rocketmq import ProcessQueue
from tests.model.process_queue_model import ProcessQueueModel, Record

EDGE = 2**63 - 1
# Dense runs, chunk borders, empty chunks between, wide gaps, negative offsets and both ends of the range.
OFFSETS = st.one_of(
    st.integers(0, 200),
    st.integers(-130, 130),
    st.integers(-300, 300).map(lambda chunk: chunk * 1024),
    st.sampled_from([-EDGE - 1, -EDGE, EDGE, EDGE - 1, 10**12, 10**12 + 63, 10**12 + 64]),
)
RECORDS = st.lists(
    st.builds(
        Record,
        OFFSETS,
        st.one_of(st.none(), st.integers(0, 40).map(bytes)),
        st.one_of(st.just({}), st.integers(-5, 300).map(lambda end: {"MAX_OFFSET": str(end)})),
    ),
    max_size=12,
)


class ProcessQueueMachine(RuleBasedStateMachine):
    """Random operations on both."""

    def __init__(self) -> None:
        super().__init__()
        self.real = ProcessQueue()
        self.model = ProcessQueueModel()

    @rule(records=RECORDS)
    def put(self, records: list[Record]) -> None:
        assert self.real.put_messages(records) == self.model.put(records)

    @rule(start=OFFSETS.filter(lambda offset: abs(offset) < 10**13), count=st.integers(1, 150))
    def put_a_run(self, start: int, count: int) -> None:
        records = [Record(start + i, b"x") for i in range(count)]
        assert self.real.put_messages(records) == self.model.put(records)

    @rule(
        start=OFFSETS.filter(lambda offset: abs(offset) < 10**13),
        count=st.integers(1, 150),
        step=st.just(1) | st.integers(1, 90),
    )
    def put_offsets_alone(self, start: int, count: int, step: int) -> None:
        offsets = range(start, start + count * step, step)
        assert self.real.put_messages(offsets) == self.model.put([Record(offset, None) for offset in offsets])

    @rule(data=st.data(), alone=st.booleans())
    def finish(self, data: st.DataObject, alone: bool) -> None:
        record = data.draw(st.sampled_from([*self.model.tree.values(), Record(7, b"seven")]))
        finished = self.real.finish(record.queue_offset if alone else record)
        assert finished == self.model.remove([Record(record.queue_offset, None) if alone else record])

    @rule(records=RECORDS)
    def remove(self, records: list[Record]) -> None:
        assert self.real.remove_messages(records) == self.model.remove(records)

    @rule(data=st.data())
    def remove_known(self, data: st.DataObject) -> None:
        known = sorted(self.model.tree)
        chosen = data.draw(st.lists(st.sampled_from(known), unique=True)) if known else []
        records = [self.model.tree[offset] for offset in chosen]
        assert self.real.remove_messages(records) == self.model.remove(records)

    @rule(size=st.integers(0, 40))
    def take(self, size: int) -> None:
        taken = [Record(one, None) if isinstance(one, int) else one for one in self.real.take_messages(size)]
        assert taken == self.model.take(size)

    @precondition(lambda self: self.model.consuming_tree)
    @rule()
    def commit(self) -> None:
        assert self.real.commit() == self.model.commit()

    @rule()
    def rollback(self) -> None:
        self.real.rollback()
        self.model.rollback()

    @rule(records=RECORDS)
    def again(self, records: list[Record]) -> None:
        self.real.make_message_to_consume_again(records)
        self.model.again(records)

    @rule()
    def clear(self) -> None:
        self.real.clear()
        self.model.clear()

    @invariant()
    def same(self) -> None:
        self.real._check()
        assert self.real.cached_offsets == sorted(self.model.tree)
        assert self.real.taken_offsets == sorted(self.model.consuming_tree)
        real = (self.real.message_count, self.real.message_size, self.real.queue_offset_max, self.real.accumulated)
        assert real == (self.model.count, self.model.size, self.model.offset_max, self.model.accumulated)
        assert self.real.consuming == self.model.consuming


TestProcessQueue = ProcessQueueMachine.TestCase
TestProcessQueue.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
