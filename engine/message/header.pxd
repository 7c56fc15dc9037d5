"""header: the JMS headers that a selector can name: a table of name, code and the value in a new message.

Source: filter.PropertyExpression and command.ActiveMQMessage (spec activemq 1.7). A header whose value in a new
message is not NULL_VALUE is never null. A header that the property setter of its name sets is ``settable``.
"""

from libc.stdint cimport int64_t

from pyengine._engine.java.value cimport Value


cdef enum Header:
    NO_HEADER = 0                     # an ordinary property
    DESTINATION
    REPLY_TO
    TYPE
    DELIVERY_MODE
    PRIORITY
    MESSAGE_ID
    TIMESTAMP
    CORRELATION_ID
    EXPIRATION
    REDELIVERED
    DELIVERY_COUNT
    GROUP_ID
    GROUP_SEQUENCE
    GROUP_FIRST_FOR_CONSUMER
    USER_ID
    PRODUCER_TRANSACTION_ID
    BROKER_IN_TIME
    BROKER_OUT_TIME
    BROKER_PATH


cpdef int header_code(object name) except -1          # Header of a name; NO_HEADER if it is not one
cdef int settable_code(object name) except -1         # the same, for names whose property setter sets the header
cdef bint is_persistent(object mode) except -1          # a JMSDeliveryMode, None for the default
cdef object ABSENT                                    # the value of a keyword argument that was not given
# The number of a header, ``default`` if it is absent or None. Raises InvalidMessageError.
cdef int64_t header_number(str field, object value, int64_t default, int64_t low, int64_t high) except? -1
cdef void fresh_header(int code, Value* into) noexcept nogil    # value on a freshly made message; static text


# Whether a name in a dict may be a header's or one of the broker's own (``JMS...``, ``ActiveMQ...``).
cdef bint may_have_header(dict mapping) noexcept


cdef inline object header_in(object mapping, str name):
    """The value of a mapping under the name of a header, None if absent."""
    return (<dict> mapping).get(name) if type(mapping) is dict else mapping.get(name)
