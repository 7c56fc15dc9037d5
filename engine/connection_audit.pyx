from libc.stdint cimport int64_t

from pyengine._engine.audit cimport Audit

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

    cdef bint seen(self, object scope, object message_id) except -1:
        cdef Audit audit
        producer, _, number = message_id.rpartition(":")
        if not number.isdecimal() or len(number) > 18:
            return False
        audit = self.audits.pop(scope, None)
        if audit is None:
            audit = Audit(self.depth, self.producers)
            if len(self.audits) >= AUDITS:
                del self.audits[next(iter(self.audits))]
        self.audits[scope] = audit
        return audit.seen(producer, int(number))

    cdef int forget(self, object scope, object message_id) except -1:
        cdef Audit audit = self.audits.get(scope)
        if audit is not None:
            producer, _, number = message_id.rpartition(":")
            if number.isdecimal() and len(number) <= 18:
                audit.forget(producer, int(number))
        return 0

    cdef int remove(self, object scope) except -1:
        self.audits.pop(scope, None)
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
