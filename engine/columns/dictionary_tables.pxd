"""dictionary_tables: what a test answers on each value of a dictionary, as sets of codes.

Invariants: a table's three sets have ``words`` words each and hold only codes of the dictionary it was made for;
LookupTables are never changed once made.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from pyengine._engine.columns.column_views cimport Column


cdef struct Table:            # of a LOOKUP test: three bit sets over the codes
    uint32_t* sets            # on, off, raised: ``words`` each
    int64_t words
    int64_t size              # values of the dictionary
    uint8_t when_null         # Truth
    uint8_t by_row            # the dictionary is larger than the batch
    uint8_t borrowed          # ``sets`` belongs to the plan's LookupTables
    const Column* dictionary  # it was made for


cdef struct KnownTable:       # a table and the dictionary it answers for
    Table table               # its sets are NULL: not known
    uint8_t* offsets          # (length + 1) of them, as wide as the dictionary's
    int64_t offset_bytes
    uint8_t* text             # from the first offset to the last
    int64_t text_bytes


cdef class LookupTables:
    cdef KnownTable* known        # by test
    cdef int count

    cdef int remember(self, int number, const Table* table) except -1
    cdef bint answers_for(self, int number, const Column* dictionary) noexcept nogil


# Whether two batches share one dictionary.
cdef bint same_dictionary(const Column* one, const Column* other) noexcept nogil
