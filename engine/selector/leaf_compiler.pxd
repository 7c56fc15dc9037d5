"""leaf_compiler: the nodes of a program laid out as leaves with jumps, which answer matches() (see program.pxd)."""

from pyengine._engine.selector.program cimport Program


cdef int lay_leaves(Program program) except -1       # requires complete nodes, names, defaults and headers
