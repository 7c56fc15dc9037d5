from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import disjoint_base

@disjoint_base
class Line:
    stored: int
    @property
    def queue(self) -> Any: ...
    @property
    def size(self) -> int: ...

@disjoint_base
class Member:
    @property
    def name(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def work(self) -> int: ...
    @property
    def finished(self) -> int: ...
    @property
    def count_holds(self) -> int: ...
    @property
    def size_holds(self) -> int: ...
    @property
    def span_holds(self) -> int: ...

@disjoint_base
class Share: ...

@disjoint_base
class PullRun:
    def __init__(
        self,
        group: str,
        queues: Iterable[Any],
        allocate: Callable[[str, list[str], bool], Sequence[Any]],
        arrivals: ArrayLike,
        services: ArrayLike,
        lines: ArrayLike,
        *,
        failures: ArrayLike | None = None,
        sizes: ArrayLike | None = None,
        round_trip: int = 1_000_000,
    ) -> None: ...
    @property
    def now(self) -> int: ...
    @property
    def arrived(self) -> int: ...
    @property
    def started(self) -> NDArray[np.int64]: ...
    @property
    def finished(self) -> NDArray[np.int64]: ...
    @property
    def deliveries(self) -> NDArray[np.int32]: ...
    @property
    def dead(self) -> list[int]: ...
    @property
    def moments(self) -> list[tuple[int, str, int]]: ...
    def join(
        self,
        name: str,
        *,
        threads: int = 20,
        factor: float = 1.0,
        pull_batch_size: int = 32,
        pull_interval: int = 0,
        consume_message_batch_max_size: int = 1,
        pull_threshold_for_queue: int = 1000,
        pull_threshold_size_for_queue: int = 100,
        consume_concurrently_max_span: int = 2000,
        pull_threshold_for_topic: int = -1,
        pull_threshold_size_for_topic: int = -1,
        max_reconsume_times: int = -1,
        consume_timeout: int = 15,
        at_once: bool = False,
    ) -> None: ...
    def settle(self) -> None: ...
    def leave(self, name: str, *, lost: bool = False) -> None: ...
    def kill(self, name: str) -> None: ...
    def set_factor(self, name: str, factor: float) -> None: ...
    def members_seen(self) -> list[tuple[str, int, int, int, int, int]]: ...
    def offsets(self) -> list[tuple[Any, int, int]]: ...
    def run(self, until: int | None = None) -> int: ...
    def _check(self) -> None: ...
