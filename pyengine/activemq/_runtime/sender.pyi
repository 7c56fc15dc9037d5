from datetime import timedelta
from typing import Any, Final, Self

from typing_extensions import disjoint_base

from pyengine._engine.activemq.client.message_producer import Outgoing
from pyengine._engine.activemq.commands.destination import Destination
from pyengine._engine.message.body import Body
from pyengine._engine.message.message import Message
from pyengine.activemq._runtime.session_executor import SessionExecutor

SECONDS: Final[str]
SCHEDULED: Final[tuple[str, ...]]

@disjoint_base
class Sender:
    producer_id: str
    destination: Destination | None
    _session: Any
    _outgoing: Outgoing
    _connection_id: str
    _closed: bool
    _reports: bool
    _reports_all: bool
    _flat: bool
    def __new__(cls, session: SessionExecutor, producer_id: str, destination: Destination | None) -> Self: ...
    def _look_for_schedules(self, messages: list[Message]) -> None: ...
    def _where(self, destination: Destination | str | None) -> Destination: ...
    def _refuse_nested(self, message: Message | Body | str | bytes) -> Message | Body | str | bytes: ...
    def send(
        self,
        message: Message | Body | str | bytes,
        destination: Destination | str | None = None,
        *,
        delivery_mode: str | None = None,
        priority: int | None = None,
        time_to_live_ms: int | timedelta | None = None,
        time_to_live: None = None,
    ) -> None: ...
