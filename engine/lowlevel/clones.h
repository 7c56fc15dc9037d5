/* clones: functions that are compiled once for each width of vectors that x86-64 has. The loader picks one of the
   copies, which glibc's can and musl's cannot; clang's copies are not asked for. */
#ifndef PYENGINE_CLONES_H
#define PYENGINE_CLONES_H

#include <stdint.h> /* says __GLIBC__ */

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__)
#define PYENGINE_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PYENGINE_CLONES
#endif

#endif
