# cython: freethreading_compatible=True
"""See program.pxd."""

from cpython.object cimport PyObject, PyObject_Hash
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.unicode cimport PyUnicode_AsUTF8String
from libc.math cimport INFINITY, NAN
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from pyengine._engine.evaluation cimport match_node, rest_truth, truth_of
from pyengine._engine.header cimport fresh_header, header_code
from pyengine._engine.like cimport Pattern, compile_pattern, free_pattern
from pyengine._engine.tree cimport (
    ADD,
    AND,
    BETWEEN,
    CAST,
    CONTAINS,
    EQUAL,
    FUNCTION,
    GREATER_EQUAL,
    IN,
    IS_NOT_NULL,
    IS_NULL,
    LIKE,
    LITERAL,
    NEGATE,
    NOT,
    NOT_BETWEEN,
    NOT_CONTAINS,
    NOT_ENDS_WITH,
    NOT_EQUAL,
    NOT_IN,
    NOT_LIKE,
    NOT_STARTS_WITH,
    OR,
    PROPERTY,
    REMAINDER,
    XPATH,
    XQUERY,
    Term,
    Tree,
)
from pyengine._engine.value cimport (
    BIG_DECIMAL,
    BOOLEAN,
    BOOLEAN_AGAINST_TEXT,
    CONVERT_OR_RAISE,
    CONVERT_TEXT,
    DOUBLE,
    DOUBLE_AGAINST_FLOAT,
    EXACT_TYPES,
    FALSE,
    FUNCTION_FAILED,
    INT,
    IS_EQUAL,
    IS_GREATER_OR_EQUAL,
    IS_LESS,
    IS_LESS_OR_EQUAL,
    LATIN1,
    LONG,
    NEGATED_BYTE_OR_SHORT,
    NO_MEMORY,
    NOT_A_NUMBER_TEXT,
    NOT_COMPUTABLE,
    NULL_VALUE,
    ORDERED_OBJECT,
    RAISED,
    STRING,
    TRUE,
    UNKNOWN,
    UTF8,
    Scratch,
    Value,
    compare,
    free_scratch,
    negate,
    order_key,
    python_value,
    read_value,
)

from pyengine.errors import InvalidSelectorError, SelectorEvaluationError

cdef extern from *:
    void PyUnicode_InternInPlace(PyObject** text) noexcept
    bint is_ascii_text "PyUnicode_IS_COMPACT_ASCII"(PyObject* source) noexcept

cdef dict PROBLEMS = {
    DOUBLE_AGAINST_FLOAT: "a double on the left cannot be compared with a float on the right",
    ORDERED_OBJECT: "a list or map cannot be ordered with <, <=, > or >=",
    BOOLEAN_AGAINST_TEXT: "a boolean on the left cannot be compared with text on the right",
    NOT_A_NUMBER_TEXT: "text that is not a number of the type asked for",
    NOT_COMPUTABLE: "arithmetic on a value that is not a number",
    NEGATED_BYTE_OR_SHORT: "a byte or short cannot be negated",
    NO_MEMORY: "out of memory",
}


cdef object raised_error(Program program, Scratch* scratch, object row):
    cdef object error
    if scratch.problem == NO_MEMORY:
        return MemoryError()
    if scratch.problem != FUNCTION_FAILED:
        return SelectorEvaluationError(program.text, PROBLEMS[scratch.problem], row)
    error = <object>scratch.error
    if isinstance(error, SelectorEvaluationError):
        return SelectorEvaluationError(program.text, error.problem, row)
    return error


cdef class Program:
    def __dealloc__(self):
        cdef int i
        cdef void* block = self.blocks
        cdef void* next_block
        if self.nodes is not NULL:
            for i in range(self.size):
                free_pattern(self.nodes[i].like)
        while block is not NULL:
            next_block = (<void**>block)[0]
            free(block)
            block = next_block
        free(self.nodes)
        free(self.children)
        free(self.leaves)

    def __reduce__(self):
        raise TypeError("a Program is compiled from text: ship the Selector")

    def _check(self):
        """The invariants of program.pxd; AssertionError where one is broken."""
        cdef int i, k
        cdef Leaf* leaf
        assert len(set(self.names)) == len(self.names)
        for i in range(self.size):
            for k in range(self.nodes[i].first, self.nodes[i].first + arity(&self.nodes[i])):
                assert 0 <= self.children[k] < i
        for i in range(self.leaf_count):
            leaf = &self.leaves[i]
            for k in range(3):
                assert leaf.next[k] in (ACCEPT, REJECT) or i < leaf.next[k] < self.leaf_count
            if leaf.kind < GENERAL:
                assert leaf.access.name == <PyObject*>self.names[leaf.access.slot]
            for k in range(leaf.step_count):
                if leaf.steps[k].operation == SLOT:
                    assert leaf.steps[k].access.name == <PyObject*>self.names[leaf.steps[k].access.slot]

    cdef void* take(self, size_t size) except NULL:
        """Zeroed memory that lives as long as the program."""
        cdef void** block = <void**>calloc(1, sizeof(void*) + size)
        if block is NULL:
            raise MemoryError()
        block[0] = self.blocks
        self.blocks = block
        return block + 1


cdef int arity(const Node* node) noexcept nogil:
    """Children of a node; the count of a text test is that of its texts."""
    if MEMBER <= node.operation <= ENDS_WITH_TEXT and node.operation != LIKE_MATCH:
        return 1
    return node.count


cdef int evaluate_values(Program program, const Value* values, void* body, Scratch* scratch) noexcept nogil:
    return truth_of(program.nodes, program.children, program.root, values, body, scratch)


cdef int node_truth(Program program, int node, const Value* values, void* body, Scratch* scratch) noexcept nogil:
    return truth_of(program.nodes, program.children, node, values, body, scratch)


cdef int general_truth(
    Program program, const Leaf* leaf, const Value* values, void* body, Scratch* scratch
) noexcept nogil:
    if leaf.kind == REST:
        return rest_truth(program.nodes, program.children, leaf.node, leaf.relation, values, body, scratch)
    return truth_of(program.nodes, program.children, leaf.node, values, body, scratch)


cdef int match_values(Program program, const Value* values, void* body, Scratch* scratch) noexcept nogil:
    cdef int at = program.start
    cdef int truth
    cdef const Leaf* leaf
    while at >= 0:
        leaf = &program.leaves[at]
        if leaf.kind >= GENERAL:
            truth = general_truth(program, leaf, values, body, scratch)
        else:
            truth = leaf_truth(leaf, &values[leaf.access.slot], scratch)
        if truth == RAISED:
            return RAISED
        at = leaf.next[truth]
    return at == ACCEPT


def match_and_tree(Program program not None, list values):
    """matches() by leaves and by nodes, as Truth numbers; for tests. values: Python values by slot."""
    cdef Value* row = <Value*>calloc(max(1, len(values)), sizeof(Value))
    cdef Scratch scratch
    cdef int i
    memset(&scratch, 0, sizeof(Scratch))
    if row is NULL:
        raise MemoryError()
    try:
        for i in range(len(values)):
            read_value(values[i], &row[i], program.names[i], True)
        return (
            match_values(program, row, NULL, &scratch),
            match_node(program.nodes, program.children, program.root, row, NULL, &scratch)
            if not program.every_text
            else truth_of(program.nodes, program.children, program.root, row, NULL, &scratch) % 2,
        )
    finally:
        free(row)
        free_scratch(&scratch)


# ---- lowering

cdef class Compiler:
    """One compilation: grows the program's nodes, then its leaves from the last to the first."""
    cdef Program program
    cdef dict slots            # name -> slot
    cdef dict properties       # name -> node
    cdef int node_room
    cdef int child_count
    cdef int child_room
    cdef int leaf_room
    cdef uint8_t rules

    cdef int add_node(self, int operation, tuple below) except -1:
        """A node over the nodes ``below``."""
        cdef Program program = self.program
        cdef Node* node
        cdef const Node* child
        cdef void* grown
        cdef int i
        if program.size == self.node_room:
            self.node_room = max(16, 2 * self.node_room)
            grown = realloc(program.nodes, self.node_room * sizeof(Node))
            if grown is NULL:
                raise MemoryError()
            program.nodes = <Node*>grown
        if self.child_count + len(below) > self.child_room:
            self.child_room = max(16, 2 * self.child_room + <int>len(below))
            grown = realloc(program.children, self.child_room * sizeof(int32_t))
            if grown is NULL:
                raise MemoryError()
            program.children = <int32_t*>grown
        node = &program.nodes[program.size]
        memset(node, 0, sizeof(Node))
        node.operation = <uint8_t>operation
        node.rules = self.rules
        node.count = <int32_t>len(below)
        node.first = self.child_count
        node.slot = -1
        node.boolean = BOTH <= operation <= ENDS_WITH_TEXT
        for i in range(len(below)):
            program.children[self.child_count + i] = below[i]
            child = &program.nodes[program.children[self.child_count + i]]
            node.needs_gil |= child.needs_gil
            node.can_raise = max(node.can_raise, child.can_raise)
        if operation >= CALL:
            node.needs_gil = 1
        node.can_raise = max(node.can_raise, self.own_raising(node))
        self.child_count += <int>len(below)
        program.size += 1
        return program.size - 1

    cdef int own_raising(self, const Node* node) except -1:
        """can_raise of the operation itself, whatever its operands do."""
        cdef const Node* nodes = self.program.nodes
        cdef const Node* left
        cdef const Node* right
        cdef bint left_known, right_known
        if node.operation == CALL or SUM <= node.operation <= MINUS:
            return 2
        if not EQUAL_TO <= node.operation <= GREATER_OR_EQUAL:
            return 0
        left = &nodes[self.program.children[node.first]]
        right = &nodes[self.program.children[node.first + 1]]
        left_known = left.operation == CONSTANT or left.boolean
        right_known = right.operation == CONSTANT or right.boolean
        if left_known and right_known:
            return 2 if self.rules != EXACT_TYPES else 0
        if node.rules == CONVERT_OR_RAISE:
            return 2
        if not right_known and (not left_known or left.constant.type == DOUBLE):
            return 2
        if node.rules == CONVERT_TEXT and (right.constant.type == STRING or not right_known):
            return 2
        return 0 if node.operation == EQUAL_TO else 1

    cdef int constant(self, object value, int java_type) except -1:
        cdef int node = self.add_node(CONSTANT, ())
        cdef Value* into = &self.program.nodes[node].constant
        if java_type == BIG_DECIMAL:
            self.text(str(value), into)
            into.type = BIG_DECIMAL
        elif java_type == STRING:
            self.text(value, into)
        elif value is None:
            into.type = NULL_VALUE
        elif java_type == BOOLEAN:
            into.type = BOOLEAN
            into.payload.integer = bool(value)
        elif java_type == DOUBLE:
            into.type = DOUBLE
            into.payload.real = value
        else:
            into.type = <uint8_t>java_type
            into.payload.integer = value
        self.program.nodes[node].boolean = value is None or java_type == BOOLEAN
        return node

    cdef int text(self, str source, Value* into) except -1:
        """A text constant as UTF8; a surrogate pair is its code point."""
        cdef bytes encoded
        if is_ascii_text(<PyObject*>source):
            encoded = PyUnicode_AsUTF8String(source)
        else:
            encoded = source.encode("utf-16-le", "surrogatepass")
            encoded = encoded.decode("utf-16-le", "surrogatepass").encode("utf-8", "surrogatepass")
        self.program.owned.append(encoded)
        into.type = STRING
        into.encoding = UTF8
        into.length = <uint32_t>len(encoded)
        into.payload.text = <const char*>encoded
        return 0

    cdef int take_texts(self, int node, object sources) except -1:
        """Distinct text constants in UTF-16 order, as the node's."""
        cdef set distinct = set(sources)
        cdef list ordered
        cdef Value* values
        cdef bint plain = True
        cdef int i
        for source in distinct:
            plain = plain and is_ascii_text(<PyObject*>source)
        if plain:
            ordered = sorted(distinct)
        else:
            ordered = sorted({source.encode("utf-16-be", "surrogatepass") for source in distinct})
            ordered = [source.decode("utf-16-be", "surrogatepass") for source in ordered]
        values = <Value*>self.program.take(len(ordered) * sizeof(Value))
        for i in range(len(ordered)):
            self.text(ordered[i], &values[i])
        self.program.nodes[node].texts = values
        self.program.nodes[node].count = <int32_t>len(ordered)
        return 0

    cdef int slot_of(self, str name) except -1:
        cdef object slot = self.slots.get(name)
        cdef PyObject* interned = <PyObject*>name
        if slot is None:
            Py_INCREF(name)
            PyUnicode_InternInPlace(&interned)
            name = <str>interned
            Py_DECREF(name)
            slot = self.slots[name] = len(self.slots)
        return slot

    cdef int lower(self, Term term) except -1:
        """The node of a term."""
        cdef int kind = term.kind
        cdef int node, other
        cdef tuple terms = term.terms
        cdef tuple below
        cdef Node* made
        if kind == PROPERTY:
            found = self.properties.get(term.value)
            if found is not None:
                return found
            node = self.add_node(SLOT, ())
            self.program.nodes[node].slot = self.slot_of(term.value)
            self.properties[term.value] = node
            return node
        if kind == LITERAL:
            return self.constant(term.value, term.java_type)
        if kind == XQUERY:
            return self.constant(False, BOOLEAN)
        if kind == BETWEEN or kind == NOT_BETWEEN:
            node = self.lower(terms[0])
            other = self.lower(terms[1])
            below = (
                self.add_node(GREATER_OR_EQUAL if kind == BETWEEN else LESS_THAN, (node, other)),
                self.add_node(LESS_OR_EQUAL if kind == BETWEEN else GREATER_THAN, (node, self.lower(terms[2]))),
            )
            return self.add_node(BOTH if kind == BETWEEN else EITHER, below)
        below = tuple([self.lower(part) for part in terms])
        if kind == AND or kind == OR:
            return self.add_node(BOTH if kind == AND else EITHER, below)
        if kind == NOT:
            return self.add_node(NEGATION, below)
        if kind == CAST:
            return self.add_node(BOOLEAN_CAST, below)
        if kind == NOT_EQUAL:
            return self.add_node(NEGATION, (self.add_node(EQUAL_TO, below),))
        if kind == EQUAL:
            return self.add_node(EQUAL_TO, below)
        if EQUAL < kind <= GREATER_EQUAL:
            return self.add_node(LESS_THAN + kind - NOT_EQUAL - 1, below)
        if kind == IS_NULL:
            return self.add_node(NULL_TEST, below)
        if kind == IS_NOT_NULL:
            return self.add_node(NEGATION, (self.add_node(NULL_TEST, below),))
        if kind == NEGATE:
            return self.minus(below)
        if ADD <= kind <= REMAINDER:
            return self.add_node(SUM + kind - ADD, below)
        if kind == LIKE or kind == NOT_LIKE:
            node = self.add_node(LIKE_MATCH, below)
            try:
                self.program.nodes[node].like = compile_pattern(term.value[0], term.value[1])
            except ValueError as error:
                raise InvalidSelectorError(self.program.text, term.position, str(error)) from None
            return node if kind == LIKE else self.add_node(NEGATION, (node,))
        if kind == IN or kind == NOT_IN:
            node = self.add_node(MEMBER, below)
            self.take_texts(node, term.value)
            made = &self.program.nodes[node]
            made.negated = kind == NOT_IN
            made.slot = self.program.nodes[<int>below[0]].slot
            return node
        if CONTAINS <= kind:
            node = self.add_node(CONTAINS_TEXT + (kind - CONTAINS) // 2, below)
            self.take_texts(node, (term.value,))
            made = &self.program.nodes[node]
            made.negated = kind == NOT_CONTAINS or kind == NOT_STARTS_WITH or kind == NOT_ENDS_WITH
            return node
        return self.call(term, below)

    cdef int minus(self, tuple below) except -1:
        """A negated number literal is a constant; anything else is negated on the message."""
        cdef Node* operand = &self.program.nodes[<int>below[0]]
        cdef int java_type = operand.constant.type
        cdef Value negated
        cdef Scratch scratch
        cdef int node
        if operand.operation != CONSTANT or not (INT <= java_type <= DOUBLE or java_type == BIG_DECIMAL):
            return self.add_node(MINUS, below)
        memset(&scratch, 0, sizeof(Scratch))
        negate(&operand.constant, &negated, &scratch)
        try:
            number = python_value(&negated)
        finally:
            free_scratch(&scratch)
        node = self.constant(int(number) if negated.type == LONG else number, negated.type)
        return node

    cdef int call(self, Term term, tuple below) except -1:
        """FUNCTION or XPATH."""
        cdef int node = self.add_node(CALL if term.kind == FUNCTION else DOCUMENT, below)
        cdef object target = term.value
        if term.kind == XPATH:
            from pyengine._engine import xpath

            target = xpath.compile_path(term.value)
            self.program.reads_body = True
            self.program.nodes[node].boolean = True
        else:
            self.program.nodes[node].boolean = term.value in ("INLIST", "REGEX")
        self.program.owned.append(target)
        self.program.nodes[node].call = <PyObject*>target
        return node

    # ---- leaves

    cdef int add_leaf(self, int kind, int node, int on_true, int on_false, int on_unknown) except -1:
        """A leaf in front of those made so far; indexes count from the last leaf until ``finish``."""
        cdef Program program = self.program
        cdef Leaf* leaf
        cdef void* grown
        if program.leaf_count == self.leaf_room:
            self.leaf_room = max(8, 2 * self.leaf_room)
            grown = realloc(program.leaves, self.leaf_room * sizeof(Leaf))
            if grown is NULL:
                raise MemoryError()
            program.leaves = <Leaf*>grown
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
        leaf.access.slot = NO_SLOT
        program.leaf_count += 1
        return program.leaf_count - 1

    cdef int read_slot(self, int leaf, int node) except -1:
        self.program.leaves[leaf].access.slot = self.program.nodes[node].slot
        return leaf

    cdef int child(self, int node, int which) noexcept:
        return self.program.children[self.program.nodes[node].first + which]

    cdef bint rest_raises(self, int node, int first) noexcept:
        cdef int i
        for i in range(first, self.program.nodes[node].count):
            if self.program.nodes[self.child(node, i)].can_raise:
                return True
        return False

    cdef int jump(self, int node, int on_true, int on_false, int on_unknown, bint matching) except -10:
        """The leaf at which to start for ``node``'s truth to end at one of the three targets.

        matching: as matches() asks, which takes unknown for false at once; else as evaluate() does, which goes on for
        the errors that may follow. on_unknown is on_true or on_false, but for a REST.
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
        """Two comparisons of one slot with numbers, of which the second raises nothing that the first does not."""
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
        """A leaf for a node that is no AND, OR, NOT."""
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
        """A comparison of numbers that are computed; GENERAL where they are more than numbers."""
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
        """Append the nodes of an expression in the order of a stack machine; returns the height it needs above the
        ``below`` values that lie there, or 0 if it is not numbers alone or too high.
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
        """The same texts, LATIN1 where they can be."""
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
        """Turns the leaves round, so that jumps go forward, and fills in what depends on slots."""
        cdef Program program = self.program
        cdef Leaf* leaf
        cdef Leaf swapped
        cdef Scratch scratch
        cdef int i, k, last
        memset(&scratch, 0, sizeof(Scratch))
        program.names = tuple(self.slots)
        program.defaults = <Value*>program.take(max(1, len(self.slots)) * sizeof(Value))
        program.headers = <int32_t*>program.take(max(1, len(self.slots)) * sizeof(int32_t))
        if not program.every_text:
            for i in range(len(self.slots)):
                program.headers[i] = header_code(program.names[i])
                if program.headers[i]:
                    fresh_header(program.headers[i], &program.defaults[i])
        last = program.leaf_count - 1
        for i in range(program.leaf_count // 2):
            swapped = program.leaves[i]
            program.leaves[i] = program.leaves[last - i]
            program.leaves[last - i] = swapped
        for i in range(program.leaf_count):
            leaf = &program.leaves[i]
            for k in range(3):
                if leaf.next[k] >= 0:
                    leaf.next[k] = last - leaf.next[k]
            self.bind(&leaf.access)
            for k in range(leaf.step_count):
                self.bind(&leaf.steps[k].access)
            if leaf.access.slot >= 0:
                leaf.absent = <uint8_t>leaf_truth(leaf, &program.defaults[leaf.access.slot], &scratch)
        free_scratch(&scratch)
        if program.start >= 0:
            program.start = last - program.start
        return 0

    cdef int bind(self, Access* access) except -1:
        """Fill in how a slot is found."""
        access.place = NO_SLOT
        access.pause = 1
        if access.slot >= 0:
            name = self.program.names[access.slot]
            access.name = <PyObject*>name
            access.hash = PyObject_Hash(name)
            access.header = self.program.headers[access.slot]
        return 0


cdef bint is_ascii(const Value* text) noexcept nogil:
    """Whether a text in UTF8 is the same in LATIN1."""
    cdef uint32_t i
    for i in range(text.length):
        if (<const uint8_t*>text.payload.text)[i] >= 128:
            return False
    return True


cdef bint is_prefix(const Pattern* pattern) noexcept nogil:
    """A text, all of it below 128, and then %."""
    return pattern.plain and pattern.count == 1 and not pattern.open_start and pattern.open_end


cdef double real_of_key(int64_t key) noexcept nogil:
    """The inverse of order_key; a key beyond the infinities is NaN."""
    cdef double value
    cdef int64_t bits = key ^ (<int64_t>(<uint64_t>(key >> 63) >> 1))
    memcpy(&value, &bits, 8)
    return value


cdef bint accepts(int relation, const Value* constant, bint real, int64_t key) noexcept nogil:
    """Long (or, if real, the Double of that order_key) ``relation`` constant."""
    cdef Value value
    cdef Scratch scratch
    value.type = DOUBLE if real else LONG
    if real:
        value.payload.real = real_of_key(key)
    else:
        value.payload.integer = key
    return compare(relation, &value, constant, EXACT_TYPES, &scratch) == TRUE


cdef int64_t edge_of(int relation, const Value* constant, bint real, int64_t inside, int64_t outside) noexcept nogil:
    """The last accepted key on the way from ``inside``, which is accepted, to ``outside``."""
    cdef int64_t step = 1 if inside < outside else -1
    cdef int64_t middle
    cdef int64_t guess = 0
    cdef double near = <double>constant.payload.integer
    cdef int i
    if accepts(relation, constant, real, outside):
        return outside
    if constant.type == DOUBLE:
        near = constant.payload.real
    if real:
        guess = order_key(near)
    elif constant.type != DOUBLE:
        guess = constant.payload.integer
    elif -1e15 < near < 1e15:
        guess = <int64_t>near
    # The edge is at the constant or beside it, nearly always; the search below is right wherever it is.
    for i in range(-1, 2):
        middle = guess + i
        if min(inside, outside) < middle < max(inside, outside) and accepts(relation, constant, real, middle):
            if not accepts(relation, constant, real, middle + step):
                return middle
    while True:
        middle = (inside & outside) + ((inside ^ outside) >> 1)
        if middle == inside or middle == outside:
            break
        if accepts(relation, constant, real, middle):
            inside = middle
        else:
            outside = middle
    return inside


cdef void narrow_keys(int64_t* low, int64_t* high, int relation, const Value* constant, bint real) noexcept nogil:
    """The keys in [low, high] that stand in the relation to the constant, again an interval."""
    cdef int64_t least = order_key(-INFINITY) if real else INT64_MIN
    cdef int64_t most = order_key(NAN) if real else INT64_MAX
    cdef bint downward = relation == IS_LESS or relation == IS_LESS_OR_EQUAL
    if relation == IS_EQUAL:
        narrow_keys(low, high, IS_LESS_OR_EQUAL, constant, real)
        narrow_keys(low, high, IS_GREATER_OR_EQUAL, constant, real)
    elif not accepts(relation, constant, real, least if downward else most):
        low[0] = INT64_MAX
        high[0] = INT64_MIN
    elif downward:
        high[0] = min(high[0], edge_of(relation, constant, real, least, most))
    else:
        low[0] = max(low[0], edge_of(relation, constant, real, most, least))


cdef void narrow(Leaf* leaf, int relation, const Value* constant) noexcept nogil:
    narrow_keys(&leaf.low, &leaf.high, relation, constant, False)
    narrow_keys(&leaf.real_low, &leaf.real_high, relation, constant, True)


cdef Program compile_tree(Tree tree):
    cdef Compiler compiler = Compiler()
    cdef Program program = Program()
    program.text = tree.text
    program.dialect = tree.dialect
    program.every_text = tree.dialect == "rocketmq"
    program.owned = []
    compiler.program = program
    compiler.slots = {}
    compiler.properties = {}
    compiler.rules = CONVERT_OR_RAISE if program.every_text else CONVERT_TEXT if tree.convert else EXACT_TYPES
    program.root = compiler.lower(tree.root)
    program.needs_gil = program.nodes[program.root].needs_gil
    program.start = compiler.jump(program.root, ACCEPT, REJECT, REJECT, not program.every_text)
    compiler.finish()
    return program
