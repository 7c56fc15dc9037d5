# cython: freethreading_compatible=True
"""See leaf_truths.pxd."""

from libc.stdint cimport uint8_t
from libc.string cimport memset

from pyengine._engine.index.message_view cimport Reading, point_of
from pyengine._engine.index.partitions cimport one_interval
from pyengine._engine.index.pattern_automaton cimport has_piece
from pyengine._engine.index.requirements cimport is_boolean_rule
from pyengine._engine.java.value cimport (
    BOOLEAN, DOUBLE, FALSE, INT, LATIN1, RAISED, STRING, TRUE, Scratch, Value, free_scratch,
)
from pyengine._engine.selector.program cimport (
    ABSENT, FLAG, NUMBER, PATTERN, PREFIX, TEXT, TEXTS, Leaf, leaf_truth, text_of, texts_of,
)

cdef enum:
    LONGEST = 4096           # characters of a text that is indexed

cdef bytes UNLIKE = b"x" * (LONGEST + 1)
cdef const char* unlike = UNLIKE


cdef bint truths_of(const Leaf* leaf, Truths* truths) noexcept nogil:
    cdef Value value
    cdef Scratch scratch
    cdef uint8_t of_double
    cdef int index
    cdef uint8_t kind = leaf.kind
    cdef Reading reading
    if kind not in (NUMBER, TEXT, TEXTS, PREFIX, PATTERN, ABSENT, FLAG) and not is_boolean_rule(leaf):
        return False
    memset(&scratch, 0, sizeof(Scratch))
    memset(&value, 0, sizeof(Value))
    memset(truths, 0, sizeof(Truths))
    truths.of_null = <uint8_t> leaf_truth(leaf, &value, &scratch)
    value.type = BOOLEAN
    truths.of_false = <uint8_t> leaf_truth(leaf, &value, &scratch)
    value.payload.integer = 1
    truths.of_true = <uint8_t> leaf_truth(leaf, &value, &scratch)
    if kind == NUMBER:
        truths.of_number = FALSE
    else:
        value.type = INT
        truths.of_number = <uint8_t> leaf_truth(leaf, &value, &scratch)
        value.type = DOUBLE
        value.payload.real = 0.5
        of_double = <uint8_t> leaf_truth(leaf, &value, &scratch)
        if truths.of_number != of_double:
            truths.of_number = RAISED
    if kind == PREFIX or kind == PATTERN:
        truths.of_text = FALSE
    else:
        value.type = STRING
        value.encoding = LATIN1
        value.payload.text = unlike
        value.length = 1
        if kind == TEXT:
            value.length = leaf.constant.length + 1
        for index in range(leaf.count if kind == TEXTS else 0):
            value.length = max(value.length, leaf.texts[index].length + 1)
        if value.length > LONGEST:
            return False
        truths.of_text = <uint8_t> leaf_truth(leaf, &value, &scratch)
    truths.has_inside = kind in (NUMBER, TEXT, TEXTS, PREFIX, PATTERN) and not (kind == TEXTS and leaf.count == 0)
    truths.inside = TRUE
    if kind == TEXTS and leaf.count:
        truths.inside = <uint8_t> leaf_truth(leaf, &leaf.texts[0], &scratch)
    for index in range(texts_of(leaf)):
        if not point_of(text_of(leaf, index), &reading, &scratch):
            free_scratch(&scratch)
            return False
    free_scratch(&scratch)
    if kind == NUMBER and not one_interval(leaf) or kind == PATTERN and not has_piece(leaf.pattern):
        return False
    if kind == PREFIX and leaf.constant.length == 0:
        return False
    return not (
        truths.of_null == RAISED or truths.of_false == RAISED or truths.of_true == RAISED
        or truths.of_number == RAISED or truths.of_text == RAISED or truths.inside == RAISED)
