cimport cython

from cpython.ref cimport PyObject
from libc.stdint cimport int8_t, uint32_t

from pyengine._engine.message.body cimport Body
from pyengine._engine.message.conversion cimport (
    JAVA_NAMES,
    convert,
    destination_text,
    hidden_prefix,
    integer_between,
    message_id_text,
    text_or_none,
    truth_of,
)
from pyengine._engine.message.header cimport (
    BROKER_IN_TIME,
    BROKER_OUT_TIME,
    BROKER_PATH,
    CORRELATION_ID,
    DELIVERY_COUNT,
    DELIVERY_MODE,
    DESTINATION,
    EXPIRATION,
    GROUP_FIRST_FOR_CONSUMER,
    GROUP_ID,
    GROUP_SEQUENCE,
    MESSAGE_ID,
    PRIORITY,
    PRODUCER_TRANSACTION_ID,
    REDELIVERED,
    REPLY_TO,
    TIMESTAMP,
    TYPE,
    USER_ID,
    fresh_header,
)
from pyengine._engine.java.value cimport (
    BOOLEAN,
    CHAR,
    INT,
    LONG,
    NULL_VALUE,
    OBJECT,
    STRING,
    java_text,
    python_none,
    read_value,
    text_data,
    text_kind,
    text_length,
)

from pyengine.errors import InvalidMessageError

# Header -> attribute, for the headers that a mapping can set.
cdef dict ATTRIBUTES = {
    DESTINATION: "destination",
    REPLY_TO: "reply_to",
    TYPE: "type",
    DELIVERY_MODE: "delivery_mode",
    PRIORITY: "priority",
    MESSAGE_ID: "message_id",
    TIMESTAMP: "timestamp",
    CORRELATION_ID: "correlation_id",
    EXPIRATION: "expiration",
    REDELIVERED: "redelivered",
    DELIVERY_COUNT: "delivery_count",
    GROUP_ID: "group_id",
    GROUP_SEQUENCE: "group_sequence",
    GROUP_FIRST_FOR_CONSUMER: "group_first_for_consumer",
    USER_ID: "user_id",
    PRODUCER_TRANSACTION_ID: "producer_transaction_id",
    BROKER_IN_TIME: "broker_in_time",
    BROKER_OUT_TIME: "broker_out_time",
    BROKER_PATH: "broker_path",
}


cdef str header_attribute(int code):
    return ATTRIBUTES[code]


cdef inline bint text_value(PyObject* text, Py_ssize_t hidden, Value* into) noexcept nogil:
    if text == python_none:
        into.type = NULL_VALUE
        return False
    into.type = STRING
    into.encoding = text_kind(text)
    into.length = <uint32_t>(text_length(text) - hidden)
    into.payload.text = <const char*>text_data(text) + hidden * into.encoding
    return True


cdef inline bint integer_value(int java_type, int64_t integer, Value* into) noexcept nogil:
    into.type = java_type
    into.payload.integer = integer
    return True


cdef bint envelope_value(Envelope envelope, int header, Value* into) noexcept nogil:
    if header == PRIORITY:
        return integer_value(INT, envelope._priority, into)
    if header == TYPE:
        return text_value(<PyObject*>envelope._type, 0, into)
    if header == CORRELATION_ID:
        return text_value(<PyObject*>envelope._correlation_id, 0, into)
    if header == TIMESTAMP:
        return integer_value(LONG, envelope._timestamp, into)
    if header == GROUP_ID:
        return text_value(<PyObject*>envelope._group_id, 0, into)
    if header == GROUP_SEQUENCE:
        return integer_value(INT, envelope._group_sequence, into)
    if header == DESTINATION:
        if <PyObject*>envelope._original_destination != python_none:
            return text_value(<PyObject*>envelope._original_destination, envelope._original_hidden, into)
        return text_value(<PyObject*>envelope._destination, envelope._destination_hidden, into)
    if header == REPLY_TO:
        return text_value(<PyObject*>envelope._reply_to, envelope._reply_hidden, into)
    if header == DELIVERY_MODE:
        fresh_header(DELIVERY_MODE, into)
        if not envelope._persistent:
            into.payload.text = <const char*>"NON_PERSISTENT"
            into.length = 14
        return True
    if header == MESSAGE_ID:
        return text_value(<PyObject*>envelope._message_id, 0, into)
    if header == EXPIRATION:
        return integer_value(LONG, envelope._expiration, into)
    if header == REDELIVERED:
        return integer_value(BOOLEAN, envelope._redelivery_counter > 0, into)
    if header == DELIVERY_COUNT:
        return integer_value(INT, <int32_t>(<uint32_t>envelope._redelivery_counter + 1), into)
    if header == GROUP_FIRST_FOR_CONSUMER:
        return integer_value(BOOLEAN, envelope._group_first_for_consumer, into)
    if header == USER_ID:
        return text_value(<PyObject*>envelope._user_id, 0, into)
    if header == PRODUCER_TRANSACTION_ID:
        return text_value(<PyObject*>envelope._producer_transaction_id, 0, into)
    if header == BROKER_IN_TIME:
        return integer_value(LONG, envelope._broker_in_time, into)
    if header == BROKER_OUT_TIME:
        return integer_value(LONG, envelope._broker_out_time, into)
    if header == BROKER_PATH:
        if <PyObject*>envelope._broker_path == python_none:
            fresh_header(BROKER_PATH, into)
            return True
        return text_value(<PyObject*>envelope._broker_path_text, 0, into)
    into.type = NULL_VALUE
    return False


@cython.no_gc
cdef class Envelope:
    """The headers and the body of a message; use Message."""

    def __cinit__(self):
        self._persistent = True
        self._priority = 4

    cdef int put_header(self, int code, object name, object value) except -1:
        """Set a header through a property of its name, with the conversions of ActiveMQMessage's property setters."""
        cdef Value given, converted
        cdef int wanted = STRING
        read_value(value, &given, name, True)
        if code == GROUP_SEQUENCE or code == PRIORITY or code == DELIVERY_COUNT or code == DELIVERY_MODE:
            wanted = INT
        elif code == TIMESTAMP or code == EXPIRATION:
            wanted = LONG
        elif code == REDELIVERED:
            wanted = BOOLEAN
        if code == DELIVERY_MODE and given.type == STRING and not convert(&given, INT, &converted):
            self.delivery_mode = value
            return 0
        if code == DELIVERY_MODE and given.type == BOOLEAN:
            self._persistent = given.payload.integer != 0
            return 0
        if wanted == STRING:
            if code == REPLY_TO and given.type != STRING or given.type == CHAR or given.type == OBJECT:
                raise InvalidMessageError(
                    name, value, f"cannot be set from a Java {JAVA_NAMES[given.type]}", hint="give a str"
                )
            setattr(self, ATTRIBUTES[code], value if given.type == STRING else java_text(value))
            return 0
        if not convert(&given, wanted, &converted):
            raise InvalidMessageError(
                name,
                value,
                f"a Java {JAVA_NAMES[given.type]} that cannot become a Java {JAVA_NAMES[wanted]}",
                hint=f"give a {JAVA_NAMES[wanted]}, something narrower, or its text",
            )
        if code == DELIVERY_MODE:
            self._persistent = converted.payload.integer == 2
        elif code == DELIVERY_COUNT:
            self._redelivery_counter = <int32_t>(<uint32_t>converted.payload.integer - 1)
        elif code == REDELIVERED:
            self.set_redelivered(converted.payload.integer != 0)
        else:
            setattr(self, ATTRIBUTES[code], converted.payload.integer)
        return 0

    cdef int copy_headers(self, Envelope envelope) except -1:
        envelope._persistent = self._persistent
        envelope._group_first_for_consumer = self._group_first_for_consumer
        envelope._priority = self._priority
        envelope._redelivery_counter = self._redelivery_counter
        envelope._group_sequence = self._group_sequence
        envelope._timestamp = self._timestamp
        envelope._expiration = self._expiration
        envelope._broker_in_time = self._broker_in_time
        envelope._broker_out_time = self._broker_out_time
        envelope._size = self._size
        envelope.broker_sequence = self.broker_sequence
        envelope._destination_hidden = self._destination_hidden
        envelope._original_hidden = self._original_hidden
        envelope._reply_hidden = self._reply_hidden
        envelope._destination = self._destination
        envelope._original_destination = self._original_destination
        envelope._reply_to = self._reply_to
        envelope._type = self._type
        envelope._correlation_id = self._correlation_id
        envelope._message_id = self._message_id
        envelope._group_id = self._group_id
        envelope._user_id = self._user_id
        envelope._producer_transaction_id = self._producer_transaction_id
        envelope._broker_path = self._broker_path
        envelope._broker_path_text = self._broker_path_text
        envelope._connection_id = self._connection_id
        envelope._target_consumer_id = self._target_consumer_id
        envelope._body = (<Body>self._body).duplicate() if isinstance(self._body, Body) else self._body
        envelope._data_structure = self._data_structure
        return 0

    cpdef received(self, destination, int64_t sequence, int64_t now):
        """The broker receives it: sets destination, broker_sequence and broker_in_time (ms) in one call."""
        if destination != self._destination:
            self.destination = destination
        self.broker_sequence = sequence
        self._broker_in_time = now

    cdef int set_redelivered(self, bint redelivered) except -1:
        if redelivered != (self._redelivery_counter > 0):
            self._redelivery_counter = redelivered
        return 0

    @property
    def destination(self):
        """Qualified name, ``queue://A``; a plain name is a queue; None if unset. Options after ``?`` are dropped."""
        return self._destination

    @destination.setter
    def destination(self, value):
        text = destination_text(value, "destination")
        self._destination_hidden = <int>hidden_prefix(text)
        self._destination = text

    @property
    def original_destination(self):
        """The destination before a virtual destination or dead-letter queue changed it; JMSDestination shows it."""
        return self._original_destination

    @original_destination.setter
    def original_destination(self, value):
        text = destination_text(value, "original_destination")
        self._original_hidden = <int>hidden_prefix(text)
        self._original_destination = text

    @property
    def reply_to(self):
        """JMSReplyTo, as ``destination``."""
        return self._reply_to

    @reply_to.setter
    def reply_to(self, value):
        text = destination_text(value, "reply_to")
        self._reply_hidden = <int>hidden_prefix(text)
        self._reply_to = text

    @property
    def type(self):
        """JMSType: text or None."""
        return self._type

    @type.setter
    def type(self, value):
        self._type = text_or_none(value, "type")

    @property
    def correlation_id(self):
        """JMSCorrelationID: text or None."""
        return self._correlation_id

    @correlation_id.setter
    def correlation_id(self, value):
        self._correlation_id = text_or_none(value, "correlation_id")

    @property
    def message_id(self):
        """JMSMessageID: text or None; an id of another provider without ``ID:`` gets that prefix."""
        return self._message_id

    @message_id.setter
    def message_id(self, value):
        self._message_id = message_id_text(value, "message_id")

    @property
    def delivery_mode(self):
        """"\"PERSISTENT" or "NON_PERSISTENT"; also set by 2 and 1, or the text in any case."""
        return "PERSISTENT" if self._persistent else "NON_PERSISTENT"

    @delivery_mode.setter
    def delivery_mode(self, value):
        if isinstance(value, str) and value.upper() in ("PERSISTENT", "NON_PERSISTENT"):
            self._persistent = value.upper() == "PERSISTENT"
        elif not isinstance(value, bool) and value in (1, 2):
            self._persistent = value == 2
        else:
            raise InvalidMessageError(
                "delivery_mode", value, "not a delivery mode", hint="give 'PERSISTENT' (2) or 'NON_PERSISTENT' (1)"
            )

    @property
    def persistent(self):
        """Whether ``delivery_mode`` is PERSISTENT."""
        return bool(self._persistent)

    @persistent.setter
    def persistent(self, value):
        self._persistent = truth_of(value, "persistent")

    @property
    def priority(self):
        """0..9, default 4. Truncated to a signed byte as by the broker's setter, then clamped: 300 is 9, 200 is 0."""
        return self._priority

    @priority.setter
    def priority(self, value):
        cdef int priority = <int8_t>(integer_between(value, INT, "priority") & 0xFF)
        self._priority = 0 if priority < 0 else 9 if priority > 9 else priority

    @property
    def timestamp(self):
        """JMSTimestamp: milliseconds since the epoch, 0 if unset."""
        return self._timestamp

    @timestamp.setter
    def timestamp(self, value):
        self._timestamp = <int64_t>integer_between(value, LONG, "timestamp")

    @property
    def expiration(self):
        """JMSExpiration: milliseconds since the epoch, 0 is never."""
        return self._expiration

    @expiration.setter
    def expiration(self, value):
        self._expiration = <int64_t>integer_between(value, LONG, "expiration")

    @property
    def redelivery_counter(self):
        """How often the message was delivered before."""
        return self._redelivery_counter

    @redelivery_counter.setter
    def redelivery_counter(self, value):
        self._redelivery_counter = <int32_t>integer_between(value, INT, "redelivery_counter")

    @property
    def redelivered(self):
        """JMSRedelivered: ``redelivery_counter`` > 0; setting it changes the counter to 1 or 0 if they disagree."""
        return self._redelivery_counter > 0

    @redelivered.setter
    def redelivered(self, value):
        self.set_redelivered(truth_of(value, "redelivered"))

    @property
    def delivery_count(self):
        """JMSXDeliveryCount: ``redelivery_counter`` + 1."""
        return self._redelivery_counter + 1

    @delivery_count.setter
    def delivery_count(self, value):
        self._redelivery_counter = <int32_t>(integer_between(value, INT, "delivery_count") - 1)

    @property
    def group_id(self):
        """JMSXGroupID: text or None."""
        return self._group_id

    @group_id.setter
    def group_id(self, value):
        self._group_id = text_or_none(value, "group_id")

    @property
    def group_sequence(self):
        """JMSXGroupSeq: 0 if unset; 1 reassigns the group, a negative value closes it."""
        return self._group_sequence

    @group_sequence.setter
    def group_sequence(self, value):
        self._group_sequence = <int32_t>integer_between(value, INT, "group_sequence")

    @property
    def group_first_for_consumer(self):
        """JMSXGroupFirstForConsumer."""
        return bool(self._group_first_for_consumer)

    @group_first_for_consumer.setter
    def group_first_for_consumer(self, value):
        self._group_first_for_consumer = truth_of(value, "group_first_for_consumer")

    @property
    def user_id(self):
        """JMSXUserID as set by the broker: text or None; if it is None, selectors read the property of that name."""
        return self._user_id

    @user_id.setter
    def user_id(self, value):
        self._user_id = text_or_none(value, "user_id")

    @property
    def producer_transaction_id(self):
        """JMSXProducerTXID: text (``TX:...``) or None."""
        return self._producer_transaction_id

    @producer_transaction_id.setter
    def producer_transaction_id(self, value):
        self._producer_transaction_id = text_or_none(value, "producer_transaction_id")

    @property
    def broker_in_time(self):
        """JMSActiveMQBrokerInTime: milliseconds since the epoch, 0 if unset."""
        return self._broker_in_time

    @broker_in_time.setter
    def broker_in_time(self, value):
        self._broker_in_time = <int64_t>integer_between(value, LONG, "broker_in_time")

    @property
    def broker_out_time(self):
        """JMSActiveMQBrokerOutTime: milliseconds since the epoch, 0 if unset."""
        return self._broker_out_time

    @broker_out_time.setter
    def broker_out_time(self, value):
        self._broker_out_time = <int64_t>integer_between(value, LONG, "broker_out_time")

    @property
    def broker_path(self):
        """Ids of the brokers that forwarded it, a tuple of str, or None; JMSActiveMQBrokerPath is its text."""
        return self._broker_path

    @broker_path.setter
    def broker_path(self, value):
        if value is None:
            self._broker_path = self._broker_path_text = None
            return
        if isinstance(value, str) or not all([isinstance(part, str) for part in value]):
            raise InvalidMessageError("broker_path", value, "not a path", hint="give a list of broker ids, or None")
        self._broker_path = tuple(value)
        self._broker_path_text = "[" + ", ".join(self._broker_path) + "]"

    @property
    def body(self):
        """str (a TextMessage), bytes (a BytesMessage), a MapBody, StreamBody or ObjectBody, or None."""
        return self._body

    @body.setter
    def body(self, value):
        if value is not None and not isinstance(value, (str, bytes, Body)):
            hint = "give a str, bytes, a MapBody, StreamBody or ObjectBody, or None"
            raise InvalidMessageError("body", value, "not a body", hint=hint)
        self._body = value

    @property
    def data_structure(self):
        """The command that an advisory reports, such as ConsumerInfo, or None. A store does not keep it."""
        return self._data_structure

    @data_structure.setter
    def data_structure(self, value):
        if value is not None and not hasattr(type(value), "__dataclass_fields__") and not isinstance(value, Envelope):
            hint = "give a command such as ConsumerInfo, or None"
            raise InvalidMessageError("data_structure", value, "not a command", hint=hint)
        self._data_structure = value

    @property
    def connection_id(self):
        """The producer's connection, which noLocal compares: text or None."""
        return self._connection_id

    @connection_id.setter
    def connection_id(self, value):
        self._connection_id = text_or_none(value, "connection_id")

    @property
    def target_consumer_id(self):
        """The only consumer that may receive it: text or None."""
        return self._target_consumer_id

    @target_consumer_id.setter
    def target_consumer_id(self, value):
        self._target_consumer_id = text_or_none(value, "target_consumer_id")

    @property
    def size(self):
        """Bytes that the broker accounts for. Computed unless set: 1024, plus two for each character of a str body, the
        length of a bytes body or the marshalled length of another (Message.getSize before a network hop; properties
        count only once marshalled). None or 0 computes it again."""
        return self.size_in_bytes(SMALLEST_SIZE)

    @size.setter
    def size(self, value):
        self._size = 0 if value is None else integer_between(value, INT, "size")
        if self._size < 0:
            self._size = 0
            raise InvalidMessageError("size", value, "negative", hint="give bytes, or None to compute it")

    cdef int64_t size_in_bytes(self, int64_t smallest) except -1:
        cdef int64_t length = 0
        if self._size:
            return self._size
        if isinstance(self._body, str):
            length = 2 * len(self._body)
            if text_kind(<PyObject*>self._body) == 4:
                length += 2 * sum([character > "\uffff" for character in self._body])
        elif isinstance(self._body, Body):
            length = (<Body>self._body).marshalled_size()
        elif self._body is not None:
            length = len(self._body)
        return smallest + length
