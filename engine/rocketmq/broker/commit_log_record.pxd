"""commit_log_record: how a broker's log holds a message: a frame with a checksum around RocketMQ's own stored form.

A frame is, big endian: int32 size of the payload, uint32 CRC-32 of kind and payload, int8 kind, payload.
  MESSAGE    payload: the message as RocketMQ stores it (MessageDecoder: total size, magic code, body CRC, queue id,
             flag, queue offset, position in the log, system flag, born time and host, store time and host, reconsume
             times, prepared transaction offset, body, topic, properties)
  DELIVERED  payload: int32 delay level, int64 offset among the delayed messages, then a message as above: it left there
  DELETED    payload: int32 queue id, int64 smallest offset that is left, topic in UTF-8
A frame that ends behind the file, or whose checksum differs, is torn.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t


cdef class Reader:
    """A cursor over bytes that raises instead of reading past the end."""
    cdef const unsigned char* data
    cdef int64_t at
    cdef int64_t end

    cdef int64_t take(self, int64_t size) except -1
    cdef int64_t number(self, int size) except? -1
