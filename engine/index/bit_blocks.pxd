"""bit_blocks: many bits at a time, 512 to a line; see bit_blocks.h."""

from libc.stdint cimport int32_t, int64_t, uint64_t


cdef extern from "index/bit_blocks.h" nogil:
    # a bit for each of 64 entries that requires nothing absent
    uint64_t pyengine_lack_nothing(const uint64_t* required, const uint64_t* absent) noexcept
    # what is left of a line: what matches, is to be asked, lies between; 0: nothing, 1: what matches, 2: of the others
    int pyengine_look(
        uint64_t* bits, uint64_t* asked, uint64_t* between, const uint64_t* wanted, const uint64_t* alive,
        const uint64_t* whole, const uint64_t* by_intervals, const uint64_t* passes, const int64_t* passed, int count,
        const uint64_t* opens, const int64_t* open, int open_count, const int64_t* bounded,
        int bounded_count) noexcept
    # the bits of words that each bucket's row has, too
    void pyengine_meet(
        uint64_t* words, int size, const uint64_t* rows, int64_t step, const int32_t* buckets, int count) noexcept
    int words_of "pyengine_words_of"(const uint64_t* bits) noexcept      # a bit for each of eight that is not 0
