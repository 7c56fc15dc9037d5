/* kernels: loops over up to 1024 rows of one typed column, one bit of outcome a row; the ranks of keys among bounds.

   Each loop exists in one copy per instruction set (kernel_loops.h, kernel_bodies.h); best_kernels() picks the best one this processor has,
   so an ordinary wheel runs AVX2 or AVX-512 code. GCC and Clang on x86-64 only; elsewhere there is the plain copy. */
#ifndef PYENGINE_KERNELS_H
#define PYENGINE_KERNELS_H

#include <stdint.h>
#include <string.h>

#include "java/sortable.h"

#if defined(_MSC_VER)
#define KERNEL_INLINE static __forceinline
#else
#define KERNEL_INLINE static inline __attribute__((always_inline, unused))
#endif

/* Outcomes are the rows with low <= key <= high. Keys: the integer itself; of a float its place in Double.compareTo's
   order. real_low, real_high and nan say the same for IEEE comparison, which cannot part -0.0 from 0.0 (keyed: it must). */
typedef struct {
    int64_t low, high;
    double real_low, real_high;
    uint8_t nan, keyed;
} kernel_range;

/* ahead: rows from each row to the one whose memory is fetched early; the plain copy does not fetch. */
typedef void (*kernel_range_loop)(const void *column, int64_t n, int64_t ahead, const kernel_range *range,
                                  uint64_t *words);
typedef void (*kernel_pair_loop)(const void *left, const void *right, int64_t n, int wanted, uint64_t *words);
typedef void (*kernel_codes_loop)(const void *codes, int64_t n, int64_t ahead, const uint32_t *table, int64_t size,
                                  uint64_t *words);
typedef void (*kernel_prefixes_loop)(const void *offsets, const uint8_t *data, int64_t end, int64_t n,
                                     uint64_t *prefixes, uint64_t *lengths);
typedef void (*kernel_texts_loop)(const uint64_t *prefixes, const uint64_t *lengths, int64_t n, uint64_t prefix,
                                  uint64_t mask, uint64_t length, uint64_t *words);

/* ranks[i] = how many of the 128 bounds[i * bound_step], the last INT64_MAX, are not above the key that is key_step * i
   bytes behind the first; behind the bounds lie the last of every eight again. */
typedef void (*kernel_ranks_loop)(const int64_t *const *bounds, int64_t bound_step, const void *keys, int64_t key_step,
                                  int64_t n, int32_t *ranks);

typedef struct {
    kernel_range_loop range[12]; /* int8 .. int64, uint8 .. uint64, float, double, float by key, double by key */
    kernel_pair_loop pair[10];   /* int8 .. int64, uint8 .. uint64, float, double */
    kernel_codes_loop codes[4];  /* by width of the code: 1, 2, 4, 8 bytes */
    kernel_prefixes_loop prefixes[2]; /* 32-bit offsets, 64-bit offsets */
    void (*prefixes_views)(const void *, const uint8_t *const *, const uint64_t *, int64_t, uint64_t *, uint64_t *);
    kernel_texts_loop text_equal, text_starts;
    void (*expand)(const uint64_t *, int64_t, uint8_t *);
    /* arithmetic on up to 1024 rows; int64 stands for int and long. widen: int8 .. uint64 to int64, float, double to double;
       opposite, compute: by int, long, double; compute: 0 sum, 1 difference, 2 product, and of doubles 3 quotient */
    void (*widen[10])(const void *, int64_t, int64_t, void *);
    void (*to_real)(const int64_t *, int64_t, double *);
    void (*opposite[3])(const void *, int64_t, void *);
    void (*compute[3])(int, const void *, const void *, int64_t, void *);
    kernel_ranks_loop ranks;
} kernel_table;

KERNEL_INLINE float kernel_float_of_half(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = (half >> 10) & 31, fraction = half & 1023, bits;
    float value;
    if (exponent == 31) {
        bits = sign | 0x7f800000u | fraction << 13;
    } else if (exponent) {
        bits = sign | (exponent + 112) << 23 | fraction << 13;
    } else {
        value = (float)fraction * 5.9604644775390625e-8f; /* 2^-24 */
        return sign ? -value : value;
    }
    memcpy(&value, &bits, 4);
    return value;
}

/* Fetch what lies `ahead` bytes further (0: nothing) into the second-level cache; it need not exist. */
KERNEL_INLINE void kernel_fetch(const void *at, int64_t ahead, size_t size) {
#if defined(__GNUC__)
    const uintptr_t first = (uintptr_t)at + (uintptr_t)ahead;
    size_t line;
    if (!ahead) return;
    for (line = 0; line < size; line += 64) __builtin_prefetch((const void *)(first + line), 0, 2);
#else
    (void)at, (void)ahead, (void)size;
#endif
}

KERNEL_INLINE uint64_t kernel_load64(const uint8_t *p) {
    uint64_t word;
    memcpy(&word, p, 8);
    return word;
}

/* The bytes of a loaded word that belong to a string of this length, in either byte order. */
KERNEL_INLINE uint64_t kernel_low_bytes(uint64_t length) {
    const int64_t beyond = (int64_t)length - 8; /* without a branch: lengths are not predictable */
    const int missing = (int)(-4 * (beyond & (beyond >> 63))); /* half of the bits: a shift by 64 is undefined */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return ~UINT64_C(0) << missing << missing;
#else
    return ~UINT64_C(0) >> missing >> missing;
#endif
}

/* n bits of a bitmap from bit `start` on, as words; the last word is padded with 0; no byte beyond the last bit is read. */
KERNEL_INLINE void kernel_load_bits(const uint8_t *bitmap, int64_t start, int64_t n, uint64_t *words) {
    const uint8_t *p = bitmap + (start >> 3);
    const int shift = (int)(start & 7);
    const int64_t bytes = (shift + n + 7) >> 3, full = n >> 6;
    int64_t w;
    if (!shift) {
        for (w = 0; w < full; w++) {
            const uint8_t *q = p + 8 * w;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
            int k;
            words[w] = 0;
            for (k = 0; k < 8; k++) words[w] |= (uint64_t)q[k] << (8 * k);
#else
            words[w] = kernel_load64(q);
#endif
        }
    } else {
        for (w = 0; w < full; w++) {
            const uint8_t *q = p + 8 * w;
            uint64_t word = 0;
            int k;
            for (k = 0; k < 8; k++) word |= (uint64_t)q[k] << (8 * k);
            words[w] = word >> shift | (uint64_t)q[8] << (64 - shift);
        }
    }
    if (n & 63) {
        uint64_t word = 0;
        int64_t k, first = 8 * full;
        for (k = first; k < bytes && k < first + 8; k++) word |= (uint64_t)p[k] << (8 * (k - first));
        word >>= shift;
        if (shift && first + 8 < bytes) word |= (uint64_t)p[first + 8] << (64 - shift);
        words[full] = word & ((UINT64_C(1) << (n & 63)) - 1);
    }
}

#endif
