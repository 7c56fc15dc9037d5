# cython: freethreading_compatible=True
"""See requirements.pxd."""

from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free

from pyengine._engine.program cimport ACCEPT, FLAG, REJECT, TEXT, Leaf, Program
from pyengine._engine.value cimport FALSE, RAISED, UNKNOWN


cdef int find_requirements(Program program, bint errors_count, int32_t* into, bint* whole) noexcept nogil:
    cdef char* reached = <char*> calloc(program.leaf_count + 1, 1)
    cdef int leaf, truth, target, last = program.start, count = 0, others
    cdef bint raising = False, alone = True
    cdef const Leaf* it
    whole[0] = False
    if reached == NULL or program.start < 0:
        free(reached)
        return 0
    reached[program.start] = 1
    # Jumps go forward. ``last``: the furthest leaf that an earlier one may jump to; beyond all leaves for ACCEPT.
    for leaf in range(program.start, program.leaf_count):
        if not reached[leaf]:
            continue
        it = &program.leaves[leaf]
        others = 0
        if last <= leaf and not raising:
            into[count] = leaf
            count += 1
        else:
            alone = False
        for truth in range(FALSE, RAISED):
            target = it.next[truth]
            if target == REJECT:
                continue
            if target == ACCEPT:
                target = program.leaf_count
            else:
                reached[target] = 1
            if others and others != target + 1:
                alone = False
            others = target + 1
            if target > last:
                last = target
        if errors_count and program.nodes[it.node].can_raise > 1 and not TEXT <= it.kind <= FLAG:
            raising = True
            alone = False
    free(reached)
    whole[0] = alone
    return count


cdef int verdict_of(const Leaf* leaf, int possible, bint errors_count) noexcept nogil:
    cdef int truth
    cdef bint refused = False, passed = False
    for truth in range(FALSE, UNKNOWN + 1):
        if possible >> truth & 1:
            if leaf.next[truth] == REJECT:
                refused = True
            else:
                passed = True
    if possible & MAY_RAISE:
        if errors_count:
            return OPEN
        refused = True
    if refused and passed:
        return OPEN
    return REFUSED if refused else PASSED
