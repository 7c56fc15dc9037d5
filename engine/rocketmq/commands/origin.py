"""Where a stored message comes from."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class Origin(NamedTuple):
    """What a message is stored with beside its topic, body and properties.

    born: when its producer sent it, ms. born_host: its producer's address, 4 or 16 bytes, and 4 of port.
    reconsume_times: how often it was given back. delivers: level and offset of the delayed message that this one is.
    prepared_transaction_offset: position of its half message.
    """

    born: int
    born_host: bytes
    reconsume_times: int = 0
    flag: int = 0
    sys_flag: int = 0
    delivers: tuple[int, int] | None = None
    prepared_transaction_offset: int = 0


# An Origin, or the same as a mere tuple, which costs a sixth.
OriginFields: TypeAlias = tuple[int, bytes, int, int, int, tuple[int, int] | None, int]
