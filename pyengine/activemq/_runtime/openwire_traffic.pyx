"""An OpenWire connection at the broker, message by message; see openwire_traffic.pxd."""

from pyengine._engine.activemq.commands.message_ack cimport MessageAck
from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch
from pyengine._engine.message.envelope cimport SMALLEST_SIZE
from pyengine._engine.message.message cimport Message
from pyengine._engine.wire.data_structure cimport DataStructure, StructureType, structure_of
from pyengine._engine.wire.dispatched_messages cimport DispatchedMessages
from pyengine._engine.wire.openwire_messages cimport destination_of, dispatched, id_text, message_of
from pyengine.activemq._runtime.now cimport now_of
from pyengine.activemq._runtime.region_broker cimport region_broker_of

from pyengine._engine.activemq.commands.message_ack import AckKind
from pyengine._engine.wire.openwire_messages import destination_structure
from pyengine._engine.wire.openwire_types import TYPES
from pyengine.errors import JMSError, ProtocolError, PyengineError

cdef dict KINDS = {int(kind): kind for kind in AckKind}
cdef StructureType MESSAGE = TYPES["Message"]
cdef StructureType MESSAGE_ACK = TYPES["MessageAck"]
cdef StructureType MESSAGE_DISPATCH = TYPES["MessageDispatch"]
cdef StructureType RESPONSE = TYPES["Response"]
cdef StructureType PRODUCER_ACK = TYPES["ProducerAck"]
cdef bytes IS_MESSAGE = bytes(
    any(kind.number == number and kind.extends(MESSAGE) for kind in TYPES.values()) for number in range(256))
# Places of the values of commands.
cdef int COMMAND_ID = RESPONSE.places["command_id"]
cdef int RESPONSE_REQUIRED = RESPONSE.places["response_required"]
cdef int CORRELATION_ID = RESPONSE.places["correlation_id"]
cdef int WHERE = MESSAGE.places["destination"]
cdef int IDENTITY = MESSAGE.places["message_id"]
cdef int TRANSACTION = MESSAGE.places["transaction_id"]
cdef int PERSISTENT = MESSAGE.places["persistent"]
cdef int PRODUCER = MESSAGE.places["producer_id"]
cdef int CONTENT = MESSAGE.places["content"]
cdef int PROPERTIES = MESSAGE.places["marshalled_properties"]
cdef int ACK_CONSUMER = MESSAGE_ACK.places["consumer_id"]
cdef int ACK_DESTINATION = MESSAGE_ACK.places["destination"]
cdef int ACK_TYPE = MESSAGE_ACK.places["ack_type"]
cdef int ACK_FIRST = MESSAGE_ACK.places["first_message_id"]
cdef int ACK_LAST = MESSAGE_ACK.places["last_message_id"]
cdef int ACK_COUNT = MESSAGE_ACK.places["message_count"]
cdef int ACK_TRANSACTION = MESSAGE_ACK.places["transaction_id"]
cdef int ACK_CAUSE = MESSAGE_ACK.places["poison_cause"]
cdef int TO_CONSUMER = MESSAGE_DISPATCH.places["consumer_id"]
cdef int FROM = MESSAGE_DISPATCH.places["destination"]
cdef int CARRIED = MESSAGE_DISPATCH.places["message"]
cdef int REDELIVERIES = MESSAGE_DISPATCH.places["redelivery_counter"]


cdef class ConsumerOfClient:
    """A consumer of the connection. identity: its id as commands have it. info: see ConsumerInfo."""

    def __init__(self, DataStructure identity not None, info):
        self.identity = identity
        self.info = info
        self.dispatched = DispatchedMessages()

    def __reduce__(self):
        raise TypeError("a consumer is part of its connection and cannot be pickled")


cdef class OpenWireTraffic:
    """The messages of an OpenWire connection in both directions; OpenWireSession has the rest.

    broker: a Transport. write: see OpenWireSession.
    """

    def __init__(self, broker, write):
        self._broker = broker
        self.region_broker = region_broker_of(broker)
        self.clock = broker.clock
        self.connection_id = ""
        self._write = write
        self._consumers = {}
        self._producers = {}

    def __reduce__(self):
        raise TypeError("a session belongs to its connection and cannot be pickled")

    # What OpenWireSession does.

    def _act(self, command):
        """Any other command; its answer, None for a plain one."""
        raise NotImplementedError

    def _refused(self, command, error):
        raise NotImplementedError

    def _check_connected(self):
        raise NotImplementedError

    def _send_once(self, identity, destination, message, transaction):
        raise NotImplementedError

    # Commands in

    def receive(self, DataStructure command not None):
        """A command of the client's. What goes wrong is answered if the client waits for an answer (as
        TransportConnection.service); raises ProtocolError for what no client sends."""
        cdef StructureType kind = command.kind
        cdef DataStructure answer = None
        cdef bint carries = kind.number > 0 and IS_MESSAGE[kind.number]
        try:
            if carries:
                self.send(command)
            elif kind is MESSAGE_ACK:
                self.acknowledge(command)
            else:
                answer = self._act(command)
        except PyengineError as error:
            answer = self._refused(command, error)
        if command.values[RESPONSE_REQUIRED]:
            if answer is None:
                answer = structure_of(RESPONSE, RESPONSE.defaults.copy())
            answer.values[CORRELATION_ID] = command.values[COMMAND_ID]
            self._write(answer)
        elif carries and self._producers:
            self.acknowledge_production(command)

    cdef int send(self, DataStructure command) except -1:
        cdef list values = command.values
        cdef DataStructure identity = values[IDENTITY]
        cdef Message message
        cdef object transaction = None
        if not self.connected:
            self._check_connected()
        if values[WHERE] is None or identity is None:
            raise ProtocolError(f"{command.kind.name}: a message without destination or message id")
        if values[TRANSACTION] is not None:
            transaction = id_text(values[TRANSACTION])
        where = destination_of(values[WHERE])
        message = message_of(command)
        if self._fault_tolerant and values[PERSISTENT] and identity.producer_id is not None:
            self._send_once(identity, where, message, transaction)
        elif self.region_broker is not None:
            self.region_broker.put(self.connection_id, where, message, transaction, now_of(self.clock))
        else:
            self._broker.send(self.connection_id, where, message, transaction)
        return 0

    cdef int acknowledge_production(self, DataStructure command) except -1:
        # Give a producer with a window back what its message took of it (Message.getSize).
        cdef list values = command.values
        cdef DataStructure producer = values[PRODUCER]
        if producer is not None and self._producers.get(id_text(producer), 0) > 0:
            size = SMALLEST_SIZE + len(values[CONTENT] or b"") + len(values[PROPERTIES] or b"")
            self._write(PRODUCER_ACK(producer_id=producer, size=size))
        return 0

    cdef int acknowledge(self, DataStructure command) except -1:
        cdef list values = command.values
        cdef object first = values[ACK_FIRST], transaction = values[ACK_TRANSACTION], cause = values[ACK_CAUSE]
        cdef MessageAck ack
        cdef ConsumerOfClient consumer
        if not self.connected:
            self._check_connected()
        kind = KINDS.get(values[ACK_TYPE])
        if kind is None:
            raise JMSError(f"Invalid acknowledgment: {command!r}")
        if values[ACK_CONSUMER] is None or values[ACK_DESTINATION] is None or values[ACK_LAST] is None:
            raise ProtocolError("MessageAck: without consumer, destination or last message")
        ack = MessageAck.__new__(MessageAck)
        ack.consumer_id = id_text(values[ACK_CONSUMER])
        ack.destination = destination_of(values[ACK_DESTINATION])
        ack.kind = kind
        ack.last_message_id = id_text(values[ACK_LAST])
        ack.first_message_id = None if first is None else id_text(first)
        ack.message_count = values[ACK_COUNT]
        ack.transaction_id = None if transaction is None else id_text(transaction)
        ack.poison_cause = "" if cause is None else f"{cause.class_name}: {cause.message}"
        consumer = self._consumers.get(ack.consumer_id)
        if self.region_broker is not None:
            self.region_broker.settle_ack(ack, None)
        else:
            self._broker.acknowledge(ack)
        if consumer is not None:
            consumer.dispatched.acknowledge(ack)
        return 0

    # Messages out

    def deliver(self, MessageDispatch dispatch not None):
        """Write a dispatched message, or the end of a browse or a pull."""
        cdef ConsumerOfClient consumer = self._consumers.get(dispatch.consumer_id)
        cdef Message message = dispatch.source
        cdef list values
        if consumer is None:
            return
        values = MESSAGE_DISPATCH.defaults.copy()
        values[TO_CONSUMER] = consumer.identity
        if message is not None:
            consumer.dispatched.add(message.broker_sequence, message._message_id or "")
            if consumer.destination is not dispatch.destination:
                consumer.written = destination_structure(dispatch.destination)
                consumer.destination = dispatch.destination
            values[FROM] = consumer.written
            values[CARRIED] = dispatched(dispatch)
            values[REDELIVERIES] = dispatch.redelivery_counter
        self._write(structure_of(MESSAGE_DISPATCH, values))
