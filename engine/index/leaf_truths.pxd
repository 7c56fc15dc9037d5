"""leaf_truths: what a leaf says of whole kinds of values, as the leaf itself answers (program.leaf_truth)."""

from libc.stdint cimport uint8_t

from pyengine._engine.selector.program cimport Leaf


cdef struct Truths:              # of a leaf, by what its slot has: Truth
    uint8_t of_null
    uint8_t of_false             # a boolean
    uint8_t of_true
    uint8_t of_number            # outside its interval, if it has one
    uint8_t of_text              # none of those that it names, or that does not match its pattern
    uint8_t inside               # its interval, texts or pattern
    uint8_t has_inside


# False if only the program can tell: it computes, or its truth is not one for each of these kinds.
cdef bint truths_of(const Leaf* leaf, Truths* truths) noexcept nogil
