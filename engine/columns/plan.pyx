"""See plan.pxd."""

from libc.stdint cimport uint8_t
from libc.stdlib cimport free
from libc.string cimport memset

from pyengine._engine.columns.column_views cimport CODES, Column
from pyengine._engine.columns.text_sets cimport free_set
from pyengine._engine.selector.program cimport Program
from pyengine._engine.java.value cimport NULL_VALUE, STRING, TRUE, Scratch, Value, text_of


cdef void describe(const Column* column, uint8_t* into) noexcept nogil:
    memset(into, 0, SIGNATURE_SIZE)
    if column == NULL:
        return
    into[0] = column.storage + 1
    into[1] = column.java_type
    if column.storage == CODES:
        into[2] = column.code_storage
        into[3] = column.dictionary.storage


cdef bint as_property(Program program, Value* value, Scratch* scratch) noexcept nogil:
    cdef Value text
    if not program.every_text or value.type == STRING or value.type == NULL_VALUE:
        return True
    if text_of(value, &text, scratch) != TRUE:
        return False
    value[0] = text
    return True


cdef class Plan:

    def __dealloc__(self):
        cdef int i
        for i in range(self.test_count):
            free_set(self.tests[i].set)
        free(self.tests)
        free(self.steps)
        free(self.slot_lists)
        free(self.vector_steps)

    def __reduce__(self):
        raise TypeError("a Plan is laid out anew from its selector")
