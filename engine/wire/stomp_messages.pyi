from collections.abc import Callable
from typing import Any

from pyengine._engine.message.body import Body
from pyengine._engine.message.message import Message

def sent_message(
    headers: dict[str, str],
    body: str | bytes | Body | None,
    destination: str,
    now: int,
    reply_to: Callable[[str], Any],
    counted: bool = False,
) -> Message: ...
def message_headers(message: Message, shown: Callable[[str], str], redeliveries: int) -> dict[str, str]: ...
def ordered(headers: dict[str, str], capacity: int = 16) -> dict[str, str]: ...
