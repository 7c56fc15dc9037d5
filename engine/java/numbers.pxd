"""numbers: numbers to decimal text and back, exactly as the Java 17 virtual machine does it, without the GIL or a
locale.

Double.toString and Float.toString before JDK 19 do not always give the shortest digits (2.0E-3 but 9.999999999999999E22
for 1e23), and the text is visible in selectors (``s + 1e23``), so the rule of those releases is computed here.
"""

from libc.stdint cimport int64_t


cdef enum:
    LONGEST_NUMBER = 32       # bytes that hold the text of any double, float or long


# Double.toString: bytes written, at most LONGEST_NUMBER
cdef int write_double(double value, char* text) noexcept nogil
cdef int write_float(double value, char* text) noexcept nogil        # Float.toString of a widened float
cdef int write_long(int64_t value, char* text) noexcept nogil

# Double.valueOf and Float.valueOf of ASCII text without surrounding blanks: 1, or 0 where they throw
# NumberFormatException.
cdef bint parse_double(const char* text, Py_ssize_t length, double* value) noexcept nogil
cdef bint parse_float(const char* text, Py_ssize_t length, double* value) noexcept nogil

# Long.parseLong.
cpdef int64_t parsed_long(str name, object value) except? -1
