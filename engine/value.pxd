"""value: one property value with its Java type, and the broker's rules for comparing and computing with it.

Invariants: ``type`` says which payload member is valid; STRING and CHAR borrow their bytes (the owner outlives the
Value); an integer payload lies in the range of its type; FLOAT holds the widened double of a 32-bit float.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t


cdef enum JavaType:
    NULL_VALUE = 0
    BOOLEAN = 1
    BYTE = 2
    SHORT = 3
    INT = 4
    LONG = 5
    FLOAT = 6
    DOUBLE = 7
    STRING = 8
    CHAR = 9
    BIG_DECIMAL = 10   # an integer literal beyond Long: equal and ordered only among its own kind
    OBJECT = 11        # list or map


cdef enum Encoding:    # of STRING and CHAR; 1, 2, 4 are CPython's kinds
    UTF8 = 0
    LATIN1 = 1
    UCS2 = 2
    UCS4 = 4


cdef enum Truth:
    FALSE = 0
    TRUE = 1
    UNKNOWN = 2
    RAISED = 3         # the real classes throw here


cdef union Payload:
    int64_t integer    # BOOLEAN (0/1), BYTE .. LONG
    double real        # FLOAT, DOUBLE
    const void* text   # STRING, CHAR: first code unit
    void* object       # BIG_DECIMAL, OBJECT: borrowed PyObject*


cdef struct Value:
    uint8_t type       # JavaType
    uint8_t encoding   # Encoding
    uint16_t reserved
    uint32_t length    # code units of the encoding (bytes for UTF8)
    Payload payload
