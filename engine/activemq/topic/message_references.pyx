"""The messages of topics and the references to them; see message_references.pxd."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cython cimport final
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from pyengine._engine.lowlevel.memory cimport allocate, resize

from pyengine.errors import IllegalStateError


cdef inline int64_t place_of(int64_t handle, int64_t size) noexcept nogil:
    return (<uint64_t> handle * <uint64_t> 0x9E3779B97F4A7C15 >> 20) & (size - 1)


@final
cdef class MessageReferences:
    """Internal to a region of topics; see message_references.pxd."""

    def __cinit__(self):
        self.free_slot = self.free_ref = -1
        self.rehash(64)

    def __dealloc__(self):
        cdef int32_t slot
        for slot in range(self.slots):
            if self.at[slot].handle >= 0:
                Py_XDECREF(self.at[slot].body)
        free(self.at)
        free(self.refs)
        free(self.table)

    def __reduce__(self):
        raise TypeError("the messages of topics cannot be pickled")

    cdef int rehash(self, int64_t size) except -1:
        cdef int32_t slot
        cdef int32_t* larger = <int32_t*> allocate(size * sizeof(int32_t))
        free(self.table)
        self.table = larger
        self.table_size = size
        memset(self.table, 0xFF, size * sizeof(int32_t))
        for slot in range(self.slots):
            if self.at[slot].handle >= 0:
                self.enter(self.at[slot].handle, slot)
        return 0

    cdef void enter(self, int64_t handle, int32_t message) noexcept nogil:
        cdef int64_t place = place_of(handle, self.table_size)
        while self.table[place] >= 0:
            place = (place + 1) & (self.table_size - 1)
        self.table[place] = message

    cdef void forget(self, int64_t handle) noexcept nogil:
        # The entries behind the gap move up, so that no search stops early.
        cdef int64_t mask = self.table_size - 1, place = place_of(handle, self.table_size), hole, home
        while self.at[self.table[place]].handle != handle:
            place = (place + 1) & mask
        hole = place
        while True:
            place = (place + 1) & mask
            if self.table[place] < 0:
                break
            home = place_of(self.at[self.table[place]].handle, self.table_size)
            if (place - home) & mask >= (place - hole) & mask:
                self.table[hole] = self.table[place]
                hole = place
        self.table[hole] = -1

    cdef int32_t find(self, int64_t handle) noexcept nogil:
        cdef int64_t mask = self.table_size - 1, place = place_of(handle, self.table_size)
        if handle < 0:
            return -1
        while self.table[place] >= 0:
            if self.at[self.table[place]].handle == handle:
                return self.table[place]
            place = (place + 1) & mask
        return -1

    cdef int32_t add(self, object body, int64_t handle) except -1:
        cdef int32_t slot, index, room
        cdef Post* post
        if handle >= 0 and self.find(handle) >= 0:
            raise IllegalStateError(f"message {handle} is here already")
        if 2 * (self.live + 1) > self.table_size:
            self.rehash(2 * self.table_size)
        if self.free_slot < 0:
            room = 64 if self.slots == 0 else 2 * self.slots
            self.at = <Post*> resize(self.at, room * sizeof(Post))
            for index in range(room - 1, self.slots - 1, -1):
                self.at[index].handle = -1
                self.at[index].stored_after = self.free_slot
                self.free_slot = index
            self.slots = room
        slot = self.free_slot
        post = &self.at[slot]
        self.free_slot = post.stored_after
        if handle < 0:
            handle = self.next_handle
        self.next_handle = max(self.next_handle, handle + 1)
        post.handle = handle
        post.body = <PyObject*> body
        Py_INCREF(body)
        post.holds = 1
        post.expiration = post.timestamp = post.size = 0
        post.stored = post.persistent = post.expiry_reported = 0
        post.priority = 4
        post.topic = post.connection = post.stored_before = post.stored_after = -1
        self.enter(handle, slot)
        self.live += 1
        return slot

    cdef int release(self, int32_t message) except -1:
        cdef Post* post = &self.at[message]
        cdef PyObject* body
        post.holds -= 1
        if post.holds == 0:
            self.forget(post.handle)
            self.live -= 1
            body = post.body
            post.body = NULL
            post.handle = -1
            post.stored_after = self.free_slot
            self.free_slot = message
            Py_XDECREF(body)
        return 0

    cdef int replace_body(self, int32_t message, object body) except -1:
        cdef PyObject* old = self.at[message].body
        Py_INCREF(body)
        self.at[message].body = <PyObject*> body
        Py_XDECREF(old)
        return 0

    cdef int enlarge_references(self) except -1:
        cdef int32_t index, room = 256 if self.ref_slots == 0 else 2 * self.ref_slots
        self.refs = <Reference*> resize(self.refs, room * sizeof(Reference))
        for index in range(room - 1, self.ref_slots - 1, -1):
            self.refs[index].message = -1
            self.refs[index].next = self.free_ref
            self.free_ref = index
        self.ref_slots = room
        return 0

    cdef int32_t refer(self, int32_t message) except -1:
        cdef int32_t reference
        self.reserve_reference()
        reference = self.free_ref
        self.free_ref = self.refs[reference].next
        self.refs[reference].message = message
        self.refs[reference].previous = self.refs[reference].next = -1
        self.refs[reference].redeliveries = 0
        self.refs[reference].stored = self.refs[reference].acknowledged = self.refs[reference].queued = 0
        self.at[message].holds += 1
        self.referenced += 1
        return reference

    cdef int drop(self, int32_t reference) except -1:
        cdef int32_t message = self.refs[reference].message
        self.refs[reference].message = -1
        self.refs[reference].next = self.free_ref
        self.free_ref = reference
        self.referenced -= 1
        return self.release(message)

    cdef list handles(self, Line* line):
        cdef int32_t reference = line.first
        cdef list result = []
        while reference >= 0:
            result.append(self.at[self.refs[reference].message].handle)
            reference = self.refs[reference].next
        return result

    cdef int check_line(self, Line* line, list holds) except -1:
        # Count the references of a line into ``holds``, one number for each slot.
        cdef int32_t reference = line.first, before = -1, count = 0
        while reference >= 0:
            assert self.refs[reference].previous == before
            assert self.refs[reference].message >= 0
            holds[self.refs[reference].message] += 1
            before = reference
            count += 1
            reference = self.refs[reference].next
        assert line.last == before and line.count == count
        return count

    def _check(self):
        """Assert that every handle in use is found, and nothing else."""
        cdef int32_t slot, reference
        cdef int64_t live = 0, referenced = 0, place, entries = 0
        for slot in range(self.slots):
            if self.at[slot].handle >= 0:
                live += 1
                assert self.at[slot].holds > 0
                assert self.find(self.at[slot].handle) == slot
                assert self.at[slot].handle < self.next_handle
        for place in range(self.table_size):
            entries += self.table[place] >= 0
        assert live == self.live == entries and 2 * live <= self.table_size
        for reference in range(self.ref_slots):
            referenced += self.refs[reference].message >= 0
        assert referenced == self.referenced
