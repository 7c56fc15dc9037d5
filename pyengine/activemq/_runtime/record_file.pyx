"""Records at the end of a file; see record_file.pxd."""

cimport cython

from cpython.exc cimport PyErr_SetFromErrno
from libc.errno cimport EBADF, EINTR, errno
from libc.stdint cimport int64_t


cdef extern from * nogil:
    """
    #include <errno.h>
    #include <stdint.h>
    #ifdef _WIN32
    #include <io.h>
    static int64_t pyengine_write(int descriptor, const char *bytes, int64_t size) {
        return _write(descriptor, bytes, (unsigned)(size < 1 << 30 ? size : 1 << 30));
    }
    #else
    #include <unistd.h>
    static int64_t pyengine_write(int descriptor, const char *bytes, int64_t size) {
        return write(descriptor, bytes, (size_t)size);
    }
    #endif
    """
    int64_t pyengine_write(int descriptor, const char* bytes, int64_t size)


@cython.final
cdef class RecordFile:
    """A file that is open for appending. newest: the number of its last record.

    The number tells an interrupted caller what was written: it is new if and only if the record is there. It may be
    assigned if a number gets no record, which nothing interrupts either.
    """

    def __cinit__(self, int descriptor, int64_t newest):
        self.descriptor = descriptor
        self.newest = newest

    def append(self, int64_t number, bytes record not None):
        """Write a record; ``newest`` is then its number. Raises OSError, and how much of it is there is not known."""
        cdef const char* bytes_left = record
        cdef int64_t left = len(record), done
        if self.descriptor < 0:
            raise OSError(EBADF, "the file is closed")
        while left:
            done = pyengine_write(self.descriptor, bytes_left, left)
            if done < 0:
                if errno == EINTR:
                    continue
                PyErr_SetFromErrno(OSError)
            bytes_left += done
            left -= done
        self.size += len(record)
        self.newest = number

    def emptied(self):
        """The file was cut behind its head."""
        self.size = 0

    def closed(self):
        """The file is about to be closed: what has its descriptor next is another one."""
        self.descriptor = -1

    def __reduce__(self):
        raise TypeError("a file cannot be pickled")
