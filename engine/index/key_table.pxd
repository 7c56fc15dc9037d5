"""key_table: the subscriptions of a set by key, in which no addition waits for a large dict to grow.

The first are in one dict. A dict of a million that grows moves them all, for tens of milliseconds; so whoever comes
one by one when it is large goes to one of many small dicts, by a hash of the key's hash.

Invariants: a key is in one dict; the keys of ``first`` are in the order of addition; dicts own the keys.
"""

from pyengine._engine.index.subscription cimport Subscription


cdef class KeyTable:
    cdef dict first
    cdef list small              # of dict; None: there are none yet
    cdef Py_ssize_t count

    cdef dict place_of(self, object key)                         # the small dict of a key
    cdef Subscription get(self, object key)                      # None: there is none
    # together: with many others, which may make ``first`` grow
    cdef int set(self, object key, Subscription subscription, bint together) except -1
    cdef int remove(self, object key) except -1                  # KeyError if there is none
    cdef list in_order(self)                                     # Subscription, in the order of addition


cdef KeyTable key_table()
