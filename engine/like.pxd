"""like: a LIKE pattern compiled once, matched in time linear in the text (times pattern length / 64), on every encoding.

Invariants: a pattern is a list of segments between runs of ``%``; an element is a code point or ANY_ONE; the first segment
is bound to the start of the text and the last one to its end. ``_`` is one code point; a surrogate pair is one.
"""

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from pyengine._engine.value cimport Value


cdef struct Segment:
    int32_t first              # index of its first element
    int32_t count              # elements
    int32_t words              # of 64 bits for ``count`` bits
    uint64_t* low              # words x 256: where a code point below 256 may stand
    uint64_t* other            # words x distinct higher code points of the pattern, in their order, then one for any other


cdef struct Pattern:
    uint32_t* elements         # code points, or ANY_ONE
    uint32_t* distinct         # code points above 255 of all segments, ascending
    int32_t distinct_count
    int32_t segments_count
    Segment* segments
    uint8_t open_start         # the pattern starts with %
    uint8_t open_end
    uint8_t plain              # no ANY_ONE and every code point below 128: bytes decide
    uint8_t* plain_bytes       # plain: the elements as bytes
    int32_t least              # elements of all segments: no shorter text matches


# Owned by the caller. Raises ValueError where the real compiler of patterns refuses (an escape below U+0010 doubled).
cdef Pattern* compile_pattern(str pattern, object escape) except NULL
cdef void free_pattern(Pattern* pattern) noexcept nogil
cdef bint pattern_matches(const Pattern* pattern, const Value* text) noexcept nogil      # text: a STRING
cpdef bint like(str text, str pattern, object escape=*)
