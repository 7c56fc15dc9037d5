/* The loops of bitsets.h, once for each way to take what a word names; MARKS, MARKS_TARGET, PICK and SPREAD_FEW say which. */

MARKS_TARGET static int MARKS(pyengine_collect)(uint64_t *found, uint64_t *words, int count, int *at, const int32_t *order,
                                                int32_t *hits) {
    uint64_t named;
    int word, place, size = 0;
    for (word = *at; word < count && size < PYENGINE_SOME; word++) {
        named = words[word];
        words[word] = 0;
        for (; named; named &= named - 1) {
            place = 64 * (64 * word + lowest_bit(named));
            size += PICK(found[place >> 6], order + place, hits + size);
            found[place >> 6] = 0;
        }
    }
    *at = word;
    return size;
}
MARKS_TARGET static void MARKS(pyengine_mark)(const int32_t *hits, int count, uint64_t *marks, uint8_t *marked,
                                              void *const *keys) {
    int i;
    for (i = 0; i < count; i++) {
        const int32_t hit = hits[i];
        marks[hit >> 6] |= (uint64_t)1 << (hit & 63);
        marked[hit >> 6] = 1;
        if (keys != NULL) pyengine_prefetch(&keys[hit]);
    }
}
MARKS_TARGET static int64_t *MARKS(pyengine_gather)(uint64_t *marks, uint8_t *marked, int lines, int64_t more, int64_t *into) {
    uint64_t words, bits;
    int64_t word;
    int line, k;
    for (line = 0; line < lines; line += 8, marked += 64) {
        words = 0;
        for (k = 0; k < 8; k++) words |= bits_of_bytes(marked + 8 * k) << 8 * k;
        if (!words) continue;
        memset(marked, 0, 64);
        for (; words; words &= words - 1) {
            word = 8 * (int64_t)line + lowest_bit(words);
            bits = marks[word];
            marks[word] = 0;
            into = SPREAD_FEW(bits, 64 * word + more, into);
        }
    }
    return into;
}
