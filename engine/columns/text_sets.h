/* text_sets: which texts of a chunk are among many constants.

   A text's mark is its first 8 bytes, its last 8 and its length. A filter has a bit for the hash of each constant's mark,
   about one bit in sixteen is set, so that nearly every text that is none of them is known at one look; the others are
   looked up in an open-addressed table, by the mark or, where two constants have one mark, by a hash of all bytes. */
#ifndef PYENGINE_TEXT_SETS_H
#define PYENGINE_TEXT_SETS_H

#include "columns/kernels.h"
#include "lowlevel/bits.h"

#define TEXT_FREE UINT32_MAX

typedef struct {
    uint64_t first, last;
    const uint8_t *text;
    uint32_t length; /* TEXT_FREE: no constant here */
} text_entry;

typedef struct {
    uint64_t *filter;
    text_entry *entries;
    int filter_shift, entry_shift;
    uint64_t mask;    /* entries - 1 */
    int whole;        /* the table is by the hash of all bytes */
    uint64_t longest; /* of the constants */
} text_set;

/* Rows of a chunk of texts. */
typedef struct {
    const uint64_t *prefixes; /* the first 8 bytes of each */
    const uint64_t *lengths;
    const uint64_t *live;    /* bits: the rows to look up */
    const uint64_t *present; /* bits: the rows with a value, or NULL */
    int64_t count;
} text_rows;

KERNEL_INLINE uint64_t text_hash(uint64_t first, uint64_t last, uint64_t length) {
    return ((first ^ (last << 31 | last >> 33)) + length * UINT64_C(0xC2B2AE3D27D4EB4F)) * UINT64_C(0x9E3779B97F4A7C15);
}

static inline uint64_t text_whole_hash(const uint8_t *text, uint64_t length) {
    uint64_t hash = length, at;
    for (at = 0; at + 8 <= length; at += 8) {
        hash = (hash ^ kernel_load64(text + at)) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    for (; at < length; at++) hash = (hash ^ text[at]) * UINT64_C(0x9E3779B97F4A7C15);
    return (hash ^ hash >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
}

KERNEL_INLINE int text_in_set(const text_set *set, uint64_t first, uint64_t last, const uint8_t *text, uint64_t length) {
    const uint64_t hash = set->whole ? text_whole_hash(text, length) : text_hash(first, last, length);
    uint64_t at = hash >> set->entry_shift;
    for (;; at = (at + 1) & set->mask) {
        const text_entry *entry = &set->entries[at];
        if (entry->length == TEXT_FREE) return 0;
        if (entry->first == first && entry->last == last && entry->length == length &&
            (length <= 16 || !memcmp(text + 8, entry->text + 8, (size_t)length - 16)))
            return 1;
    }
}

/* Where the last 8 bytes lie, of a short text its first ones: without a branch, because lengths are not predictable. */
KERNEL_INLINE const uint8_t *text_end(const uint64_t *first, const uint8_t *text, uint64_t length) {
    const uintptr_t longer = (uintptr_t)0 - (uintptr_t)(length > 8);
    return (const uint8_t *)((((uintptr_t)(text + length) - 8) & longer) | ((uintptr_t)first & ~longer));
}

#define TEXT_ROWS(rows)                                                                                                   \
    const uint64_t *const prefixes = rows->prefixes, *const lengths = rows->lengths;                                      \
    const uint64_t *const live = rows->live, *const present = rows->present;                                              \
    const int64_t n = rows->count;                                                                                        \
    int64_t w

#define TEXT_SET_LOOP(PLACE, LAST)                                                                                        \
    for (w = 0; w < (n + 63) >> 6; w++) {                                                                                 \
        const int64_t base = w << 6, stop = n - base < 64 ? n - base : 64;                                                \
        uint64_t maybe = 0, rest, found = 0, mask = present ? live[w] & present[w] : live[w];                             \
        int64_t k;                                                                                                        \
        if (set->longest <= 8) /* the data need not be read */                                                            \
            for (k = 0; k < stop; k++) {                                                                                  \
                const uint64_t length = lengths[base + k], first = prefixes[base + k] & kernel_low_bytes(length);         \
                const uint64_t hash = text_hash(first, first, length) >> set->filter_shift;                               \
                maybe |= (set->filter[hash >> 6] >> (hash & 63) & (length <= 8)) << k;                                    \
            }                                                                                                             \
        else                                                                                                              \
            for (k = 0; k < stop; k++) {                                                                                  \
                const int64_t i = base + k;                                                                               \
                const uint64_t length = lengths[i], first = prefixes[i] & kernel_low_bytes(length);                       \
                const uint64_t hash = text_hash(first, LAST, length) >> set->filter_shift;                                \
                maybe |= (set->filter[hash >> 6] >> (hash & 63) & 1) << k;                                                \
            }                                                                                                             \
        for (rest = maybe & mask; rest; rest &= rest - 1) {                                                               \
            const int64_t i = base + lowest_bit(rest);                                                                    \
            const uint64_t length = lengths[i], first = prefixes[i] & kernel_low_bytes(length);                           \
            const uint8_t *text = length > 8 ? PLACE : (const uint8_t *)&first;                                           \
            const uint64_t last = length > 8 ? kernel_load64(text + length - 8) : first;                                  \
            found |= (uint64_t)text_in_set(set, first, last, text, length) << (i & 63);                                   \
        }                                                                                                                 \
        words[w] = found;                                                                                                 \
    }

static inline void texts_in_offsets32(const text_set *set, const int32_t *offsets, const uint8_t *data,
                                      const text_rows *rows, uint64_t *words) {
    TEXT_ROWS(rows);
    TEXT_SET_LOOP((data + offsets[i]), kernel_load64(text_end(&first, data + offsets[i], length)))
}

static inline void texts_in_offsets64(const text_set *set, const int64_t *offsets, const uint8_t *data,
                                      const text_rows *rows, uint64_t *words) {
    TEXT_ROWS(rows);
    TEXT_SET_LOOP((data + offsets[i]), kernel_load64(text_end(&first, data + offsets[i], length)))
}

KERNEL_INLINE const uint8_t *text_of_view(const uint8_t *view, const uint8_t *const *parts) {
    int32_t head[4];
    memcpy(head, view, 16);
    return head[0] <= 12 ? view + 4 : parts[head[2]] + head[3];
}

static inline void texts_in_views(const text_set *set, const uint8_t *views, const uint8_t *const *parts,
                                  const text_rows *rows, uint64_t *words) {
    TEXT_ROWS(rows);
    TEXT_SET_LOOP(text_of_view(views + 16 * i, parts),
                  length <= 8 || !(mask >> k & 1) ? first
                                                  : kernel_load64(text_of_view(views + 16 * i, parts) + length - 8))
}

#endif
