"""utf8: UTF-8 to a Java String and back, with Java's treatment of bytes and strings that are not valid."""

cdef str decode_utf8(bytes source)
cdef str decode_utf8_of(const char* source, Py_ssize_t length)     # the same for bytes that lie anywhere
cdef bytes encode_utf8(str source)
