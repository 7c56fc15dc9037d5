"""numbers: numbers to decimal text and back, exactly as the Java 17 virtual machine does it, without the GIL or a
locale.

Double.toString and Float.toString before JDK 19 do not always give the shortest digits (2.0E-3 but 9.999999999999999E22
for 1e23), and the text is visible in selectors (``s + 1e23``), so the rule of those releases is computed here.
"""

from libc.stdint cimport int64_t, uint8_t


cdef enum:
    LONGEST_NUMBER = 32       # bytes that hold the text of any double, float or long
    WIDEST_WHOLE = 78         # digits of any whole number of 32 bytes


# Double.toString: bytes written, at most LONGEST_NUMBER
cdef int write_double(double value, char* text) noexcept nogil
cdef int write_float(double value, char* text) noexcept nogil        # Float.toString of a widened float
cdef int write_long(int64_t value, char* text) noexcept nogil
# The digits of a whole number of up to 32 bytes, two's complement, lowest byte first; none of zero.
cdef int whole_digits(const uint8_t* bytes, int width, char* digits, bint* negative) noexcept nogil
# BigDecimal.toPlainString: bytes written, at most WIDEST_WHOLE + 3 + abs(scale)
cdef int write_plain(const uint8_t* bytes, int width, int scale, char* text) noexcept nogil

# Double.valueOf and Float.valueOf of ASCII text without surrounding blanks: 1, or 0 where they throw
# NumberFormatException.
cdef bint parse_double(const char* text, Py_ssize_t length, double* value) noexcept nogil
cdef bint parse_float(const char* text, Py_ssize_t length, double* value) noexcept nogil

# Long.parseLong.
cpdef int64_t parsed_long(str name, object value) except? -1
