"""bit_blocks: many bits at a time, 512 to a line; see bit_blocks.h."""

from libc.stdint cimport int32_t, int64_t, uint64_t


cdef extern from "index/bit_blocks.h" nogil:
    # a bit for each of 64 entries that requires nothing absent
    uint64_t pyengine_lack_nothing(const uint64_t* required, const uint64_t* absent) noexcept
    ctypedef struct pyengine_rows:         # the rows of a message's buckets, as offsets from ``passes`` and ``opens``
        const int64_t* passed
        int count
        const int64_t* open
        int open_count
        const int64_t* bounded
        int bounded_count

    ctypedef struct pyengine_line_of:      # one line of a segment
        const uint64_t* alive
        const uint64_t* whole
        const uint64_t* by_intervals
        const uint64_t* passes
        const uint64_t* opens

    ctypedef struct pyengine_left:         # what is left of a line and not decided yet
        uint64_t[8] asked                  # the program decides
        uint64_t[8] between                # the intervals do

    # what is left of the line ``wanted``; 0: nothing, 1: what matches, 2: of the others
    int pyengine_look(
        uint64_t* bits, pyengine_left* left, const uint64_t* wanted, const pyengine_line_of* line,
        const pyengine_rows* rows) noexcept
    # the bits of words that each bucket's row has, too
    void pyengine_meet(
        uint64_t* words, int size, const uint64_t* rows, int64_t step, const int32_t* buckets, int count) noexcept
    int words_of "pyengine_words_of"(const uint64_t* bits) noexcept      # a bit for each of eight that is not 0
