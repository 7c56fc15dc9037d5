"""bitsets: bits become numbers, and numbers become marks, a set that is read in its order; see bitsets.h."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t


cdef extern from "index/bitsets.h" nogil:
    enum:
        PYENGINE_BEHIND                  # numbers that may be written behind those asked for
        PYENGINE_MOST                    # numbers that may be collected at once
    # the numbers of a word's bits, each more by ``more``; how many
    int pyengine_spread(uint64_t bits, int32_t more, int32_t* into) noexcept
    # what the bits of the words that are named have in ``order``, from a word on; how many, 0: that was all
    int pyengine_collect(
        uint64_t* found, uint64_t* words, int count, int* at, const int32_t* order, int32_t* hits) noexcept
    void pyengine_mark(const int32_t* hits, int count, uint64_t* marks, uint8_t* marked, void* const* keys) noexcept
    # the places of what is marked, in their order; where they end
    int64_t* pyengine_gather(uint64_t* marks, uint8_t* marked, int lines, int64_t more, int64_t* into) noexcept
    int64_t* pyengine_gather_few(uint64_t* marks, uint8_t* marked, int lines, int64_t more, int64_t* into) noexcept
