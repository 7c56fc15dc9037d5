"""fastjson: fastjson's dialect of JSON; see fastjson.pyx."""

cpdef str quoted(str text)

# The same into memory: of a string that is_ascii, quoted_size bytes.
cdef bint is_ascii(str text) noexcept
cdef Py_ssize_t quoted_size(str text) noexcept
cdef char* put_quoted(char* out, str text) noexcept
