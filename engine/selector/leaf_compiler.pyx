# cython: freethreading_compatible=True
"""See leaf_compiler.pxd."""

from cpython.object cimport PyObject
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, uint8_t, uint32_t
from libc.string cimport memset

from pyengine._engine.lowlevel.memory cimport allocate_zeros, resize
from pyengine._engine.selector.constant_bounds cimport narrow_keys
from pyengine._engine.selector.like cimport Pattern
from pyengine._engine.selector.program cimport (
    ABSENT, ACCEPT, ARITHMETIC, BOOLEAN_CAST, BOTH, BY_RULE, CONSTANT, EITHER, EQUAL_TO, FLAG, GENERAL,
    GREATER_OR_EQUAL, LIKE_MATCH, MEMBER, MINUS, NEGATION, NO_RELATION, NO_SLOT, NULL_TEST, NUMBER, PATTERN, PREFIX,
    REJECT, REST, SLOT, STACK, SUM, TEXT, TEXTS, Access, Leaf, Node, Program, StackStep, arity, leaf_truth,
)
from pyengine._engine.java.value cimport (
    BOOLEAN, CONVERT_TEXT, DOUBLE, EXACT_TYPES, FALSE, INT, LATIN1, LONG, NULL_VALUE, STRING, TRUE, UNKNOWN, Scratch,
    Value, free_scratch,
)


cdef class Leaves:
    """Builds the program's leaves, from the last to the first."""
    cdef Program program
    cdef int leaf_room
    cdef bint plain          # no value is a list or map

    cdef int add_leaf(self, int kind, int node, int on_true, int on_false, int on_unknown) except -1:
        """Prepend a leaf; until ``finish`` indexes count from the last leaf."""
        cdef Program program = self.program
        cdef Leaf* leaf
        if program.leaf_count == self.leaf_room:
            self.leaf_room = max(8, 2 * self.leaf_room)
            program.leaves = <Leaf*>resize(program.leaves, self.leaf_room * sizeof(Leaf))
        leaf = &program.leaves[program.leaf_count]
        memset(leaf, 0, sizeof(Leaf))
        leaf.next[<int>TRUE] = on_true
        leaf.next[<int>FALSE] = on_false
        leaf.next[<int>UNKNOWN] = on_unknown
        leaf.kind = <uint8_t>kind
        leaf.node = node
        leaf.negated = program.nodes[node].negated
        leaf.rules = program.nodes[node].rules
        leaf.second_relation = NO_RELATION
        leaf.slot = NO_SLOT
        leaf.can_raise = program.nodes[node].can_raise
        program.leaf_count += 1
        return program.leaf_count - 1

    cdef int read_slot(self, int leaf, int node) except -1:
        self.program.leaves[leaf].slot = self.program.nodes[node].slot
        return leaf

    cdef int child(self, int node, int which) noexcept:
        return self.program.children[self.program.nodes[node].first + which]

    cdef bint rest_raises(self, int node, int first) noexcept:
        cdef int i
        for i in range(first, self.program.nodes[node].count):
            if self.program.nodes[self.child(node, i)].can_raise > self.plain:
                return True
        return False

    cdef int jump(self, int node, int on_true, int on_false, int on_unknown, bint matching) except -10:
        """Lay ``node`` out; returns the leaf to start at, from which its truth leads to one of the three targets.

        matching: as in matches(), which treats unknown as false at once; otherwise as in evaluate(), which goes on
        because later operands may raise. on_unknown is on_true or on_false, except for a REST.
        """
        cdef Node* nodes = self.program.nodes
        cdef int operation = nodes[node].operation
        cdef int at, i, missing
        cdef bint both = operation == BOTH
        if operation == NEGATION:
            return self.jump(self.child(node, 0), on_false, on_true, on_unknown, False)
        if operation == CONSTANT:
            if nodes[node].constant.type == NULL_VALUE:
                return on_unknown
            return on_true if nodes[node].constant.payload.integer else on_false
        if not (both or operation == EITHER):
            return self.single(node, on_true, on_false, on_unknown)
        if on_unknown != on_true and on_unknown != on_false:
            return self.general(GENERAL, node, 0, on_true, on_false, on_unknown)
        at = on_true if both else on_false
        i = nodes[node].count - 1
        while i >= 0:
            if i == nodes[node].count - 1:
                missing = on_unknown
            elif matching:
                missing = on_false if both else at
            elif on_unknown == (on_true if both else on_false):
                missing = at
            elif self.rest_raises(node, i + 1):
                missing = self.general(
                    REST, node, i + 1, on_unknown if both else on_true, on_false if both else on_unknown, on_unknown
                )
            else:
                missing = on_unknown
            if both and i > 0 and self.fuses(self.child(node, i - 1), self.child(node, i)):
                at = self.interval(self.child(node, i - 1), self.child(node, i), at, on_false, missing)
                i -= 1
            elif both:
                at = self.jump(self.child(node, i), at, on_false, missing, matching)
            else:
                at = self.jump(self.child(node, i), on_true, at, missing, matching)
            i -= 1
        return at

    cdef bint against_number(self, int node) noexcept:
        """A slot on the left, a number on the right, nothing converted."""
        cdef const Node* nodes = self.program.nodes
        cdef int constant_type
        if not EQUAL_TO <= nodes[node].operation <= GREATER_OR_EQUAL or nodes[node].rules != EXACT_TYPES:
            return False
        if nodes[self.child(node, 0)].operation != SLOT or nodes[self.child(node, 1)].operation != CONSTANT:
            return False
        constant_type = nodes[self.child(node, 1)].constant.type
        return constant_type == INT or constant_type == LONG or constant_type == DOUBLE

    cdef bint fuses(self, int first, int second) noexcept:
        """Two comparisons of one slot with numbers; the second raises only if the first does."""
        return (
            self.against_number(first)
            and self.against_number(second)
            and self.child(first, 0) == self.child(second, 0)
            and self.program.nodes[first].operation != EQUAL_TO
            and self.program.nodes[second].operation != EQUAL_TO
        )

    cdef int interval(self, int first, int second, int on_true, int on_false, int on_unknown) except -10:
        """NUMBER of one comparison, or of two at once (second >= 0)."""
        cdef int at = self.add_leaf(NUMBER, first, on_true, on_false, on_unknown)
        cdef Leaf* leaf = &self.program.leaves[at]
        cdef Node* nodes = self.program.nodes
        self.read_slot(at, self.child(first, 0))
        leaf.relation = nodes[first].operation - EQUAL_TO
        leaf.constant = nodes[self.child(first, 1)].constant
        leaf.low = leaf.real_low = INT64_MIN
        leaf.high = leaf.real_high = INT64_MAX
        narrow(leaf, leaf.relation, &leaf.constant)
        if second >= 0:
            leaf.second_relation = <uint8_t>(nodes[second].operation - EQUAL_TO)
            leaf.second = nodes[self.child(second, 1)].constant
            narrow(leaf, leaf.second_relation, &leaf.second)
        return at

    cdef int single(self, int node, int on_true, int on_false, int on_unknown) except -10:
        """A leaf for a node that is not AND, OR or NOT."""
        cdef Node* nodes = self.program.nodes
        cdef int operation = nodes[node].operation
        cdef int left = self.child(node, 0) if nodes[node].count else -1
        cdef int at
        cdef const Node* right
        cdef Leaf* leaf
        if left >= 0 and nodes[left].operation == SLOT:
            if operation == BOOLEAN_CAST:
                return self.read_slot(self.add_leaf(FLAG, node, on_true, on_false, on_unknown), left)
            if operation == NULL_TEST:
                return self.read_slot(self.add_leaf(ABSENT, node, on_true, on_false, on_unknown), left)
            if operation == LIKE_MATCH:
                at = self.read_slot(self.add_leaf(PATTERN, node, on_true, on_false, on_unknown), left)
                leaf = &self.program.leaves[at]
                leaf.pattern = nodes[node].like
                if is_prefix(leaf.pattern):
                    leaf.kind = PREFIX
                    leaf.constant.type = STRING
                    leaf.constant.encoding = LATIN1
                    leaf.constant.length = leaf.pattern.segments[0].count
                    leaf.constant.payload.text = leaf.pattern.segments[0].bytes
                return at
            if operation == MEMBER:
                at = self.read_slot(self.add_leaf(TEXTS, node, on_true, on_false, on_unknown), left)
                self.program.leaves[at].count = nodes[node].count
                self.program.leaves[at].texts = self.narrow_texts(nodes[node].texts, nodes[node].count)
                return at
            if self.against_number(node):
                return self.interval(node, -1, on_true, on_false, on_unknown)
            if EQUAL_TO <= operation <= GREATER_OR_EQUAL:
                right = &nodes[self.child(node, 1)]
                if right.operation == CONSTANT:
                    at = self.add_leaf(BY_RULE, node, on_true, on_false, on_unknown)
                    self.read_slot(at, left)
                    self.program.leaves[at].relation = operation - EQUAL_TO
                    self.program.leaves[at].constant = right.constant
                    if right.constant.type == STRING:
                        self.program.leaves[at].constant = self.narrow_texts(&right.constant, 1)[0]
                        if operation == EQUAL_TO and nodes[node].rules != CONVERT_TEXT:
                            self.program.leaves[at].kind = TEXT
                    if right.constant.type == BOOLEAN and right.constant.payload.integer and operation == EQUAL_TO:
                        if nodes[node].rules == EXACT_TYPES:
                            self.program.leaves[at].kind = FLAG
                    return at
        if EQUAL_TO <= operation <= GREATER_OR_EQUAL and nodes[node].rules == EXACT_TYPES and (
            nodes[left].operation >= SUM or nodes[self.child(node, 1)].operation >= SUM
        ):
            return self.arithmetic(node, on_true, on_false, on_unknown)
        return self.general(GENERAL, node, 0, on_true, on_false, on_unknown)

    cdef int arithmetic(self, int node, int on_true, int on_false, int on_unknown) except -10:
        """A comparison of computed numbers; GENERAL if operands may be other than numbers."""
        cdef int at = self.general(GENERAL, node, 0, on_true, on_false, on_unknown)
        cdef Node* nodes = self.program.nodes
        cdef list order = []
        cdef const Node* right = &nodes[self.child(node, 1)]
        cdef Leaf* leaf = &self.program.leaves[at]
        cdef bint bounded = right.operation == CONSTANT and right.constant.type in (INT, LONG, DOUBLE)
        cdef int i
        if self.stack_order(self.child(node, 0), 0, order) == 0:
            return at
        if not bounded and self.stack_order(self.child(node, 1), 1, order) == 0:
            return at
        leaf.kind = ARITHMETIC
        leaf.relation = nodes[node].operation - EQUAL_TO
        leaf.both_sides = not bounded
        if bounded:
            leaf.low = leaf.real_low = INT64_MIN
            leaf.high = leaf.real_high = INT64_MAX
            narrow(leaf, leaf.relation, &right.constant)
        leaf.step_count = <int32_t>len(order)
        leaf.steps = <StackStep*>self.program.take(len(order) * sizeof(StackStep))
        for i in range(len(order)):
            right = &nodes[<int>order[i]]
            leaf.steps[i].operation = right.operation
            leaf.steps[i].constant = right.constant
            leaf.steps[i].access.slot = right.slot
        return at

    cdef int stack_order(self, int node, int below, list order) except -1:
        """Append an expression's nodes in postfix order; returns the stack height that it needs above the ``below``
        values on the stack, or 0 if it is not purely numeric or needs too much.
        """
        cdef const Node* here = &self.program.nodes[node]
        cdef int height = 1
        cdef int i, needed
        if below >= STACK:
            return 0
        if here.operation == CONSTANT:
            if here.constant.type not in (INT, LONG, DOUBLE):
                return 0
        elif SUM <= here.operation <= MINUS:
            for i in range(here.count):
                needed = self.stack_order(self.child(node, i), below + i, order)
                if needed == 0:
                    return 0
                height = max(height, i + needed)
        elif here.operation != SLOT:
            return 0
        order.append(node)
        return height

    cdef int general(self, int kind, int node, int first, int on_true, int on_false, int on_unknown) except -10:
        cdef int at = self.add_leaf(kind, node, on_true, on_false, on_unknown)
        cdef set read = set()
        cdef int i
        cdef Leaf* leaf = &self.program.leaves[at]
        leaf.relation = first
        self.slots_below(node, first, read)
        leaf.count = <int32_t>len(read)
        leaf.slots = <int32_t*>self.program.take(max(1, len(read)) * sizeof(int32_t))
        for i, slot in enumerate(sorted(read)):
            leaf.slots[i] = slot
        return at

    cdef int slots_below(self, int node, int first, set read) except -1:
        cdef const Node* here = &self.program.nodes[node]
        cdef int i
        if here.operation == SLOT:
            read.add(here.slot)
        for i in range(first, arity(here)):
            self.slots_below(self.child(node, i), 0, read)
        return 0

    cdef Value* narrow_texts(self, const Value* texts, int count) except NULL:
        """The same strings, as LATIN1 if possible."""
        cdef Value* values = <Value*>self.program.take(count * sizeof(Value))
        cdef bytes encoded
        cdef int i
        for i in range(count):
            values[i] = texts[i]
            if is_ascii(&texts[i]):
                values[i].encoding = LATIN1
                continue
            source = (<const char*>texts[i].payload.text)[: texts[i].length].decode("utf-8", "surrogatepass")
            if all([ord(point) < 256 for point in source]):
                encoded = source.encode("latin-1")
                self.program.owned.append(encoded)
                values[i].encoding = LATIN1
                values[i].length = <uint32_t>len(encoded)
                values[i].payload.text = <const char*>encoded
        return values

    cdef int finish(self) except -1:
        """Reverse the leaves, so that jumps go forward, and set how they find their slots."""
        cdef Program program = self.program
        cdef Leaf* leaf
        cdef Leaf swapped
        cdef Scratch scratch
        cdef int i, k, last
        memset(&scratch, 0, sizeof(Scratch))
        last = program.leaf_count - 1
        for i in range(program.leaf_count // 2):
            swapped = program.leaves[i]
            program.leaves[i] = program.leaves[last - i]
            program.leaves[last - i] = swapped
        program.accesses = <Access*>allocate_zeros(program.leaf_count + 1, sizeof(Access))
        for i in range(program.leaf_count):
            leaf = &program.leaves[i]
            for k in range(3):
                if leaf.next[k] >= 0:
                    leaf.next[k] = last - leaf.next[k]
            leaf.access = &program.accesses[i]
            leaf.access.slot = leaf.slot
            self.bind(leaf.access)
            for k in range(leaf.step_count):
                self.bind(&leaf.steps[k].access)
            if leaf.slot >= 0:
                leaf.absent = <uint8_t>leaf_truth(leaf, &program.defaults[leaf.slot], &scratch)
        free_scratch(&scratch)
        if program.start >= 0:
            program.start = last - program.start
        return 0

    cdef int bind(self, Access* access) except -1:
        """Set how a slot is found in a message."""
        access.place = NO_SLOT
        access.pause = 1
        if access.slot >= 0:
            name = self.program.names[access.slot]
            access.name = <PyObject*>name
            access.hash = hash(name)
            access.header = self.program.headers[access.slot]
        return 0


cdef bint is_ascii(const Value* text) noexcept nogil:
    """Whether a UTF8 string has the same bytes in LATIN1."""
    cdef uint32_t i
    for i in range(text.length):
        if (<const uint8_t*>text.payload.text)[i] >= 128:
            return False
    return True


cdef bint is_prefix(const Pattern* pattern) noexcept nogil:
    """Whether the pattern is an ASCII string followed by %."""
    return pattern.plain and pattern.count == 1 and not pattern.open_start and pattern.open_end


cdef void narrow(Leaf* leaf, int relation, const Value* constant) noexcept nogil:
    narrow_keys(&leaf.low, &leaf.high, relation, constant, False)
    narrow_keys(&leaf.real_low, &leaf.real_high, relation, constant, True)


cdef int lay_leaves(Program program) except -1:
    cdef Leaves leaves = Leaves()
    leaves.program = program
    program.start = leaves.jump(program.root, ACCEPT, REJECT, REJECT, not program.every_text)
    return leaves.finish()


cdef bint is_plain(Program program) noexcept:
    cdef int i
    for i in range(program.leaf_count):
        if program.leaves[i].kind == REST:
            return False
    return True


cdef Program plain_program(Program program):
    cdef Leaves leaves = Leaves()
    cdef Program plain = Program()
    plain.nodes, plain.children = program.nodes, program.children
    plain.names, plain.headers, plain.defaults = program.names, program.headers, program.defaults
    plain.size, plain.root = program.size, program.root
    plain.every_text, plain.needs_gil = program.every_text, program.needs_gil
    plain.owned = [program]
    plain.borrows = True
    leaves.program = plain
    leaves.plain = True
    plain.start = leaves.jump(plain.root, ACCEPT, REJECT, REJECT, not plain.every_text)
    leaves.finish()
    return plain
