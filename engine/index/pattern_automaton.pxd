"""pattern_automaton: all LIKE patterns of one property in one pass over its text (Aho and Corasick, 1975).

Each pattern has a *piece*: the longest run of its characters, without which it matches nothing. The pieces are the
words of a trie of UTF-8 bytes; a node's ``fail`` is the node of the longest proper ending of its word that is in the
trie, and its ``link`` the nearest node on the way of fails where a piece ends. Where a piece ends in the text, its
patterns match if they are no more than that piece with % around, bound to an end of the text or not (*plain*);
others are then matched one by one, once a text.

    '%order%', 'or%', '%de_k%'      o - r - d - e - r       fail of "de" (of order) is "de" (of de_k)
                                    d - e
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from pyengine._engine.index.growing cimport Growing
from pyengine._engine.java.value cimport Value
from pyengine._engine.selector.like cimport ANY_ONE, Pattern


cdef struct Node:
    int32_t fail
    int32_t link                 # 0: there is none
    int32_t first                # of the patterns whose piece ends here
    int32_t child                # while it is built
    int32_t sibling
    uint8_t byte


cdef struct Transition:                # in the seat of a hash table
    uint64_t from_byte           # node << 8 | byte, and one more; 0: the seat is empty
    int64_t node


cdef struct TextPattern:
    int32_t id                   # among all of the Postings
    int32_t next                 # of the same node; -1 none
    uint32_t length              # of the piece, in bytes
    uint8_t at_start             # plain, and bound to the start of the text
    uint8_t at_end
    uint8_t plain
    const Pattern* pattern


cdef struct Matched:             # patterns of one message, by id
    uint64_t* bits               # that match
    uint64_t* tried
    int32_t* ids                 # that were tried
    int32_t count


cdef class PatternAutomaton:
    cdef Growing nodes
    cdef Growing patterns        # TextPattern
    cdef Growing table           # Transition
    cdef Transition* transitions     # its
    cdef int64_t transition_room
    cdef int64_t transition_count
    cdef int32_t[256] roots      # by the first byte

    cdef int add(self, bytes piece, int32_t id, bint at_start, bint at_end, const Pattern* pattern) except -1
    cdef int finish(self) except -1
    cdef int32_t child_of(self, int32_t node, uint8_t byte) noexcept nogil
    cdef int lay_transition(self, int32_t node, uint8_t byte, int32_t child) except -1
    # The patterns that match a text, in ``matched``; value: the same text.
    cdef void find(self, const uint8_t* text, uint32_t length, const Value* value, Matched* matched) noexcept nogil


# The piece of a pattern as UTF-8, empty if it has none; whether it is plain.
cdef bytes piece_of(const Pattern* pattern, bint* plain)


cdef inline bint has_piece(const Pattern* pattern) noexcept nogil:
    cdef int segment, index
    cdef uint32_t element
    for segment in range(pattern.count):
        for index in range(pattern.segments[segment].count):
            element = pattern.segments[segment].elements[index]
            if element != <uint32_t> ANY_ONE and not 0xD800 <= element < 0xE000:
                return True
    return False
