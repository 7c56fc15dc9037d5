"""See modified_utf8.pxd."""

from cpython.unicode cimport PyUnicode_DecodeASCII, PyUnicode_DecodeUTF16
from libc.stdint cimport int64_t, uint16_t
from libc.stdlib cimport free

from pyengine._engine.lowlevel.memory cimport allocate


def decode(bytes data not None):
    """The string of bytes in modified UTF-8, None if they are not in this form (DataInput.readUTF)."""
    return decode_modified_utf8(data, len(data))


def encode(str text not None):
    """The bytes of a string in modified UTF-8 (DataOutput.writeUTF), without its length."""
    return encode_modified_utf8(text)


cdef str decode_modified_utf8(const unsigned char *data, Py_ssize_t size):
    cdef Py_ssize_t at = 0, count = 0
    cdef unsigned int first, second, third
    cdef int order = 0
    cdef uint16_t *units
    while at < size and data[at] < 0x80:
        at += 1
    if at == size:
        return PyUnicode_DecodeASCII(<const char*> data, size, NULL)
    units = <uint16_t*> allocate(size * sizeof(uint16_t))
    try:
        at = 0
        while at < size:
            first = data[at]
            if first < 0x80:
                units[count] = first
                at += 1
            elif first & 0xE0 == 0xC0:
                if at + 1 >= size:
                    return None
                second = data[at + 1]
                if second & 0xC0 != 0x80:
                    return None
                units[count] = (first & 0x1F) << 6 | second & 0x3F
                at += 2
            elif first & 0xF0 == 0xE0:
                if at + 2 >= size:
                    return None
                second, third = data[at + 1], data[at + 2]
                if second & 0xC0 != 0x80 or third & 0xC0 != 0x80:
                    return None
                units[count] = (first & 0x0F) << 12 | (second & 0x3F) << 6 | third & 0x3F
                at += 3
            else:
                return None
            count += 1
        order = 1 if (<unsigned char*> &ORDER)[0] == 0 else -1
        return PyUnicode_DecodeUTF16(<char*> units, count * 2, "surrogatepass", &order)
    finally:
        free(units)


cdef uint16_t ORDER = 1      # its first byte is 0 where the machine is big-endian


cdef bytes encode_modified_utf8(str text):
    cdef bytes units
    cdef Py_ssize_t at, size = 0
    cdef unsigned int unit
    cdef unsigned char *out
    if text.isascii() and "\0" not in text:
        return text.encode("ascii")
    units = text.encode("utf-16-be", "surrogatepass")
    out = <unsigned char*> allocate(len(units) // 2 * 3)
    try:
        for at in range(0, len(units), 2):
            unit = <unsigned char> units[at] << 8 | <unsigned char> units[at + 1]
            if 0 < unit < 0x80:
                out[size] = unit
                size += 1
            elif unit < 0x800:
                out[size], out[size + 1] = 0xC0 | unit >> 6, 0x80 | unit & 0x3F
                size += 2
            else:
                out[size], out[size + 1], out[size + 2] = (
                    0xE0 | unit >> 12, 0x80 | unit >> 6 & 0x3F, 0x80 | unit & 0x3F)
                size += 3
        return out[:size]
    finally:
        free(out)


cdef int64_t modified_utf8_size(str text) except -1:
    cdef int64_t size = 0
    cdef Py_UCS4 character
    if text.isascii():
        return len(text) + text.count("\0")
    for character in text:
        size += 1 if 0 < character < 0x80 else 2 if character < 0x800 else 3 if character < 0x10000 else 6
    return size


cdef Py_ssize_t java_length(str text) except -1:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
