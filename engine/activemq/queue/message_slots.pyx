"""Messages of a queue in their slots; see message_slots.pxd."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from cython cimport final
from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memset

from pyengine._engine.lowlevel.linked_list cimport Chain
from pyengine._engine.lowlevel.memory cimport resize, try_resize


@final
cdef class MessageSlots:
    """Internal to a queue; see message_slots.pxd."""

    def __cinit__(self):
        self.vacant = -1

    def __dealloc__(self):
        cdef int32_t index
        for index in range(self.slots):
            if self.at[index].whereabouts != NOWHERE:
                Py_XDECREF(self.at[index].body)
        free(self.at)

    cdef int32_t allot(self) except -1:
        cdef int32_t message, room, generation = 0x3FFFFFFF if self.slots else 0
        if self.vacant < 0:
            room = 4 if self.slots == 0 else 2 * self.slots
            for message in range(self.slots):
                generation = min(generation, self.at[message].generation)
            self.at = <Message*> resize(self.at, room * sizeof(Message))
            self.add_slots(room, generation)
        message = self.vacant
        self.vacant = self.at[message].next
        self.clear(message)
        return message

    cdef void add_slots(self, int32_t room, int32_t generation) noexcept nogil:
        cdef int32_t message
        memset(self.at + self.slots, 0, (room - self.slots) * sizeof(Message))
        for message in range(room - 1, self.slots - 1, -1):
            self.at[message].generation = generation
            self.at[message].next = self.vacant
            self.vacant = message
        self.slots = room

    cdef int shed(self) except -1:
        cdef int32_t message, generation = 0
        cdef void* fewer
        for message in range(self.slots):
            generation = max(generation, self.at[message].generation)
        self.slots = 0
        self.vacant = -1
        self.add_slots(64, generation)
        fewer = try_resize(self.at, 64 * sizeof(Message))
        if fewer != NULL:
            self.at = <Message*> fewer
        return 0

    cdef void clear(self, int32_t message) noexcept nogil:
        self.at[message].body = NULL
        self.at[message].transient = 0
        self.at[message].paged = -1
        self.at[message].bucket = -1
        self.at[message].consumer = -1
        self.at[message].redeliveries = 0
        self.at[message].group_first = 0
        self.at[message].acknowledged = 0
        self.at[message].errors = 0
        self.at[message].unread = 0

    cdef list handles(self, Chain* chain):
        cdef int32_t message = chain.first
        cdef list result = []
        while message >= 0:
            result.append(self.handle_of(message))
            message = self.at[message].next
        return result

    cdef int discard(self, int32_t message) except -1:
        cdef PyObject* body = self.at[message].body
        self.at[message].whereabouts = NOWHERE
        self.at[message].generation = (self.at[message].generation + 1) & 0x3FFFFFFF
        self.at[message].next = self.vacant
        self.at[message].body = NULL
        self.vacant = message
        Py_XDECREF(body)
        return 0
