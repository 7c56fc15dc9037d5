/* bits: the set bits of a word, prefetching, and a barrier for the compiler. */
#ifndef PYENGINE_BITS_H
#define PYENGINE_BITS_H

#include <stdint.h>
#include <string.h>

#if defined(_MSC_VER)
#include <intrin.h>
static __forceinline int lowest_bit(uint64_t word) { unsigned long place; _BitScanForward64(&place, word); return (int)place; }
static __forceinline int highest_bit(uint64_t word) { unsigned long place; _BitScanReverse64(&place, word); return (int)place; }
static __forceinline int count_bits(uint64_t word) { return (int)__popcnt64(word); }
#else
static inline __attribute__((always_inline, unused)) int lowest_bit(uint64_t word) { return __builtin_ctzll(word); }
static inline __attribute__((always_inline, unused)) int highest_bit(uint64_t word) { return 63 - __builtin_clzll(word); }
/* Compilers recognise this as one instruction if the processor has it; otherwise it is inlined, without a call. */
static inline __attribute__((always_inline, unused)) int count_bits(uint64_t word) {
    word -= word >> 1 & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + (word >> 2 & 0x3333333333333333u);
    return (int)(((word + (word >> 4)) & 0x0F0F0F0F0F0F0F0Fu) * 0x0101010101010101u >> 56);
}
#endif

/* Writes the numbers of the set bits in ascending order and returns how many there are. */
static inline int numbers_of(uint64_t word, uint8_t *into) {
    int count = 0;
    if (word == UINT64_MAX)
        for (; count < 64; count++) into[count] = (uint8_t)count;
    else
        for (; word; word &= word - 1) into[count++] = (uint8_t)lowest_bit(word);
    return count;
}

/* Bit k of word i becomes bit i of word k, of 64. */
static inline void turn_bits(uint64_t *words) {
    uint64_t mask = 0x00000000FFFFFFFFu, swapped;
    int step, first, k;
    for (step = 32; step; step >>= 1, mask ^= mask << step)
        for (first = 0; first < 64; first += 2 * step)
            for (k = first; k < first + step; k++) {
                swapped = (words[k] >> step ^ words[k + step]) & mask;
                words[k] ^= swapped << step;
                words[k + step] ^= swapped;
            }
}

/* A bit for each of eight bytes that are 0 or 1, the first the lowest. */
static inline uint64_t bits_of_bytes(const uint8_t *eight) {
    uint64_t bytes;
    memcpy(&bytes, eight, 8);
    return bytes * 0x0102040810204080u >> 56;
}

/* hide: keeps the compiler from knowing the number, so that it does not emit a branch that cannot be predicted. */
#ifdef __GNUC__
#define pyengine_prefetch(address) __builtin_prefetch(address)
#define pyengine_hide(number) __asm__("" : "+r"(number))
#else
#define pyengine_prefetch(address) ((void)(address))
#define pyengine_hide(number) ((void)(number))
#endif

#endif
