/* clones: functions that are compiled once for each vector width of x86-64. The loader of glibc picks one of the
   copies; that of musl cannot, and clang's support is not used. With PYENGINE_PLAIN nothing is compiled for more than the
   processor that the compiler compiles for (`make plain`). */
#ifndef PYENGINE_CLONES_H
#define PYENGINE_CLONES_H

#include <stdint.h> /* defines __GLIBC__ */

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__) && !defined(PYENGINE_PLAIN)
#define PYENGINE_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PYENGINE_CLONES
#endif

#endif
