/* slot_access: an inline cache for attributes, and the value of small integers.

   Reads an attribute of objects that are mostly of one type. If the attribute is a slot (__slots__), it is read at its
   offset in the object as long as the type is the one read last and unchanged; otherwise by PyObject_GetAttr. */
#ifndef PYENGINE_DOOR_H
#define PYENGINE_DOOR_H

#include <Python.h>
#include <stdint.h>
#include <structmember.h>

typedef struct {
    PyTypeObject *type; /* the last one; only compared: the version tells a new type at the same address apart */
    unsigned int version;
    Py_ssize_t place; /* offset in the object; 0: not a slot */
} pyengine_slot;

#if defined(Py_GIL_DISABLED) || !defined(Py_TPFLAGS_VALID_VERSION_TAG)
#define pyengine_read(item, name, known) PyObject_GetAttr(item, name)
#define pyengine_peek(item, known) ((PyObject *)NULL)
#else

static PyObject *pyengine_read_first(PyObject *item, PyObject *name, pyengine_slot *known)
{
    PyTypeObject *type = Py_TYPE(item);
    PyObject *value = PyObject_GetAttr(item, name), *found;
    if (value == NULL) return NULL;
    known->type = NULL;
    /* Looked up on the type, a slot's descriptor returns itself, and the look-up assigns a version to the type. */
    found = PyObject_GetAttr((PyObject *)type, name);
    if (found == NULL) {
        PyErr_Clear(); /* an attribute of this one object */
    }
    if (PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG) && type->tp_version_tag != 0 &&
        type->tp_getattro == PyObject_GenericGetAttr) {
        known->place = 0;
        if (found != NULL && Py_IS_TYPE(found, &PyMemberDescr_Type)) {
            const PyMemberDef *member = ((PyMemberDescrObject *)found)->d_member;
            if (member->type == T_OBJECT_EX && !(member->flags & ~READONLY) &&
                PyType_IsSubtype(type, PyDescr_TYPE(found)))
                known->place = member->offset;
        }
        known->version = type->tp_version_tag;
        known->type = type;
    }
    Py_XDECREF(found);
    return value;
}

static inline int pyengine_is_known(PyObject *item, const pyengine_slot *known)
{
    PyTypeObject *type = Py_TYPE(item);
    return type == known->type && type->tp_version_tag == known->version &&
           PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG);
}

/* The value of a slot, borrowed; NULL if the cache does not apply or the slot is empty. Raises nothing. */
static inline PyObject *pyengine_peek(PyObject *item, const pyengine_slot *known)
{
    return pyengine_is_known(item, known) && known->place ? *(PyObject **)((char *)item + known->place) : NULL;
}

/* item.name, a new reference. known: the cache, one variable for each call site. */
static inline PyObject *pyengine_read(PyObject *item, PyObject *name, pyengine_slot *known)
{
    if (pyengine_is_known(item, known)) {
        PyObject *value = pyengine_peek(item, known);
        if (value == NULL) return PyObject_GetAttr(item, name);
        Py_INCREF(value);
        return value;
    }
    return pyengine_read_first(item, name, known);
}
#endif

/* The value of an int, of its exact type or of one derived from it; *beyond is 1 if it needs more than 64 bits. */
static inline int64_t pyengine_long(PyObject *number, int *beyond)
{
#if PY_VERSION_HEX < 0x030C0000
    const Py_ssize_t size = Py_SIZE(number);
    if (size == 1) {
        *beyond = 0;
        return (int64_t)((PyLongObject *)number)->ob_digit[0];
    }
#else
    if (PyUnstable_Long_IsCompact((PyLongObject *)number)) {
        *beyond = 0;
        return (int64_t)PyUnstable_Long_CompactValue((PyLongObject *)number);
    }
#endif
    {
        int overflow;
        const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
        *beyond = overflow != 0;
        return (int64_t)value;
    }
}

#endif
