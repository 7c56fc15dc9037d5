"""See text_sets.pxd."""

from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy

from pyengine._engine.lowlevel.memory cimport allocate_zeros
from pyengine._engine.java.value cimport Value


cdef int logarithm(int64_t size) noexcept nogil:
    """Of the next power of two."""
    cdef int bits = 0
    while <int64_t> 1 << bits < size:
        bits += 1
    return bits


cdef text_set* make_set(const Value* texts, int count) except NULL:
    cdef text_set* made = <text_set*> allocate_zeros(1, sizeof(text_set))
    cdef int filter_bits = max(6, logarithm(16 * <int64_t> count)), entry_bits = max(2, logarithm(4 * <int64_t> count))
    cdef int i
    try:
        made.filter = <uint64_t*> allocate_zeros(<int64_t> 1 << (filter_bits - 6), sizeof(uint64_t))
        made.entries = <text_entry*> allocate_zeros(<int64_t> 1 << entry_bits, sizeof(text_entry))
    except BaseException:
        free_set(made)
        raise
    made.filter_shift = 64 - filter_bits
    made.entry_shift = 64 - entry_bits
    for i in range(count):
        made.longest = max(made.longest, texts[i].length)
    made.mask = (<uint64_t> 1 << entry_bits) - 1
    if not fill(made, texts, count):
        made.whole = 1
        fill(made, texts, count)
    return made


cdef bint fill(text_set* made, const Value* texts, int count) noexcept nogil:
    """False: two constants have one mark, and the table is by the mark."""
    cdef uint64_t at, hash, first, last
    cdef const uint8_t* text
    cdef text_entry* entry
    cdef int i
    for at in range(made.mask + 1):
        made.entries[at].length = TEXT_FREE
    for i in range(count):
        text = <const uint8_t*> texts[i].payload.text
        first = last = 0
        memcpy(&first, text, min(8, texts[i].length))
        memcpy(&last, text + texts[i].length - 8 if texts[i].length > 8 else text, min(8, texts[i].length))
        hash = text_hash(first, last, texts[i].length)
        at = hash >> made.filter_shift
        made.filter[at >> 6] |= <uint64_t> 1 << (at & 63)
        if made.whole:
            hash = text_whole_hash(text, texts[i].length)
        at = hash >> made.entry_shift
        while True:
            entry = &made.entries[at]
            if entry.length == TEXT_FREE:
                entry.first, entry.last, entry.text, entry.length = first, last, text, texts[i].length
                break
            if entry.first == first and entry.last == last and entry.length == texts[i].length:
                if memcmp(entry.text, text, texts[i].length) == 0:
                    break
                if not made.whole:
                    return False
            at = (at + 1) & made.mask
    return True


cdef void free_set(text_set* made) noexcept nogil:
    if made != NULL:
        free(made.filter)
        free(made.entries)
    free(made)
