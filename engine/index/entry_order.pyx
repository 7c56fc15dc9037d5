# cython: freethreading_compatible=True
"""See entry_order.pxd."""

from pyengine._engine.index.segment cimport LINE

from pyengine._engine.index.partitions cimport distinct_of

import numpy

cdef enum:
    MOST_SLOTS = 64
    WORD = 64
    PARTS = 4        # at most, of the entries that ask about one slot
    HALF = 127       # positions of lower bounds, and as many of upper


def positions_of(Py_ssize_t size, entries, slots, upper, bounds):
    """See entry_order.pxd."""
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
            yield
    return positions


def parted(members, usable, positions, Py_ssize_t size):
    """``(clusters, left)``: clusters are so many times ``size``; within lines there are those of words."""
    cdef list done = [], waiting = [(members, usable)]
    cdef Py_ssize_t count
    left = members[:0]
    while waiting:
        yield
        members, usable = waiting.pop()
        asked = numpy.count_nonzero(positions[members], axis=0) * usable if len(members) > size else usable[:0]
        if not len(asked) or asked.max() < size:
            count = len(members) // size * size
            if size == LINE and count:
                words, others = yield from parted(members[:count], usable, positions, WORD)
                done += [*words, others]
            else:
                done.append(members[:count])
            left = numpy.concatenate([left, members[count:]])
            continue
        slot = asked.argmax()
        of = positions[members, slot]
        members = members[numpy.argsort(of, kind="stable")[::-1]]
        count = numpy.count_nonzero(of) // size
        waiting.append((members[count * size:], usable))
        usable = usable.copy()
        usable[slot] = False
        ends = distinct_of(numpy.arange(PARTS + 1) * count // PARTS) * size
        for part in range(1, len(ends)):
            waiting.append((members[ends[part - 1]:ends[part]], usable))
    return done, left


def clustered(members, positions, Py_ssize_t first):
    """See entry_order.pxd."""
    done, left = yield from parted(members, numpy.ones(positions.shape[1], bool), positions, LINE)
    head = -first % LINE
    return numpy.concatenate([left[:head], *done, left[head:]])
