"""What brokers ask of a client over TCP, and its answers (ClientRemotingProcessor)."""

from __future__ import annotations

import threading

from pyengine._engine.rocketmq.commands.bodies import read_body, write_body
from pyengine._engine.rocketmq.commands.headers import read_header
from pyengine._engine.rocketmq.commands.requests import (
    CHECK_TRANSACTION_STATE,
    CONSUME_MESSAGE_DIRECTLY,
    GET_CONSUMER_RUNNING_INFO,
    GET_CONSUMER_STATUS_FROM_CLIENT,
    NOTIFY_CONSUMER_IDS_CHANGED,
)
from pyengine._engine.rocketmq.commands.stored_message import decode_stored
from pyengine._engine.wire.remoting import RemotingCommand
from pyengine.rocketmq.remoting.channel import Channel, response
from pyengine.rocketmq.remoting.mq_client_api import SYSTEM_ERROR, ClientEvents, HalfMessage, queue_key, queue_of
from pyengine.rocketmq.remoting.replies import PUSH_REPLY, reply_of
from pyengine.rocketmq.remoting.stored_message import message_ext, received
from pyengine.visible import logger

log = logger("pyengine.rocketmq")

RESET_CONSUMER_CLIENT_OFFSET = 220


def process_request(events: ClientEvents, channel: Channel, command: RemotingCommand) -> RemotingCommand | None:
    """The answer of the client whose ``events`` these are, None if a broker waits for none."""
    if command.code == NOTIFY_CONSUMER_IDS_CHANGED:
        group = read_header("NotifyConsumerIdsChangedRequestHeader", command.ext_fields)["consumerGroup"]
        if group is not None:
            events.consumer_ids_changed(group)
    elif command.code == RESET_CONSUMER_CLIENT_OFFSET:
        header = read_header("ResetOffsetRequestHeader", command.ext_fields)
        table = (read_body("ResetOffsetBody", command.body or b"") or {}).get("offsetTable") or {}
        offsets = {queue_of(queue): offset for queue, offset in table.items()}
        # Ten seconds pass in there.
        reset = threading.Thread(
            target=events.reset_offset, args=(header["group"], header["topic"], offsets), name="ResetOffset"
        )
        reset.start()
    elif command.code == GET_CONSUMER_RUNNING_INFO:
        header = read_header("GetConsumerRunningInfoRequestHeader", command.ext_fields)
        found = events.running_info(header["consumerGroup"] or "", header["jstackEnable"])
        if found is None:
            remark = f"The Consumer Group <{header['consumerGroup']}> not exist in this consumer"
            return response(command, SYSTEM_ERROR, remark)
        return response(command, body=write_body("ConsumerRunningInfo", found))
    elif command.code == GET_CONSUMER_STATUS_FROM_CLIENT:
        header = read_header("GetConsumerStatusRequestHeader", command.ext_fields)
        offsets = events.offsets(header["group"] or "", header["topic"] or "")
        body = {"messageQueueTable": {queue_key(queue): offset for queue, offset in offsets.items()}}
        return response(command, body=write_body("GetConsumerStatusBody", body))
    elif command.code == CONSUME_MESSAGE_DIRECTLY:
        header = read_header("ConsumeMessageDirectlyResultRequestHeader", command.ext_fields)
        message = received(message_ext(decode_stored(command.body or b"", 0)[0], header["brokerName"] or ""))
        found = events.consume_directly(header["consumerGroup"] or "", message)
        if found is None:
            remark = f"The Consumer Group <{header['consumerGroup']}> not exist in this consumer"
            return response(command, SYSTEM_ERROR, remark)
        return response(command, body=write_body("ConsumeMessageDirectlyResult", found))
    elif command.code == PUSH_REPLY:
        events.reply(reply_of(command))
        return response(command)
    elif command.code == CHECK_TRANSACTION_STATE:
        _check_transaction(events, channel, command)
    else:
        log.info("a broker asks for %d, which this client does not know", command.code)
    return None


def _check_transaction(events: ClientEvents, channel: Channel, command: RemotingCommand) -> None:
    header = read_header("CheckTransactionStateRequestHeader", command.ext_fields)
    message = message_ext(decode_stored(command.body or b"", 0)[0], header["bname"] or "")
    half = HalfMessage(
        message.properties.get("PGROUP", ""), channel.address, header["bname"] or "",
        header["commitLogOffset"] or 0, header["tranStateTableOffset"] or 0, header["transactionId"] or "",
        header["msgId"] or "",
    )  # fmt: skip
    events.check_transaction(received(message), half)
