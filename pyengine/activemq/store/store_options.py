"""How a store is written and read: when it is synced, and the orders in which a cursor reads messages, by priority."""

from collections.abc import Sequence
from typing import Literal

SyncStrategy = Literal["always", "periodic", "never"]
# Priorities (from, to) whose messages come before those of the next ones, in the order of their sequence numbers.
Bands = Sequence[tuple[int, int]]
ALL: Bands = ((0, 9),)
EACH: Bands = tuple((priority, priority) for priority in range(9, -1, -1))
LEVELS: Bands = ((5, 9), (4, 4), (0, 3))
