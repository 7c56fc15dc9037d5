"""connector_round: what the thread of a broker's connectors does for every frame: read, have it acted upon, answer.

Invariants: everything but ``ConnectorRound.call``, ``ClientSocket._dispatch`` and ``_ask`` runs on the connectors'
thread. ``_asked`` is True from ``_ask`` until the connection is flushed: it stands in ``asked`` at most once.
"""

from pyengine.activemq._runtime.outbox cimport Outbox


cdef class ConnectorRound:
    cdef public unsigned long thread_id       # of the thread, 0 until it runs
    cdef public bint woken                    # another thread has rung
    cdef public bint gathers                  # changes of a round are written together
    cdef readonly object asked                # deque of ClientSocket to flush, and of functions to call
    cdef readonly object buffer               # what was read last, of any client
    cdef object piece                         # memoryview of it

    cdef int closings                         # clients that have gone and may still be closed in this round
    cdef readonly object departed             # deque of ClientSocket: more have gone, no new client is accepted
    cdef public double due                    # seconds of time.monotonic() of the next ``_run_checks``, 0: never

    cpdef call(self, action)
    cdef int act(self, list ready, Outbox outbox) except -1
    cdef int answer(self, Outbox outbox) except -1
    cdef int begin(self, Outbox outbox) except -1
    cdef int end(self, Outbox outbox) except -1


cdef class ClientSocket:
    cdef readonly object socket
    cdef public object session
    cdef public bint open
    cdef readonly ConnectorRound _thread
    cdef readonly object _connector
    cdef readonly object _address             # of the client, for the log
    cdef public bytearray _out                # bytes that the socket has not taken
    cdef readonly object _dispatches          # deque of MessageDispatch that were not written
    cdef bint _asked
    cdef bint _gone                           # it stands in ``departed``: nothing is read or written any more
    cdef public int _events                   # what the socket is waited for
    cdef public bint _blocked                 # it took less than was there
    cdef public object _tls                   # the socket, if it is one of TLS
    cdef public bint _handshaking
    cdef public bint _received                # something has come since this was looked at
    cdef public double _last_read, _last_write, _last_taken       # seconds of time.monotonic()

    cpdef _wait_for(self, int events)
    cpdef _ask(self)
    cdef int act(self) except -1
    cdef int read(self) except -1
    cdef int gone(self) except -1
    cpdef flush(self)
