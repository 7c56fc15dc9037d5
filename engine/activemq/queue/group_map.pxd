"""group_map: the owner of each message group, in the broker's three maps, and the number of groups assigned to each
consumer.

A group name is interned; after that it is a handle (int32, 0, 1, ...) until ``compact`` forgets it. The owned value is
a
*key*: the handle itself (simple, cached) or the hash bucket of the name (bucket), so two groups of one bucket share one
owner.

Invariants: ``owner[key]`` is a consumer slot or -1. cached: the listed handles are exactly those with an owner, at most
``capacity`` of them, eldest access first. bucket: the listed handles are what the broker would display (at most
``capacity``), with the owner they were listed with. ``counts`` drift as the broker's do: an assignment adds one,
closing a group and forgetting the eldest take one off, a take-over takes nothing from the old owner (spec activemq
2.6).
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from pyengine._engine.serialization.codec cimport Reader, SharedValues, Writer
from pyengine._engine.serialization.renumbering cimport Numbering


cdef struct Moment:
    int64_t round
    int64_t position                  # of the message; INT64_MAX between rounds


cdef enum GroupMapForm:
    SIMPLE
    BUCKET
    CACHED


cdef class GroupMap:
    cdef readonly str kind            # "simple" | "bucket" | "cached"
    cdef readonly str factory         # as given to the constructor
    cdef readonly int capacity        # cached: groups remembered; bucket: groups displayed
    cdef readonly int buckets         # bucket: number of buckets
    cdef GroupMapForm form
    cdef list names                   # handle -> name
    cdef dict handles                 # name -> handle, of the first ``hashed`` names
    cdef int32_t hashed
    cdef SharedValues shared          # of a queue restored with it: numbers of its names
    cdef int32_t* number              # handle -> number in ``shared``, -1 unknown
    cdef int32_t size                 # handles interned
    cdef int32_t due                  # size at which unused names are looked for next
    cdef bint lent                    # a caller has handles: no name is forgotten
    cdef int32_t room
    cdef int32_t keys                 # number of keys; owner has this many entries in use
    cdef int32_t* key                 # handle -> key
    cdef int32_t* owner               # key -> consumer slot, -1 none
    cdef int32_t* elder               # listed handles, linked by access: towards the eldest
    cdef int32_t* younger
    cdef Moment now                   # of the next look-ups
    cdef Moment* accessed             # last look-up of a listed handle; the list ascends by it
    cdef bint watched                 # look-ups for waiting messages count and are computed when needed
    cdef int32_t* shown               # bucket: owner a listed handle was listed with; -1 not listed
    cdef int32_t eldest
    cdef int32_t youngest
    cdef int32_t listed
    cdef int32_t loser                # owner of the group that was forgotten last
    cdef int64_t* counts              # consumer slot -> groups assigned
    cdef int32_t slots

    cdef int32_t intern(self, object name) except -1
    cdef int32_t find(self, object name) except -2                          # -1 not known
    cdef int32_t settled(self, object name) except -1                       # ``intern``, with no handle anywhere else
    cdef int32_t append(self, object name) except -1                        # a name that is known to be new
    cdef int32_t append_number(self, int64_t number) except -1              # the same, by its number in ``shared``
    cdef int hash_names(self) except -1
    cdef int reserve(self, int32_t room) except -1
    cdef int share(self, SharedValues shared) except -1
    cdef int reserve_slots(self, int32_t slots) except -1
    cdef int32_t touch(self, int32_t handle) noexcept nogil                 # owner or -1; refreshes the access order
    cdef int32_t assign(self, int32_t handle, int32_t slot) noexcept nogil  # -> key forgotten to make room, or -1
    cdef int close(self, int32_t handle, int32_t slot) noexcept nogil       # the owner's negative sequence
    cdef int32_t drop(self, int32_t handle) noexcept nogil                  # -> previous owner; counts stay
    cdef list drop_consumer(self, int32_t slot)                             # -> keys that lost their owner
    cdef int drop_all(self) except -1
    cdef int renew(self) except -1                                          # no group was ever looked up
    # Forget names without an owner that are not listed and not ``held`` (uint8 by handle). -> moved: old handle ->
    # new handle, -1 forgotten; NULL if no handle has changed. The caller frees it.
    cdef int32_t* compact(self, const uint8_t* held) except? NULL
    cdef int trim(self) except -1                                           # frees the memory of a peak
    # Record a later access: move to its place in the list, searched from ``cursor`` towards the eldest.
    cdef void advance(self, int32_t handle, Moment moment, int32_t cursor) noexcept nogil
    cdef bint precedes(self, Moment left, Moment right) noexcept nogil

    cdef void unlist(self, int32_t handle) noexcept nogil
    cdef void enlist(self, int32_t handle) noexcept nogil


cdef enum:
    MOST = 0x3FFFFFFF            # slots, names, consumers in one snapshot


# A group map as bytes, alone or in a queue's snapshot: the owner of each group, in the order of access. Names that are
# no longer in use are left out, so that handles of names change. Values read are checked where it could lead out of an
# array; SnapshotError says at which byte.
cdef int put_groups(Writer writer, GroupMap groups, Numbering names, Numbering slots) except -1
cdef int get_groups(Reader reader, GroupMap groups, int32_t slots) except -1
