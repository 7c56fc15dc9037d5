from collections.abc import Callable
from typing import Any, Self

from typing_extensions import disjoint_base

from pyengine._engine.activemq.commands.destination import Destination
from pyengine._engine.activemq.commands.message_ack import MessageAck
from pyengine._engine.activemq.region.queue_region import QueueRegion
from pyengine._engine.message.message import Message
from pyengine.activemq._runtime.outbox import Outbox
from pyengine.activemq._runtime.route import Answer
from pyengine.clock import Clock

@disjoint_base
class RegionBroker:
    outbox: Outbox
    region: QueueRegion
    clock: Clock
    router: Any
    interceptors: Any  # broker.interceptors.Interceptors, or None
    _closed: bool
    def __new__(cls, *unused: Any, **also_unused: Any) -> Self: ...
    def _open(self) -> None: ...
    def _send_within(self, transaction_id: str, destination: Destination, message: Message) -> None: ...
    def _acknowledge_of(self, subscription: Any, ack: MessageAck) -> None: ...
    def _acknowledge(self, answer: Answer) -> None: ...
    def send(
        self,
        connection_id: str,
        destination: Destination,
        message: Message,
        transaction_id: str | None = None,
        now: int | None = None,
    ) -> None: ...
    def acknowledge(self, ack: MessageAck, failed: Callable[[Exception], object] | None = None) -> None: ...
