/* huge_pages: large blocks of memory of which little is read at a time. The system is asked for huge pages if it has
   them: fewer misses of the address translation, and fewer page faults while the block is cleared. */
#ifndef PYENGINE_PAGES_H
#define PYENGINE_PAGES_H

#include <stdint.h>
#include <stdlib.h>

#ifdef __linux__
#include <sys/mman.h>
#endif

#define PYENGINE_MUCH ((size_t)4 << 20)

static inline void *pyengine_advise(void *block, size_t size) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (block && size >= PYENGINE_MUCH) {
        const uintptr_t page = 4096, first = ((uintptr_t)block + page - 1) & ~(page - 1);
        madvise((void *)first, ((uintptr_t)block + size - first) & ~(page - 1), MADV_HUGEPAGE); /* a hint: may fail */
    }
#endif
    return block;
}
/* Same contracts as calloc and realloc. */
static inline void *pyengine_zeros(size_t count, size_t size) { return pyengine_advise(calloc(count, size), count * size); }
static inline void *pyengine_resize(void *block, size_t size) { return pyengine_advise(realloc(block, size), size); }

#endif
