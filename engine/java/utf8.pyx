"""See utf8.pxd."""


cdef str decode_utf8(bytes source):
    """new String(source, UTF_8): Java replaces an encoded surrogate with one U+FFFD, Python with three."""
    try:
        return source.decode("utf-8")
    except UnicodeDecodeError:
        pass
    cdef list parts = []
    cdef Py_ssize_t start = 0, at = source.find(b"\xed"), size = len(source)
    while 0 <= at < size - 2:
        if 0xA0 <= source[at + 1] <= 0xBF and 0x80 <= source[at + 2] <= 0xBF:
            parts.append(source[start:at].decode("utf-8", "replace"))
            start = at + 3
        at = source.find(b"\xed", at + 1)
    parts.append(source[start:].decode("utf-8", "replace"))
    return "\ufffd".join(parts)


cdef str decode_utf8_of(const char* source, Py_ssize_t length):
    try:
        return source[:length].decode("utf-8")
    except UnicodeDecodeError:
        return decode_utf8(source[:length])


cdef bytes encode_utf8(str source):
    """source.getBytes(UTF_8): a surrogate pair is one character, a lone surrogate becomes a question mark."""
    try:
        return source.encode("utf-8")
    except UnicodeEncodeError:
        return (
            source.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass").encode("utf-8", "replace")
        )
