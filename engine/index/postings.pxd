"""postings: posting lists by value: which subscriptions a message's values make candidates, and which they decide.

Here are the subscriptions that bits by bucket (segment.pxd) would serve badly: an IN or an OR, a tree of AND, OR and
NOT, LIKE in the middle of a text, a narrow interval. Each is listed under the values of its *access predicates*
(access_predicates.pxd), and a message finds it by the values that it has:

    text         hash table of the texts of a property -> list
    number       the bounds of a property cut the number line into stretches; over them lies a segment tree, whose
                 nodes have the intervals that cover them: from the leaf of the message's stretch up to the root
    LIKE         pattern_automaton.pxd -> the list of each pattern that matches
    null, false, true, present        a list each

A posting ``decides`` or makes a *candidate*. Candidates, and the *scanned*, which have no access predicate that is
worth one, run their residual program (residual.pxd) on the codes of the message's values: numbers of stretches and of
texts, so that a comparison is one of two integers whatever it compares.

Invariants: the lists lie one behind another in ``postings``, list l from starts[l] to before starts[l + 1]; a posting
is twice the place of its subscription, and one more if it decides; places below ``scanned`` have postings.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from pyengine._engine.index.constants cimport Point
from pyengine._engine.index.message_view cimport Event
from pyengine._engine.index.pattern_automaton cimport Matched
from pyengine._engine.index.residual cimport PROGRAM, Step, run
from pyengine._engine.java.value cimport Scratch


cdef enum List:                  # of a column, from its first
    OF_NULL
    OF_FALSE
    OF_TRUE
    OF_PRESENT                   # whatever is not null
    OF_ODD                       # all that have a posting of the column but OF_NULL
    COLUMN_LISTS


cdef struct PostedColumn:
    int32_t slot
    int32_t first_list
    int32_t bound_count
    int32_t tree_list            # list of the tree's node 0, which there is none of
    int32_t tree_leaves          # a power of two, or 0: no tree
    int32_t texts                # that are constants
    int64_t* bounds              # stretch s lies below bounds[s]
    PyObject* automaton          # borrowed; NULL none


cdef inline uint32_t stretch_of(const PostedColumn* column, int64_t key) noexcept nogil:
    """How many bounds are not above a key."""
    cdef const int64_t* base = column.bounds
    cdef int32_t count = column.bound_count, half
    while count > 1:
        half = count >> 1
        base += half if base[half - 1] <= key else 0
        count -= half
    return <uint32_t> (base - column.bounds) + (count == 1 and base[0] <= key)


cdef struct Searched:            # working memory of one match
    uint32_t* codes              # [column]
    uint64_t* candidates         # a bit for each place; 0 between two
    int32_t* chosen              # the candidates
    int32_t count
    bint odd                     # a value is none that codes stand for: no posting decides, and programs are asked
    Matched matched


cdef class Postings:
    cdef int count               # subscriptions: places 0 to count - 1
    cdef int scanned             # first place of those without postings
    cdef PyObject** members      # Subscription by place; the segment owns them
    cdef PostedColumn* columns
    cdef int column_count
    cdef Point* points           # of texts; ``first``: its list, ``code``: its number from 1
    cdef int64_t point_room
    cdef int64_t point_count
    cdef int32_t* postings
    cdef int64_t* starts         # [list]
    cdef int64_t list_count
    cdef int pattern_count
    cdef int32_t pattern_list    # list of pattern 0
    cdef list automata
    cdef Step* steps
    cdef int64_t* first_steps    # [place], and one more
    cdef uint32_t* pool          # codes of IN, ascending for each
    cdef int32_t* hits           # [place]: its hit of the segment
    cdef Scratch scratch

    # Codes and candidates of a message, and marks of what postings decide (as Found has them), of which it returns how
    # many. alive: a bit a place. keys: by hit, or NULL.
    cdef int64_t find(
        self, Event event, const uint64_t* alive, Searched* searched, uint64_t* marks, uint8_t* marked, void** keys
    ) noexcept nogil
    cdef int64_t take(
        self, int64_t number, const uint64_t* alive, Searched* searched, uint64_t* marks, uint8_t* marked, void** keys
    ) noexcept nogil
    cdef void forget(self, Searched* searched) noexcept nogil        # after find
    cdef inline int try_place(self, int place, const Searched* searched) noexcept nogil:
        """residual.Outcome of a place."""
        if searched.odd or self.first_steps[place] == self.first_steps[place + 1]:
            return PROGRAM
        return run(
            self.steps + self.first_steps[place], searched.codes, self.pool, searched.matched.bits)
