"""program: a Tree compiled to flat nodes, and for rows to flat leaves with jumps. What every back end runs.

Lowered forms only: ``<>`` is NEGATION(EQUAL_TO), BETWEEN is BOTH(>=, <=) with the subject evaluated twice (one shared
node), NOT BETWEEN is EITHER(<, >), IS NOT NULL is NEGATION(NULL_TEST), NOT LIKE is NEGATION(LIKE_MATCH); IN and the
rocketmq text tests carry ``negated``. A negated literal beyond Long is folded.

Invariants: children of node i are ``children[first .. first + count)``, all of them smaller than i; ``slot`` indexes
``names``; names are interned str, each once; the program owns every byte its constants point to.

Leaves answer one question, "is it TRUE", as the broker's matches() asks it: start at ``start``, evaluate the leaf, go to
``next[truth]``; ACCEPT and REJECT end. They need no state of unknown. Every leaf is exact to nodes[leaf.node].
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t

from pyengine._engine.value cimport Scratch, Value


cdef enum Operation:
    CONSTANT          # constant
    SLOT              # slot
    BOTH              # AND, n children
    EITHER            # OR, n children
    NEGATION          # NOT, 1 child
    BOOLEAN_CAST      # 1 child: null -> UNKNOWN, Boolean -> itself, other -> FALSE
    EQUAL_TO          # 2 children; Relation = operation - EQUAL_TO
    LESS_THAN
    LESS_OR_EQUAL
    GREATER_THAN
    GREATER_OR_EQUAL
    NULL_TEST         # 1 child
    MEMBER            # 1 child (SLOT), texts in UTF-16 order; negated
    LIKE_MATCH        # 1 child, like
    CONTAINS_TEXT     # 1 child, texts[0]; negated (rocketmq)
    STARTS_WITH_TEXT
    ENDS_WITH_TEXT
    SUM               # 2 children; Calculation = operation - SUM
    DIFFERENCE
    PRODUCT
    QUOTIENT
    MODULO
    MINUS             # 1 child
    CALL              # n children, call: the function's name (needs the GIL)
    DOCUMENT          # XPATH on the body, call: compiled path, or NULL for XQUERY (always FALSE) (needs the GIL)


cdef struct Node:
    uint8_t operation
    uint8_t negated
    uint8_t rules            # value.Rules of a comparison
    uint8_t can_raise        # this subtree: 0 on no message, 1 only on one with a list or map, 2 on others too
    uint8_t needs_gil        # CALL or DOCUMENT somewhere below
    uint8_t boolean          # yields a truth value, not a Value
    uint16_t reserved
    int32_t count            # children, or texts
    int32_t first            # first child
    int32_t slot             # SLOT: index into names; MEMBER: of its child
    Value constant           # CONSTANT; strings as UTF8
    Value* texts             # MEMBER and *_TEXT: ``count`` constants, UTF8 (their one child is children[first])
    void* like               # LIKE_MATCH: like.Pattern*
    void* call               # CALL, DOCUMENT: borrowed PyObject*


cdef enum LeafKind:
    GENERAL           # truth of nodes[node]
    REST              # AND or OR at nodes[node], children from ``slot`` on, for their errors and a definite answer
    NUMBER            # slot in an interval: <low, high> of the integers, <real_low, real_high> of the doubles' order
    TEXT              # slot = constant text
    TEXTS             # slot IN texts; negated
    PATTERN           # slot LIKE pattern
    ABSENT            # slot IS NULL
    FLAG              # slot as a boolean
    CONSTANT_RIGHT    # slot compared with a constant by the general rule


cdef enum Target:
    ACCEPT = -1
    REJECT = -2


cdef struct Leaf:
    int32_t[3] next          # by Truth: FALSE, TRUE, UNKNOWN; a leaf, ACCEPT or REJECT
    uint8_t kind             # LeafKind
    uint8_t negated
    uint8_t relation
    uint8_t rules
    int32_t slot             # REST: first child
    int32_t node
    int32_t count            # TEXTS
    void* name               # borrowed PyObject*: names[slot]
    Py_hash_t hash           # of name
    int64_t low              # NUMBER; empty if low > high
    int64_t high
    int64_t real_low         # NUMBER; doubles in Java's total order, see order_key
    int64_t real_high
    Value constant           # TEXT, CONSTANT_RIGHT; text as LATIN1 where it can be
    Value* texts             # TEXTS
    void* like


cdef class Program:
    cdef Node* nodes
    cdef int32_t* children
    cdef Value* defaults            # slot -> value of a header that is never null, else NULL_VALUE
    cdef Leaf* leaves
    cdef int leaf_count
    cdef int start                  # first leaf, ACCEPT or REJECT
    cdef readonly int size          # nodes
    cdef readonly int root
    cdef readonly tuple names       # slot -> interned property or header name
    cdef readonly str text
    cdef readonly str dialect
    cdef bint every_text            # rocketmq: every property is text
    cdef bint needs_gil
    cdef bint needs_body            # reads the message's body (XPATH)
    cdef readonly frozenset surprises
    cdef list owned                 # bytes and callables the nodes point to


# Truth of the whole selector on one row, values by slot (absent: NULL_VALUE; defaults are the caller's business): as
# evaluate() answers, and as matches() answers (TRUE, FALSE or RAISED). ``body``: borrowed PyObject* for XPATH, or NULL.
# Without the GIL unless needs_gil; with it a CALL or DOCUMENT leaves its Python exception set and answers RAISED.
cdef int evaluate_values(Program program, const Value* values, void* body, Scratch* scratch) noexcept nogil
cdef int match_values(Program program, const Value* values, void* body, Scratch* scratch) noexcept nogil
# Truth of one node (columns: what they do not vectorise).
cdef int node_truth(Program program, int node, const Value* values, void* body, Scratch* scratch) noexcept nogil
cdef str problem_text(int problem)

cpdef Program compile_tree(object tree)
