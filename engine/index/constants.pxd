"""constants: the values that entries name, each in the seat of a hash table.

Invariants: there are more seats than points, a power of two; points are distinct by table, kind and what Reading says
stands for a value.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from pyengine._engine.index.message_view cimport NUMERAL, Reading
from pyengine._engine.java.value cimport pyengine_same_bytes


cdef struct Point:               # first what each search reads
    int64_t key
    int32_t of                   # its table and kind: point_kind; 0: the seat is empty
    int32_t code                 # of a text in its table
    int32_t first                # entries whose access point it is
    int32_t last
    uint64_t hash                # as of Reading
    const uint8_t* bytes
    uint32_t length


cdef inline int32_t point_kind(int table, int kind) noexcept nogil:
    return table << 2 | kind


cdef inline Reading reading_of(const Point* point) noexcept nogil:
    cdef Reading reading
    reading.kind, reading.length, reading.key = <uint8_t> (point.of & 3), point.length, point.key
    reading.hash, reading.bytes = point.hash, point.bytes
    return reading


cdef inline uint64_t seat_of(int64_t room, int table, uint64_t hash) noexcept nogil:
    """Where it is sought first."""
    return (hash + <uint64_t> table * <uint64_t> 0x9E3779B97F4A7C15) & (room - 1)


cdef inline bint same_point(const Point* point, const Reading* of) noexcept nogil:
    """Of one kind, with the same key."""
    return of.kind == NUMERAL or point.length == of.length and (
        of.length <= 8 or point.hash == of.hash and pyengine_same_bytes(point.bytes, of.bytes, of.length))


cdef inline Point* seek(Point* points, int64_t room, int table, const Reading* of) noexcept nogil:
    """A value's point, or the empty seat where it would sit."""
    cdef uint64_t mask = room - 1, place = seat_of(room, table, of.hash)
    cdef int32_t kind = point_kind(table, of.kind)
    cdef Point* point = &points[place]
    while point.of and not (point.key == of.key and point.of == kind and same_point(point, of)):
        place += 1
        point = &points[place & mask]
    return point
