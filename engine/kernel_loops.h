/* The loops of kernels.h, one copy per instruction set. Included by the room kernels alone. */
#ifndef PYENGINE_KERNEL_LOOPS_H
#define PYENGINE_KERNEL_LOOPS_H

#include "kernels.h"

/* The plain copy: eight bytes of 0 or 1 become eight bits by one multiplication, and back. */
KERNEL_INLINE uint64_t kernel_pack_plain(const uint8_t *m) {
    uint64_t word = 0;
    int k;
    for (k = 0; k < 8; k++) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        const uint64_t magic = UINT64_C(0x8040201008040201);
#else
        const uint64_t magic = UINT64_C(0x0102040810204080);
#endif
        word |= ((kernel_load64(m + 8 * k) * magic) >> 56) << (8 * k);
    }
    return word;
}

KERNEL_INLINE void kernel_expand_plain(uint64_t word, uint8_t *out) {
    int k;
    for (k = 0; k < 64; k++) out[k] = (uint8_t)(word >> k & 1);
}

#define KERNEL(name) name##_plain
#define KERNEL_TARGET
#define PACK64 kernel_pack_plain
#define EXPAND64 kernel_expand_plain
#include "kernel_bodies.h"
#undef KERNEL
#undef KERNEL_TARGET
#undef PACK64
#undef EXPAND64

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define KERNEL_TARGET __attribute__((target("avx2,bmi,bmi2,lzcnt")))
KERNEL_TARGET KERNEL_INLINE uint64_t kernel_pack_avx2(const uint8_t *m) {
    const __m256i low = _mm256_slli_epi16(_mm256_loadu_si256((const __m256i *)m), 7);
    const __m256i high = _mm256_slli_epi16(_mm256_loadu_si256((const __m256i *)(m + 32)), 7);
    return (uint32_t)_mm256_movemask_epi8(low) | (uint64_t)(uint32_t)_mm256_movemask_epi8(high) << 32;
}
KERNEL_TARGET KERNEL_INLINE void kernel_expand_avx2(uint64_t word, uint8_t *out) {
    const __m256i spread = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i place = _mm256_set1_epi64x((int64_t)UINT64_C(0x8040201008040201));
    int half;
    for (half = 0; half < 2; half++) {
        __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32((int)(word >> (32 * half))), spread);
        bytes = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, place), place);
        _mm256_storeu_si256((__m256i *)(out + 32 * half), _mm256_and_si256(bytes, _mm256_set1_epi8(1)));
    }
}
#define KERNEL(name) name##_avx2
#define PACK64 kernel_pack_avx2
#define EXPAND64 kernel_expand_avx2
#include "kernel_bodies.h"
#undef KERNEL
#undef KERNEL_TARGET
#undef PACK64
#undef EXPAND64

#if defined(__clang__)
#define KERNEL_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi,bmi2,lzcnt")))
#else
#define KERNEL_TARGET \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi,bmi2,lzcnt,prefer-vector-width=512")))
#endif
KERNEL_TARGET KERNEL_INLINE uint64_t kernel_pack_avx512(const uint8_t *m) {
    const __m512i bytes = _mm512_loadu_si512(m);
    return _mm512_test_epi8_mask(bytes, bytes);
}
KERNEL_TARGET KERNEL_INLINE void kernel_expand_avx512(uint64_t word, uint8_t *out) {
    _mm512_storeu_si512(out, _mm512_maskz_set1_epi8(word, 1));
}
#define KERNEL(name) name##_avx512
#define PACK64 kernel_pack_avx512
#define EXPAND64 kernel_expand_avx512
#include "kernel_bodies.h"
#undef KERNEL
#undef KERNEL_TARGET
#undef PACK64
#undef EXPAND64
#endif

/* The copies this processor can run, best first: name of copy number `rank`, or NULL; its loops. */
static const kernel_table *kernel_copy(int rank, const char **name) {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && rank-- == 0) {
        *name = "avx512";
        return &table_avx512;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
        rank-- == 0) {
        *name = "avx2";
        return &table_avx2;
    }
#endif
    *name = rank == 0 ? "plain" : NULL;
    return rank == 0 ? &table_plain : NULL;
}

#endif
