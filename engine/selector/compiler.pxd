"""compiler: a Tree becomes a Program: its terms lowered to nodes, and those laid out as leaves."""

from pyengine._engine.selector.program cimport Program
from pyengine._engine.selector.ast cimport Tree


cdef Program compile_tree(Tree tree)
