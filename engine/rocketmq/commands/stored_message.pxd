"""stored_message: a message as RocketMQ's brokers store and send it (MessageDecoder), and as producers send it.

The stored form is, big endian: int32 total size, int32 magic code, int32 CRC-32 of the body (31 bits), int32 queue id,
int32 flag, int64 queue offset, int64 position in the log, int32 system flag, int64 born time, born host, int64 store
time, store host, int32 reconsume times, int64 prepared transaction offset, int32 size and body, int8 (version 2: int16)
size and topic, int16 size and properties. A host is its address, 4 bytes or 16, and an int32 port.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t


cpdef enum:                      # bits of a system flag (MessageSysFlag)
    COMPRESSED = 1
    BORN_HOST_V6 = 16
    STORE_HOST_V6 = 32


cdef struct StoredNumbers:
    int64_t crc                  # of the body
    int64_t position             # in the log
    int64_t queue_id
    int64_t queue_offset
    int64_t born_timestamp       # ms
    int64_t store_timestamp      # ms
    int64_t reconsume_times
    int64_t flag
    int64_t sys_flag
    int64_t prepared_transaction_offset


cdef class Reader:
    """A cursor over bytes that raises instead of reading past the end."""
    cdef const unsigned char* data
    cdef int64_t at
    cdef int64_t end

    cdef int64_t take(self, int64_t size) except -1
    cdef int64_t number(self, int size) except? -1
    cdef bytes raw(self, int64_t size)
    cdef str text(self, int64_t size)


cdef inline unsigned char* put(unsigned char* out, int64_t value, int size) noexcept:
    cdef int i
    for i in range(size):
        out[i] = <unsigned char>(<uint64_t>value >> (8 * (size - 1 - i)))
    return out + size


cdef inline unsigned char* put_hex(unsigned char* out, uint64_t value, int digits) noexcept:
    """The lowest ``digits`` hex digits of a number, in upper case."""
    cdef int i
    for i in range(digits):
        out[i] = b"0123456789ABCDEF"[value >> (4 * (digits - 1 - i)) & 15]
    return out + digits


cdef uint32_t crc_of(bytes body) noexcept
cdef bint is_ascii(text) noexcept
cdef unsigned char* put_ascii(unsigned char* out, text) noexcept
cdef bytes joined_properties(dict properties)
cdef dict split_properties(str joined)
cdef int64_t stored_length(bytes body, bytes topic, bytes properties, bytes born_host, bytes store_host, int version)
cdef unsigned char* put_stored(
    unsigned char* out, int version, bytes topic, bytes body, bytes properties, bytes born_host, bytes store_host,
    const StoredNumbers* of
) noexcept
cdef int check_hosts(bytes born_host, bytes store_host, int64_t sys_flag) except -1
cdef tuple take_stored(Reader reader)
