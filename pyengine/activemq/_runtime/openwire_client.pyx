"""A client of a broker of the network, command by command; see openwire_client.pxd."""

from pyengine._engine.activemq.commands.message_ack cimport MessageAck
from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch
from pyengine._engine.message.message cimport Message
from pyengine._engine.wire.data_structure cimport DataStructure, StructureType, structure_of
from pyengine._engine.wire.dispatched_messages cimport DispatchedMessages
from pyengine._engine.wire.openwire cimport OpenWireReader, OpenWireWriter
from pyengine._engine.wire.openwire_messages cimport (
    address, command_of, destination_of, id_text, message_id, message_of,
)

import threading

from pyengine._engine.wire.openwire_messages import consumer_id, destination_structure
from pyengine._engine.wire.openwire_messages import transaction_id as transaction_structure
from pyengine._engine.wire.openwire_types import TYPES
from pyengine.errors import PyengineError
from pyengine.visible import logger

LOG = logger("pyengine.activemq")

cdef StructureType MESSAGE = TYPES["Message"]
cdef StructureType MESSAGE_ID = TYPES["MessageId"]
cdef StructureType MESSAGE_ACK = TYPES["MessageAck"]
cdef StructureType MESSAGE_DISPATCH = TYPES["MessageDispatch"]
cdef StructureType RESPONSE = TYPES["Response"]
cdef int WIRE_FORMAT = TYPES["WireFormatInfo"].number
cdef int KEEP_ALIVE = TYPES["KeepAliveInfo"].number
# Places of the values of commands.
cdef int COMMAND_ID = RESPONSE.places["command_id"]
cdef int RESPONSE_REQUIRED = RESPONSE.places["response_required"]
cdef int CORRELATION_ID = RESPONSE.places["correlation_id"]
cdef int WHERE = MESSAGE.places["destination"]
cdef int IDENTITY = MESSAGE.places["message_id"]
cdef int IN_TIME = MESSAGE.places["broker_in_time"]
cdef int OUT_TIME = MESSAGE.places["broker_out_time"]
cdef int ID_TEXT = MESSAGE_ID.places["text_view"]
cdef int ID_POSITION = MESSAGE_ID.places["broker_sequence_id"]
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


cdef class CommandChannel:
    """The commands of one connection in both directions; OpenWireChannel has the rest."""

    def __init__(self, link, OpenWireReader reader not None, OpenWireWriter writer not None):
        self._link = link
        self._reader = reader
        self._writer = writer
        self._writing = threading.Lock()

    def __reduce__(self):
        raise TypeError("a channel is a connection and cannot be pickled")

    # What OpenWireChannel does.

    def _check(self):
        """Raise what is the matter."""
        raise NotImplementedError

    def _broken(self, reason):
        """Writing has failed; raises ChannelFailedError."""
        raise NotImplementedError

    def _fail(self, reason):
        raise NotImplementedError

    def _negotiate(self, command):
        raise NotImplementedError

    def _answer_keep_alive(self):
        raise NotImplementedError

    def oneway(self, DataStructure command not None):
        """See Channel."""
        cdef bytes data
        with self._writing:
            if self.failure is not None or self._closed:
                self._check()
            data = self._writer.write(command)
            try:
                self._link.write(data)
            except OSError as error:
                failure = str(error)
            else:
                self._written = True
                return
        self._broken(failure)

    def _arrived(self, data):
        cdef DataStructure command
        cdef int number
        self._received = True
        try:
            self._reader.feed(data)
            for command in self._reader:
                if self._closed:
                    return
                number = command.kind.number
                if number == WIRE_FORMAT:
                    self._negotiate(command)
                elif number == KEEP_ALIVE:
                    if command.values[RESPONSE_REQUIRED]:
                        self._answer_keep_alive()
                else:
                    self.listener.received(command)
        except PyengineError as error:
            self._fail(str(error))
        except Exception as error:
            LOG.exception("%s: what the broker sent could not be handled", self)
            self._fail(str(error))


cdef class OpenWireClient:
    """Sends, acknowledgements and messages of a client; OpenWireTransport has the rest."""

    def __init__(self, channel, options, clock):
        self._channel = channel
        self._options = options
        self._clock = clock
        self._answers = {}
        self._consumers = {}
        self._foreign_ids = {}

    def __reduce__(self):
        raise TypeError("a transport is a connection and cannot be pickled")

    # What OpenWireTransport does.

    def _check(self):
        raise NotImplementedError

    def _wait_for(self, number, command, timeout):
        """Send a command with its number, and return its answer. Raises what the broker answers with."""
        raise NotImplementedError

    def _cause(self, text):
        raise NotImplementedError

    def _hand_over(self, dispatch):
        raise NotImplementedError

    def _advised(self, content):
        raise NotImplementedError

    def _control(self, command):
        raise NotImplementedError

    # Commands out

    cdef DataStructure numbered(self, DataStructure command, bint response_required):
        cdef list values = command.values.copy()
        self.commands += 1
        values[COMMAND_ID] = self.commands
        values[RESPONSE_REQUIRED] = response_required
        return structure_of(command.kind, values)

    cdef int write(self, DataStructure command) except -1:
        command = self.numbered(command, False)
        if self._failed is not None or self._closed:
            self._check()
        self._channel.oneway(command)
        return 0

    def _send(self, DataStructure command not None):
        """Without waiting for an answer."""
        self.write(command)

    def _request(self, DataStructure command not None, timeout=None):
        """Wait for the answer. Raises what the broker answers with, JMSError if none comes within ``timeout`` ms."""
        command = self.numbered(command, True)
        return self._wait_for(command.values[COMMAND_ID], command, timeout)

    def send(self, connection_id, destination, Message message not None, transaction_id=None, now=None):
        """See Transport. As in the real client only a persistent message outside a transaction waits for the broker's
        answer, by default (ActiveMQSession.send)."""
        cdef object options = self._options
        cdef DataStructure identity = None if transaction_id is None else transaction_structure(transaction_id)
        cdef DataStructure command = command_of(message, None if message._destination is not None else destination,
                                                identity)
        cdef bint quick = not message._persistent or transaction_id is not None or options.use_async_send
        if quick and not options.always_sync_send and not options.send_timeout:
            self.write(command)
        else:
            self._request(command, options.send_timeout or None)

    cdef DataStructure identity(self, str text):
        cdef object found = self._foreign_ids.get(text) if self._foreign_ids else None
        return message_id(text) if found is None else found

    def acknowledge(self, MessageAck ack not None, failed=None):
        """See Transport. Only one outside a transaction without ``failed`` waits for the broker's answer."""
        cdef DispatchedMessages given = self._consumers.get(ack.consumer_id)
        cdef list values
        cdef DataStructure command
        if given is None:
            return
        values = MESSAGE_ACK.defaults.copy()
        if self.acknowledged is not ack.destination:
            self.written = destination_structure(ack.destination)
            self.acknowledged = ack.destination
        values[ACK_DESTINATION] = self.written
        if ack.transaction_id is not None:
            values[ACK_TRANSACTION] = transaction_structure(ack.transaction_id)
        values[ACK_CONSUMER] = consumer_id(ack.consumer_id)
        values[ACK_TYPE] = <int> ack.kind
        if ack.first_message_id is not None:
            values[ACK_FIRST] = self.identity(ack.first_message_id)
        values[ACK_LAST] = self.identity(ack.last_message_id)
        values[ACK_COUNT] = ack.message_count
        if ack.poison_cause:
            values[ACK_CAUSE] = self._cause(ack.poison_cause)
        command = structure_of(MESSAGE_ACK, values)
        given.acknowledge(ack)
        try:
            if failed is None and ack.transaction_id is None:
                self._request(command)
            else:
                self.write(command)
        except PyengineError as error:
            if failed is None:
                raise
            if self._failed is None and not self._closed:
                failed(error)

    # Commands in

    def _receive(self, DataStructure command not None):
        cdef StructureType kind = command.kind
        cdef object answer
        if kind is MESSAGE_DISPATCH:
            self.take(command)
        elif kind is RESPONSE or kind.base is RESPONSE:
            answer = self._answers.pop(command.values[CORRELATION_ID], None)
            if answer is not None:
                answer.give(command)
        else:
            self._control(command)

    cdef int take(self, DataStructure command) except -1:
        cdef list values = command.values
        cdef DataStructure content = values[CARRIED]
        cdef DataStructure identity
        cdef DispatchedMessages given
        cdef Message message
        cdef MessageDispatch dispatch
        if values[TO_CONSUMER] is None:
            return 0
        consumer = id_text(values[TO_CONSUMER])
        given = self._consumers.get(consumer)
        if given is None:
            return 0
        if self._watching is not None and consumer == self._watching:
            self._advised(content)
            return 0
        if content is None:
            self._hand_over(MessageDispatch(consumer, None, None))
            return 0
        message = message_of(content)
        where = content.values[WHERE]
        if where is not None:
            address(message, where)
        identity = content.values[IDENTITY]
        if identity.values[ID_TEXT] is not None:
            self._foreign_ids[id_text(identity)] = identity
        message._redelivery_counter = values[REDELIVERIES]
        message._broker_in_time = content.values[IN_TIME]
        message._broker_out_time = content.values[OUT_TIME]
        given.add(identity.values[ID_POSITION], message._message_id or "")
        dispatch = MessageDispatch(
            consumer, destination_of(where if values[FROM] is None else values[FROM]), message, values[REDELIVERIES])
        self._hand_over(dispatch)
        return 0
