"""The header of a send, whichever form it has, and where it comes from."""

from __future__ import annotations

from typing import Any

from pyengine._engine.rocketmq.commands.headers import read_header
from pyengine._engine.rocketmq.commands.stored_message import BORN_HOST_V6
from pyengine._engine.wire.remoting import RemotingCommand
from pyengine.rocketmq.broker.send_message_processor import RemoteSend
from pyengine.rocketmq.remoting.stored_message import host_bytes
from pyengine.rocketmq.server.connections import Connection

REGION = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}  # of every answer to a send, and of every message
LONG_NAMES = (10, 324)  # codes of sends whose header has long names
LETTERS = {
    "producerGroup": "a", "topic": "b", "defaultTopic": "c", "defaultTopicQueueNums": "d", "queueId": "e",
    "sysFlag": "f", "bornTimestamp": "g", "flag": "h", "properties": "i", "reconsumeTimes": "j", "unitMode": "k",
    "maxReconsumeTimes": "l", "batch": "m",
}  # fmt: skip


def send_header(request: RemotingCommand) -> dict[str, Any]:
    """SendMessageRequestHeader (SendMessageRequestHeader.parseRequestHeader)."""
    if request.code in LONG_NAMES:
        return read_header("SendMessageRequestHeader", request.ext_fields)
    short = read_header("SendMessageRequestHeaderV2", request.ext_fields)
    return dict(zip(LETTERS, map(short.__getitem__, LETTERS.values()), strict=True))


def remote_send(connection: Connection, header: dict[str, Any], now: int) -> RemoteSend:
    """Where the message of a send comes from. now: ms, used if its header has no time of sending."""
    host = host_bytes(connection.remote_address)
    return RemoteSend(
        header["bornTimestamp"] or now, host, connection.remote_address,
        (header["sysFlag"] or 0) | (0 if len(host) == 8 else BORN_HOST_V6), header["reconsumeTimes"] or 0,
        header["maxReconsumeTimes"],
    )  # fmt: skip
