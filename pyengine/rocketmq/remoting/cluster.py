"""A real RocketMQ cluster as a client sees it: the remoting calls over TCP (MQClientAPIImpl, MQClientInstance)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from pyengine._engine.rocketmq.client.validators import attached
from pyengine._engine.rocketmq.commands.bodies import read_body, write_body
from pyengine._engine.rocketmq.commands.headers import CODES, read_header, write_header
from pyengine._engine.rocketmq.commands.requests import (
    CHECK_CLIENT_CONFIG,
    MASTER,
    REQUEST_CODE_NOT_SUPPORTED,
)
from pyengine._engine.rocketmq.commands.stored_message import decode_stored
from pyengine._engine.wire.remoting import RemotingCommand
from pyengine.attributes import named_arguments
from pyengine.clock import Clock, SystemClock
from pyengine.errors import (
    ConfigurationError,
    IllegalStateError,
    MQBrokerError,
    MQClientError,
    OffsetNotFoundError,
    ProtocolError,
    RemotingError,
)
from pyengine.rocketmq.broker.broker import Broker
from pyengine.rocketmq.message import Message, MessageExt
from pyengine.rocketmq.remoting.acl import SessionCredentials
from pyengine.rocketmq.remoting.channel import Channel, RemotingClient
from pyengine.rocketmq.remoting.client_requests import process_request
from pyengine.rocketmq.remoting.mq_client_api import (
    FLAG_COMMIT_OFFSET,
    FLAG_LITE_PULL,
    OFFSET_TIMEOUT,
    PULL_STATUS,
    QUERY_NOT_FOUND,
    UNIQUE_KEY_QUERY,
    ClientEvents,
    HalfMessage,
    HeartbeatData,
    PullCallback,
    PullMessageRequest,
    PullResult,
    PullStatus,
    SendCallback,
    SendResult,
    SubscriptionData,
    no_message,
    queue_of,
    subscription_body,
    with_key,
)
from pyengine.rocketmq.remoting.routes import API_TIMEOUT, SUCCESS, Routes, name_servers
from pyengine.rocketmq.remoting.sending import Sending, SendOptions
from pyengine.rocketmq.remoting.stored_message import message_ext, parsed_id, pulled_messages, received
from pyengine.rocketmq.remoting.tls import check_context
from pyengine.rocketmq.remoting.transport import Connect, SocketTransport
from pyengine.rocketmq.tables.allocation import MessageQueue

if TYPE_CHECKING:
    import ssl

log = logging.getLogger("pyengine.rocketmq")

# Request codes whose header is empty, or that have none.
HEART_BEAT = 34
LITE_PULL_MESSAGE = 361
LOCK_BATCH_MQ = 41
UNLOCK_BATCH_MQ = 42
GET_BROKER_CLUSTER_INFO = 106

QUERY_TIMEOUT = 15_000  # ms
HEARTBEAT_INTERVAL = 30_000
LOGGED_BEAT = 20  # of so many heartbeats that a broker has taken one is logged
SEND_BACK_TIMEOUT = 5000
DETECTION = 3000  # ms between looks at brokers that cannot be reached


@named_arguments
class Cluster:
    """The cluster that name servers know: a remoting.MQClientAPI of one client.

    namesrv_addr: the name servers, ``host:port;host:port``. They are asked one after another until one answers, and the
    one that did is asked first the next time. client_id: of the client that uses it; the brokers know the members of a
    group by their connections, so that each client has a Cluster of its own. credentials: signs every request.
    ssl_context: the TLS of every connection, see client_ssl_context; None for plain ones.
    clock: what timeouts and intervals go by, a SystemClock of its own by default. connect: makes the connections, TCP
    with ssl_context by default; see :mod:`.transport`.
    ext_fields: that every request has, beside its own. sending: how messages are sent.

    Raises ConfigurationError for addresses that are none. Its calls raise RemotingError if no server can
    be reached, MQBrokerError if a broker refuses, MQClientError for a topic or a broker that no name server knows. A
    context manager; leaving it ends the connections.
    """

    def __init__(
        self,
        namesrv_addr: str,
        client_id: str | None = None,
        *,
        credentials: SessionCredentials | None = None,
        ssl_context: ssl.SSLContext | None = None,
        clock: Clock | None = None,
        connect: Connect | None = None,
        ext_fields: Mapping[str, str] | None = None,
    ) -> None:
        servers = name_servers(namesrv_addr)
        if credentials is not None and not isinstance(credentials, SessionCredentials):
            hint = "give rocketmq.SessionCredentials(access_key, secret_key)"
            raise ConfigurationError("credentials", repr(credentials), "SessionCredentials are needed", hint)
        check_context(ssl_context)
        from random import shuffle  # it loads OpenSSL

        shuffle(servers)
        self.client_id = client_id
        self.clock = SystemClock("RocketMQ client timer") if clock is None else clock
        self._own_clock = clock is None
        if connect is None:
            connect = partial(SocketTransport, tls=ssl_context)
        self._remoting = RemotingClient(self.clock, self._requested, self._connected, credentials, connect, ext_fields)
        self._routes = Routes(servers, self._remoting, self.clock, lambda: self.client_id)
        self._lock = threading.Lock()
        self._events = ClientEvents()
        self._beats = count()
        self._suggested: dict[MessageQueue, int] = {}  # broker id that the answer to the last pull suggested
        self._without_lite_pull: set[str] = set()  # addresses of brokers that do not know its code
        self._heartbeats: dict[str, bytes] = {}  # group -> the body of its last heartbeat
        self._producer_heartbeats: dict[str, bytes] = {}  # the same of producer groups
        self.sending = Sending(self._remoting, self.clock, self._routes.publish_queues, self._routes.master)
        self.closed = False

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connections; calls from now on raise RemotingError. Harmless the second time."""
        self.closed = True
        self._remoting.close()
        if self._own_clock:
            self.clock.close()

    @property
    def name_servers(self) -> list[str]:
        """Their addresses, in the order in which they are asked."""
        return self._routes.name_servers

    def __getattr__(self, name: str) -> Any:
        if hasattr(Broker, name):
            raise AttributeError(f"a real cluster has no {name!r} here: only an embedded rocketmq.Broker does")
        raise AttributeError(f"a Cluster has no {name!r}")

    # What clients ask (remoting.MQClientAPI)

    def register_client(self, client_id: str, events: ClientEvents) -> None:
        """The client may be reached. Raises ConfigurationError for another client than the one that has the Cluster."""
        with self._lock:
            if self.client_id not in (None, client_id):
                hint = "give each consumer namesrv_addr=..., or a Cluster of its own"
                raise ConfigurationError("client_id", client_id, f"the Cluster is that of {self.client_id!r}", hint)
            self.client_id = client_id
            self._events = events

    def unregister_client(self, client_id: str, group: str) -> None:
        """The client leaves the group, at every broker; one that cannot be reached is logged."""
        with self._lock:
            self._heartbeats.pop(group, None)
        fields = {"clientID": client_id, "consumerGroup": group}
        for broker in self._routes.broker_addresses():
            try:
                self._ask(broker.address, "UnregisterClientRequestHeader", fields)
                log.info("unregister client[Producer: null Consumer: %s] from broker[%s] success", group, broker)
            except (RemotingError, MQBrokerError) as error:
                log.warning("unregister client exception from broker: %s: %s", broker.address, error)

    def disconnect(self, client_id: str) -> None:
        """The client is gone: end its connections."""
        self.close()

    def send_heartbeat(self, heartbeat: HeartbeatData) -> None:
        """Tell every known broker that the client is alive. Raises RemotingError or MQBrokerError if none took it."""
        body = _heartbeat_body(heartbeat)
        with self._lock:
            self._heartbeats[heartbeat.group] = body
        self._routes.forget_offline()
        taken, failure = 0, None
        for broker in self._routes.broker_addresses():
            try:
                command = self._remoting.command(HEART_BEAT, {}, body)
                self._success(self._remoting.invoke(broker.address, command, API_TIMEOUT))
                taken += 1
                if next(self._beats) % LOGGED_BEAT == 0:
                    log.info("send heart beat to broker[%s] success", broker)
            except (RemotingError, MQBrokerError) as error:
                log.warning("send heart beat to broker[%s] failed: %s", broker, error)
                failure = error
        if failure is not None and not taken:
            raise failure

    def register_producer(self, group: str) -> None:
        """Let the brokers know, now and every 30 s, that the client sends for a producer group."""
        with self._lock:
            first = not self._producer_heartbeats
            value = {"clientID": self.client_id, "producerDataSet": [{"groupName": group}]}
            self._producer_heartbeats[group] = write_body("HeartbeatData", value)
        if first:
            self.clock.call_at(self.clock.now() + HEARTBEAT_INTERVAL, self._beat)

    def _beat(self) -> None:
        """Tell every connected broker of the producers."""
        with self._lock:
            bodies = list(self._producer_heartbeats.values())
        self._routes.forget_offline()
        for broker in self._routes.broker_addresses():
            for body in bodies:
                try:
                    command = self._remoting.command(HEART_BEAT, {}, body)
                    self._remoting.invoke_async(broker.address, command, API_TIMEOUT, _heartbeat_answered)
                except RemotingError as error:
                    log.warning("send heart beat to broker[%s] failed: %s", broker, error)
        try:
            self.clock.call_at(self.clock.now() + HEARTBEAT_INTERVAL, self._beat)
        except IllegalStateError:
            log.debug("the cluster is closed: no further heartbeat")

    def detect(self, options: SendOptions) -> None:
        """Every three seconds ask brokers that could not be reached whether they answer (LatencyFaultToleranceImpl)."""
        try:
            self.clock.call_at(self.clock.now() + DETECTION, lambda: self._detect(options))
        except IllegalStateError:
            log.debug("the cluster is closed: no further detection")

    def _detect(self, options: SendOptions) -> None:
        if self.closed:
            return
        # It waits, which the clock's thread must not.
        threading.Thread(target=self._detect_once, args=(options,), name="LatencyFaultTolerance", daemon=True).start()
        self.detect(options)

    def _detect_once(self, options: SendOptions) -> None:
        for broker in self.sending.faults.due(self.clock.now(), options.detect_interval):
            address, topic = self._routes.known_master(broker), self._routes.first_topic()
            found: bool | None = None
            if address is not None:
                try:
                    fields = {"topic": topic or "", "queueId": 0, "bname": broker}
                    self._ask(address, "GetMaxOffsetRequestHeader", fields, options.detect_timeout)
                    found = topic is not None
                except (RemotingError, MQBrokerError) as error:
                    log.debug("%s is not reachable: %s", broker, error)
                    found = False
            for line in self.sending.faults.detected(broker, found):
                log.info("%s", line)

    def introduce(self, topic: str) -> None:
        """Have the brokers of a topic know of this client's producers, so that they can reach it."""
        if topic not in self._routes:
            self.publish_queues(topic)
        for queue in self.publish_queues(topic):
            self._remoting.channel(self._routes.master(queue))

    def end_transaction(self, half: HalfMessage, outcome: int, remark: str | None, *, checked: bool) -> None:
        """Tell a broker what became of a half message (one way). outcome: 8 commits, 12 rolls back, 0 is not known yet.

        checked: the broker has asked. Raises RemotingError, MQClientError.
        """
        fields = {
            "producerGroup": half.group,
            "commitLogOffset": half.position,
            "tranStateTableOffset": half.offset,
            "commitOrRollback": outcome,
            "fromTransactionCheck": checked,
            "msgId": half.msg_id,
            "transactionId": half.transaction_id,
            "bname": half.broker_name,
        }
        command = self._command("EndTransactionRequestHeader", fields)
        command.remark = remark
        address = half.address or self._routes.master(MessageQueue("", half.broker_name, 0))
        self._remoting.invoke_one_way(address, command)

    def check_client(self, group: str, client_id: str, subscription: SubscriptionData) -> None:
        """Ask a broker of the topic whether it can filter so (CHECK_CLIENT_CONFIG)."""
        body = write_body(
            "CheckClientRequestBody",
            {"clientId": client_id, "group": group, "subscriptionData": subscription_body(subscription)},
        )
        command = self._remoting.command(CHECK_CLIENT_CONFIG, None, body)
        try:
            answer = self._remoting.invoke(self._routes.any_broker(subscription.topic), command, API_TIMEOUT)
        except RemotingError as error:
            raise MQClientError(
                attached(
                    "Check client in broker error, maybe because you use "
                    f"{subscription.expression_type} to filter message, but server has not been upgraded to support!"
                    "This error would not affect the launch of consumer, but may has impact on message receiving if "
                    "you have use the new features which are not supported by server, please check the log!"
                )
            ) from error
        if answer.code != SUCCESS:
            raise MQClientError(attached(answer.remark or "", answer.code), answer.code)

    def topic_subscribe_info(self, topic: str) -> list[MessageQueue] | None:
        """All queues that can be read, None if there is no such topic; if no name server answers, or none knows the
        topic any more, those of the last answer, with a line in the log: a restarted name server learns of its topics
        within half a minute. Raises RemotingError if none answers and nothing is known of the topic.
        """
        return self._routes.topic_subscribe_info(topic)

    def publish_queues(self, topic: str) -> list[MessageQueue]:
        """All queues that a message can be sent to; of an unknown topic those that it would be made with.

        Raises MQClientError if there is none, RemotingError if no name server answers and nothing is known.
        """
        return self._routes.publish_queues(topic)

    def get_consumer_id_list(self, topic: str, group: str) -> list[str]:
        """Client ids of the group's members, as one broker of the topic knows them; MQBrokerError if it knows none."""
        answer = self._ask(
            self._routes.any_broker(topic), "GetConsumerListByGroupRequestHeader", {"consumerGroup": group}
        )
        body = read_body("GetConsumerListByGroupResponseBody", answer.body or b"")
        if body is None or body["consumerIdList"] is None:
            raise MQBrokerError(answer.code, answer.remark or f"no consumer for this group, {group}")
        return [each for each in body["consumerIdList"] if each is not None]

    def pull_message(self, request: PullMessageRequest, callback: PullCallback) -> None:
        """Answer through ``callback``, once. Raises MQClientError for an unknown broker, RemotingError for one that
        cannot be reached.
        """
        queue = request.queue
        address, slave = self._pull_address(queue)
        fields: dict[str, Any] = {
            "consumerGroup": request.consumer_group,
            "topic": queue.topic,
            "queueId": queue.queue_id,
            "queueOffset": request.queue_offset,
            "maxMsgNums": request.max_nums,
            "sysFlag": request.sys_flag & ~FLAG_COMMIT_OFFSET if slave else request.sys_flag,
            "commitOffset": request.commit_offset,
            "suspendTimeoutMillis": request.suspend_timeout,
            "subscription": request.sub_expression,
            "subVersion": request.sub_version,
            "maxMsgBytes": request.max_bytes,
            "expressionType": request.expression_type,
            "bname": queue.broker_name,
        }

        command = self._command("PullMessageRequestHeader", fields)
        is_lite = bool(request.sys_flag & FLAG_LITE_PULL) and address not in self._without_lite_pull
        if is_lite:
            command.code = LITE_PULL_MESSAGE

        def answered(answer: RemotingCommand | RemotingError) -> None:
            try:
                if is_lite and isinstance(answer, RemotingCommand) and answer.code == REQUEST_CODE_NOT_SUPPORTED:
                    self._without_lite_pull.add(address)  # a broker 4.9, which a client 5.3.3 gets no further with
                    self.pull_message(request, callback)
                    return
                callback(answer if isinstance(answer, RemotingError) else self._pull_result(queue, answer))
            except (MQBrokerError, MQClientError, ProtocolError, RemotingError) as error:
                callback(error)

        self._remoting.invoke_async(address, command, request.timeout_millis, answered)

    def _pull_result(self, queue: MessageQueue, answer: RemotingCommand) -> PullResult:
        status = PULL_STATUS.get(answer.code)
        if status is None:
            raise MQBrokerError(answer.code, answer.remark or "")
        header = read_header("PullMessageResponseHeader", answer.ext_fields)
        next_offset, least, most = (header[name] for name in ("nextBeginOffset", "minOffset", "maxOffset"))
        if next_offset is None or least is None or most is None:
            raise ProtocolError(f"the answer to a pull of {queue} has no offsets")
        self._suggested[queue] = header["suggestWhichBrokerId"] or MASTER
        found: list[MessageExt] = []
        if status is PullStatus.FOUND:
            try:
                found.extend(pulled_messages(answer.body or b"", queue.broker_name))
            except ProtocolError as error:
                log.error("a message behind the %d that were pulled of %s cannot be read: %s", len(found), queue, error)
        return PullResult(status, next_offset, least, most, tuple(found))

    def query_consumer_offset(self, group: str, queue: MessageQueue, timeout_millis: int = OFFSET_TIMEOUT) -> int:
        """The committed offset. OffsetNotFoundError if there is none."""
        fields = {"consumerGroup": group, **_of_queue(queue)}
        command = self._command("QueryConsumerOffsetRequestHeader", fields)
        answer = self._remoting.invoke(self._routes.master(queue), command, timeout_millis)
        if answer.code == QUERY_NOT_FOUND:
            raise OffsetNotFoundError(answer.code, answer.remark or "")
        return self._number(answer, "QueryConsumerOffsetResponseHeader", "offset")

    def update_consumer_offset(
        self, group: str, queue: MessageQueue, offset: int, timeout_millis: int = OFFSET_TIMEOUT
    ) -> None:
        """Store the offset, lower ones too (one way)."""
        fields = {"consumerGroup": group, "commitOffset": offset, **_of_queue(queue)}
        command = self._command("UpdateConsumerOffsetRequestHeader", fields)
        self._remoting.invoke_one_way(self._routes.master(queue), command)

    def max_offset(self, queue: MessageQueue) -> int:
        """The offset that the next message will get."""
        answer = self._ask(self._routes.master(queue), "GetMaxOffsetRequestHeader", _of_queue(queue))
        return self._number(answer, "GetMaxOffsetResponseHeader", "offset")

    def min_offset(self, queue: MessageQueue) -> int:
        """The smallest offset that is still there."""
        answer = self._ask(self._routes.master(queue), "GetMinOffsetRequestHeader", _of_queue(queue))
        return self._number(answer, "GetMinOffsetResponseHeader", "offset")

    def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        """The first offset stored at ``timestamp`` (ms) or later."""
        fields = {"timestamp": timestamp, **_of_queue(queue)}
        answer = self._ask(self._routes.master(queue), "SearchOffsetRequestHeader", fields)
        return self._number(answer, "SearchOffsetResponseHeader", "offset")

    def query_message(
        self, topic: str, key: str, max_num: int, begin: int, end: int, *, unique: bool = False
    ) -> list[MessageExt]:
        """The newest messages of a topic that have a key, at most ``max_num`` of each broker; begin, end: ms, of their
        storing. unique: the key is the message's own id. Raises MQClientError if there is none.
        """
        fields = {"topic": topic, "key": key, "maxNum": max_num, "beginTimestamp": begin, "endTimestamp": end}
        found: list[MessageExt] = []
        for address in self.masters(topic):
            command = self._command("QueryMessageRequestHeader", fields)
            if unique:
                command = self._remoting.command(command.code, {**(command.ext_fields or {}), UNIQUE_KEY_QUERY: "true"})
            try:
                answer = self._success(self._remoting.invoke(address, command, QUERY_TIMEOUT))
                found.extend(pulled_messages(answer.body or b"", ""))
            except (RemotingError, MQBrokerError, ProtocolError) as error:
                log.warning("getResponseCommand failed, %s: %s", address, error)
        return with_key(found, topic, key, unique=unique)

    def view_message(self, topic: str, offset_msg_id: str) -> MessageExt:
        """The message with an id of a broker. Raises MQClientError for a malformed id, MQBrokerError if the
        broker has no such message.
        """
        host, position = parsed_id(offset_msg_id)
        if host not in self.masters(topic):  # an id may say anything
            raise no_message("id")
        answer = self._ask(host, "ViewMessageRequestHeader", {"topic": topic, "offset": position})
        return received(message_ext(decode_stored(answer.body or b"", 0)[0], ""))

    def lock_batch_mq(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> set[MessageQueue]:
        """The queues that the client now holds for ordered consumption."""
        held: set[MessageQueue] = set()
        for address, body in self._lock_bodies("LockBatchRequestBody", group, client_id, queues):
            answer = self._remoting.invoke(address, self._remoting.command(LOCK_BATCH_MQ, {}, body), 1000)
            found = read_body("LockBatchResponseBody", self._success(answer).body or b"") or {}
            held |= {queue_of(each) for each in found.get("lockOKMQSet") or () if each is not None}
        return held

    def unlock_batch_mq(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> None:
        """Give locks back (one way); those of other clients stay."""
        for address, body in self._lock_bodies("UnlockBatchRequestBody", group, client_id, queues):
            self._remoting.invoke_one_way(address, self._remoting.command(UNLOCK_BATCH_MQ, {}, body))

    def consumer_send_message_back(
        self, group: str, message: MessageExt, delay_level: int, max_reconsume_times: int
    ) -> None:
        """Give a message back for a later try, or for the dead letters."""
        fields = {
            "group": group,
            "originTopic": message.topic,
            "offset": message.commit_log_offset,
            "delayLevel": delay_level,
            "originMsgId": message.msg_id,
            "maxReconsumeTimes": max_reconsume_times,
            "bname": message.broker_name,
        }
        queue = MessageQueue(message.topic, message.broker_name, message.queue_id)
        self._ask(self._routes.master(queue), "ConsumerSendMsgBackRequestHeader", fields, SEND_BACK_TIMEOUT)

    def send_message(self, group: str, message: Message, queue: MessageQueue | None = None) -> SendResult:
        """Store a message. Without a queue in the next one of the topic, in turn, and at another broker if one cannot
        be reached or refuses in a way that may pass, as :attr:`sending` says. A body of 4,096 bytes or more is
        compressed.
        """
        return self.sending.send(group, message, queue)

    def send_message_async(
        self, group: str, message: Message, queue: MessageQueue | None, callback: SendCallback
    ) -> None:
        """The same without waiting: the answer, or why there is none, goes to ``callback``, on a thread of its own.
        One that a broker does not answer is sent to another; one that it refuses is not.
        """
        self.sending.send_async(group, message, queue, callback)

    def send_message_one_way(self, group: str, message: Message, queue: MessageQueue | None = None) -> None:
        """The same, without an answer. Raises if it cannot be written."""
        self.sending.send_one_way(group, message, queue)

    def send_batch(self, group: str, messages: Sequence[Message], queue: MessageQueue | None = None) -> SendResult:
        """Store messages of one topic, one behind the other in one queue; tried as :meth:`send_message`."""
        return self.sending.send_batch(group, messages, queue)

    # What administrators ask (see admin.ClusterAdmin)

    def cluster_info(self) -> dict[str, Any]:
        """ClusterInfo: the brokers that the name servers know."""
        answer = self._success(self._routes.ask_name_servers(GET_BROKER_CLUSTER_INFO))
        return read_body("ClusterInfo", answer.body or b"") or {"clusterAddrTable": {}, "brokerAddrTable": {}}

    def masters(self, topic: str) -> list[str]:
        """Addresses of the masters that have a topic. Raises MQClientError for an unknown one."""
        return self._routes.masters(topic)

    def ask_broker(
        self, address: str, code: int, fields: dict[str, str], timeout_millis: int = API_TIMEOUT
    ) -> RemotingCommand:
        """A broker's answer. Raises MQBrokerError if it refuses."""
        return self._success(self._remoting.invoke(address, self._remoting.command(code, fields), timeout_millis))

    # Within

    def _command(self, header: str, fields: dict[str, Any], body: bytes | None = None) -> RemotingCommand:
        return self._remoting.command(CODES[header], write_header(header, fields), body)

    def _ask(
        self, address: str, header: str, fields: dict[str, Any], timeout_millis: int = API_TIMEOUT
    ) -> RemotingCommand:
        return self._success(self._remoting.invoke(address, self._command(header, fields), timeout_millis))

    def _success(self, answer: RemotingCommand) -> RemotingCommand:
        if answer.code != SUCCESS:
            raise MQBrokerError(answer.code, answer.remark or "")
        return answer

    def _number(self, answer: RemotingCommand, header: str, field: str) -> int:
        found = read_header(header, self._success(answer).ext_fields)[field]
        if found is None:
            raise ProtocolError(f"{header}.{field} is not in the answer")
        number: int = found
        return number

    def _lock_bodies(
        self, body: str, group: str, client_id: str, queues: Iterable[MessageQueue]
    ) -> Iterable[tuple[str, bytes]]:
        own: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            own.setdefault(queue.broker_name, []).append(queue)
        for listed in own.values():
            value = {"consumerGroup": group, "clientId": client_id, "mqSet": [_pairs(queue) for queue in listed]}
            yield self._routes.master(listed[0]), write_body(body, value)

    def _pull_address(self, queue: MessageQueue) -> tuple[str, bool]:
        """(address, whether it is a slave's) of the broker that the last answer suggested, or another of its name."""
        found = self._routes.broker(queue)
        wanted = self._suggested.get(queue, MASTER)
        chosen = wanted if wanted in found else min(found)
        return found[chosen], chosen != MASTER

    def _connected(self, channel: Channel) -> None:
        """Send a heartbeat to a broker after each connect, before any other request."""
        if not self._routes.is_broker(channel.address):
            return
        with self._lock:
            bodies = [*self._heartbeats.values(), *self._producer_heartbeats.values()]
        for body in bodies:
            try:
                channel.request(self._remoting.command(HEART_BEAT, {}, body), API_TIMEOUT, _heartbeat_answered)
            except RemotingError as error:
                log.warning("send heart beat to broker[%s] failed: %s", channel.address, error)

    def _requested(self, channel: Channel, command: RemotingCommand) -> RemotingCommand | None:
        return process_request(self._events, channel, command)


def _heartbeat_answered(answer: RemotingCommand | RemotingError) -> None:
    if isinstance(answer, RemotingError) or answer.code != SUCCESS:
        problem = answer if isinstance(answer, RemotingError) else MQBrokerError(answer.code, answer.remark or "")
        log.warning("send heart beat to broker failed: %s", problem)


def _of_queue(queue: MessageQueue) -> dict[str, Any]:
    return {"topic": queue.topic, "queueId": queue.queue_id, "bname": queue.broker_name}


def _pairs(queue: MessageQueue) -> dict[str, Any]:
    return {"topic": queue.topic, "brokerName": queue.broker_name, "queueId": queue.queue_id}


def _heartbeat_body(heartbeat: HeartbeatData) -> bytes:
    group = {
        "groupName": heartbeat.group,
        "consumeType": heartbeat.consume_type,
        "messageModel": heartbeat.message_model.name,
        "consumeFromWhere": heartbeat.consume_from_where.name,
        "subscriptionDataSet": [subscription_body(each) for each in heartbeat.subscriptions],
        "unitMode": heartbeat.unit_mode,
    }
    value = {
        "clientID": heartbeat.client_id,
        "consumerDataSet": [group],
        "producerDataSet": [{"groupName": "CLIENT_INNER_PRODUCER"}],
    }
    return write_body("HeartbeatData", value)


_shared: WeakValueDictionary[tuple[object, ...], Cluster] = WeakValueDictionary()
_shared_lock = threading.Lock()


def shared_cluster(
    namesrv_addr: str,
    client_id: str,
    credentials: SessionCredentials | None = None,
    ssl_context: ssl.SSLContext | None = None,
    ext_fields: Mapping[str, str] | None = None,
) -> Cluster:
    """The Cluster of a client of this process: consumers with one client id have one connection to each broker."""
    key = namesrv_addr, client_id, credentials, ssl_context, tuple(sorted((ext_fields or {}).items()))
    with _shared_lock:
        found = _shared.get(key)
        if found is None or found.closed:
            found = Cluster(
                namesrv_addr, client_id, credentials=credentials, ssl_context=ssl_context, ext_fields=ext_fields
            )
            _shared[key] = found
    return found
