/* lines: many bits at a time, 512 to a line, and many numbers among bounds at a time, in vectors where the compiler has
   them; on x86-64 in the widest that the machine has. */
#ifndef PYENGINE_LINES_H
#define PYENGINE_LINES_H

#include <stdint.h>
#include <string.h>

#include "clones.h"

/* A line of 512 bits. */
#ifdef __GNUC__
typedef uint64_t pyengine_line __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t pyengine_eight __attribute__((vector_size(64), aligned(8), may_alias));
typedef uint64_t pyengine_half __attribute__((vector_size(32)));
typedef uint64_t pyengine_quarter __attribute__((vector_size(16)));
#define PYENGINE_PARTS 1
#else
typedef uint64_t pyengine_line;
#define PYENGINE_PARTS 8
#endif
#define PYENGINE_EACH_PART for (k = 0; k < PYENGINE_PARTS; k++)
static inline int pyengine_any(const pyengine_line *line) {
#ifdef __GNUC__
    pyengine_half halves[2];
    pyengine_quarter quarters[2];
    uint64_t words[2];
    memcpy(halves, line, sizeof(halves)), halves[0] |= halves[1];
    memcpy(quarters, halves, sizeof(quarters)), quarters[0] |= quarters[1];
    memcpy(words, quarters, sizeof(words));
    return (words[0] | words[1]) != 0;
#else
    return (line[0] | line[1] | line[2] | line[3] | line[4] | line[5] | line[6] | line[7]) != 0;
#endif
}
/* How many of eight are not above a key, and of 16. */
#ifdef __GNUC__
static inline int64_t pyengine_sum(pyengine_eight minus) {
    pyengine_half halves[2];
    pyengine_quarter quarters[2];
    int64_t words[2];
    memcpy(halves, &minus, sizeof(halves)), halves[0] += halves[1];
    memcpy(quarters, halves, sizeof(quarters)), quarters[0] += quarters[1];
    memcpy(words, quarters, sizeof(words));
    return -(words[0] + words[1]);
}
#define PYENGINE_OF_8(bounds, key) pyengine_sum((pyengine_eight)(*(const pyengine_eight *)(bounds) <= (key)))
#define PYENGINE_OF_16(bounds, key) pyengine_sum( \
    (pyengine_eight)(((const pyengine_eight *)(bounds))[0] <= (key)) + \
    (pyengine_eight)(((const pyengine_eight *)(bounds))[1] <= (key)))
#else
static inline int64_t pyengine_not_above(const int64_t *bounds, int count, int64_t key) {
    int64_t sum = 0;
    int k;
    for (k = 0; k < count; k++) sum += bounds[k] <= key;
    return sum;
}
#define PYENGINE_OF_8(bounds, key) pyengine_not_above(bounds, 8, key)
#define PYENGINE_OF_16(bounds, key) pyengine_not_above(bounds, 16, key)
#endif
/* ranks[i] = how many of the 128 bounds[i] are not above keys[i]; behind them lie the last of every eight again. */
PYENGINE_CLONES
static void pyengine_rank_all(int count, const int64_t *const *bounds, const int64_t *keys, int *ranks) {
    int64_t eights;
    int i;
    for (i = 0; i < count; i++) {
        eights = PYENGINE_OF_16(bounds[i] + 128, keys[i]);
        ranks[i] = (int)(8 * eights + PYENGINE_OF_8(bounds[i] + 8 * eights, keys[i]));
    }
}
/* A bit for each of 64 entries that requires nothing absent; ``required`` as in Segment. */
PYENGINE_CLONES
static uint64_t pyengine_lack_nothing(const uint64_t *required, const uint64_t *absent) {
    int i;
#ifdef __GNUC__
    const pyengine_half *four = (const pyengine_half *)required, bits = {1, 2, 4, 8};
    pyengine_half lacking, found = {0, 0, 0, 0};
    for (i = 0; i < 16; i++) {
        lacking = (four[2 * i] & absent[0]) | (four[2 * i + 1] & absent[1]);
        found |= (pyengine_half)(lacking == 0) & bits << 4 * i;
    }
    return found[0] | found[1] | found[2] | found[3];
#else
    uint64_t found = 0;
    for (i = 0; i < 64; i++)
        if (!(required[i / 4 * 8 + i % 4] & absent[0] || required[i / 4 * 8 + 4 + i % 4] & absent[1]))
            found |= (uint64_t)1 << i;
    return found;
#endif
}
/* bits &= the line of alive and every passed row's; whether something is left. Then opened = every open row's line
   and what is not whole, between = every bounded row's line. */
PYENGINE_CLONES
static int pyengine_look(uint64_t *bits, uint64_t *opened, uint64_t *between, const uint64_t *alive,
                         const uint64_t *whole, const uint64_t *const *passed, int count,
                         const uint64_t *const *open, int open_count, const uint64_t *const *bounded,
                         int bounded_count, int64_t at) {
    pyengine_line line[PYENGINE_PARTS], other[PYENGINE_PARTS];
    const pyengine_line *a, *b, *c, *d;
    int i, k;
    a = (const pyengine_line *)bits, b = (const pyengine_line *)alive;
    PYENGINE_EACH_PART line[k] = a[k] & b[k];
    for (i = 0; i + 4 <= count; i += 4) {  /* whether something is left is asked after every fourth row */
        a = (const pyengine_line *)(passed[i] + at), b = (const pyengine_line *)(passed[i + 1] + at);
        c = (const pyengine_line *)(passed[i + 2] + at), d = (const pyengine_line *)(passed[i + 3] + at);
        PYENGINE_EACH_PART line[k] &= a[k] & b[k] & c[k] & d[k];
        if (!pyengine_any(line)) return 0;
    }
    for (; i < count; i++) {
        a = (const pyengine_line *)(passed[i] + at);
        PYENGINE_EACH_PART line[k] &= a[k];
    }
    if (!pyengine_any(line)) return 0;
    memcpy(bits, line, sizeof(line));
    a = (const pyengine_line *)whole;
    PYENGINE_EACH_PART line[k] = ~a[k], other[k] = a[k] ^ a[k];
    for (i = 0; i < open_count; i++) {
        a = (const pyengine_line *)(open[i] + at);
        PYENGINE_EACH_PART line[k] |= a[k];
    }
    memcpy(opened, line, sizeof(line));
    for (i = 0; i < bounded_count; i++) {
        a = (const pyengine_line *)(bounded[i] + at);
        PYENGINE_EACH_PART other[k] |= a[k];
    }
    memcpy(between, other, sizeof(other));
    return 1;
}

#endif
