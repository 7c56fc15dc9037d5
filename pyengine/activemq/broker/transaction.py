"""A local transaction: what was sent and acknowledged in it, applied in that order at commit."""

from __future__ import annotations

from dataclasses import field
from typing import Protocol

from pyengine.dataclass import dataclass
from pyengine.destinations import Destination


class Round(Protocol):
    """A queue whose round comes when every step is applied."""

    def run(self) -> None:
        """Make it."""


class Step(Protocol):
    """Something that was sent or acknowledged."""

    @property
    def together(self) -> Destination | None:
        """The queue that gets it with all others of the transaction, at the first of them; None: by itself."""

    def commit(self) -> Round | None:
        """Apply it. Returns the queue that makes a round then, None for none."""

    def rollback(self) -> None:
        """Take it back."""


def in_order(steps: list[Step]) -> list[Step]:
    """The steps as a commit makes them: the first persistent message of a queue takes the others along, which the store
    has by then (Queue.doPendingCursorAdditions)."""
    together: dict[Destination, list[Step]] = {}
    found: list[list[Step]] = []
    for step in steps:
        queue = step.together
        if queue in together:
            together[queue].append(step)
            continue
        found.append([step])
        if queue is not None:
            together[queue] = found[-1]
    return [step for part in found for step in part]


@dataclass(slots=True, eq=False)
class Transaction:
    """The steps of a transaction of one connection, in order. failed: why it can only be rolled back."""

    transaction_id: str
    connection_id: str
    steps: list[Step] = field(default_factory=list)
    failed: Exception | None = None

    def commit(self) -> None:
        """Apply every step, then make the rounds that they ask for."""
        rounds: dict[Round, None] = {}
        for step in in_order(self.steps):
            due = step.commit()
            if due is not None:
                rounds[due] = None
        for queue in rounds:
            queue.run()

    def rollback(self) -> None:
        """Take every step back."""
        for step in self.steps:
            step.rollback()
