/* mapping: the entries of a dict, one after another. Where CPython's header tells how a dict lies in memory they are
   read there, else PyDict_Next is asked. */
#ifndef PYENGINE_MAPPING_H
#define PYENGINE_MAPPING_H

#include <Python.h>
#include <stdint.h>

#if CYTHON_COMPILING_IN_CPYTHON && PY_VERSION_HEX >= 0x030B0000 && \
    PY_VERSION_HEX < 0x030F0000 && !defined(Py_GIL_DISABLED) && defined(__GNUC__)
#pragma GCC diagnostic push /* the header itself reads what it calls deprecated */
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
/* What a dict has at a place among its entries if the name there is this very object; NULL: another name, or not
   known. width, offset: how far from its table's begin the place lies in tables whose indices are as wide as those seen
   last (0: none yet, of this place), so that the entry need not wait for the table to say so. */
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
/* Messages of a list lie anywhere: ``soon`` is asked for now, of the next one what it points to. */
static inline void pyengine_fetch(PyObject *next, PyObject *soon) {
    __builtin_prefetch(soon);
    if (PyDict_CheckExact(next)) {
        const char *keys = (const char *)((PyDictObject *)next)->ma_keys;
        __builtin_prefetch(keys);
        __builtin_prefetch(keys + 64);
    }
}
/* As PyDict_Next. */
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
