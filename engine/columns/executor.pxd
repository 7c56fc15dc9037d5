"""executor: the steps of a plan run over one chunk of rows.

Invariants: ``row`` is the first of ``count`` rows, 1 to CHUNK of them; register 0 holds the chunk's live rows;
``reals`` and ``vectors`` have room for a chunk where a test of the plan needs them.
"""

from libc.stdint cimport int64_t, uint64_t

from pyengine._engine.columns.column_views cimport Column
from pyengine._engine.columns.kernels cimport kernel_table
from pyengine._engine.columns.dictionary_tables cimport Table
from pyengine._engine.columns.plan cimport CHUNK_WORDS, Plan
from pyengine._engine.java.value cimport Value


cdef struct Prefixes:         # of a text column's chunk
    uint64_t* first           # first 8 bytes of each text
    uint64_t* lengths
    int64_t row               # first row of the chunk they belong to; -1: of none


cdef struct Run:
    const kernel_table* kernels
    const Column** columns    # by slot; NULL: the slot has ``values[slot]`` on every row
    Value* values
    uint64_t* registers
    Table* tables             # by test
    Prefixes* prefixes        # by slot
    int64_t row               # first row of the chunk in its batch
    int64_t count             # rows of the chunk
    int64_t ahead             # rows from a row to the one that is fetched early; 0: they are in a cache
    float* reals              # CHUNK of them, for halves
    void* vectors             # VECTOR_BYTES where a test computes


cdef inline uint64_t* register_at(Run* run, int number) noexcept nogil:
    return run.registers + number * CHUNK_WORDS


# Every step of the plan, for the rows of the chunk.
cdef void run_steps(Run* run, Plan plan) noexcept nogil
