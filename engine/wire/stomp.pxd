"""stomp: bytes to STOMP frames and back (1.0, 1.1, 1.2), as ActiveMQ's StompWireFormat reads and writes them.

Invariants of a reader, beyond those of frame_reader: the bytes of ``buffer`` before ``begin`` were taken off, and leave
it before more is fed; everything before ``at`` was looked at and is not looked at again; ``headers`` is None until the
action line was read, and ``length`` is -1 unless the header section is complete and has one.
"""

from libc.stdint cimport int64_t

from pyengine._engine.wire.frame_reader cimport FrameReader


cdef class StompFrame:
    cdef readonly str action
    cdef readonly dict headers          # name -> value, in the order of the wire
    cdef readonly bytes body


cdef class StompReader(FrameReader):
    cdef readonly str version
    cdef readonly int64_t max_data_length, max_frame_size
    cdef int minor                      # of the version: 0, 1, 2
    cdef Py_ssize_t begin, at           # offsets into ``buffer``
    cdef str action                     # of the frame that is being read, None before its first line
    cdef dict headers
    cdef readonly bint nio
    cdef bint in_body
    cdef bint after_nul                 # nio: the last byte before ``at`` was the NUL behind a frame, or more of them
    cdef int64_t length                 # of the body, -1: up to the next NUL
    cdef int64_t size                   # of the frame so far, as max_frame_size counts

    cdef bint line(self, Py_ssize_t most, str refusal, const char** found, Py_ssize_t* length) except -1
    cdef StompFrame found_frame(self)
    cdef int drop(self) except -1
    cdef bint nio_headers(self) except -1
    cdef int read_header(self, const char* line, Py_ssize_t length) except -1
    cdef int64_t content_length(self, str text) except? -1
