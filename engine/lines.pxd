"""lines: many bits at a time, 512 to a line; see lines.h."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t


cdef extern from "lines.h" nogil:
    # a bit for each of 64 entries that requires nothing absent
    uint64_t pyengine_lack_nothing(const uint64_t* required, const uint64_t* absent) noexcept
    # what is left of a line: what matches, is to be asked, lies between; 0: nothing, 1: what matches, 2: of the others
    int pyengine_look(
        uint64_t* bits, uint64_t* asked, uint64_t* between, const uint64_t* wanted, const uint64_t* alive,
        const uint64_t* whole, const uint64_t* by_intervals, const uint64_t* passes, const int64_t* passed, int count,
        const uint64_t* opens, const int64_t* open, int open_count, const int64_t* bounded,
        int bounded_count) noexcept
    int words_of "pyengine_words_of"(const uint64_t* bits) noexcept      # a bit for each of eight that is not 0
    # the numbers of a word's bits, each more by ``more``; how many. Up to four more are written behind them
    int pyengine_spread(uint64_t bits, int32_t more, int32_t* into) noexcept
    # a bit becomes a mark; the bits order[places]
    void pyengine_mark_one(int32_t hit, uint64_t* marks, uint8_t* marked) noexcept
    void pyengine_mark_all(
        const int32_t* places, int count, const int32_t* order, uint64_t* marks, uint8_t* marked,
        void* const* keys) noexcept
    # the bits of the words that are named become marks; how many there were
    int64_t pyengine_mark(
        const uint64_t* found, uint64_t* words, int count, const int32_t* order, uint64_t* marks, uint8_t* marked,
        void* const* keys) noexcept
    # the places of what is marked, in their order; where they end
    int64_t* pyengine_gather(uint64_t* marks, uint8_t* marked, int lines, int64_t more, int64_t* into) noexcept
    int64_t* pyengine_gather_few(uint64_t* marks, uint8_t* marked, int lines, int64_t more, int64_t* into) noexcept
