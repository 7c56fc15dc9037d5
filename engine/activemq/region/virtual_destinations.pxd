"""virtual_destinations: where a message goes that is sent to a virtual topic or to a composite queue or topic."""


cdef class Forwarding:
    cdef tuple filters               # a Selector, or None: everything
    cdef readonly bint forward_only
    cdef readonly bint send_when_not_matched
