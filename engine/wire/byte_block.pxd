"""byte_block: bytes that grow at their end, big endian.

``size`` bytes of ``data`` are written; the owner gives ``data`` back with ``free``.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from pyengine._engine.lowlevel.memory cimport resize


cdef struct Block:
    unsigned char *data
    Py_ssize_t size, room


cdef inline unsigned char *extended(Block *block, Py_ssize_t size) except NULL:
    """Room for ``size`` more bytes, counted as written."""
    cdef unsigned char *start
    if block.size + size >= block.room:
        block.data = <unsigned char*> resize(block.data, 2 * block.room + size + 64)
        block.room = 2 * block.room + size + 64
    start = block.data + block.size
    block.size += size
    return start


cdef inline int put(Block *block, uint64_t value, int size) except -1:
    cdef unsigned char *start = extended(block, size)
    cdef int place
    for place in range(size):
        start[place] = <unsigned char> (value >> 8 * (size - 1 - place))
    return 0


cdef inline int put_all(Block *block, bytes data) except -1:
    memcpy(extended(block, len(data)), PyBytes_AS_STRING(data), len(data))
    return 0


cdef inline bytes written(Block *block):
    return PyBytes_FromStringAndSize(<const char*> block.data, block.size)
