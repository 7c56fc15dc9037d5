"""modified_utf8: Java's modified UTF-8 (DataOutput.writeUTF): U+0000 is two bytes, half a surrogate pair is three."""

from libc.stdint cimport int64_t


cdef str decode_modified_utf8(const unsigned char *data, Py_ssize_t size)     # None for bytes that are not of this form
cdef bytes encode_modified_utf8(str text)
cdef int64_t modified_utf8_size(str text) except -1        # bytes that it takes
cdef Py_ssize_t java_length(str text) except -1            # String.length
