# cython: freethreading_compatible=True
"""See growing.pxd."""

from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from pyengine._engine.lowlevel.memory cimport resize


cdef class Growing:
    def __dealloc__(self):
        free(self.items)

    cdef void* more(self, int64_t count) except NULL:
        cdef int64_t room
        if self.items == NULL or self.size + count > self.room:
            room = max(self.size + count, self.room + self.room // 2 + 4)
            self.items = <char*> resize(self.items, room * self.width)
            self.room = room
        memset(self.items + self.size * self.width, 0, count * self.width)
        self.size += count
        return self.items + (self.size - count) * self.width

    cdef void* keep(self) except NULL:
        cdef void* kept = resize(self.items, max(1, self.size * self.width))
        self.items = NULL
        self.size = self.room = 0
        return kept


cdef Growing growing(int64_t width):
    cdef Growing made = Growing.__new__(Growing)
    made.width = width
    return made
