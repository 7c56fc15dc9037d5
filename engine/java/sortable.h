/* Sortable integers of doubles and floats, as Lucene's NumericUtils has them (doubleToSortableLong): the order of the
   integers is that of Double.compareTo and Float.compareTo, so -0.0 lies below 0.0, all NaN are equal and above Infinity.

   Not Lucene's: the integer of NaN follows that of Infinity, so that each integer from -Infinity's to NaN's is that of
   exactly one value, and an interval of values is one of integers. */
#ifndef PYENGINE_SORTABLE_H
#define PYENGINE_SORTABLE_H

#include <stdint.h>
#include <string.h>

#if defined(_MSC_VER)
#define SORTABLE_INLINE static __forceinline
#else
#define SORTABLE_INLINE static inline __attribute__((always_inline, unused))
#endif

SORTABLE_INLINE int64_t double_to_sortable_long(double value) {
    int64_t bits;
    memcpy(&bits, &value, 8);
    bits ^= (int64_t)((uint64_t)(bits >> 63) >> 1);
    return value != value ? INT64_C(0x7ff0000000000001) : bits;
}

/* NaN for what is above Infinity's. */
SORTABLE_INLINE double sortable_long_to_double(int64_t sortable) {
    double value;
    sortable ^= (int64_t)((uint64_t)(sortable >> 63) >> 1);
    memcpy(&value, &sortable, 8);
    return value;
}

SORTABLE_INLINE int32_t float_to_sortable_int(float value) {
    int32_t bits;
    memcpy(&bits, &value, 4);
    bits ^= (int32_t)((uint32_t)(bits >> 31) >> 1);
    return value != value ? INT32_C(0x7f800001) : bits;
}

SORTABLE_INLINE float sortable_int_to_float(int32_t sortable) {
    float value;
    sortable ^= (int32_t)((uint32_t)(sortable >> 31) >> 1);
    memcpy(&value, &sortable, 4);
    return value;
}

#endif
