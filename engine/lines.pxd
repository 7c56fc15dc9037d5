"""lines: many bits at a time, 512 to a line, and many numbers among bounds at a time; see lines.h."""

from libc.stdint cimport int64_t, uint64_t


cdef extern from "lines.h" nogil:
    # ranks[i] = how many of the 128 bounds[i] are not above keys[i]; behind them lie the last of every eight again
    void pyengine_rank_all(int count, const int64_t* const* bounds, const int64_t* keys, int* ranks) noexcept
    # a bit for each of 64 entries that requires nothing absent
    uint64_t pyengine_lack_nothing(const uint64_t* required, const uint64_t* absent) noexcept
    # bits &= alive and every passed row's line; whether something is left; opened and between as in lines.h
    bint pyengine_look(
        uint64_t* bits, uint64_t* opened, uint64_t* between, const uint64_t* alive, const uint64_t* whole,
        const uint64_t* const* passed, int count, const uint64_t* const* open, int open_count,
        const uint64_t* const* bounded, int bounded_count, int64_t at) noexcept
