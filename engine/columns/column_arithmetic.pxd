"""column_arithmetic: number columns computed a chunk at a time, as java.arithmetic computes numbers one by one.

The types of the columns decide the type of every step once: int wraps at 32 bits, long at 64, all else is double.
Invariant: a step pops only what steps before it pushed, and never more than HEIGHT values lie on the stack.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from pyengine._engine.columns.column_views cimport Column
from pyengine._engine.columns.kernels cimport kernel_table


cdef enum:
    HEIGHT = 8
    VECTOR_ROWS = 1024
    VECTOR_WORDS = 16
    VECTOR_BYTES = 8 * VECTOR_ROWS * (HEIGHT + 1)     # values of the stack, and of the result being made


cdef enum VectorKind:        # what a step works on
    INTS                     # int64 that hold 32 bits
    LONGS
    REALS


cdef enum VectorOperation:
    LOAD                     # the column of ``slot``: INTS, LONGS or REALS
    FILL                     # ``integer`` or ``real``
    TO_REAL                  # the top: INTS or LONGS to REALS
    COMPUTE                  # two values: ``calculation``
    OPPOSITE                 # one value: its negative


cdef struct VectorStep:
    uint8_t operation        # VectorOperation
    uint8_t kind             # VectorKind, of the result
    uint8_t calculation      # value.Calculation
    int32_t slot
    int64_t integer
    double real


cdef struct Vector:          # one value on the stack
    void* values
    uint64_t[VECTOR_WORDS] valid
    bint nulls               # otherwise ``valid`` is not set: every row has a value


cdef struct VectorRows:      # what steps run on: rows [row, row + rows) of the columns, rows <= VECTOR_ROWS
    const Column** columns
    int64_t row
    int64_t rows
    int64_t ahead            # rows that can be read behind them
    const kernel_table* kernels
    void* memory             # VECTOR_BYTES


# Runs the steps; what is left lies in stack[0 ..]. Values below a null are rubbish, and computed with as such.
cdef void compute_vectors(
    const VectorStep* steps, int count, const VectorRows* of, Vector* stack
) noexcept nogil
