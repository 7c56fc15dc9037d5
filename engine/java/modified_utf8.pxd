"""modified_utf8: Java's modified UTF-8 (DataOutput.writeUTF): U+0000 is two bytes, half a surrogate pair is three."""

cdef str decode_modified_utf8(const unsigned char *data, Py_ssize_t size)     # None for bytes that are not of this form
cdef bytes encode_modified_utf8(str text)
