/* lines: many bits at a time, 512 to a line, in vectors where the compiler has them; on x86-64 in the widest that the
   machine has. */
#ifndef PYENGINE_LINES_H
#define PYENGINE_LINES_H

#include <stdint.h>
#include <string.h>

#include "lowlevel/bits.h"
#include "lowlevel/clones.h"

/* A line of 512 bits. */
#ifdef __GNUC__
typedef uint64_t pyengine_line __attribute__((vector_size(64), aligned(8), may_alias));
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
/* Of ``words`` the bits that each row has; the rows are words from ``rows`` on, that of a bucket ``step`` behind the one
   before. */
PYENGINE_CLONES
static void pyengine_meet(uint64_t *words, int size, const uint64_t *rows, int64_t step, const int32_t *buckets, int count) {
    int at = 0, i, k;
    for (; at + 8 <= size; at += 8) {
        pyengine_line *line = (pyengine_line *)(words + at), left[PYENGINE_PARTS];
        PYENGINE_EACH_PART left[k] = line[k];
        if (!pyengine_any(left)) continue;
        for (i = 0; i < count; i++) {
            const pyengine_line *row = (const pyengine_line *)(rows + step * buckets[i] + at);
            PYENGINE_EACH_PART left[k] &= row[k];
        }
        PYENGINE_EACH_PART line[k] = left[k];
    }
    for (; at < size; at++)
        for (i = 0; words[at] && i < count; i++) words[at] &= rows[step * buckets[i] + at];
}
/* A bit for each of the eight words of a line that is not 0. */
static inline int pyengine_words_of(const uint64_t *bits) {
    int k, words = 0;
    for (k = 0; k < 8; k++) words |= (bits[k] != 0) << k;
    return words;
}
typedef struct {
    const int64_t *passed;
    int count;
    const int64_t *open;
    int open_count;
    const int64_t *bounded;
    int bounded_count;
} pyengine_rows;
typedef struct {
    const uint64_t *alive, *whole, *by_intervals, *passes, *opens;
} pyengine_line_of;
typedef struct {
    uint64_t asked[8], between[8];
} pyengine_left;
/* What is left of the line ``wanted`` and alive behind every passed row. Of it: bits, what matches; asked, what an open
   row's line or ``whole`` leaves to the program, or a bounded row's where the intervals do not say all; between, what a
   bounded row's leaves to the intervals. Returns 0: nothing is left and nothing written, 1: nothing that asked or between
   has, or 2. Rows are words from ``passes`` on, from ``opens``. */
PYENGINE_CLONES
static int pyengine_look(uint64_t *bits, pyengine_left *left, const uint64_t *wanted, const pyengine_line_of *of,
                         const pyengine_rows *rows) {
    const uint64_t *passes = of->passes, *opens = of->opens;
    const int64_t *passed = rows->passed;
    const int count = rows->count;
    pyengine_line line[PYENGINE_PARTS], opened[PYENGINE_PARTS], other[PYENGINE_PARTS];
    const pyengine_line *a, *b, *c, *d;
    int i, k;
    a = (const pyengine_line *)wanted, b = (const pyengine_line *)of->alive;
    PYENGINE_EACH_PART line[k] = a[k] & b[k];
    for (i = 0; i + 4 <= count; i += 4) {  /* whether something is left is asked after every fourth row */
        a = (const pyengine_line *)(passes + passed[i]), b = (const pyengine_line *)(passes + passed[i + 1]);
        c = (const pyengine_line *)(passes + passed[i + 2]), d = (const pyengine_line *)(passes + passed[i + 3]);
        PYENGINE_EACH_PART line[k] &= a[k] & b[k] & c[k] & d[k];
        if (!pyengine_any(line)) return 0;
    }
    for (; i < count; i++) {
        a = (const pyengine_line *)(passes + passed[i]);
        PYENGINE_EACH_PART line[k] &= a[k];
    }
    if (!pyengine_any(line)) return 0;
    a = (const pyengine_line *)of->whole;
    PYENGINE_EACH_PART opened[k] = ~a[k], other[k] = a[k] ^ a[k];
    for (i = 0; i < rows->open_count; i++) {
        a = (const pyengine_line *)(opens + rows->open[i]);
        PYENGINE_EACH_PART opened[k] |= a[k];
    }
    for (i = 0; i < rows->bounded_count; i++) {
        a = (const pyengine_line *)(opens + rows->bounded[i]);
        PYENGINE_EACH_PART other[k] |= a[k];
    }
    a = (const pyengine_line *)of->by_intervals;
    PYENGINE_EACH_PART opened[k] = line[k] & (opened[k] | (other[k] & ~a[k]));
    PYENGINE_EACH_PART other[k] &= line[k] & ~opened[k];
    PYENGINE_EACH_PART line[k] &= ~(opened[k] | other[k]);
    memcpy(bits, line, sizeof(line)), memcpy(left->asked, opened, sizeof(opened));
    memcpy(left->between, other, sizeof(other));
    PYENGINE_EACH_PART other[k] |= opened[k];
    return 1 + pyengine_any(other);
}

#endif
