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
    cdef text_set* table = <text_set*> allocate_zeros(1, sizeof(text_set))
    cdef int filter_bits = max(6, logarithm(16 * <int64_t> count)), entry_bits = max(2, logarithm(4 * <int64_t> count))
    cdef int i
    try:
        table.filter = <uint64_t*> allocate_zeros(<int64_t> 1 << (filter_bits - 6), sizeof(uint64_t))
        table.entries = <text_entry*> allocate_zeros(<int64_t> 1 << entry_bits, sizeof(text_entry))
    except BaseException:
        free_set(table)
        raise
    table.filter_shift = 64 - filter_bits
    table.entry_shift = 64 - entry_bits
    for i in range(count):
        table.longest = max(table.longest, texts[i].length)
    table.mask = (<uint64_t> 1 << entry_bits) - 1
    if not fill(table, texts, count):
        table.whole = 1
        fill(table, texts, count)
    return table


cdef bint fill(text_set* table, const Value* texts, int count) noexcept nogil:
    """False: two constants have one mark, and the table is by the mark."""
    cdef uint64_t at, hash, first, last
    cdef const uint8_t* text
    cdef text_entry* entry
    cdef int i
    for at in range(table.mask + 1):
        table.entries[at].length = TEXT_FREE
    for i in range(count):
        text = <const uint8_t*> texts[i].payload.text
        first = last = 0
        memcpy(&first, text, min(8, texts[i].length))
        memcpy(&last, text + texts[i].length - 8 if texts[i].length > 8 else text, min(8, texts[i].length))
        hash = text_hash(first, last, texts[i].length)
        at = hash >> table.filter_shift
        table.filter[at >> 6] |= <uint64_t> 1 << (at & 63)
        if table.whole:
            hash = text_whole_hash(text, texts[i].length)
        at = hash >> table.entry_shift
        while True:
            entry = &table.entries[at]
            if entry.length == TEXT_FREE:
                entry.first, entry.last, entry.text, entry.length = first, last, text, texts[i].length
                break
            if entry.first == first and entry.last == last and entry.length == texts[i].length:
                if memcmp(entry.text, text, texts[i].length) == 0:
                    break
                if not table.whole:
                    return False
            at = (at + 1) & table.mask
    return True


cdef void free_set(text_set* table) noexcept nogil:
    if table != NULL:
        free(table.filter)
        free(table.entries)
    free(table)
