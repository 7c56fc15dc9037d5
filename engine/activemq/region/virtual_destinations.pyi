from collections.abc import Iterable
from typing import Any

from typing_extensions import disjoint_base

from pyengine._engine.matching.selector import Selector

@disjoint_base
class Forwarding:
    forward_only: bool
    send_when_not_matched: bool
    def __init__(
        self, filters: Iterable[Selector | None], *, forward_only: bool = True, send_when_not_matched: bool = False
    ) -> None: ...
    def route(self, message: Any) -> tuple[list[int], bool]: ...

def consumer_queues(prefix: str, topic: str, postfix: str) -> str: ...
def feeds(prefix: str, queue: str) -> bool: ...
def maps(prefix: str, queue: str, postfix: str) -> bool: ...
def lets_in(asked: str, asked_is_pattern: bool, queue: str, queue_is_pattern: bool) -> bool: ...
