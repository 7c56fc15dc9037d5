"""name_slots: the properties that subscriptions read, each with a slot.

A slot that nobody reads any more is *idle*: it keeps its name until another name needs a slot. So segments need not be
made anew where names come and go: what of a segment asks about an idle slot is dead.

Invariants: ``slot_of`` and ``names`` are inverse; ``readers[slot]`` counts who reads it, a subscription once for each
leaf (with a program: once for each name); ``idle`` are the slots of which it is 0.
"""

from libc.stdint cimport int64_t

from pyengine._engine.index.growing cimport Growing
from pyengine._engine.index.subscription cimport Subscription
from pyengine._engine.selector.program cimport Program


cdef class NameSlots:
    cdef readonly dict slot_of       # name -> slot
    cdef list names                  # [slot]
    cdef Growing readers             # [slot]: int64
    cdef readonly dict idle          # slot -> None
    cdef Growing slots               # of the program at hand
    cdef Program reader              # of the names, without leaves; None after a change
    cdef bint every_text

    cdef int slot(self, str name) except -1
    cdef const int* slots_of(self, Program program) except NULL      # valid until the next call
    cdef int count(self, Subscription it, int64_t by) except -1      # it reads (1), or reads no more (-1)
    # The same names and slots, nobody counted; also of one that a lack of memory left halfway.
    cdef int follow(self, NameSlots other) except -1
    cdef list counts(self)
    cdef Program reader_now(self)


cdef NameSlots name_slots_of(bint every_text)
