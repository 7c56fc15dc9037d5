/* CRC-32 (ISO 3309, as in zlib and java.util.zip), eight bytes a step. */
#ifndef PYENGINE_CRC32_H
#define PYENGINE_CRC32_H

#include <stddef.h>
#include <stdint.h>

static uint32_t pyengine_crc32_table[8][256];

/* Fill the table; call once before the first pyengine_crc32. */
static void pyengine_crc32_prepare(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++) value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
        pyengine_crc32_table[0][i] = value;
    }
    for (int slice = 1; slice < 8; slice++)
        for (int i = 0; i < 256; i++) {
            const uint32_t before = pyengine_crc32_table[slice - 1][i];
            pyengine_crc32_table[slice][i] = before >> 8 ^ pyengine_crc32_table[0][before & 0xff];
        }
}

static uint32_t pyengine_crc32(const unsigned char *data, size_t length)
{
    uint32_t crc = 0xffffffffu;
    for (; length >= 8; length -= 8, data += 8) {
        const uint32_t low = crc ^ ((uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24);
        crc = pyengine_crc32_table[7][low & 0xff] ^ pyengine_crc32_table[6][low >> 8 & 0xff]
            ^ pyengine_crc32_table[5][low >> 16 & 0xff] ^ pyengine_crc32_table[4][low >> 24]
            ^ pyengine_crc32_table[3][data[4]] ^ pyengine_crc32_table[2][data[5]]
            ^ pyengine_crc32_table[1][data[6]] ^ pyengine_crc32_table[0][data[7]];
    }
    for (; length; length--, data++) crc = crc >> 8 ^ pyengine_crc32_table[0][(crc ^ *data) & 0xff];
    return ~crc;
}

#endif
