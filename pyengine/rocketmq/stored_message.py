"""A message between the broker's log and its consumers."""

from __future__ import annotations

import functools

from pyengine._engine.rocketmq.broker import commit_log_record as record
from pyengine.rocketmq import message as names
from pyengine.rocketmq.message import MessageExt


def message_of(frame: bytes, broker_name: str) -> MessageExt:
    """A fresh MessageExt of a message's frame in the log of the named broker. Raises ValueError for another frame."""
    (
        topic, body, properties, position, queue_id, offset, born, stored, born_host, store_host, times, flag,
        sys_flag, crc, size,
    ) = record.decode_message(frame)  # fmt: skip
    message = MessageExt(
        topic, body, broker_name=broker_name, queue_id=queue_id, queue_offset=offset, commit_log_offset=position,
        msg_id=properties.get(names.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX) or offset_msg_id(store_host, position),
        reconsume_times=times, born_timestamp=born, store_timestamp=stored, born_host=host_text(born_host),
        store_host=host_text(store_host), store_size=size, flag=flag,
    )  # fmt: skip
    message.properties = properties
    message.sys_flag = sys_flag
    message.body_crc = crc
    return message


def offset_msg_id(store_host: bytes, position: int) -> str:
    """The broker's id of the message at a position of its log (MessageDecoder.createMessageId)."""
    return f"{store_host.hex().upper()}{position:016X}"


def host_bytes(text: str) -> bytes:
    """``ip:port`` as eight bytes."""
    address, _, port = text.rpartition(":")
    return bytes(int(part) for part in address.split(".")) + int(port).to_bytes(4, "big")


@functools.lru_cache(maxsize=4096)
def host_text(packed: bytes) -> str:
    """Eight bytes as ``ip:port``; producers and brokers are few."""
    return f"{'.'.join(map(str, packed[:4]))}:{int.from_bytes(packed[4:], 'big')}"
