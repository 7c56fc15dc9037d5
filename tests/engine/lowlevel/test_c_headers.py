"""sortable.h, bits.h, kernel_loops.h, bit_blocks.h and bitsets.h, whatever the compiler is told to make of them."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from bisect import bisect_right
from pathlib import Path
from random import Random

import pytest

ENGINE = Path(__file__).parents[3] / "engine"
SOURCE = """
#include "columns/kernel_loops.h"
#include "index/bit_blocks.h"
#include "index/bitsets.h"
#include "java/sortable.h"
int rank_of(int copy, const int64_t *bounds, int64_t key) {
    const char *name;
    const kernel_table *kernels = kernel_copy(copy, &name);
    int32_t rank;
    if (!kernels) return -1;
    kernels->ranks(&bounds, 0, &key, sizeof(key), 1, &rank);
    return rank;
}
/* plain: as on a processor that cannot press bytes together */
int64_t places(int few, int plain, uint64_t *marks, uint8_t *marked, int lines, int64_t *into) {
    if (few) return (plain ? pyengine_gather_few_plain : pyengine_gather_few)(marks, marked, lines, 1000, into) - into;
    return (plain ? pyengine_gather_plain : pyengine_gather)(marks, marked, lines, 1000, into) - into;
}
int64_t collect(int plain, uint64_t *found, uint64_t *words, int count, const int32_t *order, int32_t *into) {
    int32_t hits[PYENGINE_MOST];
    int64_t size = 0;
    int word = 0, more = 1;
    while (more) {
        more = (plain ? pyengine_collect_plain : pyengine_collect)(found, words, count, &word, order, hits);
        memcpy(into + size, hits, more * sizeof(int32_t));
        size += more;
    }
    return size;
}
void mark(int plain, const int32_t *hits, int count, uint64_t *marks, uint8_t *marked) {
    (plain ? pyengine_mark_plain : pyengine_mark)(hits, count, marks, marked, 0);
}
int spread_few(int64_t bits, int64_t *into) { return (int)(pyengine_spread_few(bits, 1000, into) - into); }
void meet(uint64_t *words, int size, const uint64_t *rows, int64_t step, const int32_t *buckets, int count) {
    pyengine_meet(words, size, rows, step, buckets, count);
}
int behind(void) { return PYENGINE_BEHIND; }
void turn(uint64_t *words) { turn_bits(words); }
int64_t long_of(int64_t bits) {
    double value;
    memcpy(&value, &bits, 8);
    return double_to_sortable_long(value);
}
int64_t bits_of_double(int64_t sortable) {
    const double value = sortable_long_to_double(sortable);
    memcpy(&sortable, &value, 8);
    return sortable;
}
int32_t int_of(int32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return float_to_sortable_int(value);
}
int32_t bits_of_float(int32_t sortable) {
    const float value = sortable_int_to_float(sortable);
    memcpy(&sortable, &value, 4);
    return sortable;
}
"""


@pytest.fixture(scope="module", params=["gcc -O0", "gcc -O3", "clang -O0", "clang -O3"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler, level = request.param.split()
    tmp_path = tmp_path_factory.mktemp("headers")
    if not shutil.which(compiler):
        pytest.skip(f"there is no {compiler}")
    (tmp_path / "all.c").write_text(SOURCE)
    command = [compiler, level, "-w", "-shared", "-fPIC", f"-I{ENGINE}", "all.c", "-o", "all.so"]
    subprocess.run(command, check=True, cwd=tmp_path)
    return ctypes.CDLL(str(tmp_path / "all.so"))


def test_a_rank_is_how_many_bounds_are_not_above_a_key(library: ctypes.CDLL) -> None:
    draw = Random(3)
    bounds = [*sorted(draw.randrange(-500, 500) for _ in range(127)), 2**63 - 1]
    table = (ctypes.c_int64 * 144)(*bounds, *bounds[7::8])
    copies = 0
    while library.rank_of(copies, table, ctypes.c_int64(0)) >= 0:
        for key in (-(2**63), *range(-502, 502), 2**63 - 2):
            assert library.rank_of(copies, table, ctypes.c_int64(key)) == bisect_right(bounds, key)
        copies += 1
    assert copies


@pytest.mark.parametrize(
    ("forward", "back", "integer", "exponent", "fraction"),
    [("long_of", "bits_of_double", ctypes.c_int64, 11, 52), ("int_of", "bits_of_float", ctypes.c_int32, 8, 23)],
)
def test_sortable_integers_are_in_the_order_of_compare_to(
    library: ctypes.CDLL, forward: str, back: str, integer: type[ctypes.c_int64], exponent: int, fraction: int
) -> None:
    to, of = getattr(library, forward), getattr(library, back)
    to.argtypes = of.argtypes = [integer]
    to.restype = of.restype = integer
    sign, infinity, bias = 1 << exponent + fraction, (1 << exponent) - 1 << fraction, (1 << exponent - 1) - 1
    draw = Random(9)
    # Of positive values the bits are in order: zero, subnormal and normal ones at their borders, 1.0, Infinity.
    borders = (0, 1 << fraction, bias << fraction, infinity)
    positive = sorted(
        {bits + step for bits in borders for step in (-1, 0, 1) if 0 <= bits + step <= infinity}
        | {draw.randrange(infinity) for _ in range(500)}
    )
    ordered = [*(integer(sign | bits).value for bits in reversed(positive)), *positive]
    sortable = [to(bits) for bits in ordered]
    assert sortable == sorted(set(sortable))
    assert [of(each) for each in sortable] == ordered
    nans = {
        to(integer(side | infinity | low).value) for side in (0, sign) for low in (1, sign // 2 >> exponent, sign - 1)
    }
    assert nans == {to(infinity) + 1}
    assert of(*nans) & infinity == infinity
    assert of(*nans) & ~infinity & sign - 1


@pytest.mark.parametrize("plain", [0, 1])
@pytest.mark.parametrize("few", [0, 1])
def test_places_come_back_in_order_and_their_marks_go(library: ctypes.CDLL, few: int, plain: int) -> None:
    draw, lines = Random(5), 16
    library.places.restype = ctypes.c_int64
    for count in (0, 1, 7, 300, 1000, 3000, 8192):
        places = sorted(draw.sample(range(512 * lines), count))
        marks, marked = (ctypes.c_uint64 * (8 * lines))(), (ctypes.c_uint8 * (8 * lines))()
        for place in places:
            marks[place >> 6] |= 1 << (place & 63)
            marked[place >> 6] = 1
        into = (ctypes.c_int64 * (count + library.behind()))()
        assert library.places(few, plain, marks, marked, lines, into) == count
        assert into[:count] == [1000 + place for place in places]
        assert not any(marks)
        assert not any(marked)


@pytest.mark.parametrize("plain", [0, 1])
def test_what_is_found_is_collected_as_the_order_has_it(library: ctypes.CDLL, plain: int) -> None:
    draw, lines = Random(6), 128
    size = 512 * lines
    order = [*range(size)]
    draw.shuffle(order)
    library.collect.restype = ctypes.c_int64
    for count in (0, 1, 7, 300, 3000, 30_000, size):
        found, words = (ctypes.c_uint64 * (8 * lines))(), (ctypes.c_uint64 * (lines // 8))()
        places = draw.sample(range(size), count)
        for place in places:
            found[place >> 6] |= 1 << (place & 63)
            words[place >> 12] |= 1 << (place >> 6 & 63)
        into = (ctypes.c_int32 * (count + 1))()
        assert library.collect(plain, found, words, lines // 8, (ctypes.c_int32 * size)(*order), into) == count
        assert into[:count] == [order[place] for place in sorted(places)]
        assert not any(words)
        assert not any(found)


@pytest.mark.parametrize("plain", [0, 1])
def test_what_is_marked_has_its_bit_and_its_word_a_byte(library: ctypes.CDLL, plain: int) -> None:
    draw, words = Random(7), 64
    for count in (0, 1, 7, 300, 64 * words):
        hits = draw.sample(range(64 * words), count)
        marks, marked = (ctypes.c_uint64 * words)(), (ctypes.c_uint8 * words)()
        library.mark(plain, (ctypes.c_int32 * (count + 1))(*hits), count, marks, marked)
        assert {place for place in range(64 * words) if marks[place >> 6] >> (place & 63) & 1} == set(hits)
        assert {word for word in range(words) if marked[word]} == {hit >> 6 for hit in hits}


def test_a_word_s_bits_become_numbers(library: ctypes.CDLL) -> None:
    for bits in ([], [0], [63], [0, 63], [5, 6, 7], [*range(64)]):
        into = (ctypes.c_int64 * (len(bits) + library.behind()))()
        assert library.spread_few(ctypes.c_int64(sum(1 << bit for bit in bits)), into) == len(bits)
        assert into[: len(bits)] == [1000 + bit for bit in bits]


def test_bits_turned_are_those_of_the_other_words(library: ctypes.CDLL) -> None:
    draw = Random(8)
    words = [draw.getrandbits(64) for _ in range(64)]
    turned = (ctypes.c_uint64 * 64)(*words)
    library.turn(turned)
    assert list(turned) == [
        sum((word >> place & 1) << number for number, word in enumerate(words)) for place in range(64)
    ]


@pytest.mark.parametrize("size", [1, 7, 8, 9, 25])
def test_words_keep_the_bits_that_every_row_has(library: ctypes.CDLL, size: int) -> None:
    draw, buckets = Random(size), 6
    rows = [[draw.getrandbits(64) | draw.getrandbits(64) for _ in range(size)] for _ in range(buckets)]
    words = [draw.choice((0, draw.getrandbits(64))) for _ in range(size)]
    for count in (0, 1, 4, buckets):
        chosen, left = draw.sample(range(buckets), count), (ctypes.c_uint64 * size)(*words)
        every = (ctypes.c_uint64 * (buckets * size))(*(word for row in rows for word in row))
        library.meet(left, size, every, ctypes.c_int64(size), (ctypes.c_int32 * (count + 1))(*chosen, 0), count)
        expected = words
        for bucket in chosen:
            expected = [word & other for word, other in zip(expected, rows[bucket], strict=True)]
        assert list(left) == expected
