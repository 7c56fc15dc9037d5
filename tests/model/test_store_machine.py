"""SqliteStore against dicts: what lies in it after every random step, and after it is opened again."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from pyengine import Message
from pyengine.activemq.store.journal import MOST
from pyengine.activemq.store.store import SqliteStore
from pyengine.activemq.store.store_reader import StoreReader

QUEUES = ["queue://a", "queue://b"]
TOPIC = "topic://t"
NAMES = ["a", "b", "c"]  # of subscriptions
LARGE = st.sampled_from([MOST // 3, MOST]).map("x".__mul__)  # that fill the journal, or that it has no room for


class StoreMachine(RuleBasedStateMachine):
    """One unit after another, of one change or of several; a unit is sealed, written or brought in by a question."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.store = SqliteStore(self.folder.name, "never")
        self.kept: dict[int, tuple[str, int, int]] = {}  # sequence -> destination, priority, redeliveries
        self.waiting: dict[int, set[int]] = {}  # subscription -> sequences
        self.names: dict[int, str] = {}  # subscription -> name
        self.sealed = True

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    def some(self, data: st.DataObject, where: Callable[[str], bool]) -> int:
        return data.draw(st.sampled_from([number for number, (name, _, _) in self.kept.items() if where(name)]))

    @rule(name=st.sampled_from(QUEUES), priority=st.integers(0, 9), text=st.none() | st.text(max_size=3) | LARGE)
    def add(self, name: str, priority: int, text: str | None) -> None:
        message = Message({"text": (text or "-")[:3]}, priority=priority, body=text)
        number = self.store.add(self.store.destination(name), message)
        assert number > max(self.kept, default=0)
        self.kept[number] = (name, priority, 0)
        self.sealed = False

    @precondition(lambda self: any(name in QUEUES for name, _, _ in self.kept.values()))
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        number = self.some(data, QUEUES.__contains__)
        self.store.remove(self.store.destination(self.kept.pop(number)[0]), number)
        self.sealed = False

    @precondition(lambda self: any(name in QUEUES for name, _, _ in self.kept.values()))
    @rule(data=st.data(), name=st.none() | st.sampled_from(QUEUES))
    def exchange(self, data: st.DataObject, name: str | None) -> None:
        """A unit of one message that goes and perhaps one that comes, as a consumer and a producer make them."""
        self.seal(wait=True)
        self.remove(data)
        if name is not None:
            self.add(name, 4, None)
        self.seal(wait=True)

    @precondition(lambda self: self.kept)
    @rule(data=st.data(), redeliveries=st.integers(1, 5))
    def redelivered(self, data: st.DataObject, redeliveries: int) -> None:
        number = self.some(data, lambda name: True)
        name, priority, _ = self.kept[number]
        self.kept[number] = (name, priority, redeliveries)
        self.store.redelivered(self.store.destination(name), number, redeliveries)
        self.sealed = False

    @precondition(lambda self: len(self.waiting) < len(NAMES))
    @rule(data=st.data())
    def subscribe(self, data: st.DataObject) -> None:
        """Perhaps with the name of one that has ended."""
        name = data.draw(st.sampled_from([each for each in NAMES if each not in self.names.values()]))
        number = self.store.add_subscription("client", name, TOPIC, None, False)
        self.waiting[number] = set()
        self.names[number] = name
        self.sealed = False

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def publish(self, data: st.DataObject) -> None:
        topic = self.store.destination(TOPIC)
        number = self.store.add(topic, Message({"n": 1}))
        self.kept[number] = (TOPIC, 4, 0)
        for subscription in data.draw(st.sets(st.sampled_from(sorted(self.waiting)), min_size=1)):
            self.store.refer(subscription, topic, number)
            self.waiting[subscription].add(number)
        self.sealed = False

    @precondition(lambda self: any(self.waiting.values()))
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        subscription = data.draw(st.sampled_from([each for each, numbers in self.waiting.items() if numbers]))
        number = data.draw(st.sampled_from(sorted(self.waiting[subscription])))
        self.waiting[subscription].remove(number)
        self.store.release(subscription, self.store.destination(TOPIC), number)
        self.forget_the_unwanted()

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def unsubscribe(self, data: st.DataObject) -> None:
        subscription = data.draw(st.sampled_from(sorted(self.waiting)))
        del self.waiting[subscription], self.names[subscription]
        self.store.remove_subscription(subscription)
        self.forget_the_unwanted()

    def forget_the_unwanted(self) -> None:
        wanted: set[int] = set().union(*self.waiting.values())
        for number in [each for each, (name, _, _) in self.kept.items() if name == TOPIC and each not in wanted]:
            del self.kept[number]
        self.sealed = False

    @rule(wait=st.booleans())
    def seal(self, wait: bool) -> None:
        unit = self.store.seal()
        if wait:
            self.store.wait(unit)
        self.sealed = True

    @precondition(lambda self: self.sealed)
    @rule()
    def write(self) -> None:
        assert self.store.write()

    @rule()
    def open_again(self) -> None:
        self.store.close()
        self.store = SqliteStore(self.folder.name, "never")
        self.sealed = True
        for name in self.store.destinations():
            assert self.store.count(self.store.destination(name)) == len(self.of(name))
        assert {each.number: each.name for each in self.store.subscriptions()} == self.names
        self.look()

    @rule()
    def killed(self) -> None:
        """What the files hold without the process, to a reader and to the store that is opened next."""
        self.store.seal()
        assert self.store.write()
        with tempfile.TemporaryDirectory() as folder:
            left = shutil.copytree(self.folder.name, Path(folder) / "left")
            reader = StoreReader(left)
            assert reader.newest() == max(self.kept, default=0)
            for name, number in reader.destinations().items():
                found = reader.messages(number, 0, 1 << 40)
                assert [(each.sequence, each.priority, each.redeliveries) for each in found] == self.of(name)
            store, self.store = self.store, SqliteStore(left, "never")
            try:
                self.look()
            finally:
                self.store.close()
                self.store = store
        self.sealed = True

    def of(self, name: str) -> list[tuple[int, int, int]]:
        """Sequence, priority and redeliveries of a destination's messages, in order."""
        return [(number, *rest) for number, (where, *rest) in sorted(self.kept.items()) if where == name]

    @rule()
    def look(self) -> None:
        for name in [*QUEUES, TOPIC]:
            assert self.store.size(name) == len(self.of(name))
            found = self.store.load(self.store.destination(name), (0, -1), -1)
            assert [(each.sequence, each.priority, each.redeliveries) for each in found] == self.of(name)
        for subscription, numbers in self.waiting.items():
            found = self.store.load_waiting(subscription, self.store.destination(TOPIC), (0, -1), -1, by_priority=False)
            assert {each.sequence for each in found} == numbers


StoreMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
test_store_machine: Any = StoreMachine.TestCase
