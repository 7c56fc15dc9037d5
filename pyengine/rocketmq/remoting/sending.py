"""Sends to a real cluster: which queue, how often, what the answer says (DefaultMQProducerImpl, MQClientAPIImpl)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from pyengine._engine.rocketmq.client.outgoing import one_topic, send_result
from pyengine._engine.rocketmq.client.send_faults import MOST_INDEX, SendFaults
from pyengine._engine.rocketmq.client.validators import AUTO_CREATE_TOPIC
from pyengine._engine.rocketmq.commands.headers import CODES, read_header, write_header
from pyengine._engine.rocketmq.commands.requests import FLUSH_DISK_TIMEOUT, SEND_BATCH_MESSAGE, SYSTEM_BUSY
from pyengine._engine.rocketmq.commands.stored_message import (
    COMPRESSED,
    encode_client_messages,
    sent_properties_text,
)
from pyengine._engine.wire.remoting import RemotingCommand
from pyengine.attributes import frozen, named_arguments
from pyengine.clock import Clock
from pyengine.dataclass import dataclass
from pyengine.errors import MQBrokerError, MQClientError, ProtocolError, RemotingError, RemotingTimeoutError
from pyengine.rocketmq import message as names
from pyengine.rocketmq.message import Message
from pyengine.rocketmq.remoting.channel import RemotingClient
from pyengine.rocketmq.remoting.compression import TYPES, compress
from pyengine.rocketmq.remoting.mq_client_api import (
    NO_PERMISSION,
    SERVICE_NOT_AVAILABLE,
    SYSTEM_ERROR,
    TOPIC_NOT_EXIST,
    SendCallback,
    SendResult,
    SendStatus,
    batch_result,
)
from pyengine.rocketmq.remoting.replies import PROPERTY_MESSAGE_TYPE, REPLY, REPLY_TOPIC, SEND_REPLY
from pyengine.rocketmq.tables.allocation import MessageQueue

log = logging.getLogger("pyengine.rocketmq")

NO_BUYER_ID = 204
NOT_IN_CURRENT_UNIT = 205
SEND_STATUS = {
    0: SendStatus.SEND_OK,
    FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    11: SendStatus.SLAVE_NOT_AVAILABLE,
    12: SendStatus.FLUSH_SLAVE_TIMEOUT,
}
# A send that is answered so is tried at another broker (DefaultMQProducer.retryResponseCodes).
RETRIED = {
    TOPIC_NOT_EXIST, SERVICE_NOT_AVAILABLE, SYSTEM_ERROR, SYSTEM_BUSY, NO_PERMISSION, NO_BUYER_ID, NOT_IN_CURRENT_UNIT,
}  # fmt: skip
COMPRESS_FROM = 4096  # bytes of a body
DEFAULT_QUEUES = 4


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class SendOptions:
    """How a producer sends; the names and defaults are DefaultMQProducer's, times are ms.

    send_msg_timeout: of all tries of a send together. retry_times_when_send_failed,
    retry_times_when_send_async_failed: tries beside the first, for messages whose queue is not given.
    retry_another_broker_when_not_store_ok: try again also where the message is stored, but not as safely as the broker
    is set up for; consumers may then get it twice. send_latency_fault_enable: avoid brokers that are slow or fail, for
    up to 30 s. start_detector_enable: ask brokers that could not be reached, each every detect_interval, and wait
    detect_timeout for the answer; until then they are used last.
    """

    send_msg_timeout: int = 3000
    retry_times_when_send_failed: int = 2
    retry_times_when_send_async_failed: int = 2
    retry_another_broker_when_not_store_ok: bool = False
    send_latency_fault_enable: bool = False
    start_detector_enable: bool = False
    detect_interval: int = 2000
    detect_timeout: int = 200


def _draw() -> int:
    from random import randrange  # it loads OpenSSL

    return randrange(MOST_INDEX)


class Sending:
    """Sends messages for one Cluster. publish_queues: of a topic; master: the address of a queue's broker."""

    def __init__(
        self,
        remoting: RemotingClient,
        clock: Clock,
        publish_queues: Callable[[str], list[MessageQueue]],
        master: Callable[[MessageQueue], str],
    ) -> None:
        self._remoting = remoting
        self._clock = clock
        self._publish_queues = publish_queues
        self._master = master
        self.options = SendOptions()
        self.faults = SendFaults(_draw)

    def use(self, options: SendOptions) -> None:
        """Send so from now on."""
        self.options = options
        self.faults = SendFaults(_draw, enabled=options.send_latency_fault_enable)

    def send(self, group: str, message: Message, queue: MessageQueue | None = None) -> SendResult:
        """Store a message."""
        return self._sent(message, queue, self._fields(group, message))

    def _sent(
        self,
        message: Message,
        queue: MessageQueue | None,
        command: tuple[dict[str, Any], bytes],
        batch: Sequence[Message] | None = None,
    ) -> SendResult:
        """Send, and again where that may help. batch: the messages in the body, if there are several."""
        options, first = self.options, self._clock.now()
        if queue is not None:
            answer = self._remoting.invoke(
                self._master(queue), self._request(queue, *command), options.send_msg_timeout
            )
            return self._result(message, queue, answer, batch)
        result: SendResult | None = None
        failure: Exception | None = None
        broker = None
        for left in reversed(range(1 + options.retry_times_when_send_failed)):
            begun = self._clock.now()
            if begun - first > options.send_msg_timeout:
                failure = RemotingTimeoutError(broker or "", "sendDefaultImpl call timeout")
                break
            chosen = self.faults.select(message.topic, self._publish_queues(message.topic), broker, begun)
            broker = chosen.broker_name
            try:
                request = self._request(chosen, *command)
                timeout = options.send_msg_timeout - (begun - first)
                answer = self._remoting.invoke(self._master(chosen), request, timeout)
                result = self._result(message, chosen, answer, batch)
            except MQBrokerError as error:
                self._took(broker, begun, isolated=True, reachable=False)
                failure = error
                if error.code not in RETRIED:
                    break
            except RemotingError as error:
                self._took(broker, begun, isolated=True, reachable=not options.start_detector_enable)
                failure = error
            except MQClientError as error:
                self._took(broker, begun, isolated=False, reachable=True)
                failure = error
            else:
                self._took(broker, begun, isolated=False, reachable=True)
                if result.status is SendStatus.SEND_OK or not options.retry_another_broker_when_not_store_ok:
                    return result
                log.warning("the message is stored with %s, resend at once, Broker: %s", result.status.name, chosen)
                continue
            if left:
                log.warning(
                    "sendKernelImpl exception, resend at once, RT: %dms, Broker: %s: %s",
                    self._clock.now() - begun,
                    chosen,
                    failure,
                )
        if result is not None:
            return result
        assert failure is not None
        raise failure

    def _took(self, broker: str, begun: int, *, isolated: bool, reachable: bool) -> None:
        now = self._clock.now()
        for line in self.faults.update(broker, now - begun, now, isolated=isolated, reachable=reachable):
            log.info("%s", line)

    def send_async(self, group: str, message: Message, queue: MessageQueue | None, callback: SendCallback) -> None:
        """Store a message; the answer, or why there is none, goes to ``callback``."""
        options = self.options
        command, most = self._fields(group, message), options.retry_times_when_send_async_failed
        deadline = self._clock.now() + options.send_msg_timeout

        def attempt(left: int, avoided: str | None) -> None:
            begun = self._clock.now()
            broker = avoided
            try:
                if queue is not None:
                    chosen = queue
                else:
                    chosen = self.faults.select(message.topic, self._publish_queues(message.topic), avoided, begun)
                broker = chosen.broker_name
                request, address = self._request(chosen, *command), self._master(chosen)
                self._remoting.invoke_async(
                    address, request, max(1, deadline - begun), lambda found: answered(left, chosen, begun, found)
                )
            except (RemotingError, MQClientError, ProtocolError) as error:
                failed(left, broker, begun, error)

        def answered(left: int, chosen: MessageQueue, begun: int, found: RemotingCommand | RemotingError) -> None:
            try:
                if isinstance(found, RemotingError):
                    raise found
                result = self._result(message, chosen, found)
            except (RemotingError, MQBrokerError, ProtocolError) as error:
                failed(left, chosen.broker_name, begun, error)
            else:
                self._took(chosen.broker_name, begun, isolated=False, reachable=True)
                callback(result)

        def failed(left: int, broker: str | None, begun: int, error: Exception) -> None:
            if broker is not None and not isinstance(error, MQClientError):
                self._took(broker, begun, isolated=True, reachable=True)
            if left and isinstance(error, RemotingError) and self._clock.now() < deadline:
                log.warning("async send msg by retry %d times. topic=%s: %s", most - left + 1, message.topic, error)
                attempt(left - 1, broker)
            else:
                callback(error)

        attempt(most if queue is None else 0, None)

    def send_one_way(self, group: str, message: Message, queue: MessageQueue | None = None) -> None:
        """Store a message without an answer."""
        chosen = queue
        if chosen is None:
            queues = self._publish_queues(message.topic)
            chosen = self.faults.select(message.topic, queues, None, self._clock.now())
        self._remoting.invoke_one_way(self._master(chosen), self._request(chosen, *self._fields(group, message)))

    def send_batch(self, group: str, messages: Sequence[Message], queue: MessageQueue | None = None) -> SendResult:
        """Store messages of one topic in one queue."""
        topic = one_topic(messages)
        body = encode_client_messages(messages)
        whole = Message(topic, body)
        fields, _ = self._fields(group, Message(topic))
        fields["m"] = True
        return self._sent(whole, queue, (fields, body), messages)

    def _fields(self, group: str, message: Message) -> tuple[dict[str, Any], bytes]:
        """The header, without its queue, and the body of a send."""
        body, flag = bytes(message.body or b""), 0
        if len(body) >= COMPRESS_FROM:
            body, flag = compress(body), COMPRESSED | TYPES["ZLIB"]
        text = sent_properties_text(message.properties)
        fields: dict[str, Any] = {"a": group, "b": message.topic, "c": AUTO_CREATE_TOPIC, "d": DEFAULT_QUEUES}
        if message.topic.startswith(names.RETRY_GROUP_TOPIC_PREFIX):
            # The real client clears them of the message when its text is already made (sendKernelImpl).
            times = message.properties.pop(names.PROPERTY_RECONSUME_TIME, None)
            most = message.properties.pop(names.PROPERTY_MAX_RECONSUME_TIMES, None)
            fields["l"] = None if most is None else int(most)
            fields["j"] = 0 if times is None else int(times)
        else:
            fields["j"] = 0
        fields |= {"f": flag, "g": self._clock.now(), "h": message.flag, "k": False, "m": False}
        fields["i"] = text
        return fields, body

    def _request(self, queue: MessageQueue, fields: dict[str, Any], body: bytes) -> RemotingCommand:
        is_reply = fields["b"].endswith(REPLY_TOPIC) and f"{PROPERTY_MESSAGE_TYPE}\x01{REPLY}\x02" in fields["i"]
        fields["e"], fields["n"] = queue.queue_id, queue.broker_name
        header = write_header("SendMessageRequestHeaderV2", fields)
        code = SEND_BATCH_MESSAGE if fields["m"] else SEND_REPLY if is_reply else CODES["SendMessageRequestHeaderV2"]
        return self._remoting.command(code, header, body)

    def _result(
        self, message: Message, queue: MessageQueue, answer: RemotingCommand, batch: Sequence[Message] | None = None
    ) -> SendResult:
        status = SEND_STATUS.get(answer.code)
        if status is None:
            raise MQBrokerError(answer.code, answer.remark or "")
        header = read_header("SendMessageResponseHeader", answer.ext_fields)
        offset_msg_id: str = header["msgId"] or ""
        unique = message.properties.get(names.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, offset_msg_id)
        stored = MessageQueue(message.topic, queue.broker_name, header["queueId"] or 0)
        if batch is not None:
            return batch_result(status, batch, offset_msg_id, stored, header["queueOffset"] or 0)
        return send_result(status, unique, offset_msg_id, stored, header["queueOffset"] or 0)
