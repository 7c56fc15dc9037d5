"""program: a Tree compiled to flat nodes, and for rows to flat leaves with jumps; every back end runs it.

Nodes are lowered: ``<>`` is NEGATION(EQUAL_TO), BETWEEN is BOTH(>=, <=) with the subject evaluated twice (one shared
node), NOT BETWEEN is EITHER(<, >), IS NOT NULL is NEGATION(NULL_TEST), NOT LIKE is NEGATION(LIKE_MATCH); IN and
RocketMQ's tests of strings have ``negated``. A negated literal beyond Long is folded.

Invariants: children of node i are ``children[first .. first + count)``, all of them smaller than i; ``slot`` indexes
``names``; names are interned str, each once; the program owns every byte its constants point to.

Leaves decide whether the selector is TRUE, as the broker's matches() does: begin at ``start``, evaluate the leaf, jump
to ``next[truth]`` until ACCEPT or REJECT. They need no state for unknown. Each leaf agrees with nodes[leaf.node].
"""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t
from pyengine._engine.java.arithmetic cimport calculate, negate
from pyengine._engine.java.comparison cimport compare
from pyengine._engine.selector.like cimport Pattern, pattern_matches
from pyengine._engine.java.strings cimport Needle, order_text, same_text
from pyengine._engine.java.sortable cimport double_to_sortable_long
from pyengine._engine.java.value cimport (
    BOOLEAN,
    BYTE,
    DOUBLE,
    INT,
    LATIN1,
    LONG,
    NULL_VALUE,
    STRING,
    TRUE,
    UNKNOWN,
    Scratch,
    Value,
    pyengine_same_bytes,
    quick_calculate,
)


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
    CONTAINS_TEXT     # 1 child, texts[0]; negated (rocketmq); Place = operation - CONTAINS_TEXT
    STARTS_WITH_TEXT
    ENDS_WITH_TEXT
    SUM               # 2 children; Calculation = operation - SUM
    DIFFERENCE
    PRODUCT
    QUOTIENT
    MODULO
    MINUS             # 1 child
    CALL              # n children, call (needs the GIL)
    DOCUMENT          # XPATH on the body, call (needs the GIL); XQUERY is the constant FALSE


cdef struct Node:
    uint8_t operation
    uint8_t negated
    uint8_t rules            # value.Rules of a comparison
    uint8_t can_raise        # this subtree: 0 never, 1 only on a message with a list or map, 2 also on others
    uint8_t needs_gil        # CALL or DOCUMENT somewhere below
    uint8_t boolean          # yields a truth value, not a Value
    uint16_t reserved
    int32_t count            # children, or texts
    int32_t first            # first child
    int32_t slot             # SLOT: index into names; MEMBER: of its child
    Value constant           # CONSTANT; strings as UTF8
    Value* texts             # MEMBER and *_TEXT: ``count`` constants, UTF8 (their one child is children[first])
    Pattern* like            # LIKE_MATCH
    Needle* needle           # CONTAINS_TEXT: of texts[0]
    PyObject* call           # CALL: the function's name; DOCUMENT: the path; borrowed


cdef enum LeafKind:
    NUMBER            # slot in an interval: <low, high> of the integers, <real_low, real_high> of the doubles' order
    TEXT              # slot = constant text
    TEXTS             # slot IN texts; negated
    PREFIX            # slot LIKE pattern, which is the constant text and then %
    PATTERN           # slot LIKE pattern
    ABSENT            # slot IS NULL
    FLAG              # slot as a boolean
    BY_RULE           # slot compared with a constant (and a second one) by the general rule
    GENERAL           # truth of nodes[node], which reads ``slots``
    REST              # AND or OR at nodes[node], children from ``relation`` on, which may raise or be definite
    ARITHMETIC        # GENERAL, decided by ``steps`` if every slot is an int, long, double or null


cdef enum Target:
    ACCEPT = -1
    REJECT = -2


cdef struct Access:          # how the value of a slot is found in a message
    PyObject* name           # borrowed: names[slot]
    Py_hash_t hash           # of name
    int32_t slot
    int32_t header           # header.Header
    # A guess at the name's position among the names of a dict or Message, from previous messages; -1: none.
    # A wrong guess costs only time. After one, ``pause`` messages are read without a guess (exponential back-off).
    int32_t place
    int32_t wait
    int32_t pause
    uint8_t width            # with ``offset``, of the position in dicts; see dict_entries.h
    int64_t offset


cdef struct StackStep:       # of ARITHMETIC: SLOT and CONSTANT push, SUM .. MINUS work on the top of the stack
    uint8_t operation        # Operation
    Access access
    Value constant


cdef struct Leaf:
    int32_t[3] next          # by Truth: FALSE, TRUE, UNKNOWN; a leaf, ACCEPT or REJECT
    uint8_t kind             # LeafKind
    uint8_t negated
    uint8_t rules
    uint8_t second_relation  # with ``second``; NO_RELATION: none
    uint8_t absent           # Truth for a message without a value: of the header's default, or of null
    uint8_t can_raise        # of nodes[node]
    uint8_t both_sides       # ARITHMETIC: ``steps`` are of both sides; otherwise the left is compared with the interval
    int32_t relation         # of ``constant``; REST: first child
    int32_t node
    int32_t count            # texts, or slots
    int32_t step_count
    int32_t slot             # NO_SLOT: of GENERAL, REST and ARITHMETIC
    Access* access           # of the slot, among the program's ``accesses``
    int64_t low              # NUMBER; empty if low > high
    int64_t high
    int64_t real_low         # NUMBER; see double_to_sortable_long
    int64_t real_high
    Value constant           # a string as LATIN1 if possible
    Value second
    Value* texts             # TEXTS
    int32_t* slots           # GENERAL, REST and ARITHMETIC
    StackStep* steps         # ARITHMETIC: the left side, and with ``both_sides`` the right side after it
    Pattern* pattern


cdef enum:
    NO_RELATION = 255
    NO_SLOT = -1
    FEW_TEXTS = 8            # members of an IN up to which they are compared one by one
    STACK = 8                # values on the stack of an ARITHMETIC at most
    UNDECIDED = 4            # beyond Truth: ask the general rule


cdef class Program:
    cdef Node* nodes
    cdef int32_t* children
    cdef Value* defaults            # slot -> value of a header that is never null, else NULL_VALUE
    cdef int32_t* headers           # slot -> header.Header
    cdef Leaf* leaves
    cdef Access* accesses           # [leaf]
    cdef int leaf_count
    cdef int start                  # first leaf, ACCEPT or REJECT
    cdef readonly int size          # nodes
    cdef readonly int root
    cdef readonly tuple names       # slot -> interned property or header name
    cdef readonly str text
    cdef readonly str dialect
    cdef readonly bint every_text   # rocketmq: every property is text
    cdef readonly bint needs_gil
    cdef readonly bint reads_body   # XPATH
    cdef list owned                 # what the nodes point to
    cdef bint borrows               # nodes and children are those of ``owned[0]``
    cdef void* blocks               # memory of the constants
    cdef object matching_plan       # columns: the last Plan for matches(), by column types; None
    cdef object truth_plan          # the same for evaluate()

    cdef void* take(self, size_t size) except NULL


# The exception of a RAISED of the selector ``text``: SelectorEvaluationError, or what a function raised unexpectedly.
cdef object raised_error(str text, Scratch* scratch, object row)


cdef inline int arity(const Node* node) noexcept nogil:
    """Number of children of a node; ``count`` of a test of strings is that of its texts."""
    if MEMBER <= node.operation <= ENDS_WITH_TEXT and node.operation != LIKE_MATCH:
        return 1
    return node.count


cdef inline int texts_of(const Leaf* leaf) noexcept nogil:
    """Number of strings that a leaf names: those of TEXTS, the one of TEXT."""
    return leaf.count if leaf.kind == TEXTS else 1 if leaf.kind == TEXT else 0


cdef inline const Value* text_of(const Leaf* leaf, int index) noexcept nogil:
    """One of them."""
    if leaf.kind == TEXTS:
        return &leaf.texts[index]
    return &leaf.constant


cdef inline bint equal_text(const Value* value, const Value* constant) noexcept nogil:
    if value.encoding == LATIN1 and constant.encoding == LATIN1:
        return value.length == constant.length and pyengine_same_bytes(
            value.payload.text, constant.payload.text, value.length
        )
    cdef Value kept = value[0]        # so that ``value`` may stay in registers
    return same_text(&kept, constant)


cdef inline bint is_one_of_many(const Value* value, const Value* texts, int count) noexcept nogil:
    cdef Value kept = value[0]
    cdef int low = 0
    cdef int middle, order
    while low < count:
        middle = (low + count) >> 1
        order = order_text(&texts[middle], &kept)
        if order == 0:
            return True
        if order < 0:
            low = middle + 1
        else:
            count = middle
    return False


cdef inline bint is_member(const Value* value, const Value* texts, int count) noexcept nogil:
    """``texts`` are in UTF-16 order."""
    cdef int i
    if count > FEW_TEXTS:
        return is_one_of_many(value, texts, count)
    for i in range(count):
        if equal_text(value, &texts[i]):
            return True
    return False


cdef inline int rule_truth(const Leaf* leaf, const Value* value, Scratch* scratch) noexcept nogil:
    cdef int truth = compare(leaf.relation, value, &leaf.constant, leaf.rules, scratch)
    if truth == TRUE and leaf.second_relation != NO_RELATION:
        return compare(leaf.second_relation, value, &leaf.second, leaf.rules, scratch)
    return truth


cdef inline bint takes_integer(const Leaf* leaf, int64_t integer) noexcept nogil:
    return leaf.low <= integer and integer <= leaf.high


cdef inline bint takes_real(const Leaf* leaf, double real) noexcept nogil:
    cdef int64_t key = double_to_sortable_long(real)
    return leaf.real_low <= key and key <= leaf.real_high


cdef inline int quick_truth(const Leaf* leaf, const Value* value) noexcept nogil:
    """Truth of a leaf that reads one slot, given its value; UNDECIDED if rule_truth must decide."""
    cdef int java_type = value.type
    cdef int kind = leaf.kind
    cdef Value kept
    if kind == NUMBER:
        if BYTE <= java_type <= LONG:
            return takes_integer(leaf, value.payload.integer)
        if java_type == DOUBLE:
            return takes_real(leaf, value.payload.real)
        return UNDECIDED
    if java_type == STRING:
        if kind == TEXT:
            return equal_text(value, &leaf.constant)
        if kind == TEXTS:
            return is_member(value, leaf.texts, leaf.count) != leaf.negated
        if kind == PREFIX and value.encoding == LATIN1:
            return value.length >= leaf.constant.length and pyengine_same_bytes(
                value.payload.text, leaf.constant.payload.text, leaf.constant.length
            )
        if kind == PREFIX or kind == PATTERN:
            kept = value[0]
            return pattern_matches(leaf.pattern, &kept)
    if kind == BY_RULE:
        return UNDECIDED
    if java_type == NULL_VALUE:
        return TRUE if kind == ABSENT else UNKNOWN
    if kind == TEXTS:
        return UNKNOWN
    return kind == FLAG and java_type == BOOLEAN and value.payload.integer != 0


cdef inline int leaf_truth(const Leaf* leaf, const Value* value, Scratch* scratch) noexcept nogil:
    """Truth of a leaf that reads one slot, given its value."""
    cdef int truth = quick_truth(leaf, value)
    return truth if truth != UNDECIDED else rule_truth(leaf, value, scratch)


cdef inline bint push(const Value* value, Value* top, bint* missing) noexcept nogil:
    """An operand of an ARITHMETIC; False if the general rule must compute with it."""
    top[0] = value[0]
    missing[0] = missing[0] or value.type == NULL_VALUE
    return value.type == INT or value.type == LONG or value.type == DOUBLE or value.type == NULL_VALUE


cdef inline void compute(const StackStep* step, Value* stack, int* height, bint missing) noexcept nogil:
    """A CONSTANT or a calculation; with a null operand nothing is computed and the result is null."""
    cdef Scratch scratch              # not used for numbers of these types
    cdef Value result
    if step.operation == CONSTANT:
        stack[height[0]] = step.constant
        height[0] += 1
        return
    if step.operation != MINUS:
        height[0] -= 1
    if missing:
        return
    if step.operation == MINUS:
        negate(&stack[height[0] - 1], &result, &scratch)
    elif not quick_calculate(step.operation - SUM, &stack[height[0] - 1], &stack[height[0]], &result):
        calculate(step.operation - SUM, &stack[height[0] - 1], &stack[height[0]], &result, &scratch)
    stack[height[0] - 1] = result


cdef inline int arithmetic_truth(const Leaf* leaf, const Value* stack, bint missing) noexcept nogil:
    """Truth of an ARITHMETIC, given the stack after its steps."""
    cdef Scratch scratch
    if missing:
        return UNDECIDED if leaf.both_sides else UNKNOWN
    if leaf.both_sides:
        return compare(leaf.relation, &stack[0], &stack[1], leaf.rules, &scratch)
    if stack[0].type == DOUBLE:
        return takes_real(leaf, stack[0].payload.real)
    return takes_integer(leaf, stack[0].payload.integer)
