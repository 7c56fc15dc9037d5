# cython: freethreading_compatible=True
"""See access_predicates.pxd."""

from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memset

from pyengine._engine.index.growing cimport growing
from pyengine._engine.index.leaf_truths cimport Truths, truths_of
from pyengine._engine.index.selectivity cimport Selectivity
from pyengine._engine.java.value cimport FALSE, TRUE, UNKNOWN
from pyengine._engine.index.requirements cimport LeafGraph
from pyengine._engine.selector.program cimport ACCEPT, FLAG, REJECT, TEXT, Leaf

cdef enum:
    MOST_LEAVES = 128        # of a graph whose cut is looked for by flow

cdef double SLIGHT = 1e-9    # flow that does not count


cdef class AccessPredicates:
    def __cinit__(self, Selectivity selectivity not None, bint errors_count):
        self.selectivity = selectivity
        self.errors_count = errors_count
        self.jumps = growing(sizeof(Jump))
        self.edges = growing(sizeof(Edge))
        self.truths = growing(sizeof(Truths))
        self.reached_by = growing(sizeof(int32_t))
        self.queue = growing(sizeof(int32_t))

    cdef bint is_alternation(self, const LeafGraph* graph) noexcept nogil:
        """Whether it is an OR of leaves: each that is not TRUE leaves it to the next."""
        cdef int index, target
        for index in range(graph.start, graph.count):
            target = index + 1 if index + 1 < graph.count else <int> REJECT
            if graph.leaves[index].next[<int> TRUE] != ACCEPT or graph.leaves[index].next[<int> FALSE] != target:
                return False
            if graph.leaves[index].next[<int> UNKNOWN] != target:
                return False
        return True

    cdef double choose(self, const LeafGraph* graph) except -1:
        cdef int count = graph.count, index
        cdef double flow = 0, cost = 0
        cdef Edge* edge
        cdef Jump* jump
        cdef int32_t* reached
        cdef bint alternation
        self.jumps.size = 0
        if graph.start < 0:
            self.known = False               # nothing is asked
            return CERTAIN
        self.lay_edges(graph)
        alternation = self.is_alternation(graph)
        self.reached_by.size = 0
        reached = <int32_t*> self.reached_by.more(count + 1)
        self.queue.size = 0
        self.queue.more(count + 1)
        if not alternation and count <= MOST_LEAVES:
            while self.augment(count, &flow):
                if flow >= 1:
                    return CERTAIN
        for index in range(self.edges.size):
            edge = &(<Edge*> self.edges.items)[index]
            if alternation or count > MOST_LEAVES:
                if edge.target != count:
                    continue
            elif not (reached[edge.source] >= -1 and reached[edge.target] < -1):
                continue
            if edge.mask < 0:
                return CERTAIN
            cost += edge.room + edge.back
            jump = <Jump*> self.jumps.more(1)
            jump.leaf = edge.source
            jump.mask = edge.mask
            jump.decides = edge.target == count and self.quiet and (alternation or self.decides(graph, jump))
        return min(cost, <double> CERTAIN)

    cdef int lay_edges(self, const LeafGraph* graph) except -1:
        cdef int index, truth, other, mask, target, count = graph.count
        cdef const Leaf* leaf
        cdef Edge* edge
        cdef Truths* truths
        cdef uint8_t* reached
        cdef bint known
        self.edges.size = self.truths.size = self.queue.size = 0
        self.truths.more(count)
        reached = <uint8_t*> self.queue.more(count + 1)
        memset(reached, 0, count + 1)
        reached[graph.start] = 1
        self.quiet = True
        self.known = False
        for index in range(graph.start, count):
            if not reached[index]:
                continue
            leaf = &graph.leaves[index]
            truths = &(<Truths*> self.truths.items)[index]
            known = truths_of(leaf, truths)
            self.known |= known
            if not known:
                self.quiet = False
                memset(truths, 0, sizeof(Truths))
            if leaf.can_raise > 1 and not TEXT <= leaf.kind <= FLAG:
                self.quiet = False
                if self.errors_count:
                    edge = <Edge*> self.edges.more(1)
                    edge.source, edge.target, edge.mask, edge.room = index, count, -1, CERTAIN
            for truth in range(FALSE, UNKNOWN + 1):
                target = leaf.next[truth]
                mask = 0
                for other in range(FALSE, UNKNOWN + 1):
                    if leaf.next[other] == target:
                        mask |= 1 << other
                if target == REJECT or mask & ((1 << truth) - 1):        # the same as of an earlier truth
                    continue
                edge = <Edge*> self.edges.more(1)
                edge.source = index
                edge.target = count if target == ACCEPT else target
                edge.mask = mask if known else -1
                edge.room = self.selectivity.part_of(leaf, truths, leaf.slot, mask) if known else CERTAIN
                edge.back = 0
                if target >= 0:
                    reached[target] = 1
        return 0

    cdef bint augment(self, int sink, double* flow) noexcept nogil:
        """More flow, by a shortest way; False where there is none, and then ``reached_by`` is what ways reach."""
        cdef Edge* edges = <Edge*> self.edges.items
        cdef int32_t* by = <int32_t*> self.reached_by.items
        cdef int32_t* queue = <int32_t*> self.queue.items
        cdef int index, at, head = 0, tail = 1, edge_count = <int> self.edges.size, from_, to
        cdef double most = CERTAIN
        # by: -2 and less is not reached, -1 the start; an edge e that is gone forwards 2 e, backwards 2 e + 1.
        for index in range(sink + 1):
            by[index] = -2
        queue[0] = edges[0].source if edge_count else 0
        by[queue[0]] = -1
        while head < tail and by[sink] == -2:
            at = queue[head]
            head += 1
            for index in range(edge_count):
                if edges[index].source == at and edges[index].room > SLIGHT and by[edges[index].target] == -2:
                    to = edges[index].target
                    by[to] = 2 * index
                elif edges[index].target == at and edges[index].back > SLIGHT and by[edges[index].source] == -2:
                    to = edges[index].source
                    by[to] = 2 * index + 1
                else:
                    continue
                queue[tail] = to
                tail += 1
        if by[sink] == -2:
            return False
        at = sink
        while by[at] >= 0:
            index = by[at] >> 1
            most = min(most, edges[index].back if by[at] & 1 else edges[index].room)
            at = edges[index].target if by[at] & 1 else edges[index].source
        at = sink
        while by[at] >= 0:
            index = by[at] >> 1
            from_ = edges[index].target if by[at] & 1 else edges[index].source
            edges[index].room += most if by[at] & 1 else -most
            edges[index].back += -most if by[at] & 1 else most
            at = from_
        flow[0] += most
        return True

    cdef bint decides(self, const LeafGraph* graph, const Jump* jump) except -1:
        """Whether no way leads to REJECT once the jump's leaf has a truth of its mask, whatever the others have."""
        cdef int index, truth, target
        cdef uint8_t* reached
        self.queue.size = 0
        reached = <uint8_t*> self.queue.more(graph.count + 1)
        memset(reached, 0, graph.count)
        reached[graph.start] = 1
        for index in range(graph.start, graph.count):
            for truth in range(FALSE, UNKNOWN + 1):
                if not reached[index] or index == jump.leaf and not jump.mask >> truth & 1:
                    continue
                target = graph.leaves[index].next[truth]
                if target == REJECT:
                    return False
                if target >= 0:
                    reached[target] = 1
        return reached[jump.leaf] != 0
