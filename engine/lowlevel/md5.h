/* MD5 (RFC 1321) of many short strings at once, one in each lane of a vector.
   The result is the first four bytes, big endian: the hash of RocketMQ's consistent-hash ring. */
#ifndef PYENGINE_MD5_H
#define PYENGINE_MD5_H

#include <stdint.h>
#include <string.h>

#include "lowlevel/clones.h"

#if defined(__GNUC__)
#ifdef __x86_64__ /* two AVX-512 vectors: each step depends on the one before, so two strings are interleaved */
#define PYENGINE_MD5_LANES 32
#else
#define PYENGINE_MD5_LANES 16
#endif
typedef uint32_t pyengine_md5_vector __attribute__((vector_size(4 * PYENGINE_MD5_LANES)));
#else /* one lane: the same steps, string by string */
#define PYENGINE_MD5_LANES 1
typedef uint32_t pyengine_md5_vector;
#endif

static const uint32_t pyengine_md5_sine[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};

/* The sixteen words of each lane's next 64 bytes, little endian: words[i * LANES + lane]. */
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
typedef uint32_t pyengine_md5_four __attribute__((vector_size(16)));
#ifdef __clang__
#define PYENGINE_MD5_PICK(x, y, i, j, k, l) __builtin_shufflevector(x, y, i, j, k, l)
#else
#define PYENGINE_MD5_PICK(x, y, i, j, k, l) __builtin_shuffle(x, y, (pyengine_md5_four){i, j, k, l})
#endif
static inline void pyengine_md5_words(uint32_t *words, const unsigned char *text, int64_t stride)
{
    for (int lane = 0; lane < PYENGINE_MD5_LANES; lane += 4)
        for (int i = 0; i < 16; i += 4) {
            pyengine_md5_four row[4], low[2], high[2];
            for (int j = 0; j < 4; j++) memcpy(&row[j], text + (lane + j) * stride + 4 * i, 16);
            for (int j = 0; j < 2; j++) {
                low[j] = PYENGINE_MD5_PICK(row[2 * j], row[2 * j + 1], 0, 4, 1, 5);
                high[j] = PYENGINE_MD5_PICK(row[2 * j], row[2 * j + 1], 2, 6, 3, 7);
            }
            row[0] = PYENGINE_MD5_PICK(low[0], low[1], 0, 1, 4, 5);
            row[1] = PYENGINE_MD5_PICK(low[0], low[1], 2, 3, 6, 7);
            row[2] = PYENGINE_MD5_PICK(high[0], high[1], 0, 1, 4, 5);
            row[3] = PYENGINE_MD5_PICK(high[0], high[1], 2, 3, 6, 7);
            for (int j = 0; j < 4; j++) memcpy(words + (i + j) * PYENGINE_MD5_LANES + lane, &row[j], 16);
        }
}
#else
static inline void pyengine_md5_words(uint32_t *words, const unsigned char *text, int64_t stride)
{
    for (int lane = 0; lane < PYENGINE_MD5_LANES; lane++)
        for (int i = 0; i < 16; i++) {
            const unsigned char *from = text + lane * stride + 4 * i;
            words[i * PYENGINE_MD5_LANES + lane] =
                (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
        }
}
#endif

/* Update the state with the next 64 bytes of each lane. text: LANES padded strings, `stride` bytes apart. */
PYENGINE_CLONES
static void pyengine_md5_block(uint32_t state[4][PYENGINE_MD5_LANES], const unsigned char *text, int64_t stride)
{
    pyengine_md5_vector w[16], a, b, c, d, a0, b0, c0, d0;
    pyengine_md5_words((uint32_t *)w, text, stride);
    memcpy(&a0, state[0], sizeof a0);
    memcpy(&b0, state[1], sizeof b0);
    memcpy(&c0, state[2], sizeof c0);
    memcpy(&d0, state[3], sizeof d0);
    a = a0, b = b0, c = c0, d = d0;
#define PYENGINE_MD5_STEP(MIX, a, b, c, d, word, turn, step)       \
    a += MIX(b, c, d) + w[word] + pyengine_md5_sine[step];         \
    a = ((a << (turn)) | (a >> (32 - (turn)))) + b;
#define PYENGINE_MD5_ROUND(MIX, start, factor, offset, t0, t1, t2, t3)                                          \
    PYENGINE_MD5_FOUR(MIX, start + 0, factor, offset, t0, t1, t2, t3)                                           \
    PYENGINE_MD5_FOUR(MIX, start + 4, factor, offset, t0, t1, t2, t3)                                           \
    PYENGINE_MD5_FOUR(MIX, start + 8, factor, offset, t0, t1, t2, t3)                                           \
    PYENGINE_MD5_FOUR(MIX, start + 12, factor, offset, t0, t1, t2, t3)
#define PYENGINE_MD5_FOUR(MIX, i, factor, offset, t0, t1, t2, t3)                                               \
    PYENGINE_MD5_STEP(MIX, a, b, c, d, ((i) * factor + offset) & 15, t0, i)                                     \
    PYENGINE_MD5_STEP(MIX, d, a, b, c, ((i + 1) * factor + offset) & 15, t1, i + 1)                             \
    PYENGINE_MD5_STEP(MIX, c, d, a, b, ((i + 2) * factor + offset) & 15, t2, i + 2)                             \
    PYENGINE_MD5_STEP(MIX, b, c, d, a, ((i + 3) * factor + offset) & 15, t3, i + 3)
#define PYENGINE_MD5_MIX1(x, y, z) ((z) ^ ((x) & ((y) ^ (z))))
#define PYENGINE_MD5_MIX2(x, y, z) ((y) ^ ((z) & ((x) ^ (y))))
#define PYENGINE_MD5_MIX3(x, y, z) ((x) ^ (y) ^ (z))
#define PYENGINE_MD5_MIX4(x, y, z) ((y) ^ ((x) | ~(z)))
    PYENGINE_MD5_ROUND(PYENGINE_MD5_MIX1, 0, 1, 0, 7, 12, 17, 22)
    PYENGINE_MD5_ROUND(PYENGINE_MD5_MIX2, 16, 5, 1, 5, 9, 14, 20)
    PYENGINE_MD5_ROUND(PYENGINE_MD5_MIX3, 32, 3, 5, 4, 11, 16, 23)
    PYENGINE_MD5_ROUND(PYENGINE_MD5_MIX4, 48, 7, 0, 6, 10, 15, 21)
#undef PYENGINE_MD5_STEP
#undef PYENGINE_MD5_ROUND
#undef PYENGINE_MD5_FOUR
    a += a0, b += b0, c += c0, d += d0;
    memcpy(state[0], &a, sizeof a);
    memcpy(state[1], &b, sizeof b);
    memcpy(state[2], &c, sizeof c);
    memcpy(state[3], &d, sizeof d);
}

/* Pad a string of `length` bytes in place to 64 * blocks bytes; blocks = (length + 8) / 64 + 1.
   Up to SLACK bytes after them are overwritten: zeros of a constant number cost a few stores and no call. */
#define PYENGINE_MD5_SLACK 64
static inline void pyengine_md5_pad(unsigned char *text, int64_t length, int64_t blocks)
{
    const uint64_t bits = (uint64_t)length << 3;
    text[length] = 0x80;
    memset(text + length + 1, 0, PYENGINE_MD5_SLACK);
    for (int i = 0; i < 8; i++) text[64 * blocks - 8 + i] = (unsigned char)(bits >> (8 * i));
}

/* First four bytes of the MD5 of LANES padded strings of `blocks` blocks each, `stride` bytes apart. */
static void pyengine_md5_heads(const unsigned char *text, int64_t stride, int64_t blocks, uint32_t heads[PYENGINE_MD5_LANES])
{
    uint32_t state[4][PYENGINE_MD5_LANES];
    for (int lane = 0; lane < PYENGINE_MD5_LANES; lane++) {
        state[0][lane] = 0x67452301;
        state[1][lane] = 0xefcdab89;
        state[2][lane] = 0x98badcfe;
        state[3][lane] = 0x10325476;
    }
    for (int64_t block = 0; block < blocks; block++) pyengine_md5_block(state, text + 64 * block, stride);
    for (int lane = 0; lane < PYENGINE_MD5_LANES; lane++) {
        const uint32_t v = state[0][lane];
        heads[lane] = v << 24 | (v & 0xff00) << 8 | (v >> 8 & 0xff00) | v >> 24;
    }
}

#endif
