"""xpath: ``XPATH '...'`` on a message's body (spec activemq 1.14): XPath 1.0 as a boolean; any problem is FALSE."""


cdef class Path:
    cdef readonly str text
    cdef object evaluate          # the compiled path; None: the expression is not valid
    cdef object etree


cpdef Path compile_path(str text)
