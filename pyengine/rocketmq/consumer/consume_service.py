"""What consuming concurrently and in order share: the listener, its pool of threads, and what comes later."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any, ClassVar, TypeVar

from pyengine._engine.rocketmq.client.process_queue import ProcessQueue
from pyengine.rocketmq.consumer.client import Delayed
from pyengine.rocketmq.consumer.consume_pool import ConsumePool
from pyengine.rocketmq.consumer.context import ConsumerContext
from pyengine.rocketmq.consumer.listener_call import ListenerCall, Waiting, describe, listed, users_interrupt
from pyengine.rocketmq.message import MessageExt
from pyengine.rocketmq.tables.allocation import MessageQueue
from pyengine.visible import logger

log = logger("pyengine.rocketmq")
Answer = TypeVar("Answer")


class ConsumeService(ABC):
    """Gives a member's messages to its listener on ``ConsumeMessageThread_<group>_<n>`` threads.

    statuses: what the listener may answer. delayed: what comes later, on a worker of its own.
    """

    statuses: ClassVar[type[Enum]]

    def __init__(self, consumer: ConsumerContext) -> None:
        parameters, clock = consumer.parameters, consumer.clock
        assert parameters.message_listener is not None
        tag = consumer.group[:100] + "_"
        self._consumer = consumer
        self._listener = ListenerCall(
            clock, consumer.around(parameters.message_listener), self.statuses, f"ConsumeMessageLoop_{tag}1"
        )
        self._pool = ConsumePool(
            clock, f"ConsumeMessageThread_{tag}", parameters.consume_thread_min, parameters.consume_thread_max
        )
        self._scheduled = clock.worker(f"ConsumeMessageScheduledThread_{tag}1")
        self.delayed = Delayed(clock, self._scheduled)
        self._stopped = False

    @property
    def core_pool_size(self) -> int:
        """How many threads there may be."""
        return self._pool.core_pool_size

    def update_core_pool_size(self, size: int) -> None:
        """Change it while running; see ConsumePool."""
        self._pool.update_core_pool_size(size)

    @abstractmethod
    def start(self) -> None:
        """Start what runs now and then."""

    @abstractmethod
    def submit(self, messages: list[MessageExt], process_queue: ProcessQueue, queue: MessageQueue, go: bool) -> None:
        """Have messages consumed that were put into a process queue; ``go``: no run drains it yet."""

    def shutdown(self, wait: int) -> None:
        """Come back to no message, wait up to ``wait`` ms for what runs or waits to run, then stop."""
        self._stopped = True
        self.delayed.stop()
        self._scheduled.close()
        if not self._pool.close(wait):
            log.warning("%s: listeners still ran at shutdown after %d ms", self._consumer.group, wait)

    def close(self) -> None:
        """After shutdown, when the queues are given up: cancel coroutines that still run; their answer is ignored."""
        self._listener.close()

    def call(
        self,
        messages: list[MessageExt],
        context: Any,
        queue: MessageQueue,
        then: Callable[[Any, bool, KeyboardInterrupt | None], Answer],
    ) -> Answer | Waiting:
        """What ``then`` makes of the listener's status or None, of whether it raised, and of the user's own interrupt,
        if that ended it. Waiting for a listener that has not answered."""
        return self._outcome(partial(self._listener, tuple(messages), context), messages, queue, then)

    def _outcome(
        self,
        listen: Callable[[], Any],
        messages: list[MessageExt],
        queue: MessageQueue,
        then: Callable[[Any, bool, KeyboardInterrupt | None], Answer],
    ) -> Answer | Waiting:
        status, raised, interrupt = None, False, None
        try:
            status = listen()
        except BaseException as error:  # sys.exit() in a listener is its failure, not the end of the pool's thread
            log.warning(
                "consumeMessage exception: %s Group: %s Msgs: %s MQ: %s",
                describe(error),
                self._consumer.group,
                listed(messages),
                queue,
                exc_info=error,
            )
            raised, interrupt = True, users_interrupt(error)
        if isinstance(status, Waiting):
            status.rest = partial(self._outcome, status.result, messages, queue, then)
            return status
        return then(status, raised, interrupt)
