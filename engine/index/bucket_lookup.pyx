# cython: freethreading_compatible=True, cdivision=True
"""See bucket_lookup.pxd."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from pyengine._engine.lowlevel.bits cimport count_bits, numbers_of, pyengine_prefetch, turn_bits
from pyengine._engine.index.message_view cimport NOTHING, NUMERAL, ODD, WORD, Kinds, Reading, number_hash, some_of
from pyengine._engine.columns.kernels cimport best_kernels
from pyengine._engine.index.constants cimport Point, seat_of, seek
from pyengine._engine.index.segment cimport (
    FIRST_TEXT,
    MOST_ROWS,
    NULL_BUCKET,
    ODD_BUCKET,
    STRANGE_BUCKET,
    TOGETHER,
    Placed,
    Segment,
    Table,
    first_text_stretch,
    rank,
    required_of,
    text_key,
)

cdef enum:
    BEHIND = 2               # tables of several messages whose seats are fetched before values are sought there


cdef inline uint64_t first_bits(int count) noexcept nogil:
    return 0 if count <= 0 else ~(<uint64_t> 0) if count >= 64 else (<uint64_t> 1 << count) - 1


cdef inline int bucket_of(int kind, const Table* table) noexcept nogil:
    """Among the table's, before a point or a stretch is known."""
    return (NULL_BUCKET if kind == NOTHING else STRANGE_BUCKET if kind == WORD
            else FIRST_TEXT + table.texts if kind == NUMERAL else ODD_BUCKET)


cdef inline bint is_sought(int kind, const Table* table) noexcept nogil:
    """Whether such a value may be a point, or lie in a stretch of texts."""
    return kind == NUMERAL and table.numbers_are_points or kind == WORD and (table.texts or table.text_bound_count)


cdef inline void set_buckets(uint64_t messages, int bucket, int32_t* buckets, int64_t width) noexcept nogil:
    cdef int index
    cdef uint8_t[TOGETHER] rows
    for index in range(numbers_of(messages, rows)):
        buckets[rows[index] * width] = bucket


cdef inline uint64_t place_held(
        Segment segment, int number, Reading* reading, const Kinds* of, Placed* placed, int32_t* buckets,
        int64_t width) noexcept nogil:
    """Returns the messages whose values are to be sought; the seats are fetched some time before."""
    cdef const Table* table = &segment.tables[number]
    cdef const Point* points = segment.points
    cdef int64_t room = segment.point_room
    cdef int row, index, count, bucket = table.first + bucket_of(NUMERAL, table)
    cdef uint64_t sought = (of.numerals if is_sought(NUMERAL, table) else 0) | (
        of.words if is_sought(WORD, table) else 0)
    cdef uint8_t[TOGETHER] rows
    cdef int32_t[TOGETHER] ranks
    cdef int64_t[TOGETHER] keys
    if of.numerals and not table.bound_count:
        set_buckets(of.numerals, bucket, buckets, width)
    elif of.numerals and of.numerals & of.numerals + 1 == 0:     # of the first so many messages: nothing need be chosen
        count = count_bits(of.numerals)
        best_kernels().ranks(
            <const int64_t**> &table.bounds, 0, &reading.key, sizeof(Reading), count, ranks)
        for index in range(count):
            buckets[index * width] = bucket + ranks[index]
    elif of.numerals:
        count = numbers_of(of.numerals, rows)
        for index in range(count):
            keys[index] = reading[rows[index]].key
        best_kernels().ranks(<const int64_t**> &table.bounds, 0, keys, sizeof(int64_t), count, ranks)
        for index in range(count):
            buckets[rows[index] * width] = bucket + ranks[index]
    set_buckets(of.words, table.first + bucket_of(WORD, table), buckets, width)
    set_buckets(of.odd, table.first + bucket_of(ODD, table), buckets, width)
    for index in range(numbers_of(of.odd if table.numbers_are_points else 0, rows)):
        placed[rows[index]].strange = True
    for index in range(numbers_of(sought, rows)):
        row = rows[index]
        if reading[row].kind == NUMERAL:
            reading[row].hash = number_hash(reading[row].key)
        pyengine_prefetch(&points[seat_of(room, number, reading[row].hash)])
    return sought


cdef inline void place_sought(
        Segment segment, const Reading* readings, const Sought* sought, Placed* placed) noexcept nogil:
    cdef int number = sought.table, index, row
    cdef const Table* table = &segment.tables[number]
    cdef int first_text = table.first + FIRST_TEXT, mask = table.texts - 1
    cdef bint cut = table.text_bound_count != 0, has_points = segment.point_count != 0
    cdef bint accesses = not segment.shares and not segment.is_small
    cdef Point* points = segment.points
    cdef int64_t room = segment.point_room
    cdef const Point* point = NULL
    cdef const Reading* reading
    cdef uint8_t[TOGETHER] rows
    for index in range(numbers_of(sought.messages, rows)):
        row = rows[index]
        reading = &readings[row]
        if has_points:
            point = seek(points, room, number, reading)
        if point != NULL and point.of:
            if reading.kind == WORD:
                placed[row].buckets[number] = first_text + (point.code & mask)
            if accesses and point.last:
                placed[row].points[placed[row].point_count] = <int32_t> (point - points)
                placed[row].point_count += 1
                pyengine_prefetch(required_of(segment.required, point.first))
        elif cut and reading.kind == WORD:
            placed[row].buckets[number] = table.first + first_text_stretch(table) + rank(
                table.text_bounds, table.text_bound_count, text_key(reading.bytes, reading.length, 0))


cdef inline void note_present(uint64_t* has, bint alike, int half, Placed* placed, int count) noexcept nogil:
    """The tables as messages have them, instead of the messages as tables do; ``has`` is used up."""
    cdef int index
    cdef uint64_t tables = 0
    if alike:
        for index in range(64):
            tables |= (has[index] & 1) << index
        for index in range(count):
            has[index] = tables
    else:
        turn_bits(has)
    for index in range(count):
        placed[index].present += count_bits(has[index])
        placed[index].absent[half] &= ~has[index]


cdef void place_one(Segment segment, Reading* at, Placed* placed, Sought* sought) noexcept nogil:
    cdef int number, index, held_count = 0, ranked = 0
    cdef const int32_t* slots = segment.slots
    cdef const Table* table
    cdef Reading* reading
    cdef uint64_t[2] present
    cdef Sought* last = sought
    cdef (const int64_t*)[MOST_ROWS] bounds
    cdef int64_t[MOST_ROWS] keys
    cdef int32_t[MOST_ROWS] ranks, ranked_tables
    memcpy(placed.buckets, segment.null_buckets, segment.table_count * sizeof(int32_t))
    placed.point_count = 0
    placed.strange = False
    present[0] = present[1] = 0
    # Nobody can foresee which values a message has, so that no branch is taken on it.
    for number in range(segment.table_count):
        sought[held_count].table = number
        held_count += at[slots[number]].kind != NOTHING
        present[number >> 6 & 1] |= <uint64_t> (at[slots[number]].kind != NOTHING) << (number & 63)
    placed.present = held_count
    placed.absent[0] = first_bits(segment.table_count) & ~present[0]
    placed.absent[1] = first_bits(segment.table_count - 64) & ~present[1]
    # The numbers are ranked together, and the seats of the points fetched before one is sought.
    for index in range(held_count):
        number = sought[index].table
        table = &segment.tables[number]
        reading = &at[slots[number]]
        placed.buckets[number] = table.first + bucket_of(reading.kind, table)
        if reading.kind == NUMERAL and table.bound_count and ranked < MOST_ROWS:
            bounds[ranked] = table.bounds
            keys[ranked] = reading.key
            ranked_tables[ranked] = number
            ranked += 1
        placed.strange |= reading.kind == ODD and table.numbers_are_points
        if is_sought(reading.kind, table):
            if reading.kind == NUMERAL:
                reading.hash = number_hash(reading.key)
            pyengine_prefetch(&segment.points[seat_of(segment.point_room, number, reading.hash)])
            last.table = number
            last.messages = 1
            last += 1
    best_kernels().ranks(bounds, 1, keys, sizeof(int64_t), ranked, ranks)
    for index in range(ranked):
        placed.buckets[ranked_tables[index]] += ranks[index]
    while sought != last:
        place_sought(segment, &at[slots[sought.table]], sought, placed)
        sought += 1


cdef void place_many(
        Segment segment, Reading* at, int step, const Kinds* kinds, int count, Placed* placed,
        Sought* sought) noexcept nogil:
    cdef int table_count = segment.table_count, number, row
    cdef int64_t width = placed[1].buckets - placed[0].buckets
    cdef const int32_t* slots = segment.slots
    cdef uint64_t every = first_bits(count), some
    cdef uint64_t[TOGETHER] has  # of 64 tables: a bit for each message of which it has a value
    cdef bint alike = True       # that is all of them, or none
    cdef Reading* reading
    cdef Sought* last = sought
    for row in range(count):
        memcpy(placed[row].buckets, segment.null_buckets, table_count * sizeof(int32_t))
        placed[row].point_count = placed[row].present = 0
        placed[row].strange = False
        placed[row].absent[0], placed[row].absent[1] = first_bits(table_count), first_bits(table_count - 64)
    for number in range(table_count):
        if number & 63 == 0:
            memset(has, 0, sizeof(has))
            alike = True
        some = has[number & 63] = some_of(&kinds[slots[number]])
        alike &= some == 0 or some == every
        if some:
            reading = at + <int64_t> slots[number] * step
            last.table = number
            last.messages = place_held(
                segment, number, reading, &kinds[slots[number]], placed, placed[0].buckets + number, width)
            last += last.messages != 0
            if last - sought > BEHIND:
                place_sought(segment, at + <int64_t> slots[sought.table] * step, sought, placed)
                sought += 1
        if number & 63 == 63 or number == table_count - 1:
            note_present(has, alike, number >> 6 & 1, placed, count)
    while sought != last:
        place_sought(segment, at + <int64_t> slots[sought.table] * step, sought, placed)
        sought += 1
