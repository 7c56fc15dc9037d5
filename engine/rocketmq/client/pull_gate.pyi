from enum import IntEnum
from typing import Any, NamedTuple, Self

from typing_extensions import disjoint_base

from pyengine._engine.rocketmq.client.process_queue import ProcessQueue

CACHE_FLOW_CONTROL: int
BROKER_FLOW_CONTROL: int
SUSPENDED: int

class PullStep(IntEnum):
    DROP = 0
    LATER = 1
    FIX_OFFSET = 2
    SEND = 3
    IMMEDIATELY = 4
    CONSUME = 5
    ADVANCE = 6
    ILLEGAL = 7
    FORGET = 8

class PullVerdict(NamedTuple):
    step: int
    delay: int = 0
    log: tuple[tuple[str, str], ...] = ()
    problem: str | None = None

@disjoint_base
class PullRequest:
    next_offset: int
    previously_locked: bool
    def __new__(cls, consumer_group: str, queue: Any, process_queue: ProcessQueue, next_offset: int = 0) -> Self: ...
    @property
    def consumer_group(self) -> str: ...
    @property
    def queue(self) -> Any: ...
    @property
    def process_queue(self) -> ProcessQueue: ...

@disjoint_base
class PullGate:
    def __new__(cls, consumer_group: str) -> Self: ...
    @property
    def consumer_group(self) -> str: ...
    @property
    def queue_flow_control_times(self) -> int: ...
    @property
    def queue_max_span_flow_control_times(self) -> int: ...
    def examine(
        self,
        request: PullRequest,
        now: int,
        *,
        service_state: str = "RUNNING",
        paused: bool = False,
        orderly: bool = False,
        instance_name: str = "DEFAULT",
        exception_delay: int = 1000,
        pull_threshold_for_queue: int = 1000,
        pull_threshold_size_for_queue: int = 100,
        consume_concurrently_max_span: int = 2000,
    ) -> PullVerdict: ...
    def fix_offset(self, request: PullRequest, offset: int) -> PullVerdict: ...
    def fix_failed(self, request: PullRequest, problem: str, exception_delay: int = 1000) -> PullVerdict: ...
    def not_subscribed(self, request: PullRequest, exception_delay: int = 1000) -> PullVerdict: ...
    def not_sent(self, problem: str, exception_delay: int = 1000) -> PullVerdict: ...
    def answered(
        self,
        request: PullRequest,
        status: str | None,
        next_begin_offset: int,
        found: int = 0,
        first_offset: int = ...,
        pull_interval: int = 0,
        result: str = "",
    ) -> PullVerdict: ...
    def failed(
        self,
        request: PullRequest,
        code: int | None,
        problem: str,
        *,
        retry_topic: bool = False,
        exception_delay: int = 1000,
    ) -> PullVerdict: ...

def failed_pull_delay(code: Any, exception_delay: int) -> int: ...
def commit_with_pull(memory_offset: int, *, clustering: bool = True) -> tuple[int, int]: ...
def pull_sys_flag(
    *,
    commit_offset: bool = False,
    suspend: bool = False,
    subscription: bool = False,
    class_filter: bool = False,
) -> int: ...
