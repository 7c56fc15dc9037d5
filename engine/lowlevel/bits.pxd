"""bits: the set bits of a word, prefetching, and a barrier for the compiler; see bits.h."""

from libc.stdint cimport uint8_t, uint64_t


cdef extern from "lowlevel/bits.h" nogil:
    int lowest_bit(uint64_t word) noexcept       # of a word that is not 0
    int highest_bit(uint64_t word) noexcept      # the same
    int count_bits(uint64_t word) noexcept
    int numbers_of(uint64_t word, uint8_t* into) noexcept    # of the set bits, into 64 bytes; returns how many
    void turn_bits(uint64_t* words) noexcept     # bit k of word i becomes bit i of word k, of 64
    uint64_t bits_of_bytes(const uint8_t* eight) noexcept    # a bit for each of eight bytes that are 0 or 1
    void pyengine_prefetch(const void* address) noexcept
