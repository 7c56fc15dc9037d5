from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import disjoint_base

from pyengine._engine.activemq.queue.queue import Queue

@disjoint_base
class RowMask:
    rows: NDArray[np.bool_]
    size: int
    def __new__(cls, rows: ArrayLike) -> Self: ...
    def matches(self, row: int) -> bool: ...

@disjoint_base
class QueueRun:
    queue: Queue
    now: int
    arrived: int
    arrivals: NDArray[np.int64]
    services: NDArray[np.int64]
    consumers: NDArray[np.int64]
    dispatched: NDArray[np.int64]
    started: NDArray[np.int64]
    finished: NDArray[np.int64]
    deliveries: NDArray[np.int32]
    def __new__(
        cls,
        queue: Queue,
        arrivals: ArrayLike,
        services: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        group_sequences: ArrayLike | None = None,
        priorities: ArrayLike | None = None,
        lifetimes: ArrayLike | None = None,
        expire_messages_period: int = 0,
        max_expire_page_size: int = 400,
    ) -> Self: ...
    def add_consumer(
        self,
        *,
        mask: RowMask | None = None,
        threads: int = 1,
        factor: float = 1.0,
        exclusive: bool = False,
        priority: int = 0,
        prefetch: int = 1000,
        name: Hashable | None = None,
        **options: Any,
    ) -> int: ...
    def set_factor(self, consumer: int, factor: float) -> None: ...
    def kill(self, consumer: int) -> None: ...
    def remove_consumer(
        self, consumer: int, *, lost: bool = False, matching: Mapping[int, Iterable[int]] | None = None
    ) -> None: ...
    def run(self, until: int | None = None) -> int: ...
    def utilisation(self) -> dict[int, tuple[int, int]]: ...
