"""session_executor: what a session does for every message that comes (org.apache.activemq.ActiveMQSessionExecutor).

Invariants: ``_deliverer`` is the ident of the one thread that is in a listener of the session, 0 if none is;
``waiting`` counts the threads that wait for ``changed``.
"""

from libc.stdint cimport int64_t

from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch
from pyengine._engine.activemq.client.message_consumer cimport Consumption
from pyengine._engine.activemq.commands.message_ack cimport MessageAck
from pyengine._engine.activemq.client.session_state cimport SessionState
from pyengine.activemq._runtime.reentrant_lock cimport ReentrantLock
from pyengine.activemq._runtime.region_broker cimport RegionBroker
from pyengine.activemq._runtime.route cimport Answer


cdef class SessionExecutor:
    cdef readonly object connection
    cdef readonly object session_id
    cdef readonly object transport
    cdef RegionBroker broker                  # the transport, if it is one and sends and acknowledges as those do
    cdef readonly object clock
    cdef readonly bint settles                # the clock may have something to settle
    cdef readonly bint transacted
    cdef readonly SessionState state
    cdef readonly ReentrantLock lock
    cdef readonly object changed              # a threading.Condition of ``lock``
    cdef public int waiting
    cdef object failed_ack                    # called if an acknowledgement failed; None: its caller gets the error
    cdef bint started_or_told                 # the connection was started, or it was warned of that it is not
    cdef MessageDispatch early                # the first that came before that
    cdef bint answers                         # acknowledgements may be the answer to a dispatch
    cdef object task                          # a SessionTask, or None: none was needed yet
    cdef readonly object _outgoing            # deque of commands that wait for those before them
    cdef ReentrantLock sending
    cdef public unsigned long _deliverer
    cdef object __weakref__

    cdef Answer arrived(self, MessageDispatch dispatch)
    cdef int look_for_start(self, MessageDispatch dispatch, bint missed) except -1
    cdef int flush_commands(self, object pull_timeout) except -1
    cdef int send_all(self, list commands, object pull_timeout) except -1
    cdef int send_one(self, object command, object pull_timeout) except -1
    cdef int send_unasked(self, list commands) except -1
    cdef int say(self, MessageAck ack) except -1
    cdef int wake(self) except -1
    cdef list deliver(self, MessageDispatch dispatch)
