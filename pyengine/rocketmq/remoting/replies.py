"""Requests that wait for the reply of a consumer, and the replies (RequestResponseFuture, MessageUtil)."""

from __future__ import annotations

import logging
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

from pyengine._engine.rocketmq.commands.headers import read_header
from pyengine._engine.rocketmq.commands.stored_message import COMPRESSED, parse_properties
from pyengine._engine.wire.remoting import RemotingCommand
from pyengine.clock import Clock, Timer
from pyengine.errors import ConfigurationError, IllegalStateError, MQClientError
from pyengine.rocketmq.message import Message, MessageExt
from pyengine.rocketmq.remoting.compression import decompress

if TYPE_CHECKING:
    from concurrent.futures import Future

log = logging.getLogger("pyengine.rocketmq")

SEND_REPLY = 325
PUSH_REPLY = 326
PROPERTY_CORRELATION_ID = "CORRELATION_ID"
PROPERTY_REPLY_TO_CLIENT = "REPLY_TO_CLIENT"
PROPERTY_TTL = "TTL"
PROPERTY_CLUSTER = "CLUSTER"
PROPERTY_MESSAGE_TYPE = "MSG_TYPE"
REPLY = "reply"
REPLY_TOPIC = "_REPLY_TOPIC"  # behind the cluster's name
REQUEST_TIMEOUT = 10006
CREATE_REPLY_FAILED = 10007


def create_reply_message(request: Message, body: bytes) -> Message:
    """The reply to a message that a consumer got from :meth:`Producer.request`; any producer of the cluster sends it.

    Raises MQClientError for a message that was not sent over the network, ConfigurationError for anything but a
    message.
    """
    if not isinstance(request, Message):
        raise ConfigurationError("request", repr(request), "a message is needed", "give one that was consumed")
    cluster = request.properties.get(PROPERTY_CLUSTER)
    if cluster is None:
        problem = "create reply message fail, requestMessage error, property[CLUSTER] is null."
        raise MQClientError(problem, CREATE_REPLY_FAILED)
    reply = Message(cluster + REPLY_TOPIC, body)
    reply.properties[PROPERTY_MESSAGE_TYPE] = REPLY
    for name in (PROPERTY_CORRELATION_ID, PROPERTY_REPLY_TO_CLIENT, PROPERTY_TTL):
        if name in request.properties:
            reply.properties[name] = request.properties[name]
    return reply


def reply_of(command: RemotingCommand) -> MessageExt:
    """The reply that a broker pushes (ClientRemotingProcessor.receiveReplyMessage). Raises ProtocolError."""
    header = read_header("ReplyMessageRequestHeader", command.ext_fields)
    body, flags = command.body or b"", header["sysFlag"] or 0
    if body and flags & COMPRESSED:
        body = decompress(body, flags)
    reply = MessageExt(
        header["topic"] or "", body, queue_id=header["queueId"] or 0, flag=header["flag"] or 0,
        born_timestamp=header["bornTimestamp"] or 0, store_timestamp=header["storeTimestamp"] or 0,
        born_host=header["bornHost"] or "127.0.0.1:0", store_host=header["storeHost"] or "127.0.0.1:0",
        reconsume_times=header["reconsumeTimes"] or 0, properties=parse_properties(header["properties"]),
    )  # fmt: skip
    reply.properties["ARRIVE_TIME"] = str(time.time_ns() // 1_000_000)
    return reply


class PendingRequests:
    """The requests of one producer that have no reply yet. Safe from any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: dict[str, tuple[Future[MessageExt], Timer]] = {}

    def prepare(self, message: Message, client_id: str, timeout: int) -> tuple[str, Future[MessageExt]]:
        """Mark a message as a request; returns its correlation id and the future of its reply."""
        from uuid import uuid4

        identity = str(uuid4())
        message.properties[PROPERTY_CORRELATION_ID] = identity
        message.properties[PROPERTY_REPLY_TO_CLIENT] = client_id
        message.properties[PROPERTY_TTL] = str(timeout)
        from concurrent.futures import Future  # it takes time to import

        future: Future[MessageExt] = Future()
        future.set_running_or_notify_cancel()
        problem = f"send request message to <{message.topic}> OK, but wait reply message timeout, {timeout} ms."
        expired = partial(self.fail, identity, MQClientError(problem, REQUEST_TIMEOUT))
        try:
            timer = self._clock.call_at(self._clock.now() + timeout, expired)
        except IllegalStateError as error:
            raise MQClientError("the producer is closed") from error
        with self._lock:
            self._waiting[identity] = future, timer
        return identity, future

    def fail(self, identity: str, error: Exception) -> None:
        """There will be no reply."""
        found = self._take(identity)
        if found is not None:
            found.set_exception(error)

    def arrived(self, reply: MessageExt) -> None:
        """A reply has come."""
        identity = reply.properties.get(PROPERTY_CORRELATION_ID, "")
        found = self._take(identity)
        if found is None:
            log.warning(
                "receive reply message, but not matched any request, CorrelationId: %s , reply from host: %s",
                identity,
                reply.born_host,
            )
        else:
            found.set_result(reply)

    def close(self) -> None:
        """Nothing comes any more."""
        with self._lock:
            left = list(self._waiting)
        for identity in left:
            self.fail(identity, MQClientError("the producer was shut down before the reply came"))

    def _take(self, identity: str) -> Future[MessageExt] | None:
        with self._lock:
            found = self._waiting.pop(identity, None)
        if found is None:
            return None
        found[1].cancel()
        return found[0]
