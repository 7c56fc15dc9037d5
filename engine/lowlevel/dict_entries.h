/* dict_entries: iterates over the entries of a dict. If CPython's internal header describes the layout of a dict, the
   entries are read in place; otherwise PyDict_Next is called. */
#ifndef PYENGINE_MAPPING_H
#define PYENGINE_MAPPING_H

#include <Python.h>
#include <stdint.h>

#if CYTHON_COMPILING_IN_CPYTHON && PY_VERSION_HEX >= 0x030B0000 && \
    PY_VERSION_HEX < 0x030F0000 && !defined(Py_GIL_DISABLED) && defined(__GNUC__)
#pragma GCC diagnostic push /* the header itself uses what it declares deprecated */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#undef _PyGC_FINALIZED      /* a macro of 3.12's public headers, a function in its internal ones */
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#include "internal/pycore_dict.h"
#undef Py_BUILD_CORE
#else
#include "internal/pycore_dict.h"
#endif
#pragma GCC diagnostic pop
/* The value at a place among a dict's entries if the key there is this very object; NULL: another key, or unknown.
   width, offset: the entry's distance from the start of a table whose indices have this width (0: not computed yet for
   this place). They are kept between calls, so that the entry is loaded without waiting for the table's header. */
static inline PyObject *pyengine_entry(PyObject *mapping, int32_t place, uint8_t *width, int64_t *offset,
                                       PyObject *name) {
    PyDictKeysObject *keys = ((PyDictObject *)mapping)->ma_keys;
    PyDictUnicodeEntry *entry;
    if ((size_t)(Py_ssize_t)place >= (size_t)keys->dk_nentries || keys->dk_kind == DICT_KEYS_GENERAL) return NULL;
    if (*width != keys->dk_log2_index_bytes) {
        *width = keys->dk_log2_index_bytes;
        *offset = (char *)(DK_UNICODE_ENTRIES(keys) + place) - (char *)keys;
    }
    entry = (PyDictUnicodeEntry *)((char *)keys + *offset);
    return entry->me_key == name ? entry->me_value : NULL;
}
/* The messages of a list lie anywhere in memory: prefetch ``soon``, and the key table of ``next``. */
static inline void pyengine_fetch(PyObject *next, PyObject *soon) {
    __builtin_prefetch(soon);
    if (PyDict_CheckExact(next)) {
        const char *keys = (const char *)((PyDictObject *)next)->ma_keys;
        __builtin_prefetch(keys);
        __builtin_prefetch(keys + 64);
    }
}
/* Same contract as PyDict_Next. */
static inline int pyengine_next(PyObject *mapping, Py_ssize_t *place, PyObject **name, PyObject **value) {
    PyDictKeysObject *keys = ((PyDictObject *)mapping)->ma_keys;
    if (keys->dk_kind != DICT_KEYS_UNICODE) return PyDict_Next(mapping, place, name, value);
    while (*place < keys->dk_nentries) {
        PyDictUnicodeEntry *entry = DK_UNICODE_ENTRIES(keys) + (*place)++;
        if (entry->me_value != NULL) {
            *name = entry->me_key;
            *value = entry->me_value;
            return 1;
        }
    }
    return 0;
}
#else
#define pyengine_next(mapping, place, name, value) PyDict_Next(mapping, place, name, value)
static inline PyObject *pyengine_entry(PyObject *mapping, int32_t place, uint8_t *width, int64_t *offset,
                                       PyObject *name) {
    Py_ssize_t at = place;
    PyObject *key, *value;
    (void)width, (void)offset;
    return place >= 0 && PyDict_Next(mapping, &at, &key, &value) && key == name ? value : NULL;
}
static inline void pyengine_fetch(PyObject *next, PyObject *soon) {
    (void)next, (void)soon;
}
#endif

#endif
