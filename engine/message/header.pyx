# cython: freethreading_compatible=True
from cpython.dict cimport PyDict_Next, PyDict_Size
from cpython.number cimport PyIndex_Check, PyNumber_Index
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact, PyUnicode_GET_LENGTH, PyUnicode_READ_CHAR
from libc.stdint cimport int64_t

from pyengine._engine.java.value cimport BOOLEAN, INT, LATIN1, LONG, NULL_VALUE, STRING, Value, python_value

from pyengine.errors import InvalidMessageError

ABSENT = ...    # as signatures show it

cdef dict CODES = {
    "JMSDestination": DESTINATION,
    "JMSReplyTo": REPLY_TO,
    "JMSType": TYPE,
    "JMSDeliveryMode": DELIVERY_MODE,
    "JMSPriority": PRIORITY,
    "JMSMessageID": MESSAGE_ID,
    "JMSTimestamp": TIMESTAMP,
    "JMSCorrelationID": CORRELATION_ID,
    "JMSExpiration": EXPIRATION,
    "JMSRedelivered": REDELIVERED,
    "JMSXDeliveryCount": DELIVERY_COUNT,
    "JMSXGroupID": GROUP_ID,
    "JMSXGroupSeq": GROUP_SEQUENCE,
    "JMSXGroupFirstForConsumer": GROUP_FIRST_FOR_CONSUMER,
    "JMSXUserID": USER_ID,
    "JMSXProducerTXID": PRODUCER_TRANSACTION_ID,
    "JMSActiveMQBrokerInTime": BROKER_IN_TIME,
    "JMSActiveMQBrokerOutTime": BROKER_OUT_TIME,
    "JMSActiveMQBrokerPath": BROKER_PATH,
}

cdef dict SETTABLE = {
    name: CODES[name]
    for name in (
        "JMSXDeliveryCount", "JMSXGroupID", "JMSXGroupSeq", "JMSCorrelationID", "JMSDeliveryMode", "JMSExpiration",
        "JMSPriority", "JMSRedelivered", "JMSReplyTo", "JMSTimestamp", "JMSType",
    )
}


cpdef int header_code(object name) except -1:
    """The header's code, or 0 if the name is that of an ordinary property (spec activemq 1.7)."""
    found = CODES.get(name)
    return 0 if found is None else found


cdef int settable_code(object name) except -1:
    found = SETTABLE.get(name)
    return 0 if found is None else found


cdef bint is_persistent(object mode) except -1:
    return mode not in ("NON_PERSISTENT", 1)


cdef bint may_have_header(dict mapping) noexcept:
    # Walking a few names is faster than looking up each header.
    cdef Py_ssize_t place = 0
    cdef PyObject* name
    if PyDict_Size(mapping) > 16:
        return True
    while PyDict_Next(mapping, &place, &name, NULL):
        if not PyUnicode_CheckExact(<object> name):
            return True
        if PyUnicode_GET_LENGTH(<object> name) and PyUnicode_READ_CHAR(<object> name, 0) in (c"J", c"A"):
            return True
    return False


cdef int64_t header_number(str field, object value, int64_t default, int64_t low, int64_t high) except? -1:
    if value is ABSENT or value is None:
        return default
    if isinstance(value, bool) or not PyIndex_Check(value) or not low <= PyNumber_Index(value) <= high:
        raise InvalidMessageError(field, value, f"must be a whole number from {low} to {high}")
    return PyNumber_Index(value)


cdef inline void set_integer(Value* into, int type, int64_t integer) noexcept nogil:
    into.type = type
    into.payload.integer = integer


cdef inline void set_static_text(Value* into, const char* text, int length) noexcept nogil:
    into.type = STRING
    into.encoding = LATIN1
    into.length = length
    into.payload.text = text


cdef void fresh_header(int code, Value* into) noexcept nogil:
    into.type = NULL_VALUE
    into.reserved = 0
    if code == DELIVERY_MODE:
        set_static_text(into, "PERSISTENT", 10)
    elif code == BROKER_PATH:
        set_static_text(into, "null", 4)
    elif code == PRIORITY:
        set_integer(into, INT, 4)
    elif code == DELIVERY_COUNT:
        set_integer(into, INT, 1)
    elif code == GROUP_SEQUENCE:
        set_integer(into, INT, 0)
    elif code == REDELIVERED or code == GROUP_FIRST_FOR_CONSUMER:
        set_integer(into, BOOLEAN, 0)
    elif code == TIMESTAMP or code == EXPIRATION or code == BROKER_IN_TIME or code == BROKER_OUT_TIME:
        set_integer(into, LONG, 0)


def fresh_headers():
    """name -> value on a freshly made message, None where the header may be null; in the order of the codes."""
    cdef Value value
    cdef dict fresh = {}
    for name, code in CODES.items():
        fresh_header(code, &value)
        fresh[name] = python_value(&value)
    return fresh


def settable_headers():
    """The names that a property setter turns into the header of that name."""
    return tuple(SETTABLE)
