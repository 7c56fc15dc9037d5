"""The messages that a consumer was given over OpenWire and has not acknowledged, by the broker's numbers of them."""

from __future__ import annotations

from pyengine._engine.activemq.commands.message_ack import AckKind, MessageAck

NEVER_DELIVERED = -1  # RemoveInfo.LAST_DELIVERED_UNSET
NOT_KNOWN = -2  # RemoveInfo.LAST_DELIVERED_UNKNOWN


class DispatchedMessages:
    """In the order of dispatch. A RemoveInfo names the last one that reached the user by its number."""

    __slots__ = ("_by_number",)

    def __init__(self) -> None:
        self._by_number: dict[int, str] = {}

    def add(self, number: int, message_id: str) -> None:
        """One was dispatched."""
        self._by_number[number] = message_id

    def message_id(self, number: int) -> str | None:
        """The id of the message with that number, None if it is not among them."""
        return self._by_number.get(number)

    def number(self, message_id: str) -> int | None:
        """The number of a message, None if it is not among them."""
        return next((number for number, each in reversed(self._by_number.items()) if each == message_id), None)

    def acknowledge(self, ack: MessageAck) -> None:
        """Forget what an acknowledgement settles: nothing yet, if it belongs to a transaction."""
        if ack.kind in (AckKind.DELIVERED, AckKind.REDELIVERED) or ack.transaction_id is not None:
            return
        settled = []
        for number, message_id in self._by_number.items():
            if ack.kind is not AckKind.INDIVIDUAL or message_id == ack.last_message_id:
                settled.append(number)
            if message_id == ack.last_message_id:
                for each in settled:
                    del self._by_number[each]
                return
