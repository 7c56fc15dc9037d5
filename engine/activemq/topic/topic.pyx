"""One topic; see topic.pxd."""


cdef class Topic:
    """Internal to a region of topics; see topic.pxd."""

    def __cinit__(self):
        self.retained = -1
        self.consumers = []
        self.offline = []

    def __reduce__(self):
        raise TypeError("a topic is part of its region and cannot be pickled")
