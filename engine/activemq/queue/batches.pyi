from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

from pyengine._engine.activemq.queue.rounds import Rounds

class _HasRounds(Protocol):
    @property
    def rounds(self) -> Rounds: ...

_Queue = TypeVar("_Queue", bound=_HasRounds)

def column(field: str, values: Any, size: int, dtype: Any) -> NDArray[Any]: ...

@disjoint_base
class MessageColumns:
    groups: Any
    def __new__(
        cls,
        size: int,
        *,
        groups: Any = None,
        group_names: list[str | None] | None = None,
        group_sequences: Any = None,
        priorities: Any = None,
        expirations: Any = None,
        persistent: Any = None,
        matches: Any = None,
        arrivals: Any = None,
    ) -> Self: ...

def offer_runs(
    queues: list[_Queue],
    bounds: Any,
    closing: Any,
    prompts: list[set[int] | None],
    given: MessageColumns,
    *,
    steady: bool = False,
    queue_of: Any = None,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]: ...
def enqueued(queues: list[_Queue]) -> NDArray[np.int64]: ...
def carried(queues: list[_Queue]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]: ...
def headers_now(
    queues: list[_Queue],
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_]]: ...
def settle_runs(
    queues: list[_Queue], prompts: list[set[int] | None], now: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]: ...
