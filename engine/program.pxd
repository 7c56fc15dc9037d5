"""program: a Tree compiled to flat nodes; evaluated on a row of slots. What every back end (row, list, columns) runs.

Lowered forms only: ``<>`` is NOT(EQUAL), BETWEEN is AND(>=, <=) with the subject evaluated twice, NOT BETWEEN is
OR(<, >), IS NOT NULL is NOT(IS_NULL), NOT LIKE is NOT(LIKE); IN and the rocketmq text tests carry ``negated``.

Invariants: children of node i are ``children[first .. first + count)``, all of them smaller than i; ``slot`` indexes
``names``; names are interned str, each once; the program owns every byte its constants point to.
"""

from libc.stdint cimport int32_t, uint8_t, uint16_t

from pyengine._engine.value cimport Value


cdef enum Operation:
    CONSTANT          # constant
    SLOT              # slot
    BOTH              # AND, n children
    EITHER            # OR, n children
    NEGATION          # NOT, 1 child
    BOOLEAN_CAST      # 1 child (SLOT): null -> UNKNOWN, Boolean -> itself, other -> FALSE
    EQUAL_TO          # 2 children
    LESS_THAN
    LESS_OR_EQUAL
    GREATER_THAN
    GREATER_OR_EQUAL
    NULL_TEST         # 1 child
    MEMBER            # 1 child (SLOT), texts; negated
    LIKE_MATCH        # 1 child, like
    CONTAINS_TEXT     # 1 child, texts[0]; negated (rocketmq)
    STARTS_WITH_TEXT
    ENDS_WITH_TEXT
    SUM               # 2 children
    DIFFERENCE
    PRODUCT
    QUOTIENT
    MODULO
    MINUS             # 1 child
    CALL              # n children, call (needs the GIL)
    DOCUMENT          # XPATH on the body, call (needs the GIL)


cdef struct Node:
    uint8_t operation
    uint8_t negated
    uint8_t convert          # convert_string_expressions: applies to this comparison
    uint8_t can_raise        # some message can make this subtree raise
    uint8_t needs_gil        # CALL or DOCUMENT somewhere below
    uint8_t boolean          # yields a truth value, not a Value
    uint16_t count           # children, or texts
    int32_t first            # first child
    int32_t slot             # SLOT: index into names
    Value constant           # CONSTANT; strings as UTF8
    Value* texts             # MEMBER and *_TEXT: ``count`` constants, UTF8
    void* like               # LIKE_MATCH: compiled pattern, see like.pxd
    void* call               # CALL, DOCUMENT: borrowed PyObject*


cdef class Program:
    cdef Node* nodes
    cdef int32_t* children
    cdef readonly int size          # nodes
    cdef readonly int root
    cdef readonly tuple names       # slot -> interned property or header name
    cdef readonly str dialect
