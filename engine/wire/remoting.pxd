"""remoting: bytes to RocketMQ's remoting commands and back, as its NettyDecoder and NettyEncoder read and write them.

A frame is, big endian: int32 length of what follows; int8 kind of the header (0 JSON, 1 ROCKETMQ); int24 length of the
header; the header; the body.
"""

from pyengine._engine.wire.frame_reader cimport FrameReader


cdef class RemotingCommand:
    cdef public int code, version, opaque, flag
    cdef public str language            # of LANGUAGES, None for an unknown one
    cdef public str remark              # None: there is none
    cdef public dict ext_fields         # None: there are none; in the order of the wire
    cdef public bytes body              # None: there is none
    cdef public str serialize_type      # of the header: JSON or ROCKETMQ

    cdef tuple state(self)


cdef class RemotingReader(FrameReader):
    cdef readonly Py_ssize_t max_frame_size
