# cython: freethreading_compatible=True
"""See clusters.pxd."""

from pyengine._engine.segment cimport LINE

import numpy

cdef enum:
    MOST_SLOTS = 64
    PARTS = 4        # at most, of the entries that ask about one slot
    HALF = 127       # positions of lower bounds, and as many of upper


cdef object positions_of(Py_ssize_t size, object entries, object slots, object upper, object bounds):
    popular = numpy.argsort(-numpy.bincount(slots), kind="stable")[:MOST_SLOTS]
    positions = numpy.zeros((size, len(popular)), numpy.uint8)
    for column, slot in enumerate(popular.tolist()):
        for above in (False, True):
            chosen = numpy.flatnonzero((slots == slot) & (upper == above))
            known = numpy.sort(bounds[chosen])
            cuts = known[numpy.arange(1, HALF) * len(known) // HALF] if len(known) else known
            positions[entries[chosen], column] = (
                1 + HALF * above + numpy.searchsorted(cuts, bounds[chosen], side="right")
            )
    return positions


cdef object clustered(object members, object positions, Py_ssize_t first):
    cdef list done = [], waiting = [(members, numpy.ones(positions.shape[1], bool))]
    cdef Py_ssize_t lines
    left = members[:0]
    while waiting:
        members, usable = waiting.pop()
        asked = numpy.count_nonzero(positions[members], axis=0) * usable if len(members) > LINE else usable[:0]
        if not len(asked) or asked.max() < LINE:
            lines = len(members) // LINE
            done.append(members[:lines * LINE])
            left = numpy.concatenate([left, members[lines * LINE:]])
            continue
        slot = asked.argmax()
        of = positions[members, slot]
        members = members[numpy.argsort(of, kind="stable")[::-1]]
        lines = numpy.count_nonzero(of) // LINE
        waiting.append((members[lines * LINE:], usable))
        usable = usable.copy()
        usable[slot] = False
        ends = numpy.unique(numpy.arange(PARTS + 1) * lines // PARTS) * LINE
        for part in range(1, len(ends)):
            waiting.append((members[ends[part - 1]:ends[part]], usable))
    head = -first % LINE
    return numpy.concatenate([left[:head], *done, left[head:]])
