"""kernels: loops over up to 1024 rows of one typed column, one bit of outcome a row; ranks; see kernels.h.

Invariant: a loop reads only the rows that it is given; values below a null may be anything.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "columns/kernels.h" nogil:
    ctypedef struct kernel_range:
        int64_t low
        int64_t high
        double real_low
        double real_high
        uint8_t nan
        uint8_t keyed

    ctypedef void (*kernel_range_loop)(const void*, int64_t, int64_t, const kernel_range*, uint64_t*) noexcept nogil
    ctypedef void (*kernel_pair_loop)(const void*, const void*, int64_t, int, uint64_t*) noexcept nogil
    ctypedef void (*kernel_codes_loop)(
        const void*, int64_t, int64_t, const uint32_t*, int64_t, uint64_t*
    ) noexcept nogil
    ctypedef void (*kernel_prefixes_loop)(
        const void*, const uint8_t*, int64_t, int64_t, uint64_t*, uint64_t*
    ) noexcept nogil

    ctypedef void (*kernel_texts_loop)(
        const uint64_t*, const uint64_t*, int64_t, uint64_t, uint64_t, uint64_t, uint64_t*
    ) noexcept nogil

    ctypedef struct kernel_table:
        kernel_range_loop* range
        kernel_pair_loop* pair
        kernel_codes_loop* codes
        kernel_prefixes_loop* prefixes
        void (*prefixes_views)(
            const void*, const uint8_t**, const uint64_t*, int64_t, uint64_t*, uint64_t*
        ) noexcept nogil
        kernel_texts_loop text_equal
        kernel_texts_loop text_starts
        void (*expand)(const uint64_t*, int64_t, uint8_t*) noexcept nogil
        void (**widen)(const void*, int64_t, int64_t, void*) noexcept nogil
        void (*to_real)(const int64_t*, int64_t, double*) noexcept nogil
        void (**opposite)(const void*, int64_t, void*) noexcept nogil
        void (**compute)(int, const void*, const void*, int64_t, void*) noexcept nogil
        void (*ranks)(const int64_t* const*, int64_t, const void*, int64_t, int64_t, int32_t*) noexcept nogil

    float kernel_float_of_half(uint16_t half) noexcept
    uint64_t kernel_load64(const uint8_t* p) noexcept
    uint64_t kernel_low_bytes(uint64_t length) noexcept
    void kernel_load_bits(const uint8_t* bitmap, int64_t start, int64_t n, uint64_t* words) noexcept


# The best copy this processor can run, or what use_kernels chose.
cdef const kernel_table* best_kernels() noexcept nogil
