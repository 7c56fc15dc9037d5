/* The loops of marks.h, once for each way to spread a word; MARKS, MARKS_TARGET, SPREAD and SPREAD_FEW say which. */

MARKS_TARGET static int64_t MARKS(pyengine_mark)(uint64_t *found, uint64_t *words, int count, const int32_t *order,
                                                 uint64_t *marks, uint8_t *marked, void *const *keys) {
    int32_t places[PYENGINE_SOME + 64 + PYENGINE_BEHIND];
    int64_t size = 0;
    uint64_t named;
    int word, place, k, sure = 0;
    for (word = 0; word < count; word++) {
        named = words[word];
        words[word] = 0;
        for (; named; named &= named - 1) {
            place = 64 * (64 * word + lowest_bit(named));
            for (k = 0; k < 64; k += 16) pyengine_prefetch(&order[place + k]);
            sure += SPREAD(found[place >> 6], place, places + sure);
            found[place >> 6] = 0;
            if (sure < PYENGINE_SOME) continue;
            pyengine_mark_all(places, sure, order, marks, marked, keys);
            size += sure;
            sure = 0;
        }
    }
    pyengine_mark_all(places, sure, order, marks, marked, keys);
    return size + sure;
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
