/* marks: bits become numbers, and numbers become marks: a set that is read in its order. One copy of the loops for any
   processor, and one for x86-64 with AVX-512 that can press the bytes a word names together (VBMI2). */
#ifndef PYENGINE_MARKS_H
#define PYENGINE_MARKS_H

#include <stdint.h>
#include <string.h>

#include "lowlevel/bits.h"

#define PYENGINE_SOME 1024 /* numbers that are collected together, and at most a word of words more */
#define PYENGINE_BEHIND 16 /* numbers that may be written behind those of a word */
#define PYENGINE_MOST (PYENGINE_SOME + 64 * 64 + PYENGINE_BEHIND)

/* The numbers of the bits of a word, each more by ``more``; returns how many. They are written by fours, whether there
   are so many or not: to ask takes longer. */
#define PYENGINE_SPREAD 4
static inline int pyengine_spread(uint64_t bits, int32_t more, int32_t *into) {
    const int count = count_bits(bits);
    int k;
    do {
        for (k = 0; k < PYENGINE_SPREAD; k++) {
            int32_t number = more + lowest_bit(bits | (uint64_t)1 << 63);
            pyengine_hide(number); /* by vectors it takes longer */
            into[k] = number;
            bits &= bits - 1;
        }
        into += PYENGINE_SPREAD;
    } while (bits);
    return count;
}
/* The same, of a word that has few; returns where they end. */
static inline int64_t *pyengine_spread_few(uint64_t bits, int64_t more, int64_t *into) {
    const uint64_t last = (uint64_t)1 << 63;
    int64_t one = bits != 0, two;
    into[0] = more + lowest_bit(bits | last);
    pyengine_hide(one);
    bits &= bits - 1;
    into[one] = more + lowest_bit(bits | last);
    two = bits != 0;
    pyengine_hide(two);
    into += one + two;
    if (two)
        for (bits &= bits - 1; bits; bits &= bits - 1) *into++ = more + lowest_bit(bits);
    return into;
}
/* Of 64 numbers those that the bits name, and some behind them; returns how many. */
static inline int pyengine_pick(uint64_t bits, const int32_t *numbers, int32_t *into) {
    const int count = pyengine_spread(bits, 0, into);
    int k;
    for (k = 0; k < count; k++) into[k] = numbers[into[k]];
    return count;
}
static inline int64_t *pyengine_gather_few_plain(uint64_t *marks, uint8_t *marked, int lines, int64_t more, int64_t *into) {
    uint64_t bits;
    int word;
    for (word = 0; word < 8 * lines; word++, more += 64) {
        bits = marks[word];
        marks[word] = 0;
        into = pyengine_spread_few(bits, more, into);
    }
    memset(marked, 0, 8 * (size_t)lines);
    return into;
}

#define MARKS(name) name##_plain
#define MARKS_TARGET
#define PICK pyengine_pick
#define SPREAD_FEW pyengine_spread_few
#include "index/bitsets_bodies.h"
#undef MARKS
#undef MARKS_TARGET
#undef PICK
#undef SPREAD_FEW

#if defined(__x86_64__) && defined(__GNUC__) && !defined(PYENGINE_PLAIN)
#include <immintrin.h>

#define MARKS_TARGET __attribute__((target("avx512f,avx512bw,avx512cd,avx512vbmi2,bmi,bmi2,lzcnt,popcnt")))
/* The numbers of the bits as bytes. */
MARKS_TARGET static inline __m512i pyengine_press(uint64_t bits) {
    static const uint64_t all[8] = {
        0x0706050403020100, 0x0F0E0D0C0B0A0908, 0x1716151413121110, 0x1F1E1D1C1B1A1918,
        0x2726252423222120, 0x2F2E2D2C2B2A2928, 0x3736353433323130, 0x3F3E3D3C3B3A3938,
    };
    return _mm512_maskz_compress_epi8(bits, _mm512_loadu_si512(all));
}
MARKS_TARGET static inline int pyengine_pick_pressed(uint64_t bits, const int32_t *numbers, int32_t *into) {
    const int count = count_bits(bits);
    int k;
    for (k = 0; k < 4; k++, numbers += 16, bits >>= 16) {
        const __mmask16 some = (__mmask16)bits;
        _mm512_storeu_si512(into, _mm512_maskz_compress_epi32(some, _mm512_maskz_loadu_epi32(some, numbers)));
        into += count_bits(some);
    }
    return count;
}
MARKS_TARGET static inline int64_t *pyengine_spread_few_pressed(uint64_t bits, int64_t more, int64_t *into) {
    const int count = count_bits(bits);
    const __m512i numbers = _mm512_cvtepu8_epi64(_mm512_castsi512_si128(pyengine_press(bits)));
    _mm512_storeu_si512(into, _mm512_add_epi64(numbers, _mm512_set1_epi64(more)));
    return count <= 8 ? into + count : pyengine_spread_few(bits, more, into);
}
/* The numbers of a line's bits; takes the bits back. Each word and what is left of it without its first bit lie side by
   side, and what is not 0 of them names a number each; a line with a word of three bits is read word by word. */
MARKS_TARGET static inline int64_t *pyengine_spread_line_pressed(uint64_t *line, int64_t more, int64_t *into) {
    const __m512i one = _mm512_set1_epi64(1), zero = _mm512_setzero_si512();
    const __m512i low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    const __m512i last = _mm512_setr_epi64(63, 63, 127, 127, 191, 191, 255, 255);
    const __m512i words = _mm512_loadu_si512(line), rest = _mm512_and_si512(words, _mm512_sub_epi64(words, one));
    int half, k;
    if (_mm512_test_epi64_mask(rest, _mm512_sub_epi64(rest, one))) {
        for (k = 0; k < 8; k++) into = pyengine_spread_few_pressed(line[k], more + 64 * k, into);
        _mm512_storeu_si512(line, zero);
        return into;
    }
    _mm512_storeu_si512(line, zero);
    for (half = 0; half < 2; half++) {
        const __m512i bits = _mm512_permutex2var_epi64(words, half ? high : low, rest);
        const __m512i first = _mm512_and_si512(bits, _mm512_sub_epi64(zero, bits));
        const __m512i numbers = _mm512_sub_epi64(
            _mm512_add_epi64(last, _mm512_set1_epi64(more + 256 * half)), _mm512_lzcnt_epi64(first));
        const __mmask8 named = _mm512_test_epi64_mask(bits, bits);
        _mm512_storeu_si512(into, _mm512_maskz_compress_epi64(named, numbers));
        into += count_bits(named);
    }
    return into;
}
MARKS_TARGET static int64_t *pyengine_gather_few_pressed(uint64_t *marks, uint8_t *marked, int lines, int64_t more, int64_t *into) {
    int line;
    for (line = 0; line < lines; line++)
        into = pyengine_spread_line_pressed(marks + 8 * line, more + 512 * line, into);
    memset(marked, 0, 8 * (size_t)lines);
    return into;
}
#define MARKS(name) name##_pressed
#define PICK pyengine_pick_pressed
#define SPREAD_FEW pyengine_spread_few_pressed
#include "index/bitsets_bodies.h"
#undef MARKS
#undef MARKS_TARGET
#undef PICK
#undef SPREAD_FEW

#define PYENGINE_IF_PRESSED(answer) \
    if (__builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd")) \
        return answer
#else
#define PYENGINE_IF_PRESSED(answer)
#endif

/* Of ``order`` what the bits of ``found`` name, whose words ``words`` names, from the word ``at`` of ``words`` on, until
   there are PYENGINE_SOME or more; returns how many, 0 at the end. Takes bits and names back. ``hits`` has room for
   PYENGINE_MOST. */
static inline int pyengine_collect(uint64_t *found, uint64_t *words, int count, int *at, const int32_t *order, int32_t *hits) {
    PYENGINE_IF_PRESSED(pyengine_collect_pressed(found, words, count, at, order, hits));
    return pyengine_collect_plain(found, words, count, at, order, hits);
}
/* Marks the bits ``hits``, and their words by a byte of ``marked``. What ``keys`` has there is fetched, unless it is NULL. */
static inline void pyengine_mark(const int32_t *hits, int count, uint64_t *marks, uint8_t *marked, void *const *keys) {
    PYENGINE_IF_PRESSED(pyengine_mark_pressed(hits, count, marks, marked, keys));
    pyengine_mark_plain(hits, count, marks, marked, keys);
}
/* The places of what is marked, each more by ``more``, in their order; takes the marks back. ``into`` has room for
   PYENGINE_BEHIND more. */
static inline int64_t *pyengine_gather(uint64_t *marks, uint8_t *marked, int lines, int64_t more, int64_t *into) {
    PYENGINE_IF_PRESSED(pyengine_gather_pressed(marks, marked, lines, more, into));
    return pyengine_gather_plain(marks, marked, lines, more, into);
}
/* The same of a few lines, whose words are all looked at. */
static inline int64_t *pyengine_gather_few(uint64_t *marks, uint8_t *marked, int lines, int64_t more, int64_t *into) {
    PYENGINE_IF_PRESSED(pyengine_gather_few_pressed(marks, marked, lines, more, into));
    return pyengine_gather_few_plain(marks, marked, lines, more, into);
}

#endif
