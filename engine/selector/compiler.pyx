# cython: freethreading_compatible=True
"""See compiler.pxd."""

cimport cython

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.unicode cimport PyUnicode_AsUTF8String
from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memset

from pyengine._engine.lowlevel.memory cimport allocate_zeros, resize, try_resize
from pyengine._engine.java.arithmetic cimport negate
from pyengine._engine.message.header cimport fresh_header, header_code
from pyengine._engine.selector.leaf_compiler cimport lay_leaves
from pyengine._engine.selector.interpreter cimport Regex
from pyengine._engine.selector.like cimport compile_pattern
from pyengine._engine.selector.program cimport (
    BOOLEAN_CAST, BOTH, CALL, CONSTANT, CONTAINS_TEXT, DOCUMENT, EITHER, ENDS_WITH_TEXT, EQUAL_TO, GREATER_OR_EQUAL,
    GREATER_THAN, LESS_OR_EQUAL, LESS_THAN, LIKE_MATCH, MEMBER, MINUS, NEGATION, NULL_TEST, SLOT, SUM,
    Leaf, Node, Program,
)
from pyengine._engine.java.strings cimport Needle, count_units, make_needle, utf8_of
from pyengine._engine.selector.ast cimport (
    ADD, AND, BETWEEN, CAST, CONTAINS, EQUAL, FUNCTION, GREATER_EQUAL, IN, IS_NOT_NULL, IS_NULL, LIKE, LITERAL, NEGATE,
    NOT, NOT_BETWEEN, NOT_CONTAINS, NOT_ENDS_WITH, NOT_EQUAL, NOT_IN, NOT_LIKE, NOT_STARTS_WITH, OR, PROPERTY,
    REMAINDER, XPATH, XQUERY, Term, Tree,
)
from pyengine._engine.java.value cimport (
    BIG_DECIMAL, BOOLEAN, CONVERT_OR_RAISE, CONVERT_TEXT, DOUBLE, EXACT_TYPES, INT, LONG, NULL_VALUE, STRING, UTF8,
    Scratch, Value, free_scratch, python_value,
)

from pyengine.errors import InvalidSelectorError

cdef extern from *:
    void PyUnicode_InternInPlace(PyObject** text) noexcept
    bint is_ascii_text "PyUnicode_IS_COMPACT_ASCII"(PyObject* source) noexcept


@cython.final
@cython.no_gc           # of names alone
cdef class Slots:
    """The names that a program reads, and their values in a message without them: shared by programs of equal names."""

    cdef tuple names
    cdef Value* defaults
    cdef int32_t* headers

    def __dealloc__(self):
        free(self.defaults)
        free(self.headers)


cdef enum:
    SHARED = 256            # lists of names that are kept for the next program; a program keeps its own beyond that

cdef dict shared_slots = {}


cdef Slots slots_of(tuple names, bint every_text):
    cdef object key = (names, every_text)
    cdef Slots slots = shared_slots.get(key)
    cdef int i
    if slots is not None:
        return slots
    slots = Slots.__new__(Slots)
    slots.names = names
    slots.defaults = <Value*>allocate_zeros(max(1, len(names)), sizeof(Value))
    slots.headers = <int32_t*>allocate_zeros(max(1, len(names)), sizeof(int32_t))
    if not every_text:
        for i in range(<int>len(names)):
            slots.headers[i] = header_code(names[i])
            if slots.headers[i]:
                fresh_header(slots.headers[i], &slots.defaults[i])
    if len(shared_slots) >= SHARED:
        shared_slots.clear()
    shared_slots[key] = slots
    return slots


cdef class Lowering:
    """One compilation: appends to the program's nodes."""
    cdef Program program
    cdef dict slots            # name -> slot
    cdef dict properties       # name -> node
    cdef int node_room
    cdef int child_count
    cdef int child_room
    cdef uint8_t rules

    cdef int add_node(self, int operation, tuple below) except -1:
        """A node over the nodes ``below``."""
        cdef Program program = self.program
        cdef Node* node
        cdef const Node* child
        cdef int i
        if program.size == self.node_room:
            self.node_room = max(16, 2 * self.node_room)
            program.nodes = <Node*>resize(program.nodes, self.node_room * sizeof(Node))
        if self.child_count + len(below) > self.child_room:
            self.child_room = max(16, 2 * self.child_room + <int>len(below))
            program.children = <int32_t*>resize(program.children, self.child_room * sizeof(int32_t))
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
        """can_raise of the operation itself, without its operands."""
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
        """A string constant as UTF8."""
        cdef bytes encoded = PyUnicode_AsUTF8String(source) if is_ascii_text(<PyObject*>source) else utf8_of(source)
        self.program.owned.append(encoded)
        into.type = STRING
        into.encoding = UTF8
        into.length = <uint32_t>len(encoded)
        into.payload.text = <const char*>encoded
        return 0

    cdef int take_texts(self, int node, object sources) except -1:
        """Set the node's texts: distinct string constants in UTF-16 order."""
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
        cdef Node* built
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
            built = &self.program.nodes[node]
            built.negated = kind == NOT_IN
            built.slot = self.program.nodes[<int>below[0]].slot
            return node
        if CONTAINS <= kind:
            node = self.add_node(CONTAINS_TEXT + (kind - CONTAINS) // 2, below)
            self.take_texts(node, (term.value,))
            built = &self.program.nodes[node]
            built.negated = kind == NOT_CONTAINS or kind == NOT_STARTS_WITH or kind == NOT_ENDS_WITH
            if built.operation == CONTAINS_TEXT:
                built.needle = self.needle_of(&built.texts[0])
            return node
        return self.call(term, below)

    cdef Needle* needle_of(self, const Value* part) except NULL:
        cdef Needle* needle = <Needle*> self.program.take(sizeof(Needle))
        cdef uint32_t units = max(1, count_units(part))
        needle.units = <uint16_t*> self.program.take(units * sizeof(uint16_t))
        needle.borders = <uint32_t*> self.program.take(units * sizeof(uint32_t))
        needle.bytes = <uint8_t*> self.program.take(units)
        make_needle(part, needle)
        return needle

    cdef int minus(self, tuple below) except -1:
        """A negated number literal is a constant; other operands are negated at run time."""
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
        cdef Node* operand
        cdef object target = term.value
        if term.kind == XPATH:
            from pyengine._engine.selector import xpath

            target = xpath.compile_path(term.value)
            self.program.reads_body = True
            self.program.nodes[node].boolean = True
        else:
            self.program.nodes[node].boolean = term.value in ("INLIST", "REGEX")
            operand = &self.program.nodes[<int>below[0]] if term.value == "REGEX" else NULL
            if operand is not NULL and operand.operation == CONSTANT and operand.constant.type == STRING:
                target = Regex(python_value(&operand.constant))
        self.program.owned.append(target)
        self.program.nodes[node].call = <PyObject*>target
        return node

    cdef int finish(self) except -1:
        """Set the program's names, and their values in a message without them."""
        cdef Program program = self.program
        cdef Slots slots = slots_of(tuple(self.slots), program.every_text)
        program.names, program.defaults, program.headers = slots.names, slots.defaults, slots.headers
        program.owned.append(slots)
        return 0

    cdef int fit(self) except -1:
        """Give back the room that nothing has grown into: a large set has a program for each subscription."""
        cdef Program program = self.program
        cdef void* fitting = try_resize(program.nodes, max(1, program.size) * sizeof(Node))
        if fitting is not NULL:
            program.nodes = <Node*>fitting
        fitting = try_resize(program.children, max(1, self.child_count) * sizeof(int32_t))
        if fitting is not NULL:
            program.children = <int32_t*>fitting
        fitting = try_resize(program.leaves, max(1, program.leaf_count) * sizeof(Leaf))
        if fitting is not NULL:
            program.leaves = <Leaf*>fitting
        return 0


cdef Program compile_tree(Tree tree):
    cdef Lowering lowering = Lowering()
    cdef Program program = Program()
    program.text = tree.text
    program.dialect = tree.dialect
    program.every_text = tree.dialect == "rocketmq"
    program.owned = []
    lowering.program = program
    lowering.slots = {}
    lowering.properties = {}
    lowering.rules = CONVERT_OR_RAISE if program.every_text else CONVERT_TEXT if tree.convert else EXACT_TYPES
    program.root = lowering.lower(tree.root)
    program.needs_gil = program.nodes[program.root].needs_gil
    lowering.finish()
    lay_leaves(program)
    lowering.fit()
    return program
