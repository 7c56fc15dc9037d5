from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from pyengine._engine.lowlevel.memory cimport try_resize


cdef class ArrowTable:
    """Internal to a batch; see arrow.pxd."""

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.batch_count):
            if self.arrays[i].release != NULL:
                self.arrays[i].release(&self.arrays[i])
        free(self.arrays)
        if self.schema.release != NULL:
            self.schema.release(&self.schema)


cdef object capsules_of(object batch):
    return batch.__arrow_c_array__() if hasattr(batch, "__arrow_c_array__") else batch.__arrow_c_stream__()


cdef ArrowTable import_capsules(object given):
    cdef ArrowTable table = ArrowTable()
    if isinstance(given, tuple) and len(given) == 2:
        take_schema(table, <ArrowSchema*> pointer_of(given[0], b"arrow_schema"))
        take_array(table, <ArrowArray*> pointer_of(given[1], b"arrow_array"))
    else:
        import_stream(table, <ArrowArrayStream*> pointer_of(given, b"arrow_array_stream"))
    return table


cdef void* pointer_of(object capsule, const char* name) except NULL:
    if not PyCapsule_IsValid(capsule, name):
        raise OSError(f"instead of a capsule with an {name.decode()} its Arrow interface gives {capsule!r:.200}")
    return PyCapsule_GetPointer(capsule, name)


cdef int import_stream(ArrowTable table, ArrowArrayStream* stream) except -1:
    cdef ArrowSchema schema
    cdef ArrowArray array
    cdef int failed
    if stream.release == NULL:
        raise released("stream")
    schema.release = NULL
    with nogil:
        failed = stream.get_schema(stream, &schema)
    if failed:
        raise OSError(failed, stream_problem(stream))
    take_schema(table, &schema)
    while True:
        array.release = NULL
        with nogil:
            failed = stream.get_next(stream, &array)
        if failed:
            raise OSError(failed, stream_problem(stream))
        if array.release == NULL:
            return 0
        take_array(table, &array)


cdef str stream_problem(ArrowArrayStream* stream):
    cdef const char* text = stream.get_last_error(stream)
    if text == NULL:
        return "the Arrow stream failed and gave no reason"
    return (<bytes> text).decode("utf-8", "replace")


cdef int take_schema(ArrowTable table, ArrowSchema* given) except -1:
    if given.release == NULL:
        raise released("schema")
    table.schema = given[0]
    given.release = NULL
    return 0


cdef int take_array(ArrowTable table, ArrowArray* given) except -1:
    """Append a batch; the caller's struct is marked as moved."""
    cdef ArrowArray* longer
    if given.release == NULL:
        raise released("array")
    longer = <ArrowArray*> try_resize(table.arrays, (table.batch_count + 1) * sizeof(ArrowArray))
    if longer == NULL:
        given.release(given)
        raise MemoryError()
    table.arrays = longer
    table.arrays[table.batch_count] = given[0]
    table.batch_count += 1
    given.release = NULL
    return 0


cdef object released(str what):
    return ValueError(f"the Arrow {what} was read before: each is given away once")


cdef object described(const ArrowSchema* schema):
    cdef str text = (<bytes> schema.format).decode("utf-8", "replace")
    if schema.dictionary != NULL:
        return f"dictionary of {described(schema.dictionary)}"
    cdef object name = extension_of(schema).decode("utf-8", "replace") or FORMAT_NAMES.get(text.partition(":")[0])
    return f"Arrow format {text!r}" if not name else f"{name} (Arrow format {text!r})"


cdef bytes extension_of(const ArrowSchema* schema):
    cdef const char* read = schema.metadata
    cdef int32_t pairs, size
    cdef bytes key, value
    if read == NULL:
        return b""
    memcpy(&pairs, read, 4)
    read += 4
    for _ in range(pairs):
        memcpy(&size, read, 4)
        key, read = read[4 : 4 + size], read + 4 + size
        memcpy(&size, read, 4)
        value, read = read[4 : 4 + size], read + 4 + size
        if key == b"ARROW:extension:name":
            return value
    return b""


cdef dict FORMAT_NAMES = {
    "z": "binary", "Z": "large_binary", "vz": "binary_view", "+l": "list", "+L": "large_list", "+s": "struct",
    "+m": "map", "+r": "run_end_encoded", "+vl": "list_view", "+vL": "large_list_view",
    "d": "decimal", "w": "fixed_size_binary", "+w": "fixed_size_list", "+ud": "dense_union", "+us": "sparse_union",
    "tiM": "month_interval", "tiD": "day_time_interval", "tin": "month_day_nano_interval",
}
