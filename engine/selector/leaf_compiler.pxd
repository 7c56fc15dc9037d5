"""leaf_compiler: the nodes of a program laid out as leaves with jumps, which answer matches() (see program.pxd)."""

from pyengine._engine.selector.program cimport Program


cdef int lay_leaves(Program program) except -1       # the program's nodes, names, defaults and headers are complete

# The same program for messages without lists and maps, on which fewer leaves can raise: simpler leaves. The nodes, and
# what they point to, stay the given one's, which must outlive it; only its leaves are for use.
cdef Program plain_program(Program program)
cdef bint is_plain(Program program) noexcept         # its leaves would be the same
