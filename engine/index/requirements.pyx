# cython: freethreading_compatible=True
"""See requirements.pxd."""

from libc.stdint cimport int32_t
from libc.stdlib cimport free

from pyengine._engine.lowlevel.memory cimport try_allocate_zeros
from pyengine._engine.selector.program cimport ACCEPT, EITHER, FLAG, TEXT, Leaf, Node, Program
from pyengine._engine.java.value cimport FALSE, RAISED, UNKNOWN


cdef int find_branches(Program program, int32_t* into) noexcept nogil:
    cdef const Node* root = &program.nodes[program.root]
    cdef int leaf, truth, part = -1, count = 0
    cdef char* reached
    into[0] = max(program.start, 0)
    into[1] = program.leaf_count
    if root.operation != EITHER or program.start < 0:
        return 1
    reached = <char*> try_allocate_zeros(program.leaf_count, 1)
    if reached == NULL:
        return 1
    reached[program.start] = 1
    # The leaves of a part are about nodes above the part before it, up to the part itself. Beside what is FALSE for
    # itself there are leaves that nobody comes by; jumps go forward.
    for leaf in range(program.start, program.leaf_count):
        if not reached[leaf]:
            continue
        for truth in range(FALSE, <int> RAISED):
            if program.leaves[leaf].next[truth] >= 0:
                reached[program.leaves[leaf].next[truth]] = 1
        if part >= 0 and program.leaves[leaf].node <= program.children[root.first + part]:
            if part and program.leaves[leaf].node <= program.children[root.first + part - 1]:
                count = MOST_BRANCHES + 1
                break
            continue
        while part < root.count and (
            part < 0 or program.leaves[leaf].node > program.children[root.first + part]
        ):
            part += 1
        if part == root.count or count == MOST_BRANCHES:
            count = MOST_BRANCHES + 1
            break
        into[count] = leaf
        count += 1
    free(reached)
    if count > MOST_BRANCHES or count == 0:
        into[0] = program.start
        count = 1
    into[count] = program.leaf_count
    return count


cdef int find_requirements(
    const LeafGraph* graph, int first, int stop, bint errors_count, int32_t* into, bint* whole
) noexcept nogil:
    cdef char* reached = <char*> try_allocate_zeros(graph.count + 1, 1)
    cdef int leaf, truth, target, last = first, count = 0, others
    cdef bint raising = False, alone = True
    cdef const Leaf* tested
    whole[0] = False
    if reached == NULL or graph.start < 0:
        free(reached)
        return 0
    reached[first] = 1
    # Jumps go forward. ``last``: the furthest leaf that an earlier one may jump to; beyond all leaves for ACCEPT.
    for leaf in range(first, stop):
        if not reached[leaf]:
            continue
        tested = &graph.leaves[leaf]
        others = 0
        if last <= leaf and not raising:
            into[count] = leaf
            count += 1
        else:
            alone = False
        for truth in range(FALSE, <int> RAISED):
            target = tested.next[truth]
            if rejects(tested, stop, truth):
                continue
            if target == ACCEPT:
                target = stop
            else:
                reached[target] = 1
            if others and others != target + 1:
                alone = False
            others = target + 1
            if target > last:
                last = target
        if errors_count and tested.can_raise > 1 and not TEXT <= tested.kind <= FLAG:
            raising = True
            alone = False
    free(reached)
    whole[0] = alone
    return count


cdef int verdict_of(const Leaf* leaf, int stop, int possible, bint errors_count) noexcept nogil:
    cdef int truth
    cdef bint refused = False, passed = False
    for truth in range(FALSE, UNKNOWN + 1):
        if possible >> truth & 1:
            if rejects(leaf, stop, truth):
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
