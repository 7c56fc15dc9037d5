"""segment: an immutable index over many subscriptions, 512 to a cache line of bits.

A subscription is an *entry*, or, if it is an OR, one for each of its branches; it is found once. Of a small segment all
entries are looked at, in their order. In a larger one entries with an equality that every match must satisfy (their
*access point*: the rarest there is) lie together, those without one behind them at ``loose``; many that lie together
are in the order of ``clusters``. For each slot that entries ask about, values fall into *buckets*: null, what only the
programs understand, an unknown text (or stretches of the order of unknown texts, where entries ask for how a text
begins), texts, and stretches of the number line. A bucket has for each entry a bit ``passed``: unless a requirement of
the entry on this slot is surely missed; and a bit ``open``: whether it is met depends on where in the bucket the value
lies. An entry that passed everywhere, is open nowhere, and has requirements only (``whole``) matches; where it is open
its intervals are asked, or the program.

Subscriptions that such bits would serve badly are not entries: ``posted`` lists them by value (postings.pxd). Their
places follow those of the entries, from the next whole line on.

Invariants: passed bits of entries that ask nothing of a slot are set; ``lively`` bit w of a bucket: word w has a bit
passed; all texts outlive the segment in ``scratch`` or the programs; ``in_order``: place p is the p-th Subscription by
number, and nothing is posted.
"""

from cython cimport final
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from pyengine._engine.index.message_view cimport Event, Reading
from pyengine._engine.index.constants cimport Point
from pyengine._engine.index.postings cimport Postings, Searched
from pyengine._engine.java.value cimport Scratch


cdef enum:
    LINE = 512
    NULL_BUCKET = 0
    ODD_BUCKET = 1
    STRANGE_BUCKET = 2           # a text that no entry names
    FIRST_TEXT = 3


cdef enum:
    MOST_BOUNDS = 128            # one at least is INT64_MAX
    MOST_ROWS = 128              # slots whose bits are looked at
    MOST_PICKED = 64             # entries that are asked one by one
    MOST_OPEN = 256              # entries whose intervals are asked together
    TOGETHER = 64                # messages whose values are placed together: the bits of Kinds


cdef struct Line:                # of entries, some of whose words are to be looked at
    int32_t line
    int32_t words                # a bit for each


cdef struct Found:               # what matched
    int64_t* numbers             # of messages, one message's behind the other's
    PyObject** keys              # the same, borrowed from the segments; only if not ``keyless``
    int64_t first                # of the message at hand
    int64_t size
    int64_t room
    int64_t expected             # numbers at the end, by those so far; 0: nobody knows
    int64_t key_room
    PyObject** raised            # the Subscriptions whose program raised
    int64_t raised_size
    int64_t raised_room
    bint keyless
    bint unordered               # the numbers of the message may not ascend
    bint any_order               # nobody minds; only if ``keyless``
    bint at_once                 # hits of the segment that is asked become numbers at once, and are not marked
    bint no_memory
    uint64_t* marks              # a bit for each hit of the segment that is asked; 0 between two
    uint8_t* marked              # 1 if a word of ``marks`` is not 0: bytes, so that none need be read; a multiple of 64
    int64_t mark_count           # at least as many
    uint64_t* wanted             # a bit for each entry that is to be looked at, then that matches; 0 between two
    uint64_t* wanted_words       # a bit for each word that has one
    Line* lines                  # those that are to be looked at
    Searched searched


cdef enum:
    SIDE_BY_SIDE = 2             # intervals


cdef struct Interval:            # of keys
    int64_t low
    int64_t high
    int32_t slot


cdef struct Intervals:           # of an entry, which have a number's key exactly if the number meets the requirement
    Interval[SIDE_BY_SIDE] first     # those beyond ``count`` have every key
    int32_t count
    int32_t hit                  # of ``order``, which need not be fetched then
    int64_t rest                 # where those behind the first are, among all of the segment


cdef struct Table:               # one slot
    int slot
    int texts                    # buckets of texts: a power of two, or 0
    int distinct                 # texts that entries name
    int bound_count              # the number line is cut below each bound
    int text_bound_count         # the order of unknown texts is cut below each; 0: they are one bucket, STRANGE_BUCKET
    int buckets                  # 3 + texts + stretches of the two lines; 0: only an access slot
    int first                    # its first bucket's place among all of the segment
    bint numbers_are_points
    int64_t* bounds              # MOST_BOUNDS, those beyond the count INT64_MAX; then the last of every eight again
    int64_t* text_bounds         # of text_key; the same
    uint64_t* passed             # of the segment's, from its first bucket on; the same
    uint64_t* open
    uint64_t* lively
    uint8_t* opens
    bint bounded                 # entries have intervals of it
    double passing               # part of the bits that are set


cdef enum Openness:              # of a bucket
    SHUT = 0
    OPEN_TO_PROGRAMS = 1         # an entry is open, or in an append segment maybe
    OPEN_TO_INTERVALS = 2        # the same, of a table that is ``bounded``, in a stretch of the number line


cdef struct Placed:              # where a message's values fall
    int32_t* buckets             # [table]: among all of the segment
    int32_t* points              # access points that they are
    int point_count
    int present                  # tables of which it has a value
    uint64_t[2] absent           # tables, modulo 128, of which it has none
    bint strange                 # only the programs know


cdef struct Look:                # of one message: the bits of the buckets that its values fall into
    const Reading* at            # at[slot * step]
    int step
    const int32_t* buckets       # [table]
    int count                    # tables that are shown
    int64_t[MOST_ROWS] passed    # words into the segment's
    int open_count
    int64_t[MOST_ROWS] open      # of slots whose openness only the programs end
    int bounded_count
    int64_t[MOST_ROWS] between   # of slots whose value is a number and which have intervals
    uint64_t[2] absent           # of Placed
    bint sparse                  # it has values of less than half of the tables
    int whole                    # the line from which on all entries are wanted, of which ``wanted`` has no bits
    int picked_count
    int32_t[MOST_PICKED] picked  # entries
    int open_entry_count
    int32_t[MOST_OPEN + 72] open_entries   # room for those of one word more; ~place: of which no bit was looked at


@final
cdef class Segment:
    cdef readonly int size       # entries
    cdef int members             # Subscriptions
    cdef int lines
    cdef int hit_lines           # of a bit for each hit
    cdef int alive_lines         # of a bit for each place: those of entries, then those of ``posted``
    cdef Postings posted         # None: nothing is listed by value
    cdef int words               # of a bit for each word of the lines
    cdef bint is_small           # its lines are all looked at, and no entry has an access point
    cdef bint in_order
    cdef int buckets             # of all tables
    cdef int64_t bucket_step     # words from a bucket's bits of a line to the next bucket's, and to the next line's
    cdef int64_t line_step
    cdef uint64_t* passed        # [bucket][line][8]; in an append segment [line][bucket][8]
    cdef uint64_t* open
    cdef uint64_t* lively        # [bucket][word / 64]
    cdef uint8_t* opens          # [bucket]: Openness
    cdef Segment model           # of an append segment: whose bounds and points it shares
    cdef bint shares             # it is an append segment
    cdef bint errors_count
    cdef readonly bint needs_gil
    cdef int widest              # slots of the program with most
    cdef PyObject** subscriptions    # [place]
    cdef bint owns               # one reference to each of its Subscriptions
    cdef int32_t* first_places   # [hit]: of a Subscription, among entries and posted; of an append segment, itself
    cdef int32_t* next_places    # [place]: the next entry of the same Subscription, -1 none; NULL: each has one
    cdef int64_t* numbers        # of its Subscriptions, in the order of addition; of an append segment, of arrival
    cdef PyObject** keys         # the same
    cdef bint consecutive        # each number is one more than the one before
    cdef int32_t* order          # place -> its hit: the place in ``numbers``
    cdef uint64_t* whole         # [line][8]
    cdef Intervals* intervals    # [place], each a cache line; an append segment has none
    cdef Interval* more_intervals
    cdef uint64_t* by_intervals  # [line][8]: of a number it leaves nothing open but intervals; the same
    cdef uint64_t* of_intervals  # [line][8]: it is whole, each requirement an interval that null refuses; the same
    cdef uint64_t* required      # [place / 4][2][4]: a bit for each table (modulo 128) whose null refuses the entry
    cdef int loose
    cdef Table* tables           # those with buckets first, the most refusing first
    cdef int32_t* null_buckets   # of each table, among all of the segment
    cdef int32_t* slots          # of each table
    cdef int table_count
    cdef int with_buckets
    cdef Point* points
    cdef int64_t point_room
    cdef int64_t point_count
    cdef Scratch scratch
    cdef tuple blocks            # memory of the tables' bits

    cdef inline int32_t first_place(self, int32_t hit) noexcept nogil:
        return hit if self.shares else self.first_places[hit]

    cdef inline int32_t place_after(self, int32_t place) noexcept nogil:
        """The next place of the Subscription at a place; -1: there is none."""
        if self.shares:
            return place + 1 if place + 1 < self.size and self.order[place + 1] == self.order[place] else -1
        return -1 if self.next_places == NULL or place >= self.lines * LINE else self.next_places[place]

    cdef inline PyObject* at_hit(self, int32_t hit) noexcept nogil:
        """The Subscription of a hit; NULL: of an append segment, there is none."""
        cdef int32_t place = self.first_place(hit)
        if self.shares and self.order[place] != place:
            return NULL
        if place < self.lines * LINE:
            return self.subscriptions[place]
        return self.posted.members[place - self.lines * LINE]

    cdef inline int32_t hit_count(self) noexcept nogil:
        return self.size if self.shares else self.members

    cdef void own(self) noexcept         # takes a reference to each of its Subscriptions
    cdef void adopt(self) noexcept       # makes it the one that they lie in
    cdef uint64_t* bits(self, Py_ssize_t words) except NULL     # zeroed, from the begin of a cache line on

    cdef void share_buckets(self) noexcept                      # the memory of all, among the tables
    cdef int note_tables(self) except -1                        # what ``placing`` asks of all, once they are in order
    # Adds what matches, without the GIL unless needs_gil. alive: a bit an entry. ranges: 2 table_count + 2 ints.
    cdef void match(
        self, Event event, const Placed* placed, const uint64_t* alive, int* ranges, Found* found) noexcept nogil
    # The same, before what is marked and what are hits become numbers.
    cdef void keep_matches(
        self, Event event, const Placed* placed, const uint64_t* alive, int* ranges, Found* found) noexcept nogil
    # What the posting lists make of it; ``alive`` from their first place on.
    cdef void match_posted(self, Event event, const uint64_t* alive, Found* found) noexcept nogil
    cdef void ask_posted(self, Event event, int place, Found* found) noexcept nogil
    # Entries from ``first`` to before ``last`` that are to be asked one by one; False if they are too many.
    cdef bint pick(self, const uint64_t* alive, int first, int last, Look* look) noexcept nogil
    cdef void ask_picked(self, Event event, const Look* look, Found* found) noexcept nogil
    cdef void ask_intervals(self, Event event, Look* look, Found* found) noexcept nogil      # of the open entries
    # The entries of a word that what is absent leaves are to be asked one by one; False if they are too many.
    cdef bint take_word(self, Event event, const uint64_t* alive, int word, Look* look, Found* found) noexcept nogil
    cdef void ask_entry(self, Event event, int place, Found* found) noexcept nogil
    cdef void keep(self, const int32_t* hits, int count, Found* found) noexcept nogil    # they are marked, or numbers
    cdef void keep_wanted(self, Found* found) noexcept nogil     # what matches of the wanted
    cdef void** keys_of(self, Found* found) noexcept nogil       # that are fetched early; NULL: nobody asks for them
    cdef void gather(self, Found* found) noexcept nogil          # what is marked
    # What has been found from ``first`` on is numbers if they are consecutive, else hits, which become numbers.
    cdef void number_hits(self, Found* found, int64_t first) noexcept nogil
    # What is left of a line to be asked, or to the intervals.
    cdef void ask_line(
        self, Event event, int line, const uint64_t* asked, const uint64_t* between, Look* look,
        Found* found) noexcept nogil
    # Keeps what matches of a small segment.
    cdef void scan_small(self, Event event, const uint64_t* alive, Look* look, Found* found) noexcept nogil
    # Keeps those of the wanted that match.
    cdef void scan(self, Event event, const uint64_t* alive, Look* look, Found* found) noexcept nogil
    cdef int lively_lines(self, const Look* look, Found* found) noexcept nogil      # that the wanted lie in


cdef void ask(Event event, PyObject* subscription, bint errors_count, Found* found) noexcept nogil
cdef bint reserve(Found* found, int64_t more) noexcept nogil     # room for so many more; False without memory

cdef inline int rank(const int64_t* bounds, int count, int64_t key) noexcept nogil:
    """The stretch of a key: how many bounds are not above it. No key is INT64_MAX but an interval's end."""
    cdef int low = 0, half = MOST_BOUNDS // 2 if count else 0
    while half:
        low += half if bounds[low + half - 1] <= key else 0
        half >>= 1
    return low if low < count else count


cdef inline uint64_t* required_of(uint64_t* required, int place) noexcept nogil:
    """The first word of an entry; its other is the fourth behind it."""
    return required + 8 * <int64_t> (place >> 2) + (place & 3)


cdef inline Interval* interval_of(Intervals* its, Interval* more_intervals, int k) noexcept nogil:
    if k < SIDE_BY_SIDE:
        return &its.first[k]
    return &more_intervals[its.rest + k - SIDE_BY_SIDE]


cdef inline int64_t text_key(const uint8_t* bytes, uint32_t length, uint8_t filling) noexcept nogil:
    """Orders texts by their first eight bytes of UTF-8; shorter ones are filled up."""
    cdef uint64_t key = 0
    cdef uint32_t at
    for at in range(8):
        key = key << 8 | (bytes[at] if at < length else filling)
    return <int64_t> (key ^ (<uint64_t> 1 << 63))


cdef inline int first_text_stretch(const Table* table) noexcept nogil:
    return FIRST_TEXT + table.texts + table.bound_count + 1
