"""text_sets: many constants among which texts of columns are looked up; see text_sets.h.

Invariants: each constant is in the table once; at most a quarter of the table's entries are taken; the constants belong
to the program.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from pyengine._engine.java.value cimport Value


cdef extern from "columns/text_sets.h" nogil:
    const uint32_t TEXT_FREE

    ctypedef struct text_entry:
        uint64_t first
        uint64_t last
        const uint8_t* text
        uint32_t length

    ctypedef struct text_set:
        uint64_t* filter
        text_entry* entries
        int filter_shift
        int entry_shift
        uint64_t mask
        int whole
        uint64_t longest

    ctypedef struct text_rows:
        const uint64_t* prefixes
        const uint64_t* lengths
        const uint64_t* live
        const uint64_t* present
        int64_t count

    uint64_t text_hash(uint64_t first, uint64_t last, uint64_t length)
    uint64_t text_whole_hash(const uint8_t* text, uint64_t length)
    void texts_in_offsets32(const text_set*, const int32_t*, const uint8_t*, const text_rows*, uint64_t*)
    void texts_in_offsets64(const text_set*, const int64_t*, const uint8_t*, const text_rows*, uint64_t*)
    void texts_in_views(const text_set*, const uint8_t*, const uint8_t**, const text_rows*, uint64_t*)


cdef text_set* make_set(const Value* texts, int count) except NULL       # UTF-8 texts that outlive it
cdef void free_set(text_set* table) noexcept nogil
