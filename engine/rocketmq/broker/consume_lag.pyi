from enum import IntEnum

class LastConsume(IntEnum):
    KNOWN = 0
    NOTHING_CONSUMED = 1
    DELETED = 2

def delay(broker_offset: int, consumer_offset: int) -> int: ...
def last_consume(consumer_offset: int, store_timestamp: int | None) -> tuple[int, LastConsume]: ...
