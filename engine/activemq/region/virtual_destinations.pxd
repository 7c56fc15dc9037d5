"""virtual_destinations: the destinations of a message that is sent to a virtual topic or to a composite."""


cdef class Forwarding:
    cdef tuple filters               # a Selector, or None: everything
    cdef readonly bint forward_only
    cdef readonly bint send_when_not_matched
