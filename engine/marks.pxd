"""marks: bits become numbers, and places become marks, a set that is read in its order; see marks.h."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t


cdef extern from "marks.h" nogil:
    enum:
        PYENGINE_BEHIND                  # numbers that may be written behind those asked for
    # the numbers of a word's bits, each more by ``more``; how many
    int pyengine_spread(uint64_t bits, int32_t more, int32_t* into) noexcept
    # a bit becomes a mark; the bits order[places]
    void pyengine_mark_one(int32_t hit, uint64_t* marks, uint8_t* marked) noexcept
    void pyengine_mark_all(
        const int32_t* places, int count, const int32_t* order, uint64_t* marks, uint8_t* marked,
        void* const* keys) noexcept
    # the bits of the words that are named become marks, and 0; how many there were
    int64_t pyengine_mark(
        uint64_t* found, uint64_t* words, int count, const int32_t* order, uint64_t* marks, uint8_t* marked,
        void* const* keys) noexcept
    # the places of what is marked, in their order; where they end
    int64_t* pyengine_gather(uint64_t* marks, uint8_t* marked, int lines, int64_t more, int64_t* into) noexcept
    int64_t* pyengine_gather_few(uint64_t* marks, uint8_t* marked, int lines, int64_t more, int64_t* into) noexcept
