"""conversion: JMS's conversions between property types, and destination names as messages carry them.

Source: util.TypeConversionSupport (5.17.2), command.ActiveMQDestination and command.MessageId.
"""

from libc.stdint cimport int64_t

from pyengine._engine.java.value cimport Value

cdef enum:
    DEEPEST = 64            # levels of lists and maps within a property or a map's entry

cdef tuple JAVA_NAMES       # JavaType -> its name in lower case

# ``from_`` converted to ``java_type``; borrows from it. False: JMS has no such conversion, or the string is invalid.
cdef bint convert(const Value* from_, int java_type, Value* into) noexcept nogil

cdef int64_t integer_between(object value, int java_type, str field) except? -1    # a Python or numpy integer, in range
cdef double real_number(object value, str field) except? -1                         # a Python or numpy real number
cdef object float32_of(object value, str field, str hint)      # the same as numpy.float32; hint: where it overflows
cdef bint truth_of(object value, str field) except? -1         # a Python or numpy bool
cdef object text_or_none(object value, str field)
cdef object destination_text(object value, str field)          # qualified: queue://A; a plain name is a queue; or None
cdef Py_ssize_t hidden_prefix(object destination) except -1    # characters that JMSDestination leaves out
cdef object message_id_text(object value, str field)       # a foreign id without ID: gets the prefix
cdef object frozen_copy(object value, str field, int depth)    # list or dict, all the way down, every element checked
