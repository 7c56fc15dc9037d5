/* What a call from Python costs at least: functions that do nothing, and S1 and S2 of workloads.py by hand on a dict. They
   know the types of every property, look every name up with its hash known, and are right for those messages alone. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#if PY_VERSION_HEX < 0x030D0000
#define LOOK_UP(dict, name) _PyDict_GetItem_KnownHash(dict, name, ((PyASCIIObject *)(name))->hash)
#else
#define LOOK_UP(dict, name) PyDict_GetItemWithError(dict, name)
#endif

static PyObject *color, *weight, *priority, *region, *customer, *price;

static int is_text(PyObject *text, const char *wanted, Py_ssize_t length) {
    return PyUnicode_GET_LENGTH(text) == length && !memcmp(PyUnicode_1BYTE_DATA(text), wanted, (size_t)length);
}

static int s1_holds(PyObject *message) {
    return is_text(LOOK_UP(message, color), "blue", 4) && PyLong_AsLong(LOOK_UP(message, weight)) > 2500;
}

static int s2_holds(PyObject *message) {
    PyObject *text;
    double amount;
    if (PyLong_AsLong(LOOK_UP(message, priority)) < 5) return 0;
    text = LOOK_UP(message, region);
    if (!is_text(text, "us", 2) && !is_text(text, "eu", 2) && !is_text(text, "apac", 4)) {
        text = LOOK_UP(message, customer);
        if (PyUnicode_GET_LENGTH(text) < 4 || memcmp(PyUnicode_1BYTE_DATA(text), "gold", 4)) return 0;
    }
    amount = PyFloat_AS_DOUBLE(LOOK_UP(message, price));
    return amount >= 10 && amount <= 500;
}

static PyObject *nothing(PyObject *self, PyObject *message) {
    (void)self, (void)message;
    Py_RETURN_FALSE;
}

static PyObject *s1(PyObject *self, PyObject *message) {
    (void)self;
    return PyBool_FromLong(s1_holds(message));
}

static PyObject *s2(PyObject *self, PyObject *message) {
    (void)self;
    return PyBool_FromLong(s2_holds(message));
}

static PyObject *of_all(PyObject *messages, int (*holds)(PyObject *)) {
    const Py_ssize_t count = PyList_GET_SIZE(messages);
    PyObject *answer = PyBytes_FromStringAndSize(NULL, count);
    Py_ssize_t i;
    if (!answer) return NULL;
    for (i = 0; i < count; i++) PyBytes_AS_STRING(answer)[i] = (char)holds(PyList_GET_ITEM(messages, i));
    return answer;
}

static PyObject *s1_of_all(PyObject *self, PyObject *messages) {
    (void)self;
    return of_all(messages, s1_holds);
}

static PyObject *s2_of_all(PyObject *self, PyObject *messages) {
    (void)self;
    return of_all(messages, s2_holds);
}

static PyMethodDef functions[] = {
    {"nothing", nothing, METH_O, NULL}, {"s1", s1, METH_O, NULL},
    {"s2", s2, METH_O, NULL},           {"s1_of_all", s1_of_all, METH_O, NULL},
    {"s2_of_all", s2_of_all, METH_O, NULL}, {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "floor", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_floor(void) {
    color = PyUnicode_InternFromString("color");
    weight = PyUnicode_InternFromString("weight");
    priority = PyUnicode_InternFromString("JMSPriority");
    region = PyUnicode_InternFromString("region");
    customer = PyUnicode_InternFromString("customer");
    price = PyUnicode_InternFromString("price");
    if (!color || !weight || !priority || !region || !customer || !price) return NULL;
    PyObject_Hash(color), PyObject_Hash(weight), PyObject_Hash(priority);
    PyObject_Hash(region), PyObject_Hash(customer), PyObject_Hash(price);
    return PyModule_Create(&definition);
}
