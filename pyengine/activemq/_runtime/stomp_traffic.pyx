"""A STOMP session, message by message; see stomp_traffic.pxd."""

from libc.stdint cimport int64_t

from pyengine._engine.activemq.commands.message_ack cimport MessageAck
from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch
from pyengine._engine.message.message cimport Message
from pyengine._engine.wire.stomp cimport StompFrame
from pyengine.activemq._runtime.now cimport now_of
from pyengine.activemq._runtime.region_broker cimport region_broker_of

from pyengine._engine.activemq.commands.message_ack import AckKind
from pyengine._engine.wire.stomp import text_body
from pyengine._engine.wire.stomp_messages import message_headers, ordered, sent_message
from pyengine.errors import PyengineError

STANDARD = AckKind.STANDARD
TRANSFORMATION = "transformation"

cdef enum:
    CAPACITY = 32           # of the HashMap whose order a MESSAGE's headers have (LegacyFrameTranslator.convertMessage)


cdef class StompTraffic:
    """The messages of a STOMP session in both directions; StompSession has the rest.

    broker: a Transport. write: see StompSession. names: its temporary destinations.
    """

    def __init__(self, broker, str connection_id not None, write, names):
        self._broker = broker
        self.region_broker = region_broker_of(broker)
        self.clock = broker.clock
        self.connection_id = connection_id
        self.version = self.wire_version = "1.0"
        self._write = write
        self._names = names
        self._by_consumer = {}
        self._pending = {}
        self._producer_id = f"{connection_id}:-1:1"

    def __reduce__(self):
        raise TypeError("a session belongs to its connection and cannot be pickled")

    # What StompSession does.

    def _check_connected(self):
        raise NotImplementedError

    def _converted(self, frame):
        """Headers and body of a frame whose body is not simply bytes or a string."""
        raise NotImplementedError

    def _broken(self, error):
        raise NotImplementedError

    def _without_destination(self):
        raise NotImplementedError

    def _open_transaction(self, name):
        raise NotImplementedError

    def _check_temporary(self, destination):
        raise NotImplementedError

    def _report(self, error, frame):
        raise NotImplementedError

    def _end_of_browsing(self, subscription):
        raise NotImplementedError

    def _shown(self, message, headers, ignore_transformation):
        """Headers and body of a message whose body is neither bytes nor a string."""
        raise NotImplementedError

    def _await(self, ack_id, message_id, dispatch, subscription):
        """The client has to acknowledge a message."""
        raise NotImplementedError

    def asynchronous_failure(self, error):
        raise NotImplementedError

    # Messages in

    def _send(self, StompFrame frame not None):
        cdef dict headers = frame.headers
        cdef Message message
        cdef int64_t now
        cdef bint counted = False
        cdef str target
        cdef object body, destination, transaction
        if not self.connected:
            self._check_connected()
        where = headers.get("destination")
        if where is None:
            self._without_destination()
        name = headers.pop("transaction", None)
        now = now_of(self.clock)
        if TRANSFORMATION in headers or "amq-msg-type" in headers:
            headers, body, counted = self._converted(frame)
        elif "content-length" in headers:
            counted = True
            body = frame.body
        else:
            body = frame.text
        destination, target = self._names.target(where)
        try:
            message = sent_message(headers, body, target, now, self._names.reply_to, counted)
        except (PyengineError, ValueError) as error:
            self._broken(error)
        self.sent += 1
        message._message_id = f"{self._producer_id}:{self.sent}"
        transaction = None if name is None else self._open_transaction(name)
        try:
            if target.startswith("temp-"):
                self._check_temporary(destination)
            self.send(destination, message, transaction, now)
        except PyengineError as error:
            self._report(error, frame)
        else:
            self._receipt(frame)

    cdef int send(self, object destination, Message message, object transaction, int64_t now) except -1:
        if self.region_broker is not None:
            self.region_broker.put(self.connection_id, destination, message, transaction, now)
        else:
            self._broker.send(self.connection_id, destination, message, transaction, now)
        return 0

    cpdef _receipt(self, StompFrame frame):
        cdef StompFrame answer
        receipt = frame.headers.get("receipt")
        if receipt is not None:
            answer = StompFrame.__new__(StompFrame)
            answer.action, answer.headers, answer.body = "RECEIPT", {"receipt-id": receipt}, b""
            self._write(answer, self.wire_version)

    # Messages out

    def deliver(self, MessageDispatch dispatch not None):
        """Write a dispatched message, and acknowledge it if its subscription does that by itself."""
        cdef Message message = dispatch.source
        cdef StompFrame frame
        cdef dict headers
        cdef object body, ack_id, ack
        cdef bint ignored, automatic
        subscription = self._by_consumer.get(dispatch.consumer_id)
        if subscription is None:
            return
        if message is None:
            if subscription.info.browser:
                self._end_of_browsing(subscription)
            return
        message_id = message._message_id or ""
        ignored = message.own(TRANSFORMATION) is not None
        body = message._body
        if subscription.transformation is not None and not isinstance(body, bytes):
            message = message.copy()
            message.set_string_property(TRANSFORMATION, subscription.transformation)
            ignored = False
        headers = message_headers(message, self._names.shown, dispatch.redelivery_counter)
        if isinstance(body, bytes):
            headers["content-length"] = str(len(<bytes>body))
        elif isinstance(body, str):
            body = text_body(body)
        else:
            headers, body = self._shown(message, headers, ignored)
        automatic = subscription.mode == "auto"
        if not automatic:
            self.acks += 1
            ack_id = f"{self.connection_id}-{self.acks}"
            self._await(ack_id, message_id, dispatch, subscription)
            if self.version == "1.2":
                headers["ack"] = ack_id
        if subscription.name is not None:
            headers["subscription"] = subscription.name
        frame = StompFrame.__new__(StompFrame)
        frame.action, frame.headers, frame.body = "MESSAGE", ordered(headers, CAPACITY), body
        self._write(frame, self.wire_version)
        if automatic:
            ack = MessageAck(dispatch.consumer_id, dispatch.destination, STANDARD, message_id)
            if self.region_broker is not None:
                self.region_broker.settle_ack(ack, self.asynchronous_failure)
            else:
                self._broker.acknowledge(ack, self.asynchronous_failure)
