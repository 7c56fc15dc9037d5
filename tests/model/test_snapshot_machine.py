"""A queue cut at any step of a random script, and made again of its bytes, goes on as the model that was never cut."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from pyengine import Message
from pyengine._engine.activemq.queue.queue import Queue
from tests.model.test_queue_machine import SELECTORS, QueueMachine, read


class SnapshotMachine(QueueMachine):
    """The queue machine with cuts: as a step of the script, or before each step."""

    @initialize(always=st.booleans())
    def how_often(self, always: bool) -> None:
        self.always = always
        self.sent: dict[int, object] = {}

    def save(self, thing: object) -> bytes:
        if isinstance(thing, (dict, Message)):
            number = read(thing, "n")
            self.sent[number] = thing
            return b"m%d" % number
        return b"s%d" % SELECTORS.index(thing)  # type: ignore[arg-type]

    def load(self, data: bytes) -> object:
        return self.sent[int(data[1:])] if data[:1] == b"m" else SELECTORS[int(data[1:])]

    @rule()
    def cut(self) -> None:
        data = self.queue.snapshot(save=self.save)
        again = Queue.restore(data, load=self.load)
        assert again.snapshot(save=self.save) == data
        assert again.statistics == self.queue.statistics
        assert again.handles() == self.queue.handles()
        assert again.starts_at == self.queue.starts_at
        assert again.take_removed() == self.queue.take_removed()
        assert self.queue.take_failed() == again.take_failed()
        assert again.hold_counts() == self.queue.hold_counts()
        self.queue = Queue.restore(data, load=self.load)
        self.queue.take_removed()

    @invariant()
    def cut_always(self) -> None:
        if hasattr(self, "queue") and getattr(self, "always", False):
            self.cut()


TestSnapshotMachine = SnapshotMachine.TestCase
TestSnapshotMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
