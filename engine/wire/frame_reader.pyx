"""See frame_reader.pxd."""

from pyengine.errors import ProtocolError


cdef class FrameReader:
    """Feed it and iterate: the frames that are complete come out, the rest waits for more bytes."""

    def __cinit__(self):
        self.buffer = bytearray()

    def __reduce__(self):
        raise TypeError("a reader is part of its connection and cannot be pickled")

    cdef object next_frame(self):
        raise NotImplementedError

    def feed(self, data):
        """Add bytes that have arrived."""
        self.buffer += data

    @property
    def waiting(self):
        """How many bytes were fed that belong to no frame that came out."""
        return len(self.buffer)

    def __iter__(self):
        return self

    def __next__(self):
        if self.failure is not None:
            raise self.failure
        try:
            frame = self.next_frame()
        except ProtocolError as failure:
            self.failure = failure
            raise
        if frame is None:
            raise StopIteration
        return frame
