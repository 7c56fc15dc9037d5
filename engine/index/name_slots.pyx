# cython: freethreading_compatible=True
"""See name_slots.pxd."""

from libc.stdint cimport int64_t

from pyengine._engine.index.growing cimport growing
from pyengine._engine.index.message_view cimport reader_of
from pyengine._engine.index.subscription cimport Subscription
from pyengine._engine.selector.program cimport NO_SLOT, Program


cdef class NameSlots:
    """Internal to Subscriptions; see name_slots.pxd."""

    cdef int slot(self, str name) except -1:
        cdef object known = self.slot_of.get(name)
        if known is not None:
            return known
        self.reader = None
        if self.idle:
            known, _ = self.idle.popitem()
            if self.slot_of.get(self.names[known]) == known:
                del self.slot_of[self.names[known]]
            self.names[known] = name
        else:
            known = len(self.names)
            if self.readers.size == known:
                self.readers.more(1)
            self.names.append(name)
        self.slot_of[name] = known
        self.idle[known] = None          # until somebody is counted
        return known

    cdef const int* slots_of(self, Program program) except NULL:
        cdef int index
        self.slots.size = 0
        self.slots.more(len(program.names) + 1)
        for index in range(<int> len(program.names)):
            (<int*> self.slots.items)[index] = self.slot(program.names[index])
            self.idle.pop((<int*> self.slots.items)[index], None)       # no other name of the program takes it
        return <int*> self.slots.items

    cdef int count(self, Subscription it, int64_t by) except -1:
        cdef int64_t* readers = <int64_t*> self.readers.items
        cdef int index, count = it.widest() if it.slots != NULL else it.graph.count
        cdef int slot
        for index in range(count):
            slot = it.slots[index] if it.slots != NULL else it.graph.leaves[index].slot
            if slot == NO_SLOT:
                continue
            if by > 0 and readers[slot] == 0:
                self.idle.pop(slot, None)
            readers[slot] += by
            if readers[slot] == 0:
                self.idle[slot] = None
        return 0

    cdef int follow(self, NameSlots other) except -1:
        self.names = list(other.names)
        self.slot_of = {name: slot for slot, name in enumerate(self.names)}
        self.idle = dict.fromkeys(range(len(self.names)))
        self.readers.size = 0
        self.readers.more(len(self.names) + 1)
        self.readers.size = len(self.names)
        return 0

    cdef list counts(self):
        return [(<int64_t*> self.readers.items)[slot] for slot in range(len(self.names))]

    cdef Program reader_now(self):
        if self.reader is None:
            self.reader = reader_of(self.names, self.every_text)
        return self.reader


cdef NameSlots name_slots_of(bint every_text):
    cdef NameSlots made = NameSlots.__new__(NameSlots)
    made.slot_of, made.names, made.idle = {}, [], {}
    made.readers = growing(sizeof(int64_t))
    made.slots = growing(sizeof(int))
    made.every_text = every_text
    return made
