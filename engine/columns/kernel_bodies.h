/* The loops, compiled once per instruction set: KERNEL(name) names the copy, KERNEL_TARGET is its function
   attribute, PACK64(bytes) turns 64 bytes of 0 or 1 into a word. No include guard: it is included once per copy. */

/* words[i] bit j = outcome of row 64 i + j; BODY computes the byte `m[j]` of row `i`. The last word is padded with 0. */
#define KERNEL_LOOP(BODY)                                                                                              \
    uint8_t m[64];                                                                                                     \
    int64_t base = 0, j;                                                                                               \
    for (; base + 64 <= n; base += 64) {                                                                               \
        for (j = 0; j < 64; j++) {                                                                                     \
            const int64_t i = base + j;                                                                                \
            m[j] = (uint8_t)(BODY);                                                                                    \
        }                                                                                                              \
        words[base >> 6] = PACK64(m);                                                                                  \
    }                                                                                                                  \
    if (base < n) {                                                                                                    \
        memset(m, 0, 64);                                                                                              \
        for (j = 0; base + j < n; j++) {                                                                               \
            const int64_t i = base + j;                                                                                \
            m[j] = (uint8_t)(BODY);                                                                                    \
        }                                                                                                              \
        words[base >> 6] = PACK64(m);                                                                                  \
    }

#define RANGE_INTEGER(name, T)                                                                                         \
    KERNEL_TARGET static void KERNEL(range_##name)(const void *column, int64_t n, int64_t ahead,                       \
                                                   const kernel_range *r, uint64_t *words) {                           \
        const T *v = (const T *)column;                                                                                \
        const T low = (T)r->low, high = (T)r->high;                                                                    \
        KERNEL_LOOP((v[i] >= low) & (v[i] <= high))                                                                    \
    }

/* Bounds by IEEE comparison: right when no bound has to part -0.0 from 0.0 (kernel_range.keyed is 0). */
#define RANGE_REAL(name, T)                                                                                            \
    KERNEL_TARGET static void KERNEL(range_##name)(const void *column, int64_t n, int64_t ahead,                       \
                                                   const kernel_range *r, uint64_t *words) {                           \
        const T *v = (const T *)column;                                                                                \
        const T low = (T)r->real_low, high = (T)r->real_high;                                                          \
        const uint8_t nan = r->nan;                                                                                    \
        if (nan) {                                                                                                     \
            KERNEL_LOOP(((v[i] >= low) & (v[i] <= high)) | (v[i] != v[i]))                                             \
        } else {                                                                                                       \
            KERNEL_LOOP((v[i] >= low) & (v[i] <= high))                                                                \
        }                                                                                                              \
    }

#define RANGE_KEYED(name, T, INT, KEY)                                                                                 \
    KERNEL_TARGET static void KERNEL(range_##name)(const void *column, int64_t n, int64_t ahead,                       \
                                                   const kernel_range *r, uint64_t *words) {                           \
        const T *v = (const T *)column;                                                                                \
        const INT low = (INT)r->low, high = (INT)r->high;                                                              \
        KERNEL_LOOP((KEY(v[i]) >= low) & (KEY(v[i]) <= high))                                                          \
    }

/* wanted: bit 0 when left < right is an outcome, bit 1 for equal, bit 2 for greater */
#define PAIR(name, T, KEY)                                                                                             \
    KERNEL_TARGET static void KERNEL(pair_##name)(const void *left, const void *right, int64_t n, int wanted,          \
                                                  uint64_t *words) {                                                   \
        const T *a = (const T *)left, *b = (const T *)right;                                                           \
        const uint8_t less = wanted & 1, same = (wanted >> 1) & 1, more = (wanted >> 2) & 1;                           \
        KERNEL_LOOP(((KEY(a[i]) < KEY(b[i])) & less) | ((KEY(a[i]) == KEY(b[i])) & same) |                             \
                    ((KEY(a[i]) > KEY(b[i])) & more))                                                                  \
    }

/* table: bit c is the outcome of code c; codes from `size` up (rubbish below a null) give 0 or 1, never a read outside. */
#define CODES(name, T, U)                                                                                              \
    KERNEL_TARGET static void KERNEL(codes_##name)(const void *column, int64_t n, int64_t ahead, const uint32_t *table,\
                                                   int64_t size, uint64_t *words) {                                    \
        const T *v = (const T *)column;                                                                                \
        if (size <= 32) {                                                                                              \
            const uint32_t bits = table[0];                                                                            \
            KERNEL_LOOP((bits >> ((uint32_t)v[i] & 31)) & 1)                                                           \
        } else if (size <= 64) {                                                                                       \
            const uint64_t bits = table[0] | (uint64_t)table[1] << 32;                                                 \
            KERNEL_LOOP((bits >> ((uint64_t)v[i] & 63)) & 1)                                                           \
        } else if (size <= 0x7fffffff) {                                                                               \
            const uint32_t last = (uint32_t)(size - 1);                                                                \
            uint32_t c;                                                                                                \
            KERNEL_LOOP((c = (U)v[i] < last ? (uint32_t)v[i] : last, (table[c >> 5] >> (c & 31)) & 1))                 \
        } else {                                                                                                       \
            const uint64_t last = (uint64_t)(size - 1);                                                                \
            uint64_t c;                                                                                                \
            KERNEL_LOOP((c = (uint64_t)(U)v[i] < last ? (uint64_t)(U)v[i] : last, (table[c >> 5] >> (c & 31)) & 1))    \
        }                                                                                                              \
    }

#ifdef KERNEL_WORDS
/* The same where the copy has WORD, which answers the 64 rows from `at` on; the last rows are asked in a padded copy. */
#define WORD_LOOP(T, WORD)                                                                                             \
    const T *at = v;                                                                                                   \
    int64_t base = 0;                                                                                                  \
    for (; base + 64 <= n; base += 64, at += 64) {                                                                     \
        kernel_fetch(at, ahead * (int64_t)sizeof(T), 64 * sizeof(T));                                                  \
        words[base >> 6] = WORD;                                                                                       \
    }                                                                                                                  \
    if (base < n) {                                                                                                    \
        T rest[64];                                                                                                    \
        memset(rest, 0, sizeof(rest));                                                                                 \
        memcpy(rest, at, (size_t)(n - base) * sizeof(T));                                                              \
        at = rest;                                                                                                     \
        words[base >> 6] = (WORD) & ((UINT64_C(1) << (n & 63)) - 1);                                                   \
    }

#define RANGE_INTEGER_WORDS(name, T)                                                                                   \
    KERNEL_TARGET static void KERNEL(range_##name)(const void *column, int64_t n, int64_t ahead,                       \
                                                   const kernel_range *r, uint64_t *words) {                           \
        const T *v = (const T *)column;                                                                                \
        const T low = (T)r->low, high = (T)r->high;                                                                    \
        WORD_LOOP(T, KERNEL(inside_##name)(at, low, high))                                                             \
    }

#define RANGE_REAL_WORDS(name, T)                                                                                      \
    KERNEL_TARGET static void KERNEL(range_##name)(const void *column, int64_t n, int64_t ahead,                       \
                                                   const kernel_range *r, uint64_t *words) {                           \
        const T *v = (const T *)column;                                                                                \
        const T low = (T)r->real_low, high = (T)r->real_high;                                                          \
        if (r->nan) {                                                                                                  \
            WORD_LOOP(T, KERNEL(inside_##name)(at, low, high, 1))                                                      \
        } else {                                                                                                       \
            WORD_LOOP(T, KERNEL(inside_##name)(at, low, high, 0))                                                      \
        }                                                                                                              \
    }

#define CODES_WORDS(name, T)                                                                                           \
    KERNEL_TARGET static void KERNEL(codes_##name)(const void *column, int64_t n, int64_t ahead, const uint32_t *table,\
                                                   int64_t size, uint64_t *words) {                                    \
        const T *v = (const T *)column;                                                                                \
        const KERNEL(code_table) held = KERNEL(code_table_of)(table, size);                                            \
        if (size <= KERNEL(CODES_IN_REGISTER)) {                                                                       \
            WORD_LOOP(T, KERNEL(codes_word)(at, sizeof(T), held, 0))                                                   \
        } else {                                                                                                       \
            WORD_LOOP(T, KERNEL(codes_word)(at, sizeof(T), held, 1))                                                   \
        }                                                                                                              \
    }
#endif

RANGE_INTEGER(int8, int8_t)
RANGE_INTEGER(int16, int16_t)
RANGE_INTEGER(uint8, uint8_t)
RANGE_INTEGER(uint16, uint16_t)
RANGE_INTEGER(uint32, uint32_t)
RANGE_INTEGER(uint64, uint64_t)
#ifdef KERNEL_WORDS
RANGE_INTEGER_WORDS(int32, int32_t)
RANGE_INTEGER_WORDS(int64, int64_t)
RANGE_REAL_WORDS(float, float)
RANGE_REAL_WORDS(double, double)
#else
RANGE_INTEGER(int32, int32_t)
RANGE_INTEGER(int64, int64_t)
RANGE_REAL(float, float)
RANGE_REAL(double, double)
#endif
RANGE_KEYED(float_key, float, int32_t, float_to_sortable_int)
RANGE_KEYED(double_key, double, int64_t, double_to_sortable_long)

#define KERNEL_SAME(x) (x)
PAIR(int8, int8_t, KERNEL_SAME)
PAIR(int16, int16_t, KERNEL_SAME)
PAIR(int32, int32_t, KERNEL_SAME)
PAIR(int64, int64_t, KERNEL_SAME)
PAIR(uint8, uint8_t, KERNEL_SAME)
PAIR(uint16, uint16_t, KERNEL_SAME)
PAIR(uint32, uint32_t, KERNEL_SAME)
PAIR(uint64, uint64_t, KERNEL_SAME)
PAIR(float, float, float_to_sortable_int)
PAIR(double, double, double_to_sortable_long)

#ifdef KERNEL_WORDS
CODES_WORDS(int8, int8_t)
CODES_WORDS(int16, int16_t)
CODES_WORDS(int32, int32_t)
#else
CODES(int8, int8_t, uint8_t)
CODES(int16, int16_t, uint16_t)
CODES(int32, int32_t, uint32_t)
#endif
CODES(int64, int64_t, uint64_t)

/* Texts of this length (at_least: or a longer one) that agree with `prefix` where `mask` is set. */
KERNEL_TARGET KERNEL_INLINE void KERNEL(texts)(const uint64_t *prefixes, const uint64_t *lengths, int64_t n,
                                               uint64_t prefix, uint64_t mask, uint64_t length, int at_least,
                                               uint64_t *words) {
#ifdef KERNEL_WORDS
    int64_t base = 0;
    for (; base + 64 <= n; base += 64)
        words[base >> 6] = KERNEL(text_word)(prefixes + base, lengths + base, prefix, mask, length, at_least);
    if (base < n) {
        uint64_t word = 0;
        for (; base < n; base++)
            word |= (uint64_t)(((prefixes[base] & mask) == prefix) &
                               (at_least ? lengths[base] >= length : lengths[base] == length)) << (base & 63);
        words[(n - 1) >> 6] = word;
    }
#else
    KERNEL_LOOP((((prefixes[i] & mask) ^ prefix) |
                 (at_least ? (lengths[i] < length ? ~UINT64_C(0) : 0) : lengths[i] ^ length)) == 0)
#endif
}

KERNEL_TARGET static void KERNEL(text_equal)(const uint64_t *prefixes, const uint64_t *lengths, int64_t n,
                                             uint64_t prefix, uint64_t mask, uint64_t length, uint64_t *words) {
    KERNEL(texts)(prefixes, lengths, n, prefix, mask, length, 0, words);
}

KERNEL_TARGET static void KERNEL(text_starts)(const uint64_t *prefixes, const uint64_t *lengths, int64_t n,
                                              uint64_t prefix, uint64_t mask, uint64_t length, uint64_t *words) {
    KERNEL(texts)(prefixes, lengths, n, prefix, mask, length, 1, words);
}

/* First 8 bytes, or a shorter text and anything behind it, and length of texts `offsets[i] .. offsets[i + 1]`; `end` bounds
   what may be read. */
#define PREFIXES(name, T)                                                                                              \
    KERNEL_TARGET static void KERNEL(prefixes_##name)(const void *column, const uint8_t *data, int64_t end, int64_t n, \
                                                      uint64_t *prefixes, uint64_t *lengths) {                         \
        const T *offsets = (const T *)column;                                                                          \
        int64_t i, safe = n;                                                                                           \
        while (safe > 0 && (int64_t)offsets[safe - 1] + 8 > end) safe--;                                               \
        for (i = 0; i < n; i++) lengths[i] = (uint64_t)(offsets[i + 1] - offsets[i]);                                  \
        for (i = 0; i < safe; i++) prefixes[i] = kernel_load64(data + offsets[i]);                                     \
        for (; i < n; i++) {                                                                                           \
            uint64_t word = 0;                                                                                         \
            if (lengths[i]) memcpy(&word, data + offsets[i], lengths[i] < 8 ? (size_t)lengths[i] : 8);                         \
            prefixes[i] = word;                                                                                        \
        }                                                                                                              \
    }
PREFIXES(int32, int32_t)
PREFIXES(int64, int64_t)

/* The same of 16-byte views: length, then 12 bytes of text or 4 of it, number and place of its data buffer. A view below a
   null may be rubbish, so its buffer is not read; present: rows that have a value, or NULL. */
KERNEL_TARGET static void KERNEL(prefixes_views)(const void *column, const uint8_t *const *parts, const uint64_t *present,
                                                 int64_t n, uint64_t *prefixes, uint64_t *lengths) {
    const uint8_t *views = (const uint8_t *)column;
    int64_t i;
    for (i = 0; i < n; i++) {
        const uint8_t *view = views + 16 * i;
        int32_t head[4];
        memcpy(head, view, 16);
        lengths[i] = (uint32_t)head[0];
        prefixes[i] = kernel_load64(view + 4);
        if (head[0] > 12) {
            if (!present || (present[i >> 6] >> (i & 63) & 1))
                prefixes[i] = kernel_load64(parts[head[2]] + head[3]);
        }
    }
}

/* Bit i of `words` becomes byte i of `out`, 0 or 1; exactly n bytes are written. */
KERNEL_TARGET static void KERNEL(expand)(const uint64_t *words, int64_t n, uint8_t *out) {
    int64_t base = 0;
    for (; base + 64 <= n; base += 64) EXPAND64(words[base >> 6], out + base);
    if (base < n) {
        uint8_t tail[64];
        EXPAND64(words[base >> 6], tail);
        memcpy(out + base, tail, (size_t)(n - base));
    }
}

/* Arithmetic: no buffer overlaps another. Unsigned, because int and long wrap. */
#define WIDEN(name, T, U)                                                                                              \
    KERNEL_TARGET static void KERNEL(widen_##name)(const void *column, int64_t n, int64_t ahead, void *out) {          \
        const T *v = (const T *)column;                                                                                \
        U *o = (U *)out;                                                                                               \
        int64_t i, base = 0;                                                                                           \
        for (; base + 64 <= n; base += 64) {                                                                           \
            kernel_fetch(v + base, ahead * (int64_t)sizeof(T), 64 * sizeof(T));                                        \
            for (i = base; i < base + 64; i++) o[i] = (U)v[i];                                                         \
        }                                                                                                              \
        for (i = base; i < n; i++) o[i] = (U)v[i];                                                                     \
    }
WIDEN(int8, int8_t, int64_t)
WIDEN(int16, int16_t, int64_t)
WIDEN(int32, int32_t, int64_t)
WIDEN(int64, int64_t, int64_t)
WIDEN(uint8, uint8_t, int64_t)
WIDEN(uint16, uint16_t, int64_t)
WIDEN(uint32, uint32_t, int64_t)
WIDEN(uint64, uint64_t, int64_t)
WIDEN(float, float, double)
WIDEN(double, double, double)

KERNEL_TARGET static void KERNEL(to_real)(const int64_t *v, int64_t n, double *out) {
    int64_t i;
    for (i = 0; i < n; i++) out[i] = (double)v[i];
}

#define OPPOSITE(name, T, EXPRESSION)                                                                                  \
    KERNEL_TARGET static void KERNEL(opposite_##name)(const void *values, int64_t n, void *out) {                      \
        const T *v = (const T *)values;                                                                                \
        T *o = (T *)out;                                                                                               \
        int64_t i;                                                                                                     \
        for (i = 0; i < n; i++) o[i] = (T)(EXPRESSION);                                                                \
    }
OPPOSITE(int, int64_t, (int32_t)(UINT32_C(0) - (uint32_t)v[i]))
OPPOSITE(long, int64_t, UINT64_C(0) - (uint64_t)v[i])
OPPOSITE(double, double, -v[i])

#define COMPUTE_LOOP(EXPRESSION)                                                                                       \
    for (i = 0; i < n; i++) o[i] = EXPRESSION;                                                                         \
    return
#define COMPUTE(name, T, V, KEPT, DIVIDED)                                                                             \
    KERNEL_TARGET static void KERNEL(compute_##name)(int calculation, const void *left, const void *right, int64_t n,  \
                                                     void *out) {                                                      \
        const V *a = (const V *)left, *b = (const V *)right;                                                           \
        T *o = (T *)out;                                                                                               \
        int64_t i;                                                                                                     \
        switch (calculation) {                                                                                         \
        case 0: COMPUTE_LOOP((T)KEPT(a[i] + b[i]));                                                                    \
        case 1: COMPUTE_LOOP((T)KEPT(a[i] - b[i]));                                                                    \
        case 2: COMPUTE_LOOP((T)KEPT(a[i] * b[i]));                                                                    \
        default: COMPUTE_LOOP((T)(DIVIDED));                                                                           \
        }                                                                                                              \
    }
COMPUTE(int, int64_t, uint64_t, (int32_t)(uint32_t), 0)
COMPUTE(long, int64_t, uint64_t, , 0)
COMPUTE(double, double, double, , a[i] / b[i])

KERNEL_TARGET static void KERNEL(ranks)(const int64_t *const *bounds, int64_t bound_step, const void *keys,
                                        int64_t key_step, int64_t n, int32_t *ranks) {
    const char *at = (const char *)keys;
    int64_t i, key;
    for (i = 0; i < n; i++, at += key_step, bounds += bound_step) {
        int rank;
        memcpy(&key, at, 8);
#ifdef KERNEL_WORDS
        rank = 8 * KERNEL(below16)(*bounds + 128, key);
        rank += KERNEL(below8)(*bounds + rank, key);
#else
        int half;
        for (rank = 0, half = 64; half; half >>= 1) rank += (*bounds)[rank + half - 1] <= key ? half : 0;
#endif
        ranks[i] = rank;
    }
}

static const kernel_table KERNEL(table) = {
    {KERNEL(range_int8), KERNEL(range_int16), KERNEL(range_int32), KERNEL(range_int64), KERNEL(range_uint8),
     KERNEL(range_uint16), KERNEL(range_uint32), KERNEL(range_uint64), KERNEL(range_float), KERNEL(range_double),
     KERNEL(range_float_key), KERNEL(range_double_key)},
    {KERNEL(pair_int8), KERNEL(pair_int16), KERNEL(pair_int32), KERNEL(pair_int64), KERNEL(pair_uint8),
     KERNEL(pair_uint16), KERNEL(pair_uint32), KERNEL(pair_uint64), KERNEL(pair_float), KERNEL(pair_double)},
    {KERNEL(codes_int8), KERNEL(codes_int16), KERNEL(codes_int32), KERNEL(codes_int64)},
    {KERNEL(prefixes_int32), KERNEL(prefixes_int64)},
    KERNEL(prefixes_views),
    KERNEL(text_equal),
    KERNEL(text_starts),
    KERNEL(expand),
    {KERNEL(widen_int8), KERNEL(widen_int16), KERNEL(widen_int32), KERNEL(widen_int64), KERNEL(widen_uint8),
     KERNEL(widen_uint16), KERNEL(widen_uint32), KERNEL(widen_uint64), KERNEL(widen_float), KERNEL(widen_double)},
    KERNEL(to_real),
    {KERNEL(opposite_int), KERNEL(opposite_long), KERNEL(opposite_double)},
    {KERNEL(compute_int), KERNEL(compute_long), KERNEL(compute_double)},
    KERNEL(ranks),
};

#undef WIDEN
#undef OPPOSITE
#undef COMPUTE_LOOP
#undef COMPUTE

#undef KERNEL_LOOP
#undef RANGE_INTEGER
#undef RANGE_REAL
#undef RANGE_KEYED
#undef PAIR
#undef CODES
#undef PREFIXES
#undef KERNEL_SAME
#undef WORD_LOOP
#undef RANGE_INTEGER_WORDS
#undef RANGE_REAL_WORDS
#undef CODES_WORDS
