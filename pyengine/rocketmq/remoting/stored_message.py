"""A message between the broker's log, the wire and its consumers."""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Iterator

from pyengine._engine.rocketmq.broker import commit_log_record as record
from pyengine._engine.rocketmq.commands.stored_message import COMPRESSED, decode_stored, message_id, parse_message_id
from pyengine.errors import ProtocolError
from pyengine.rocketmq import message as names
from pyengine.rocketmq.message import MessageExt
from pyengine.rocketmq.remoting.compression import decompress
from pyengine.rocketmq.remoting.mq_client_api import no_message

StoredFields = tuple[str, bytes, dict[str, str], int, int, int, int, int, bytes, bytes, int, int, int, int, int, int]


def message_of(frame: bytes, broker_name: str) -> MessageExt:
    """A fresh MessageExt of a message's frame in the log of the named broker. Raises ValueError for another frame."""
    return message_ext(record.decode_message(frame), broker_name)


def pulled_messages(data: bytes, broker_name: str) -> Iterator[MessageExt]:
    """The messages in the body of a pull's answer, decompressed (MessageDecoder.decodes).

    Raises ProtocolError if one cannot be read; those before it came out. The real one drops it, and what follows.
    """
    at = 0
    while at < len(data):
        fields, at = decode_stored(data, at)
        yield received(message_ext(fields, broker_name))


def received(message: MessageExt) -> MessageExt:
    """A stored message as its consumer gets it: decompressed. Raises ProtocolError if that cannot be done."""
    if message.body and message.sys_flag & COMPRESSED:
        message.body = decompress(message.body, message.sys_flag)
        message.sys_flag &= ~COMPRESSED
    return message


def parsed_id(offset_msg_id: str) -> tuple[str, int]:
    """(``host:port``, position in the log) of a broker's id of a message. Raises MQClientError for what is none."""
    try:
        host, position = parse_message_id(offset_msg_id)
        return host_text(host), position
    except (ProtocolError, ValueError, TypeError) as error:
        raise no_message("id") from error


_new = MessageExt.__new__


def message_ext(fields: StoredFields, broker_name: str) -> MessageExt:
    """A MessageExt of the fields that the core reads of a stored message."""
    message = _new(MessageExt)  # its constructor would look at what was looked at when the message was sent
    (
        message.topic, message.body, properties, position, message.queue_id, message.queue_offset,
        message.born_timestamp, message.store_timestamp, born_host, store_host, message.reconsume_times, message.flag,
        message.sys_flag, message.body_crc, message.store_size, message.prepared_transaction_offset,
    ) = fields  # fmt: skip
    message.properties = properties
    message.transaction_id = None
    message.broker_name = broker_name
    message.commit_log_offset = position
    unique = properties.get(names.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
    message.msg_id = unique or message_id(store_host, position)
    message.born_host = host_text(born_host)
    message.store_host = host_text(store_host)
    return message


@functools.lru_cache(maxsize=4096)
def host_bytes(text: str) -> bytes:
    """``ip:port`` as eight bytes, or twenty for IPv6."""
    address, _, port = text.rpartition(":")
    return packed_address(address) + int(port).to_bytes(4, "big")


def packed_address(address: str) -> bytes:
    """The four or sixteen bytes of an IP address, which may be in brackets."""
    return ipaddress.ip_address(address.removeprefix("[").removesuffix("]").partition("%")[0]).packed


@functools.lru_cache(maxsize=4096)
def host_text(packed: bytes) -> str:
    """Eight bytes, or twenty, as ``ip:port``; producers and brokers are few."""
    return f"{address_text(packed[:-4])}:{int.from_bytes(packed[-4:], 'big')}"


def address_text(packed: bytes) -> str:
    """Four bytes, or sixteen, as Java prints an address."""
    if len(packed) == 4:
        return ".".join(map(str, packed))
    return ":".join(f"{int.from_bytes(packed[at : at + 2], 'big'):x}" for at in range(0, 16, 2))
