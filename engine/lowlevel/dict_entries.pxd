"""dict_entries: the entries of a dict, one after another; see dict_entries.h. Needs the GIL."""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t


cdef extern from "lowlevel/dict_entries.h" nogil:
    PyObject* pyengine_entry(
        PyObject* mapping, int32_t place, uint8_t* width, int64_t* offset, PyObject* name) noexcept
    bint pyengine_next(PyObject* mapping, Py_ssize_t* place, PyObject** name, PyObject** value) noexcept
    void pyengine_fetch(PyObject* next, PyObject* soon) noexcept
