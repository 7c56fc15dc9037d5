"""record_file: records written at the end of a file without releasing the GIL.

If other threads wait for the GIL, releasing it for a short write costs more than the write: one of them
takes it, and the writer sleeps until it is free again.
"""

from libc.stdint cimport int64_t


cdef class RecordFile:
    cdef int descriptor
    cdef public int64_t newest       # number of the record that was appended last, or one without a record
    cdef readonly int64_t size       # bytes of records
