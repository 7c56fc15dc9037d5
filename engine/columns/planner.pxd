"""planner: a Program laid out as a Plan for columns of given types: its tests, and the steps that combine them."""

from pyengine._engine.columns.plan cimport Plan
from pyengine._engine.selector.program cimport Program


cdef Plan lay_out(Program program, bytes signature, bint matching)    # signature: plan.describe of each slot's column
