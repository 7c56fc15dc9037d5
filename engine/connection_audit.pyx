from libc.stdint cimport int64_t

from pyengine._engine.audit cimport Audit

cdef extern from "Python.h":
    unsigned int PyUnicode_READ_CHAR(object text, Py_ssize_t index)
    Py_ssize_t PyUnicode_Tailmatch(object text, object part, Py_ssize_t start, Py_ssize_t end, int direction) except -1

cdef int AUDITS = 1000


cdef class ConnectionAudit:
    """What a connection was given: of queues by destination, of topics by consumer, which is the *scope*.

    depth, producers: see Audit. A message id is ``<producer>:<sequence>``; one that is not is never a duplicate.
    """

    def __cinit__(self, int64_t depth=2048, int64_t producers=64):
        self.depth = depth
        self.producers = producers
        self.audits = {}

    def __reduce__(self):
        raise TypeError("an audit cannot be pickled")

    cdef int64_t split(self, object message_id) except -2:
        # The producer is nearly always that of the id before: then its string is not made again.
        cdef Py_ssize_t length = len(<str> message_id), at = length, index
        cdef int64_t number = 0
        cdef unsigned int letter
        while at > 0 and PyUnicode_READ_CHAR(message_id, at - 1) != 58:          # the colon
            at -= 1
        if at == length or length - at > 18:
            return -1
        for index in range(at, length):
            letter = PyUnicode_READ_CHAR(message_id, index)
            if not 48 <= letter <= 57:
                return -1
            number = number * 10 + <int64_t> (letter - 48)
        at = max(at - 1, 0)
        if self.producer is None or len(<str> self.producer) != at or not PyUnicode_Tailmatch(
                message_id, self.producer, 0, at, -1):
            self.producer = (<str> message_id)[:at]
        return number

    cdef bint seen(self, object scope, object message_id) except -1:
        cdef Audit audit
        cdef int64_t number = self.split(message_id)
        if number < 0:
            return False
        if self.recent is not None and self.recent_scope == scope:
            return self.recent.seen(self.producer, number)
        audit = self.audits.pop(scope, None)
        if audit is None:
            audit = Audit(self.depth, self.producers)
            if len(self.audits) >= AUDITS:
                del self.audits[next(iter(self.audits))]
        self.audits[scope] = audit
        self.recent_scope, self.recent = scope, audit
        return audit.seen(self.producer, number)

    cdef int forget(self, object scope, object message_id) except -1:
        cdef Audit audit = self.audits.get(scope)
        cdef int64_t number = -1 if audit is None else self.split(message_id)
        if number >= 0:
            audit.forget(self.producer, number)
        return 0

    cdef int remove(self, object scope) except -1:
        self.audits.pop(scope, None)
        self.recent = self.recent_scope = None
        return 0

    def is_duplicate(self, scope, str message_id):
        """Whether the scope was given this message before; from now on it was."""
        return self.seen(scope, message_id)

    def rollback(self, scope, str message_id):
        """The scope may be given this message again."""
        self.forget(scope, message_id)

    def _check(self):
        """Raise AssertionError if an invariant of the room does not hold."""
        assert len(self.audits) <= AUDITS
        for audit in self.audits.values():
            audit._check()
        assert self.recent is None or self.audits[self.recent_scope] is self.recent
