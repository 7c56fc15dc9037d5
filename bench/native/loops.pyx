# cython: binding=False, always_allow_keywords=False, boundscheck=False, wraparound=False, initializedcheck=False
"""The loops that bench compiles for itself: the process queue asked from C, and what no program can be faster than."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free

from pyengine._engine.lowlevel.bits cimport lowest_bit
from pyengine._engine.rocketmq.client.process_queue cimport ProcessQueue


cdef class Nothing:
    """The empty methods: what a call costs that does nothing."""

    def put_messages(self, messages):
        return False

    def finish(self, message, /):
        return 0

    def remove_messages(self, messages, *, int64_t now=0):
        return 0


def through_the_pxd(const int64_t[::1] order, int64_t depth, list messages):
    """Put 32, finish in this order, smallest offset each time. Returns the sum of the offsets to commit."""
    cdef ProcessQueue queue = ProcessQueue()
    cdef int64_t put = 0, cached = 0, total = 0, i, place, count = order.shape[0]
    for place in range(count):
        while put < count and cached <= depth:
            for i in range(put, min(put + 32, count)):
                queue.put_one(i, messages[i], 0)
                cached += 1
            put = min(put + 32, count)
        queue.take_out(order[place], 0)
        cached -= 1
        total += queue.safe()
    return total


def by_hand(const int64_t[::1] order, int64_t depth, int64_t span, list messages):
    """The same over a ring of slots and a bitmap that never grow. span: a power of two that no distance reaches."""
    cdef int64_t put = 0, cached = 0, total = 0, i, place, count = order.shape[0], first = 0
    cdef PyObject** slots = <PyObject**>calloc(span, sizeof(PyObject*))
    cdef uint64_t* words = <uint64_t*>calloc(span // 64, sizeof(uint64_t))
    cdef int64_t mask = span - 1
    cdef uint64_t word
    if slots == NULL or words == NULL:
        free(slots)
        free(words)
        raise MemoryError
    for place in range(count):
        while put < count and cached <= depth:
            for i in range(put, min(put + 32, count)):
                message = messages[i]
                Py_INCREF(message)
                slots[i & mask] = <PyObject*>message
                words[(i & mask) >> 6] |= <uint64_t>1 << (i & 63)
                cached += 1
            put = min(put + 32, count)
        i = order[place]
        words[(i & mask) >> 6] &= ~(<uint64_t>1 << (i & 63))
        Py_DECREF(<object>slots[i & mask])
        cached -= 1
        if i == first:
            while first < put:
                word = words[(first & mask) >> 6] >> (first & 63)
                if word:
                    first += lowest_bit(word)
                    break
                first = (first | 63) + 1
            first = min(first, put)
        total += first
    free(slots)
    free(words)
    return total


def in_order(const int64_t[::1] offsets, const int64_t[::1] places, int64_t count, int64_t[::1] into):
    """What is known already, in any order: a row sets a bit for each place below ``count`` and reads them again."""
    cdef int64_t row, at, word, size = 0, words = count // 64 + 1
    cdef uint64_t* bits = <uint64_t*>calloc(words, sizeof(uint64_t))
    if bits == NULL:
        raise MemoryError
    for row in range(offsets.shape[0] - 1):
        for at in range(offsets[row], offsets[row + 1]):
            bits[places[at] >> 6] |= <uint64_t>1 << (places[at] & 63)
        for word in range(words if offsets[row + 1] > offsets[row] else 0):
            while bits[word]:
                into[size] = 64 * word + lowest_bit(bits[word])
                size += 1
                bits[word] &= bits[word] - 1
    free(bits)
