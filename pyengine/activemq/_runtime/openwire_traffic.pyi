from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

from pyengine._engine.activemq.commands.destination import Destination
from pyengine._engine.activemq.commands.info import ConsumerInfo
from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch
from pyengine._engine.message.message import Message
from pyengine._engine.wire.data_structure import DataStructure
from pyengine._engine.wire.dispatched_messages import DispatchedMessages
from pyengine.errors import PyengineError

@disjoint_base
class ConsumerOfClient:
    identity: DataStructure
    info: ConsumerInfo
    dispatched: DispatchedMessages
    def __init__(self, identity: DataStructure, info: ConsumerInfo) -> None: ...

@disjoint_base
class OpenWireTraffic:
    connection_id: str
    connected: bool
    closing: bool
    _fault_tolerant: bool
    _broker: Any
    _write: Callable[[DataStructure], object]
    _consumers: dict[str, ConsumerOfClient]
    _producers: dict[str, int]
    def __init__(self, broker: Any, write: Callable[[DataStructure], object]) -> None: ...
    def receive(self, command: DataStructure) -> None: ...
    def deliver(self, dispatch: MessageDispatch) -> None: ...
    def _act(self, command: DataStructure) -> DataStructure | None: ...
    def _refused(self, command: DataStructure, error: PyengineError) -> DataStructure | None: ...
    def _check_connected(self) -> None: ...
    def _send_once(
        self, identity: DataStructure, destination: Destination, message: Message, transaction: str | None
    ) -> None: ...
