"""utf8: a Java String from UTF-8 and back, where Java and Python differ on bytes or text that is not valid."""

cdef str decode_utf8(bytes source)
cdef bytes encode_utf8(str source)
