# cython: freethreading_compatible=True
"""See interpreter.pxd."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memset

from pyengine._engine.lowlevel.memory cimport allocate_zeros
from pyengine._engine.java.arithmetic cimport calculate, negate
from pyengine._engine.java.comparison cimport compare
from pyengine._engine.selector.like cimport pattern_matches
from pyengine._engine.selector.program cimport (
    ACCEPT,
    BOOLEAN_CAST,
    BOTH,
    CALL,
    CONSTANT,
    CONTAINS_TEXT,
    DOCUMENT,
    EITHER,
    ENDS_WITH_TEXT,
    EQUAL_TO,
    GENERAL,
    GREATER_OR_EQUAL,
    LIKE_MATCH,
    MEMBER,
    MINUS,
    NEGATION,
    NULL_TEST,
    REST,
    SLOT,
    SUM,
    Leaf,
    Node,
    Program,
    is_member,
    leaf_truth,
)
from pyengine._engine.java.strings cimport has_needle, has_text
from pyengine._engine.java.value cimport (
    BOOLEAN,
    FALSE,
    FUNCTION_FAILED,
    IS_EQUAL,
    NULL_VALUE,
    RAISED,
    STRING,
    TRUE,
    UNKNOWN,
    Scratch,
    Value,
    free_scratch,
    java_text,
    keep_object,
    python_value,
    read_value,
)


cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)


cdef class Regex:

    def __cinit__(self, str text not None):
        self.text = text

    cdef int compile(self) except -1:
        from pyengine._engine.java.regex import cached

        pattern = cached(self.text)
        self.search = pattern.search_of("")
        self.pattern = pattern
        return 0


cdef struct Row:
    const Node* nodes
    const int32_t* children
    const Value* values
    void* body
    Scratch* scratch


cdef int combined(const Row* row, const Node* node, int first) noexcept nogil:
    """AND or OR of the children from ``first`` on."""
    cdef int stops = FALSE if node.operation == BOTH else TRUE
    cdef bint unknown = False
    cdef int i, truth
    for i in range(node.first + first, node.first + node.count):
        truth = truth_at(row, row.children[i])
        if truth == stops or truth == RAISED:
            return truth
        unknown = unknown or truth == UNKNOWN
    return UNKNOWN if unknown else TRUE if node.operation == BOTH else FALSE


cdef int compared(const Row* row, const Node* node) noexcept nogil:
    cdef Value left
    cdef Value right
    cdef int relation = node.operation - EQUAL_TO
    if node_value(row, row.children[node.first], &left) == RAISED:
        return RAISED
    if relation != IS_EQUAL and left.type == NULL_VALUE:
        return UNKNOWN
    if node_value(row, row.children[node.first + 1], &right) == RAISED:
        return RAISED
    return compare(relation, &left, &right, node.rules, row.scratch)


cdef int tested(const Row* row, const Node* node) noexcept nogil:
    """The tests of one operand: IS NULL, IN, LIKE and RocketMQ's tests of strings."""
    cdef Value value
    cdef int operation = node.operation
    if CONTAINS_TEXT <= operation <= ENDS_WITH_TEXT and node.texts[0].length == 0:
        return FALSE
    if node_value(row, row.children[node.first], &value) == RAISED:
        return RAISED
    if operation == NULL_TEST:
        return value.type == NULL_VALUE
    if operation == BOOLEAN_CAST:
        if value.type == NULL_VALUE:
            return UNKNOWN
        return value.type == BOOLEAN and value.payload.integer != 0
    if operation == LIKE_MATCH:
        if value.type == NULL_VALUE:
            return UNKNOWN
        return value.type == STRING and pattern_matches(node.like, &value)
    if operation == MEMBER:
        if value.type != STRING:
            return UNKNOWN
        return is_member(&value, node.texts, node.count) != node.negated
    if value.type != STRING:
        return FALSE
    if operation == CONTAINS_TEXT:
        return has_needle(&value, node.needle) != node.negated
    return has_text(&value, &node.texts[0], operation - CONTAINS_TEXT) != node.negated


cdef int truth_at(const Row* row, int at) noexcept nogil:
    cdef const Node* node = &row.nodes[at]
    cdef int operation = node.operation
    cdef int truth
    cdef Value value
    if operation == BOTH or operation == EITHER:
        return combined(row, node, 0)
    if operation == NEGATION:
        truth = truth_at(row, row.children[node.first])
        return truth if truth >= UNKNOWN else 1 - truth
    if EQUAL_TO <= operation <= GREATER_OR_EQUAL:
        return compared(row, node)
    if BOOLEAN_CAST <= operation <= ENDS_WITH_TEXT:
        return tested(row, node)
    if node_value(row, at, &value) == RAISED:
        return RAISED
    if value.type == NULL_VALUE:
        return UNKNOWN
    return value.type == BOOLEAN and value.payload.integer != 0


cdef int node_value(const Row* row, int at, Value* into) noexcept nogil:
    """TRUE with the value, or RAISED."""
    cdef const Node* node = &row.nodes[at]
    cdef int operation = node.operation
    cdef Value left
    cdef Value right
    if operation == SLOT:
        into[0] = row.values[node.slot]
        return TRUE
    if operation == CONSTANT:
        into[0] = node.constant
        return TRUE
    if operation == CALL or operation == DOCUMENT:
        return called(row, node, into)
    if operation >= SUM:
        if node_value(row, row.children[node.first], &left) == RAISED:
            return RAISED
        if operation == MINUS:
            return negate(&left, into, row.scratch)
        if left.type == NULL_VALUE:
            into.type = NULL_VALUE
            return TRUE
        if node_value(row, row.children[node.first + 1], &right) == RAISED:
            return RAISED
        return calculate(operation - SUM, &left, &right, into, row.scratch)
    operation = truth_at(row, at)
    if operation == RAISED:
        return RAISED
    into.type = NULL_VALUE if operation == UNKNOWN else BOOLEAN
    into.payload.integer = operation == TRUE
    return TRUE


cdef int called(const Row* row, const Node* node, Value* into) noexcept with gil:
    try:
        return call_function(row, node, into)
    except BaseException as error:
        Py_XDECREF(<PyObject*>row.scratch.error)
        Py_INCREF(error)
        row.scratch.error = <void*>error
        row.scratch.problem = FUNCTION_FAILED
        return RAISED


cdef int call_function(const Row* row, const Node* node, Value* into) except -1:
    cdef list arguments
    cdef Value argument
    cdef object answer
    cdef int i
    cdef str name
    if type(<object>node.call) is Regex:
        into.type = BOOLEAN
        if node_value(row, row.children[node.first + 1], &argument) == RAISED:
            return RAISED
        into.payload.integer = found(<Regex>node.call, &argument)
        return TRUE
    arguments = []
    if node.operation == DOCUMENT:
        answer = (<object>node.call)(None if row.body is NULL else <object>row.body)
    else:
        from pyengine._engine.selector import functions

        name = <str><object>node.call
        for i in range(node.count):
            if node_value(row, row.children[node.first + i], &argument) == RAISED:
                return RAISED
            if name == "REGEX" and argument.type == NULL_VALUE:
                into.type = BOOLEAN
                into.payload.integer = 0
                return TRUE
            arguments.append(python_value(&argument))
        answer = functions.call(name, tuple(arguments))
    keep_object(row.scratch, answer)
    read_value(answer, into, "function", True)
    return TRUE


cdef bint found(Regex regex, const Value* argument) except -1:
    cdef object subject
    if argument.type == NULL_VALUE:
        return False
    subject = python_value(argument)
    if argument.type != STRING:
        subject = java_text(subject)
    if regex.pattern is None:
        regex.compile()
    if PyUnicode_IS_ASCII(subject):
        return regex.search(subject) is not None
    return regex.pattern.search_of(subject)(subject) is not None


cdef int truth_of(
    const Node* nodes, const int32_t* children, int node, const Value* values, void* body, Scratch* scratch
) noexcept nogil:
    cdef Row row
    row.nodes = nodes
    row.children = children
    row.values = values
    row.body = body
    row.scratch = scratch
    return truth_at(&row, node)


cdef int rest_truth(
    const Node* nodes, const int32_t* children, int node, int first, const Value* values, void* body, Scratch* scratch
) noexcept nogil:
    cdef Row row
    row.nodes = nodes
    row.children = children
    row.values = values
    row.body = body
    row.scratch = scratch
    return combined(&row, &nodes[node], first)


cdef int match_node(
    const Node* nodes, const int32_t* children, int node, const Value* values, void* body, Scratch* scratch
) noexcept nogil:
    cdef int operation = nodes[node].operation
    cdef int i, truth
    if operation != BOTH and operation != EITHER:
        truth = truth_of(nodes, children, node, values, body, scratch)
        return FALSE if truth == UNKNOWN else truth
    for i in range(nodes[node].first, nodes[node].first + nodes[node].count):
        truth = match_node(nodes, children, children[i], values, body, scratch)
        if truth == RAISED or truth == <int>(FALSE if operation == BOTH else TRUE):
            return truth
    return TRUE if operation == BOTH else FALSE


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
            truth = leaf_truth(leaf, &values[leaf.slot], scratch)
        if truth == RAISED:
            return RAISED
        at = leaf.next[truth]
    return at == ACCEPT


def match_and_tree(Program program not None, list values):
    """matches() by leaves and by nodes, as Truth numbers; for tests. values: Python values by slot."""
    cdef Value* row = <Value*>allocate_zeros(max(1, len(values)), sizeof(Value))
    cdef Scratch scratch
    cdef int i
    memset(&scratch, 0, sizeof(Scratch))
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
