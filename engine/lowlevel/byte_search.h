/* byte_search: a string of bytes within another.

   find_few: for strings of some dozen bytes: 16 places are asked at a time for the first and the last byte of what is
   sought (the generic SIMD search of Mula), and what passes is compared. find_any: for any, by the C library's memmem
   (two-way search), where it has one. */
#ifndef PYENGINE_BYTE_SEARCH_H
#define PYENGINE_BYTE_SEARCH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__) && defined(__GNUC__)
#include <emmintrin.h>
#define HAS_FIND_FEW 1
#else
#define HAS_FIND_FEW 0
#endif

#if defined(__GLIBC__) || defined(__APPLE__)
#define HAS_FIND_ANY 1
static inline const uint8_t *find_any(const uint8_t *text, size_t length, const uint8_t *part, size_t count) {
    return (const uint8_t *)memmem(text, length, part, count);
}
#else
#define HAS_FIND_ANY 0
static inline const uint8_t *find_any(const uint8_t *text, size_t length, const uint8_t *part, size_t count) {
    return (void)text, (void)length, (void)part, (void)count, (const uint8_t *)0;
}
#endif

/* The first place of `part` in [text, end), or NULL. limit: bytes before it may be read. *work: bytes that may be compared
   after a false alarm; below 0 at the end, nothing is said and *reached is where the search stands. */
static inline const uint8_t *find_few(const uint8_t *text, const uint8_t *end, const uint8_t *limit, const uint8_t *part,
                                      ptrdiff_t count, ptrdiff_t *work, const uint8_t **reached) {
#if HAS_FIND_FEW
    const __m128i first = _mm_set1_epi8((char)part[0]), last = _mm_set1_epi8((char)part[count - 1]);
    while (end - text >= count) {
        const ptrdiff_t places = end - text - count + 1;
        uint32_t mask;
        if (limit - text < count + 15) {
            const uint8_t *hit = (const uint8_t *)memchr(text, part[0], (size_t)places);
            if (!hit || !memcmp(hit, part, (size_t)count)) return hit;
            *work -= count;
            text = hit + 1;
        } else {
            mask = (uint32_t)_mm_movemask_epi8(
                _mm_and_si128(_mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)text), first),
                              _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(text + count - 1)), last)));
            if (places < 16) mask &= (1u << places) - 1;
            while (mask) {
                const uint8_t *hit = text + __builtin_ctz(mask);
                if (count <= 2 || !memcmp(hit + 1, part + 1, (size_t)count - 2)) return hit;
                *work -= count;
                mask &= mask - 1;
            }
            text += 16;
        }
        if (*work < 0) {
            *reached = text;
            return 0;
        }
    }
#else
    (void)end, (void)limit, (void)part, (void)count;
    *work = -1;
    *reached = text;
#endif
    return 0;
}

#endif
