"""See dictionary_tables.pxd."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy

from pyengine._engine.lowlevel.memory cimport allocate, allocate_zeros
from pyengine._engine.columns.column_views cimport TEXT32, TEXT64, Column


cdef enum:
    KNOWN_BYTES = 65536           # a dictionary of more text or offsets is not remembered


cdef bint contents_of(const Column* dictionary, const uint8_t** offsets, int64_t* offset_bytes, const uint8_t** text,
                      int64_t* text_bytes) noexcept nogil:
    """The bytes that make a small dictionary of texts without nulls; False for others."""
    cdef int64_t first, last
    if dictionary.validity != NULL or dictionary.length <= 0 or dictionary.length >= KNOWN_BYTES // 8:
        return False
    if dictionary.storage == TEXT32:
        first = (<const int32_t*> dictionary.values)[0]
        last = (<const int32_t*> dictionary.values)[dictionary.length]
    elif dictionary.storage == TEXT64:
        first = (<const int64_t*> dictionary.values)[0]
        last = (<const int64_t*> dictionary.values)[dictionary.length]
    else:
        return False
    if first > last or last - first > KNOWN_BYTES:
        return False
    offsets[0] = <const uint8_t*> dictionary.values
    offset_bytes[0] = (dictionary.length + 1) * (4 if dictionary.storage == TEXT32 else 8)
    text[0] = dictionary.data + first
    text_bytes[0] = last - first
    return True


cdef class LookupTables:
    """Tables of a plan's LOOKUP tests with copies of the dictionaries they answer for; never changed once made."""
    def __cinit__(self, int count):
        self.known = <KnownTable*> allocate_zeros(count + 1, sizeof(KnownTable))
        self.count = count

    def __dealloc__(self):
        cdef int i
        if self.known != NULL:
            for i in range(self.count):
                free(self.known[i].table.sets)
        free(self.known)

    cdef int remember(self, int number, const Table* table) except -1:
        """Copy a table and its dictionary into one block; nothing for a dictionary that is not small."""
        cdef KnownTable* known = &self.known[number]
        cdef const uint8_t* offsets
        cdef const uint8_t* text
        cdef size_t set_bytes = 3 * table.words * sizeof(uint32_t)
        cdef uint8_t* block
        if not contents_of(table.dictionary, &offsets, &known.offset_bytes, &text, &known.text_bytes):
            return 0
        block = <uint8_t*> allocate(set_bytes + known.offset_bytes + known.text_bytes)
        known.table = table[0]
        known.table.sets = <uint32_t*> block
        known.table.borrowed = 1
        known.table.dictionary = NULL
        known.offsets = block + set_bytes
        known.text = known.offsets + known.offset_bytes
        memcpy(block, table.sets, set_bytes)
        memcpy(known.offsets, offsets, known.offset_bytes)
        if known.text_bytes:
            memcpy(known.text, text, known.text_bytes)
        return 0

    cdef bint answers_for(self, int number, const Column* dictionary) noexcept nogil:
        cdef const KnownTable* known = &self.known[number]
        cdef const uint8_t* offsets
        cdef const uint8_t* text
        cdef int64_t offset_bytes, text_bytes
        return (
            known.table.sets != NULL
            and contents_of(dictionary, &offsets, &offset_bytes, &text, &text_bytes)
            and offset_bytes == known.offset_bytes and text_bytes == known.text_bytes
            and not memcmp(offsets, known.offsets, offset_bytes)
            and (not text_bytes or not memcmp(text, known.text, text_bytes))
        )


cdef bint same_dictionary(const Column* one, const Column* other) noexcept nogil:
    """Whether two batches share one dictionary."""
    return (
        one == other
        or one.values == other.values and one.data == other.data and one.length == other.length
        and one.validity == other.validity and one.validity_start == other.validity_start
        and one.bit_start == other.bit_start and one.storage == other.storage and one.parts == other.parts
    )
