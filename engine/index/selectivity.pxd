"""selectivity: how many messages an access predicate lets through, by what the selectors of a set compare with.

Nobody knows the messages when an index is built. The constants of the set stand for them: a value that one comparison
in a thousand names is taken for a value of one message in a thousand, and an interval for as many as it has bounds of
others. A sample of the set is enough.
"""

from libc.stdint cimport int64_t

from pyengine._engine.index.leaf_truths cimport Truths
from pyengine._engine.index.constants cimport Point
from pyengine._engine.index.growing cimport Growing
from pyengine._engine.index.requirements cimport LeafGraph
from pyengine._engine.java.value cimport Scratch
from pyengine._engine.selector.program cimport Leaf


cdef enum:
    SAMPLE = 4096                # selectors


cdef struct SampledBound:
    int64_t slot
    int64_t bound


cdef class Selectivity:
    cdef Point* points           # texts of the sample; ``first``: how often one is named
    cdef int64_t room
    cdef int64_t count
    cdef Growing texts           # [slot]: how many texts are named, int64
    cdef Growing patterns        # [slot]: how many distinct patterns
    cdef Growing bound_starts    # [slot]: where its bounds begin among all, and behind the last where they end
    cdef object bounds           # ascending within a slot
    cdef int64_t* all_bounds
    cdef int slot_count
    cdef int64_t named           # texts, while the sample is taken
    cdef Growing sampled         # SampledBound
    cdef set distinct            # (slot, pattern)
    cdef Scratch scratch

    cdef int begin_sample(self, Py_ssize_t count) except -1      # of so many subscriptions
    cdef int take(self, const LeafGraph* graph) except -1
    cdef int end_sample(self) except -1
    cdef int count_text(self, int slot, const Leaf* leaf) except -1
    # The part of the messages on which a leaf's truth is one of ``mask`` (bits 1 << Truth), or may be.
    cdef double part_of(self, const Leaf* leaf, const Truths* truths, int slot, int mask) noexcept nogil
    cdef double inside(self, const Leaf* leaf, int slot) noexcept nogil
