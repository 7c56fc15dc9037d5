"""like: a LIKE pattern, compiled once and matched in time linear in the string, on every encoding; a segment of more
than 64 elements with ``_`` takes elements / 64 times as long.

Invariants: a pattern is ``count`` segments between runs of ``%``; an element is a code point or ANY_ONE; the first
segment is anchored at the start of the string unless ``open_start``, the last one at its end unless ``open_end``;
segments between them are not empty. ``_`` is one code point; a surrogate pair is one.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from pyengine._engine.java.value cimport Value


cdef enum:
    ANY_ONE = 0xFFFFFFFF


cdef struct Segment:
    uint32_t* elements
    uint8_t* bytes             # of a plain pattern: the elements
    int count
    int words                  # of 64 bits for ``count`` bits
    uint64_t* masks            # by character class, ``words`` each: positions in the segment that accept the class
    # Instead of masks, for a long segment without ANY_ONE: element -> length of the longest border of the prefix that
    # ends with it (Knuth, Morris, Pratt).
    int* borders


cdef struct Pattern:
    int owners                 # counted by ``share_pattern`` and ``free_pattern``
    Segment* segments
    int count
    int least                  # elements of all segments: a shorter string does not match
    uint8_t open_start
    uint8_t open_end
    uint8_t plain              # no ANY_ONE and only ASCII: bytes of LATIN1 and UTF8 are compared
    int classes                # one for each distinct code point of the pattern, one for all others (the last)
    int high_count
    uint32_t* high             # distinct code points above 255, ascending; their classes follow those of ``low``
    int first_high             # class of high[0]
    uint16_t[256] low          # class of a code point below 256


# Owned by the caller alone. Raises ValueError if the real class refuses the pattern (a doubled escape below U+0010).
cdef Pattern* compile_pattern(str pattern, object escape) except NULL
cdef void free_pattern(Pattern* pattern) noexcept nogil      # by one of its owners
cdef Pattern* share_pattern(Pattern* pattern) noexcept nogil     # with one owner more
# A plain pattern on bytes; those before ``limit`` may be read.
cdef bint bytes_match(
    const Pattern* pattern, const uint8_t* text, uint32_t length, const uint8_t* limit
) noexcept nogil
cdef bint pattern_matches(const Pattern* pattern, const Value* text) noexcept nogil      # text: a STRING
