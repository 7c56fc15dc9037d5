"""frame_reader: what the readers of all protocols share: bytes arrive in pieces of any size, frames come out.

Invariants: ``buffer`` holds what was fed from the frame that is being read on. A reader that raised gives no further
frame.
"""


cdef class FrameReader:
    cdef bytearray buffer
    cdef object failure

    cdef object next_frame(self)        # None until the frame is complete; raises ProtocolError where it is not one
