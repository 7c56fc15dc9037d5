/* The loops of kernels.h, one copy per instruction set. Included by the room kernels alone. */
#ifndef PYENGINE_KERNEL_LOOPS_H
#define PYENGINE_KERNEL_LOOPS_H

#include "columns/kernels.h"

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
#include "columns/kernel_bodies.h"
#undef KERNEL
#undef KERNEL_TARGET
#undef PACK64
#undef EXPAND64

#if defined(__x86_64__) && defined(__GNUC__) && !defined(PYENGINE_PLAIN)
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
/* 64 rows at once, straight into a word. Rows are inside when low <= value <= high; nan: or when they are NaN. */
KERNEL_TARGET KERNEL_INLINE uint64_t inside_int32_avx2(const int32_t *v, int32_t low, int32_t high) {
    const __m256i below = _mm256_set1_epi32(low), above = _mm256_set1_epi32(high);
    uint64_t word = 0;
    int k;
    for (k = 0; k < 8; k++) {
        const __m256i x = _mm256_loadu_si256((const __m256i *)(v + 8 * k));
        const __m256i outside = _mm256_or_si256(_mm256_cmpgt_epi32(below, x), _mm256_cmpgt_epi32(x, above));
        word |= (uint64_t)(uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(outside)) << (8 * k);
    }
    return ~word;
}
KERNEL_TARGET KERNEL_INLINE uint64_t inside_int64_avx2(const int64_t *v, int64_t low, int64_t high) {
    const __m256i below = _mm256_set1_epi64x(low), above = _mm256_set1_epi64x(high);
    uint64_t word = 0;
    int k;
    for (k = 0; k < 16; k++) {
        const __m256i x = _mm256_loadu_si256((const __m256i *)(v + 4 * k));
        const __m256i outside = _mm256_or_si256(_mm256_cmpgt_epi64(below, x), _mm256_cmpgt_epi64(x, above));
        word |= (uint64_t)(uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(outside)) << (4 * k);
    }
    return ~word;
}
KERNEL_TARGET KERNEL_INLINE uint64_t inside_float_avx2(const float *v, float low, float high, int nan) {
    const __m256 below = _mm256_set1_ps(low), above = _mm256_set1_ps(high);
    uint64_t word = 0, unordered = 0;
    int k;
    for (k = 0; k < 8; k++) {
        const __m256 x = _mm256_loadu_ps(v + 8 * k);
        const __m256 in = _mm256_and_ps(_mm256_cmp_ps(x, below, _CMP_GE_OQ), _mm256_cmp_ps(x, above, _CMP_LE_OQ));
        word |= (uint64_t)(uint32_t)_mm256_movemask_ps(in) << (8 * k);
        if (nan) unordered |= (uint64_t)(uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)) << (8 * k);
    }
    return word | unordered;
}
KERNEL_TARGET KERNEL_INLINE uint64_t inside_double_avx2(const double *v, double low, double high, int nan) {
    const __m256d below = _mm256_set1_pd(low), above = _mm256_set1_pd(high);
    uint64_t word = 0, unordered = 0;
    int k;
    for (k = 0; k < 16; k++) {
        const __m256d x = _mm256_loadu_pd(v + 4 * k);
        const __m256d in = _mm256_and_pd(_mm256_cmp_pd(x, below, _CMP_GE_OQ), _mm256_cmp_pd(x, above, _CMP_LE_OQ));
        word |= (uint64_t)(uint32_t)_mm256_movemask_pd(in) << (4 * k);
        if (nan) unordered |= (uint64_t)(uint32_t)_mm256_movemask_pd(_mm256_cmp_pd(x, x, _CMP_UNORD_Q)) << (4 * k);
    }
    return word | unordered;
}

/* Bits of 32-bit table words by code: a table of up to 8 words lies in a register, a longer one is gathered. */
enum { CODES_IN_REGISTER_avx2 = 256 };
typedef struct {
    __m256i words, last;
    const uint32_t *table;
} code_table_avx2;
KERNEL_TARGET KERNEL_INLINE code_table_avx2 code_table_of_avx2(const uint32_t *table, int64_t size) {
    code_table_avx2 made;
    uint32_t first[8] = {0};
    memcpy(first, table, size > 256 ? 32 : 4 * (size_t)((size + 31) >> 5));
    made.words = _mm256_loadu_si256((const __m256i *)first);
    made.last = _mm256_set1_epi32(size > UINT32_MAX ? -1 : (int)(uint32_t)(size - 1));
    made.table = table;
    return made;
}
KERNEL_TARGET KERNEL_INLINE uint64_t codes_word_avx2(const void *codes, int width, code_table_avx2 t, int large) {
    uint64_t word = 0;
    int k;
    for (k = 0; k < 8; k++) {
        const char *at = (const char *)codes + 8 * k * width;
        __m256i code, bits;
        if (width == 1) code = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)at));
        else if (width == 2) code = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)at));
        else code = _mm256_loadu_si256((const __m256i *)at);
        if (large) {
            code = _mm256_min_epu32(code, t.last);
            bits = _mm256_i32gather_epi32((const int *)t.table, _mm256_srli_epi32(code, 5), 4);
        } else {
            bits = _mm256_permutevar8x32_epi32(t.words, _mm256_srli_epi32(code, 5));
        }
        bits = _mm256_srlv_epi32(bits, _mm256_and_si256(code, _mm256_set1_epi32(31)));
        bits = _mm256_slli_epi32(bits, 31);
        word |= (uint64_t)(uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(bits)) << (8 * k);
    }
    return word;
}

/* Rows whose text has this length (at_least: or a longer one) and whose first bytes are `prefix` under `mask`. */
KERNEL_TARGET KERNEL_INLINE uint64_t text_word_avx2(const uint64_t *prefixes, const uint64_t *lengths, uint64_t prefix,
                                                    uint64_t mask, uint64_t length, int at_least) {
    const __m256i wanted = _mm256_set1_epi64x((int64_t)prefix), kept = _mm256_set1_epi64x((int64_t)mask);
    const __m256i size = _mm256_set1_epi64x((int64_t)length - at_least);
    uint64_t word = 0;
    int k;
    for (k = 0; k < 16; k++) {
        const __m256i x = _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(prefixes + 4 * k)), kept);
        const __m256i l = _mm256_loadu_si256((const __m256i *)(lengths + 4 * k));
        const __m256i fits = at_least ? _mm256_cmpgt_epi64(l, size) : _mm256_cmpeq_epi64(l, size);
        const __m256i same = _mm256_and_si256(_mm256_cmpeq_epi64(x, wanted), fits);
        word |= (uint64_t)(uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(same)) << (4 * k);
    }
    return word;
}
/* How many of 8 and of 16 numbers in order are not above a key, the last of which is. */
KERNEL_TARGET KERNEL_INLINE int above8_avx2(const int64_t *bounds, __m256i key) {
    const __m256i low = _mm256_cmpgt_epi64(_mm256_loadu_si256((const __m256i *)bounds), key);
    const __m256i high = _mm256_cmpgt_epi64(_mm256_loadu_si256((const __m256i *)(bounds + 4)), key);
    return _mm256_movemask_pd(_mm256_castsi256_pd(low)) | _mm256_movemask_pd(_mm256_castsi256_pd(high)) << 4;
}
KERNEL_TARGET KERNEL_INLINE int below8_avx2(const int64_t *bounds, int64_t key) {
    return __builtin_ctz((unsigned)above8_avx2(bounds, _mm256_set1_epi64x(key)));
}
KERNEL_TARGET KERNEL_INLINE int below16_avx2(const int64_t *bounds, int64_t key) {
    const __m256i many = _mm256_set1_epi64x(key);
    return __builtin_ctz((unsigned)(above8_avx2(bounds, many) | above8_avx2(bounds + 8, many) << 8));
}
#define KERNEL_WORDS
#define KERNEL(name) name##_avx2
#define PACK64 kernel_pack_avx2
#define EXPAND64 kernel_expand_avx2
#include "columns/kernel_bodies.h"
#undef KERNEL
#undef KERNEL_TARGET
#undef PACK64
#undef EXPAND64
#undef KERNEL_WORDS

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
KERNEL_TARGET KERNEL_INLINE uint64_t join16_avx512(__mmask16 a, __mmask16 b, __mmask16 c, __mmask16 d) {
    return _mm512_kunpackd(_mm512_kunpackw(d, c), _mm512_kunpackw(b, a));
}
KERNEL_TARGET KERNEL_INLINE uint64_t inside_int32_avx512(const int32_t *v, int32_t low, int32_t high) {
    const __m512i least = _mm512_set1_epi32(low), span = _mm512_set1_epi32((int)((uint32_t)high - (uint32_t)low));
#define PART(k) _mm512_cmple_epu32_mask(_mm512_sub_epi32(_mm512_loadu_si512(v + 16 * (k)), least), span)
    return low > high ? 0 : join16_avx512(PART(0), PART(1), PART(2), PART(3));
#undef PART
}
KERNEL_TARGET KERNEL_INLINE uint64_t inside_float_avx512(const float *v, float low, float high, int nan) {
    const __m512 below = _mm512_set1_ps(low), above = _mm512_set1_ps(high);
#define LOAD(k) _mm512_loadu_ps(v + 16 * (k))
#define ORDERED(k) \
    _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(LOAD(k), below, _CMP_GE_OQ), LOAD(k), above, _CMP_LE_OQ)
#define OR_NAN(k) \
    _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(LOAD(k), below, _CMP_NLT_UQ), LOAD(k), above, _CMP_NGT_UQ)
    return nan ? join16_avx512(OR_NAN(0), OR_NAN(1), OR_NAN(2), OR_NAN(3))
               : join16_avx512(ORDERED(0), ORDERED(1), ORDERED(2), ORDERED(3));
#undef LOAD
#undef ORDERED
#undef OR_NAN
}
KERNEL_TARGET KERNEL_INLINE uint64_t inside_int64_avx512(const int64_t *v, int64_t low, int64_t high) {
    const __m512i least = _mm512_set1_epi64(low), span = _mm512_set1_epi64((int64_t)((uint64_t)high - (uint64_t)low));
    uint64_t word = 0;
    int k;
    for (k = 0; k < 8; k++) {
        const __m512i x = _mm512_sub_epi64(_mm512_loadu_si512(v + 8 * k), least);
        word |= (uint64_t)_mm512_cmple_epu64_mask(x, span) << (8 * k);
    }
    return low > high ? 0 : word;
}
KERNEL_TARGET KERNEL_INLINE uint64_t inside_double_avx512(const double *v, double low, double high, int nan) {
    const __m512d below = _mm512_set1_pd(low), above = _mm512_set1_pd(high);
    uint64_t word = 0;
    int k;
    for (k = 0; k < 8; k++) {
        const __m512d x = _mm512_loadu_pd(v + 8 * k);
        const __mmask8 in =
            nan ? _mm512_mask_cmp_pd_mask(_mm512_cmp_pd_mask(x, below, _CMP_NLT_UQ), x, above, _CMP_NGT_UQ)
                : _mm512_mask_cmp_pd_mask(_mm512_cmp_pd_mask(x, below, _CMP_GE_OQ), x, above, _CMP_LE_OQ);
        word |= (uint64_t)in << (8 * k);
    }
    return word;
}

enum { CODES_IN_REGISTER_avx512 = 512 };
typedef struct {
    __m512i words, last;
    const uint32_t *table;
} code_table_avx512;
KERNEL_TARGET KERNEL_INLINE code_table_avx512 code_table_of_avx512(const uint32_t *table, int64_t size) {
    code_table_avx512 made;
    const int64_t used = size > 512 ? 16 : (size + 31) >> 5;
    made.words = _mm512_maskz_loadu_epi32((__mmask16)((1u << used) - 1), table);
    made.last = _mm512_set1_epi32(size > UINT32_MAX ? -1 : (int)(uint32_t)(size - 1));
    made.table = table;
    return made;
}
KERNEL_TARGET KERNEL_INLINE __mmask16 codes_part_avx512(const char *at, int width, code_table_avx512 t, int large) {
    __m512i code, bits;
    if (width == 1) code = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)at));
    else if (width == 2) code = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)at));
    else code = _mm512_loadu_si512(at);
    if (large) {
        code = _mm512_min_epu32(code, t.last);
        bits = _mm512_i32gather_epi32(_mm512_srli_epi32(code, 5), t.table, 4);
    } else {
        bits = _mm512_permutexvar_epi32(_mm512_srli_epi32(code, 5), t.words);
    }
    code = _mm512_and_si512(code, _mm512_set1_epi32(31));
    return _mm512_test_epi32_mask(bits, _mm512_sllv_epi32(_mm512_set1_epi32(1), code));
}
KERNEL_TARGET KERNEL_INLINE uint64_t codes_word_avx512(const void *codes, int width, code_table_avx512 t, int large) {
    const char *at = (const char *)codes;
    return join16_avx512(codes_part_avx512(at, width, t, large), codes_part_avx512(at + 16 * width, width, t, large),
                         codes_part_avx512(at + 32 * width, width, t, large),
                         codes_part_avx512(at + 48 * width, width, t, large));
}

KERNEL_TARGET KERNEL_INLINE uint64_t text_word_avx512(const uint64_t *prefixes, const uint64_t *lengths,
                                                      uint64_t prefix, uint64_t mask, uint64_t length, int at_least) {
    const __m512i wanted = _mm512_set1_epi64((int64_t)prefix), kept = _mm512_set1_epi64((int64_t)mask);
    const __m512i size = _mm512_set1_epi64((int64_t)length);
    uint64_t word = 0;
    int k;
    for (k = 0; k < 8; k++) {
        const __m512i x = _mm512_and_si512(_mm512_loadu_si512(prefixes + 8 * k), kept);
        const __m512i l = _mm512_loadu_si512(lengths + 8 * k);
        const __mmask8 fits = at_least ? _mm512_cmpge_epu64_mask(l, size) : _mm512_cmpeq_epi64_mask(l, size);
        word |= (uint64_t)_mm512_mask_cmpeq_epi64_mask(fits, x, wanted) << (8 * k);
    }
    return word;
}
KERNEL_TARGET KERNEL_INLINE int below8_avx512(const int64_t *bounds, int64_t key) {
    return __builtin_ctz(_mm512_cmpgt_epi64_mask(_mm512_loadu_si512(bounds), _mm512_set1_epi64(key)));
}
KERNEL_TARGET KERNEL_INLINE int below16_avx512(const int64_t *bounds, int64_t key) {
    const __m512i many = _mm512_set1_epi64(key);
    const __mmask8 low = _mm512_cmpgt_epi64_mask(_mm512_loadu_si512(bounds), many);
    const __mmask8 high = _mm512_cmpgt_epi64_mask(_mm512_loadu_si512(bounds + 8), many);
    return __builtin_ctz((unsigned)low | (unsigned)high << 8);
}
#define KERNEL_WORDS
#define KERNEL(name) name##_avx512
#define PACK64 kernel_pack_avx512
#define EXPAND64 kernel_expand_avx512
#include "columns/kernel_bodies.h"
#undef KERNEL
#undef KERNEL_TARGET
#undef PACK64
#undef EXPAND64
#undef KERNEL_WORDS
#endif

/* The copies this processor can run, best first: name of copy number `rank`, or NULL; its loops. */
static const kernel_table *kernel_copy(int rank, const char **name) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(PYENGINE_PLAIN)
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
