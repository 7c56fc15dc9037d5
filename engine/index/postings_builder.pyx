# cython: freethreading_compatible=True
"""See postings_builder.pxd."""

from cpython.object cimport PyObject
from libc.stdint cimport INT64_MAX, INT64_MIN, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

from pyengine._engine.index.access_predicates cimport CERTAIN, AccessPredicates, Jump
from pyengine._engine.index.constants cimport Point, point_kind, reading_of, seek
from pyengine._engine.index.growing cimport Growing, growing
from pyengine._engine.index.leaf_truths cimport Truths, truths_of
from pyengine._engine.index.message_view cimport Reading, point_of
from pyengine._engine.index.partitions cimport distinct_of
from pyengine._engine.index.pattern_automaton cimport PatternAutomaton, piece_of
from pyengine._engine.index.postings cimport (
    COLUMN_LISTS, OF_FALSE, OF_NULL, OF_ODD, OF_PRESENT, OF_TRUE, PostedColumn, Postings, stretch_of,
)
from pyengine._engine.index.requirements cimport (
    MOST_BRANCHES, LeafGraph, copy_branches, find_requirements, is_indexable, rejects,
)
from pyengine._engine.index.residual cimport (
    ASK_PROGRAM, BETWEEN_CODES, FAILS, FALSE_CODE, FIRST_STRETCH, MATCHES, NULL_CODE, ONE_OF_CODES, PATTERN_MATCHES,
    TRUE_CODE, Step,
)
from pyengine._engine.index.subscription cimport Subscription, graph_of
from pyengine._engine.index.selectivity cimport Selectivity
from pyengine._engine.java.value cimport FALSE, TRUE, UNKNOWN, Scratch, Value, free_scratch, take_scratch
from pyengine._engine.selector.leaf_compiler cimport is_plain, plain_program
from pyengine._engine.selector.like cimport Pattern
from pyengine._engine.selector.program cimport (
    ACCEPT, NO_SLOT, NUMBER, PATTERN, PREFIX, REJECT, TEXT, Leaf, Program, text_of, texts_of,
)

import numpy

cdef enum Served:                # by bits
    NOT_AT_ALL
    IN_PART                      # they leave it to the program
    WHOLLY
    WELL                         # behind access points


cdef enum:
    MOST_COLUMNS = 60_000
    MOST_STEPS = 30_000          # of a subscription, which a jump can pass
    CLASSES = 5                  # of values: null, false, true, a number, a text

# Parts of the messages that may take a subscription for a candidate, or decide it, where bits would serve it too, serve
# it some way, or not at all.
cdef double DECIDED_BESIDE_BITS = 0.1, CANDIDATE_BESIDE_BITS = 0.01
cdef double CANDIDATE_BESIDE_SOME = 0.1, CANDIDATE_BESIDE_SCAN = 0.3


cdef class PostingsBuilder:
    def __cinit__(self):
        self.made = Postings()
        self.listed = growing(sizeof(Listed))
        self.jumps = growing(sizeof(Jump))
        self.posted = []
        self.scanned = []
        self.posted_graphs = growing(sizeof(LeafGraph))
        self.scanned_graphs = growing(sizeof(LeafGraph))
        self.plain_programs = []
        self.column_of = {}
        self.pattern_of = {}
        self.bounds = []
        self.columns = growing(sizeof(PostedColumn))
        self.points = growing(sizeof(Point))
        self.points.more(64)
        self.all_postings = growing(sizeof(Posting))
        self.steps = growing(sizeof(Step))
        self.pool = growing(sizeof(uint32_t))
        self.targets = growing(sizeof(int32_t))
        self.first_step_of = growing(sizeof(int32_t))
        self.first_steps = growing(sizeof(int64_t))
        self.requirements = growing(sizeof(int32_t))
        self.made.automata = []

    def __dealloc__(self):
        free_scratch(&self.scratch)

    cdef int begin(self, Selectivity selectivity, bint errors_count) except -1:
        self.errors_count = errors_count
        self.chooser = AccessPredicates(selectivity, errors_count)
        return 0

    cdef LeafGraph plain_graph(self, Subscription it) except *:
        cdef Program plain
        cdef int index
        if it.program is None or is_plain(it.program):
            return it.graph
        plain = plain_program(it.program)
        for index in range(plain.leaf_count):
            if plain.leaves[index].slot != NO_SLOT:
                plain.leaves[index].slot = it.slots[plain.leaves[index].slot]
        self.plain_programs.append(plain)
        return graph_of(plain)

    cdef bint take(self, Subscription it) except -1:
        cdef Listed* listed
        cdef Jump* jumps
        cdef int index, count, served = self.bits_serve(it) if it.graph.start >= 0 else WELL
        cdef double cost
        cdef bint decided
        cdef LeafGraph graph
        if served == WELL or self.columns.size + it.graph.count > MOST_COLUMNS:
            return False
        graph = self.plain_graph(it)
        cost = self.chooser.choose(&graph)
        count = <int> self.chooser.jumps.size
        jumps = <Jump*> self.chooser.jumps.items
        decided = cost < CERTAIN
        for index in range(count):
            decided = decided and jumps[index].decides
        if served == WHOLLY and cost > (DECIDED_BESIDE_BITS if decided else CANDIDATE_BESIDE_BITS):
            return False
        if decided or cost <= (CANDIDATE_BESIDE_SCAN if served == NOT_AT_ALL else CANDIDATE_BESIDE_SOME):
            listed = <Listed*> self.listed.more(1)
            listed.first, listed.count, listed.decided = self.jumps.size, count, decided
            for index in range(count):
                (<Jump*> self.jumps.more(1))[0] = jumps[index]
            self.posted.append(it)
            (<LeafGraph*> self.posted_graphs.more(1))[0] = graph
            self.register(&graph, listed)
            return True
        if self.chooser.known:
            self.scanned.append(it)
            (<LeafGraph*> self.scanned_graphs.more(1))[0] = graph
            self.register(&graph, NULL)
            return True
        return False

    cdef int bits_serve(self, Subscription it) except -1:
        cdef const LeafGraph* graph = &it.graph
        cdef int32_t[MOST_BRANCHES + 1] stops
        cdef int branch, index, other, count, branches = copy_branches(graph, stops)
        cdef bint whole, equality, indexed, every_equality = True, every_whole = True
        cdef const Leaf* leaf
        cdef int32_t* found
        self.requirements.size = 0
        found = <int32_t*> self.requirements.more(graph.count + 1)
        for branch in range(branches):
            count = find_requirements(graph, stops[branch], stops[branch + 1], self.errors_count, found, &whole)
            equality = indexed = False
            for index in range(count):
                leaf = &graph.leaves[found[index]]
                if not is_indexable(leaf):
                    whole = False
                    continue
                indexed = True
                for other in range(index):
                    if graph.leaves[found[other]].slot == leaf.slot:
                        whole = False
                if leaf.kind == TEXT or leaf.kind == NUMBER and leaf.low == leaf.high:
                    equality |= not rejects(leaf, stops[branch + 1], TRUE) and rejects(
                        leaf, stops[branch + 1], FALSE) and rejects(leaf, stops[branch + 1], UNKNOWN)
            if not indexed:
                return NOT_AT_ALL
            every_whole &= whole
            every_equality &= equality
        if every_whole and every_equality and not (branches > 1 and self.chooser.is_alternation(graph)):
            return WELL
        return WHOLLY if every_whole else IN_PART if branches == 1 else NOT_AT_ALL

    cdef int column(self, int slot) except -1:
        cdef object known = self.column_of.get(slot)
        cdef int number = <int> self.columns.size
        if known is None:
            (<PostedColumn*> self.columns.more(1)).slot = slot
            self.column_of[slot] = known = number
            self.bounds.append(growing(sizeof(int64_t)))
        return known

    cdef int register(self, const LeafGraph* graph, const Listed* listed) except -1:
        """The constants of its leaves, or of its access predicates if they decide it."""
        cdef int index
        if listed != NULL and listed.decided:
            for index in range(listed.count):
                self.register_leaf(&graph.leaves[(<Jump*> self.jumps.items)[listed.first + index].leaf])
            return 0
        for index in range(graph.count):
            self.register_leaf(&graph.leaves[index])
        return 0

    cdef int register_leaf(self, const Leaf* leaf) except -1:
        cdef Truths truths
        cdef int column, index
        cdef bint plain, at_start, at_end
        cdef const Pattern* pattern
        cdef PostedColumn* columns
        if not truths_of(leaf, &truths):
            return 0
        column = self.column(leaf.slot)
        if leaf.kind == NUMBER:
            if leaf.real_low > INT64_MIN:
                (<int64_t*> (<Growing> self.bounds[column]).more(1))[0] = leaf.real_low
            if leaf.real_high < INT64_MAX:
                (<int64_t*> (<Growing> self.bounds[column]).more(1))[0] = leaf.real_high + 1
        for index in range(texts_of(leaf)):
            self.register_text(column, text_of(leaf, index))
        if leaf.kind == PREFIX or leaf.kind == PATTERN:
            pattern = leaf.pattern
            piece = piece_of(pattern, &plain)
            at_start, at_end = not pattern.open_start, not pattern.open_end
            key = (column, piece, at_start, at_end) if plain else None
            known = self.pattern_of.get(key) if plain else None
            if known is None:
                known = self.made.pattern_count
                self.made.pattern_count += 1
                if plain:
                    self.pattern_of[key] = known
                    pattern = NULL       # the automaton needs the piece alone
                columns = <PostedColumn*> self.columns.items
                if columns[column].automaton == NULL:
                    self.made.automata.append(PatternAutomaton())
                    columns[column].automaton = <PyObject*> self.made.automata[len(self.made.automata) - 1]
                (<PatternAutomaton> columns[column].automaton).add(
                    piece, known, plain and at_start, plain and at_end, pattern)
            self.pattern_of[<size_t> leaf] = known
        return 0

    cdef int register_text(self, int column, const Value* text) except -1:
        cdef Reading reading
        cdef Point* point
        cdef Growing larger
        cdef int64_t index
        if 2 * self.text_count >= self.points.size:
            larger = growing(sizeof(Point))
            larger.more(2 * self.points.size)
            for index in range(self.points.size):
                point = &(<Point*> self.points.items)[index]
                if point.of:
                    reading = reading_of(point)
                    seek(<Point*> larger.items, larger.size, point.of >> 2, &reading)[0] = point[0]
            self.points = larger
        if not point_of(text, &reading, &self.scratch):
            raise MemoryError()
        point = seek(<Point*> self.points.items, self.points.size, column, &reading)
        if point.of == 0:
            point.of = point_kind(column, reading.kind)
            point.hash, point.key = reading.hash, reading.key
            point.bytes, point.length = self.copied(reading.bytes, reading.length), reading.length
            (<PostedColumn*> self.columns.items)[column].texts += 1
            point.code = (<PostedColumn*> self.columns.items)[column].texts
            point.first = <int32_t> self.text_count
            self.text_count += 1
        return 0

    cdef const uint8_t* copied(self, const uint8_t* bytes_, uint32_t length) except NULL:
        cdef uint8_t* copy = <uint8_t*> take_scratch(&self.made.scratch, length + 1)
        if copy == NULL:
            raise MemoryError()
        memcpy(copy, bytes_, length)
        return copy

    cdef Point* find_text(self, int column, const Value* text) noexcept nogil:
        cdef Reading reading
        cdef Scratch scratch
        cdef Point* point
        memset(&scratch, 0, sizeof(Scratch))
        point_of(text, &reading, &scratch)
        point = seek(<Point*> self.points.items, self.points.size, column, &reading)
        free_scratch(&scratch)
        return point

    cdef LeafGraph* graph_at(self, int place) noexcept:
        if place < self.made.scanned:
            return &(<LeafGraph*> self.posted_graphs.items)[place]
        return &(<LeafGraph*> self.scanned_graphs.items)[place - self.made.scanned]

    cdef int lay_place(self, int place) except -1:
        (<int64_t*> self.first_steps.more(1))[0] = self.steps.size
        if place >= self.made.scanned:
            return self.lay_steps(self.graph_at(place))
        return self.lay_jumps(place)

    cdef int lay_jumps(self, int place) except -1:
        cdef const Listed* listed = &(<Listed*> self.listed.items)[place]
        cdef const LeafGraph* graph = self.graph_at(place)
        cdef const Jump* jump
        cdef int64_t index
        if not listed.decided:
            self.lay_steps(graph)
        for index in range(listed.count):
            jump = &(<Jump*> self.jumps.items)[listed.first + index]
            self.list_jump(&graph.leaves[jump.leaf], jump, 2 * place + jump.decides)
        return 0

    cdef int lay_columns(self) except -1:
        """Their bounds, and where the lists of each begin."""
        cdef Postings made = self.made
        cdef PostedColumn* columns = <PostedColumn*> self.columns.items
        cdef Growing bounds, fitting
        cdef PatternAutomaton automaton
        cdef Listed* listed
        cdef Jump* jump
        cdef const Leaf* leaf
        cdef int64_t index
        cdef int number, place
        cdef int64_t[::1] cut
        made.scanned = <int> len(self.posted)
        made.count = <int> (len(self.posted) + len(self.scanned))
        for number in range(self.columns.size):
            bounds = self.bounds[number]
            columns[number].first_list = COLUMN_LISTS * number
            if bounds.size:
                cut = distinct_of(numpy.asarray(<int64_t[:bounds.size]> <int64_t*> bounds.items))
                fitting = growing(sizeof(int64_t))
                fitting.more(len(cut))
                for index in range(len(cut)):
                    (<int64_t*> fitting.items)[index] = cut[index]
                columns[number].bound_count = <int32_t> len(cut)
                columns[number].bounds = <int64_t*> fitting.keep()
        for automaton in made.automata:
            automaton.finish()
        made.pattern_list = <int32_t> (COLUMN_LISTS * self.columns.size + self.text_count)
        made.list_count = made.pattern_list + made.pattern_count
        for index in range(self.points.size):
            (<Point*> self.points.items)[index].first += <int32_t> (COLUMN_LISTS * self.columns.size)
        for place in range(made.scanned):
            listed = &(<Listed*> self.listed.items)[place]
            for index in range(listed.count):
                jump = &(<Jump*> self.jumps.items)[listed.first + index]
                leaf = &self.graph_at(place).leaves[jump.leaf]
                number = self.column(leaf.slot)
                if leaf.kind == NUMBER and columns[number].tree_leaves == 0:
                    columns[number].tree_leaves = 1
                    while columns[number].tree_leaves <= columns[number].bound_count:
                        columns[number].tree_leaves *= 2
                    columns[number].tree_list = <int32_t> made.list_count
                    made.list_count += 2 * columns[number].tree_leaves
        made.column_count = <int> self.columns.size
        made.columns = <PostedColumn*> self.columns.keep()
        return 0

    cdef int list_posting(self, int64_t number, int32_t posting) except -1:
        cdef Posting* made = <Posting*> self.all_postings.more(1)
        made.number, made.posting = number, posting
        return 0

    cdef int list_jump(self, const Leaf* leaf, const Jump* jump, int32_t posting) except -1:
        """The lists of the values that take a jump, or may."""
        cdef int number = self.column(leaf.slot), index, mask = jump.mask
        cdef const PostedColumn* column = &self.made.columns[number]
        cdef Truths truths
        cdef int64_t low, high
        cdef bint numbers, texts, inside, everything
        truths_of(leaf, &truths)
        if mask >> truths.of_null & 1:
            self.list_posting(column.first_list + OF_NULL, posting)
        inside = truths.has_inside and mask >> truths.inside & 1
        numbers, texts = mask >> truths.of_number & 1, mask >> truths.of_text & 1
        if numbers or texts:
            everything = numbers and texts and (inside or not truths.has_inside) and mask >> truths.of_false & 1 and (
                mask >> truths.of_true & 1)
            posting = posting if everything else posting & ~1
            self.list_posting(column.first_list + OF_PRESENT, posting)
            return 0
        if not (inside or mask >> truths.of_false & 1 or mask >> truths.of_true & 1):
            return 0
        self.list_posting(column.first_list + OF_ODD, posting & ~1)
        if mask >> truths.of_false & 1:
            self.list_posting(column.first_list + OF_FALSE, posting)
        if mask >> truths.of_true & 1:
            self.list_posting(column.first_list + OF_TRUE, posting)
        if not inside:
            return 0
        if leaf.kind == NUMBER:
            low = column.tree_leaves + <int64_t> stretch_of(column, leaf.real_low)
            high = column.tree_leaves + <int64_t> stretch_of(column, leaf.real_high) + 1
            while low < high:
                if low & 1:
                    self.list_posting(column.tree_list + low, posting)
                    low += 1
                if high & 1:
                    high -= 1
                    self.list_posting(column.tree_list + high, posting)
                low >>= 1
                high >>= 1
        elif leaf.kind == PREFIX or leaf.kind == PATTERN:
            self.list_posting(self.made.pattern_list + <int> self.pattern_of[<size_t> leaf], posting)
        for index in range(texts_of(leaf)):
            self.list_posting(self.find_text(number, text_of(leaf, index)).first, posting)
        return 0

    cdef int lay_lists(self) except -1:
        cdef Postings made = self.made
        cdef Growing starts = growing(sizeof(int64_t)), postings = growing(sizeof(int32_t))
        cdef int64_t* start
        cdef const Posting* posting
        cdef int64_t index
        (<int64_t*> self.first_steps.more(1))[0] = self.steps.size
        start = <int64_t*> starts.more(made.list_count + 2)
        for index in range(self.all_postings.size):
            start[(<Posting*> self.all_postings.items)[index].number + 2] += 1
        for index in range(made.list_count):
            start[index + 2] += start[index + 1]
        # start[l + 1] is where the next posting of list l goes, and in the end where its last one ends.
        postings.more(self.all_postings.size + 1)
        for index in range(self.all_postings.size):
            posting = &(<Posting*> self.all_postings.items)[index]
            (<int32_t*> postings.items)[start[posting.number + 1]] = posting.posting
            start[posting.number + 1] += 1
        made.starts = <int64_t*> starts.keep()
        made.postings = <int32_t*> postings.keep()
        made.point_room, made.point_count = self.points.size, self.text_count
        made.points = <Point*> self.points.keep()
        made.steps = <Step*> self.steps.keep()
        made.pool = <uint32_t*> self.pool.keep()
        made.first_steps = <int64_t*> self.first_steps.keep()
        return 0

    cdef Step* step(self, int yes, int no) except NULL:
        cdef int32_t* targets = <int32_t*> self.targets.more(2)
        cdef Step* made = <Step*> self.steps.more(1)
        targets[0], targets[1] = yes, no
        return made

    cdef int lay_steps(self, const LeafGraph* graph) except -1:
        cdef int64_t first = self.steps.size, former_pool = self.pool.size, index
        cdef int32_t* step_of
        cdef int32_t target
        cdef int leaf, side, jump
        cdef Step* step
        self.targets.size = 0
        self.first_step_of.size = 0
        self.first_step_of.more(graph.count + 1)
        for leaf in range(graph.start, graph.count):
            (<int32_t*> self.first_step_of.items)[leaf] = <int32_t> (self.steps.size - first)
            self.lay_leaf(&graph.leaves[leaf])
        step_of = <int32_t*> self.first_step_of.items
        if self.steps.size - first > MOST_STEPS:
            self.steps.size, self.pool.size = first, former_pool
            return 0
        for index in range(first, self.steps.size):
            step = &(<Step*> self.steps.items)[index]
            for side in range(2):
                target = (<int32_t*> self.targets.items)[2 * (index - first) + side]
                if target == ACCEPT:
                    jump = MATCHES
                elif target == REJECT:
                    jump = FAILS
                elif target < REJECT:                           # the next step
                    jump = 1
                else:
                    jump = <int> (step_of[target] - (index - first))
                if side:
                    step.no = <int16_t> jump
                else:
                    step.yes = <int16_t> jump
        return 0

    cdef int lay_leaf(self, const Leaf* leaf) except -1:
        """The inside of a leaf, then classes of values that lead elsewhere than those behind them."""
        cdef Truths truths
        cdef Step* step
        cdef Step inside
        cdef int number, first = 0, which
        cdef int32_t[CLASSES] targets
        cdef uint32_t[CLASSES] codes
        cdef const PostedColumn* column
        if not truths_of(leaf, &truths):
            self.step(REJECT, REJECT).kind = ASK_PROGRAM
            return 0
        number = self.column(leaf.slot)
        column = &self.made.columns[number]
        targets[0], targets[1] = leaf.next[truths.of_null], leaf.next[truths.of_false]
        targets[2], targets[3] = leaf.next[truths.of_true], leaf.next[truths.of_number]
        targets[4] = leaf.next[truths.of_text]
        codes[0], codes[1], codes[2], codes[3] = NULL_CODE, FALSE_CODE, TRUE_CODE, FIRST_STRETCH
        codes[4] = FIRST_STRETCH + column.bound_count + 1
        if truths.has_inside:
            memset(&inside, 0, sizeof(Step))
            self.inside_step(leaf, number, &inside)
            self.step(leaf.next[truths.inside], REJECT - 1)[0] = inside
        for which in range(1, CLASSES + 1):
            if which < CLASSES and targets[which] == targets[first]:
                continue
            if which == CLASSES:
                break
            step = self.step(targets[first], REJECT - 1)
            step.column = <uint16_t> number
            step.low, step.high = codes[first], codes[which] - 1
            first = which
        # What is left leads to one place: where the last step does not lead, or where all does.
        if first == 0 and not truths.has_inside:
            step = self.step(targets[0], targets[0])
            step.column = <uint16_t> number
            return 0
        (<int32_t*> self.targets.items)[self.targets.size - 1] = targets[first]
        return 0

    cdef int inside_step(self, const Leaf* leaf, int column, Step* step) except -1:
        cdef const PostedColumn* of = &self.made.columns[column]
        cdef uint32_t texts = FIRST_STRETCH + of.bound_count + 1
        cdef int index
        step.column = <uint16_t> column
        step.kind = BETWEEN_CODES
        if leaf.kind == NUMBER:
            step.low = FIRST_STRETCH + stretch_of(of, leaf.real_low)
            step.high = FIRST_STRETCH + stretch_of(of, leaf.real_high)
        elif leaf.kind == PREFIX or leaf.kind == PATTERN:
            step.kind = PATTERN_MATCHES
            step.low = self.pattern_of[<size_t> leaf]
        elif texts_of(leaf) == 1:
            step.low = step.high = texts + self.find_text(column, text_of(leaf, 0)).code
        else:
            codes = sorted([texts + self.find_text(column, text_of(leaf, index)).code for index in range(leaf.count)])
            step.low, step.high = <uint32_t> self.pool.size, <uint32_t> self.pool.size + leaf.count
            if codes[leaf.count - 1] - codes[0] == leaf.count - 1:
                step.low, step.high = codes[0], codes[leaf.count - 1]
                return 0
            step.kind = ONE_OF_CODES
            for index in range(leaf.count):
                (<uint32_t*> self.pool.more(1))[0] = codes[index]
        return 0
