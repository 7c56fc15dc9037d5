# cython: freethreading_compatible=True
"""See key_table.pxd."""

from libc.stdint cimport int64_t, uint64_t

from pyengine._engine.index.subscription cimport Subscription

import numpy

cdef enum:
    LARGE = 40_000           # keys of ``first``: at 43,691 it would grow
    SMALL_BITS = 8           # so many dicts, 1 << SMALL_BITS


cdef class KeyTable:
    """Internal to Subscriptions; see key_table.pxd."""

    cdef dict place_of(self, object key):
        # Not the low bits, by which a dict places its keys.
        cdef uint64_t mixed = <uint64_t> <Py_hash_t> hash(key) * <uint64_t> 0x9E3779B97F4A7C15
        return self.small[<Py_ssize_t> (mixed >> (64 - SMALL_BITS))]

    cdef Subscription get(self, object key):
        cdef object found = self.first.get(key)
        if found is None and self.small is not None:
            found = self.place_of(key).get(key)
        return found

    cdef int set(self, object key, Subscription subscription, bint together) except -1:
        cdef dict place = self.first
        cdef Py_ssize_t before
        if self.small is None and not together and len(self.first) >= LARGE:
            self.small = [{} for _ in range(1 << SMALL_BITS)]
        if self.small is not None and key not in self.first:
            place = self.place_of(key)
        before = len(place)
        place[key] = subscription
        self.count += len(place) - before
        return 0

    cdef int remove(self, object key) except -1:
        if self.small is None or key in self.first:
            del self.first[key]
        else:
            del self.place_of(key)[key]
        self.count -= 1
        return 0

    cdef list in_order(self):
        cdef list every = list(self.first.values())
        cdef Py_ssize_t index
        if self.small is None:
            return every
        for place in self.small:
            every += (<dict> place).values()
        numbers = numpy.empty(len(every), numpy.int64)
        cdef int64_t[::1] number_of = numbers
        for index in range(len(every)):
            number_of[index] = (<Subscription> every[index]).number
        return [every[index] for index in numpy.argsort(numbers).tolist()]


cdef KeyTable key_table():
    cdef KeyTable made = KeyTable.__new__(KeyTable)
    made.first = {}
    return made
