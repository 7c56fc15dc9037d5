"""Replies to requests: they go to the client that asked, and are stored (ReplyMessageProcessor)."""

from __future__ import annotations

from typing import Any

from pyengine._engine.rocketmq.client.validators import check_topic
from pyengine._engine.rocketmq.commands.headers import write_header
from pyengine._engine.rocketmq.commands.stored_message import parse_properties, properties_text
from pyengine._engine.wire.remoting import RemotingCommand
from pyengine.errors import MQBrokerError, MQClientError, PyengineError, RemotingError
from pyengine.rocketmq.broker.broker_node import BrokerNode
from pyengine.rocketmq.broker.message_check import illegal_message
from pyengine.rocketmq.message import Message
from pyengine.rocketmq.remoting.mq_client_api import INVALID_PARAMETER, SYSTEM_ERROR
from pyengine.rocketmq.remoting.replies import PROPERTY_REPLY_TO_CLIENT, PUSH_REPLY
from pyengine.rocketmq.server.clients import ClientTable
from pyengine.rocketmq.server.connections import Connection, answer, refusal, reply
from pyengine.rocketmq.server.send_headers import REGION, remote_send, send_header
from pyengine.rocketmq.server.served import Served
from pyengine.visible import logger

log = logger("pyengine.rocketmq.broker")

CALL_TIMEOUT = 10_000  # ms that the client which asked may take to receive a reply


class ReplyRequests:
    """The replies that one broker passes on. clients: those that are connected to it."""

    def __init__(self, served: Served, node: BrokerNode, clients: ClientTable) -> None:
        self._served = served
        self._node = node
        self._clients = clients

    def reply(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        """Pass a reply on (SEND_REPLY_MESSAGE, 324 and 325); answered when the client that asked has it."""
        header = send_header(request)
        topic = header["topic"] or ""
        try:
            check_topic(topic)
        except MQClientError as error:
            return answer(request, INVALID_PARAMETER, error.problem, dict(REGION))
        if request.body is None:
            return refusal(request, illegal_message(self._node.max_message_size), dict(REGION))
        properties = parse_properties(header["properties"])
        asked_by = properties.get(PROPERTY_REPLY_TO_CLIENT)
        if asked_by is None:
            problem = f"reply message properties[{PROPERTY_REPLY_TO_CLIENT}] is null"
            log.warning("%s is null, can not reply message", PROPERTY_REPLY_TO_CLIENT)
            return self._answer(connection, request, header, properties, problem)
        client = self._clients.of(asked_by)
        if client is None or not client.producer_groups:
            problem = f"push reply message fail, channel of <{asked_by}> not found."
            log.warning("%s", problem)
            return self._answer(connection, request, header, properties, problem)
        now = self._node.clock.now()
        properties["PUSH_REPLY_TIME"] = str(now)
        fields = write_header(
            "ReplyMessageRequestHeader",
            {
                **{name: header[name] for name in PASSED_ON},
                "bornHost": connection.remote_address,
                "storeHost": self._served.address(self._node.name, connection.local_host),
                "storeTimestamp": now,
                "properties": properties_text(properties),
            },
        )

        def answered(found: RemotingCommand | RemotingError) -> None:
            problem = None
            if isinstance(found, RemotingError) or found.code != 0:
                log.warning("push reply message to <%s> fail: %s", asked_by, found)
                problem = f"push reply message to {asked_by}fail."
            said = self._answer(connection, request, header, properties, problem)
            reply(connection, request, said)

        client.connection.request(PUSH_REPLY, fields, request.body, CALL_TIMEOUT, answered)
        return None

    def _answer(
        self,
        connection: Connection,
        request: RemotingCommand,
        header: dict[str, Any],
        properties: dict[str, str],
        problem: str | None,
    ) -> RemotingCommand:
        """Store the reply (storeReplyMessageEnable). problem: why no client got it, which the answer then has."""
        origin = remote_send(connection, header, self._node.clock.now())
        topic, queue_id = header["topic"] or "", header["queueId"] if header["queueId"] is not None else -1
        message = Message(topic, request.body, properties=properties, flag=header["flag"] or 0)
        fields: dict[str, Any] = {"msgId": "0", "queueId": max(0, queue_id), "queueOffset": 0}
        try:
            queues = self._served.new_topic_queues(
                self._node.name, topic, header["defaultTopic"], header["defaultTopicQueueNums"] or 0
            )
            stored = self._node.sender.send(message, queue_id, queues, origin)
        except MQBrokerError as error:
            if problem is None:
                return refusal(request, error, dict(REGION))
            log.warning("a reply is not stored: %s", error)
        except PyengineError as error:
            log.warning("a reply is not stored: %s", error)
        else:
            fields = {
                "msgId": stored.offset_msg_id, "queueId": stored.queue_id, "queueOffset": stored.queue_offset,
            }  # fmt: skip
        code = 0 if problem is None else SYSTEM_ERROR
        return answer(request, code, problem, REGION | write_header("SendMessageResponseHeader", fields))


PASSED_ON = (
    "producerGroup", "topic", "defaultTopic", "defaultTopicQueueNums", "queueId", "sysFlag", "bornTimestamp", "flag",
    "reconsumeTimes", "unitMode",
)  # fmt: skip
