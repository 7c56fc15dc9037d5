"""residual: what is left to ask of a candidate, as a few steps of 16 bytes that lie together.

The values of a message are *codes* by column, made once for all subscriptions:

    0 null   1 false   2 true   3 odd   4 .. 4 + n stretches between the n bounds of numbers   then texts: 0 any other

A step asks whether a code lies between two others, is one of a list, or whether a pattern matches, and jumps forward.
Where the steps cannot tell, the program is asked.
"""

from libc.stdint cimport int16_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef enum Code:
    NULL_CODE = 0
    FALSE_CODE = 1
    TRUE_CODE = 2
    ODD_CODE = 3
    FIRST_STRETCH = 4


cdef enum StepKind:
    BETWEEN_CODES                # low <= code <= high
    ONE_OF_CODES                 # one of pool[low] .. pool[high - 1]
    PATTERN_MATCHES              # pattern ``low``
    ASK_PROGRAM


cdef enum Outcome:
    MATCHES = -1                 # jumps that end, and what a run ends with
    FAILS = -2
    PROGRAM = -3


cdef struct Step:
    uint32_t low
    uint32_t high
    uint16_t column
    uint8_t kind
    uint8_t reserved
    int16_t yes                  # so many steps on, or MATCHES or FAILS
    int16_t no


cdef inline bint is_one_of(uint32_t code, const uint32_t* pool, uint32_t low, uint32_t high) noexcept nogil:
    cdef uint32_t middle
    cdef uint32_t last = high
    while low < high:
        middle = (low + high) >> 1
        if pool[middle] < code:
            low = middle + 1
        else:
            high = middle
    return low < last and pool[low] == code


cdef inline int run(
        const Step* step, const uint32_t* codes, const uint32_t* pool, const uint64_t* patterns) noexcept nogil:
    cdef int jump
    cdef bint met
    while True:
        if step.kind == BETWEEN_CODES:
            met = codes[step.column] - step.low <= step.high - step.low
        elif step.kind == ONE_OF_CODES:
            met = is_one_of(codes[step.column], pool, step.low, step.high)
        elif step.kind == PATTERN_MATCHES:
            met = patterns[step.low >> 6] >> (step.low & 63) & 1
        else:
            return PROGRAM
        jump = step.yes if met else step.no
        if jump < 0:
            return jump
        step += jump
