/* MD5 (RFC 1321) of many short texts at once: LANES texts with the same number of blocks share each step.
   Only the first four bytes are wanted, big endian: the hash of RocketMQ's consistent-hash ring. */
#ifndef PYENGINE_MD5_H
#define PYENGINE_MD5_H

#include <stdint.h>
#include <string.h>

#define PYENGINE_MD5_LANES 16

static const uint32_t pyengine_md5_sine[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};

static const uint8_t pyengine_md5_turn[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

#if defined(__GNUC__) && defined(__x86_64__) && defined(__ELF__) && !defined(__clang__)
#define PYENGINE_MD5_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PYENGINE_MD5_CLONES
#endif

/* One block of every lane: words[16][LANES] into state[4][LANES]. The inner loops are what the compiler vectorises. */
PYENGINE_MD5_CLONES
static void pyengine_md5_block(uint32_t state[4][PYENGINE_MD5_LANES], const uint32_t words[16][PYENGINE_MD5_LANES])
{
    uint32_t a[PYENGINE_MD5_LANES], b[PYENGINE_MD5_LANES], c[PYENGINE_MD5_LANES], d[PYENGINE_MD5_LANES];
    memcpy(a, state[0], sizeof a);
    memcpy(b, state[1], sizeof b);
    memcpy(c, state[2], sizeof c);
    memcpy(d, state[3], sizeof d);
#define PYENGINE_MD5_STEP(MIX, WORD)                                                         \
    {                                                                                        \
        const uint32_t *w = words[WORD];                                                     \
        const uint32_t sine = pyengine_md5_sine[i];                                          \
        const int turn = pyengine_md5_turn[i >> 4][i & 3];                                   \
        for (int lane = 0; lane < PYENGINE_MD5_LANES; lane++) {                              \
            const uint32_t B = b[lane], C = c[lane], D = d[lane];                            \
            const uint32_t sum = a[lane] + (MIX) + sine + w[lane];                           \
            a[lane] = D;                                                                     \
            d[lane] = C;                                                                     \
            c[lane] = B;                                                                     \
            b[lane] = B + ((sum << turn) | (sum >> (32 - turn)));                            \
        }                                                                                    \
    }
    int i = 0;
    for (; i < 16; i++) PYENGINE_MD5_STEP((B & C) | (~B & D), i)
    for (; i < 32; i++) PYENGINE_MD5_STEP((D & B) | (~D & C), (5 * i + 1) & 15)
    for (; i < 48; i++) PYENGINE_MD5_STEP(B ^ C ^ D, (3 * i + 5) & 15)
    for (; i < 64; i++) PYENGINE_MD5_STEP(C ^ (B | ~D), (7 * i) & 15)
#undef PYENGINE_MD5_STEP
    for (int lane = 0; lane < PYENGINE_MD5_LANES; lane++) {
        state[0][lane] += a[lane];
        state[1][lane] += b[lane];
        state[2][lane] += c[lane];
        state[3][lane] += d[lane];
    }
}

/* The four bytes of word `index` (little endian) of a padded text: bytes, then 0x80, zeros, the bit length. */
static uint32_t pyengine_md5_word(const unsigned char *text, int64_t length, int64_t blocks, int64_t index)
{
    const int64_t at = index * 4;
    if (at + 4 <= length)
        return (uint32_t)text[at] | (uint32_t)text[at + 1] << 8 | (uint32_t)text[at + 2] << 16 | (uint32_t)text[at + 3] << 24;
    if (index == blocks * 16 - 2) return (uint32_t)(length << 3);
    if (index == blocks * 16 - 1) return (uint32_t)((uint64_t)length >> 29);
    uint32_t word = 0;
    for (int64_t i = 0; i < 4; i++)
        word |= (uint32_t)(at + i < length ? text[at + i] : at + i == length ? 0x80 : 0) << (8 * i);
    return word;
}

/* First four bytes of the MD5 of count (1 .. LANES) texts that all have `blocks` blocks after padding. */
static void pyengine_md5_heads(const unsigned char **texts, const int64_t *lengths, int count, int64_t blocks, uint32_t *heads)
{
    uint32_t state[4][PYENGINE_MD5_LANES], words[16][PYENGINE_MD5_LANES];
    for (int lane = 0; lane < PYENGINE_MD5_LANES; lane++) {
        state[0][lane] = 0x67452301;
        state[1][lane] = 0xefcdab89;
        state[2][lane] = 0x98badcfe;
        state[3][lane] = 0x10325476;
    }
    for (int64_t block = 0; block < blocks; block++) {
        for (int lane = 0; lane < PYENGINE_MD5_LANES; lane++) {
            const int from = lane < count ? lane : 0;
            for (int word = 0; word < 16; word++)
                words[word][lane] = pyengine_md5_word(texts[from], lengths[from], blocks, block * 16 + word);
        }
        pyengine_md5_block(state, words);
    }
    for (int lane = 0; lane < count; lane++) {
        const uint32_t v = state[0][lane];
        heads[lane] = v << 24 | (v & 0xff00) << 8 | (v >> 8 & 0xff00) | v >> 24;
    }
}

#endif
