"""Where what a broker dispatches to a connection goes; see arrivals.pxd."""

from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch
from pyengine.activemq._runtime.route cimport Route
from pyengine.activemq._runtime.session_executor cimport SessionExecutor

from weakref import ref

cimport cython


@cython.final
cdef class Arrivals(Route):
    """The sessions of a connection by their consumers. Called with a dispatch it hands that to its session."""

    def __cinit__(self):
        self.sessions = {}

    def lead(self, consumer_id, SessionExecutor session):
        """Messages for a consumer go to this session; None: to no session any more."""
        if session is None:
            self.sessions.pop(consumer_id, None)
        else:
            self.sessions[consumer_id] = ref(session)

    def clear(self):
        """Messages are delivered to no session any more."""
        self.sessions.clear()

    def session_of(self, consumer_id):
        """The session of a consumer, or None."""
        return self.find(consumer_id)

    cdef SessionExecutor find(self, object consumer_id):
        cdef object reference = self.sessions.get(consumer_id)
        return None if reference is None else reference()

    cdef object take(self, MessageDispatch dispatch):
        cdef SessionExecutor session = self.find(dispatch.consumer_id)
        return None if session is None else session.arrived(dispatch)

    cdef bint keeps(self, MessageDispatch dispatch) except -1:
        cdef SessionExecutor session = self.find(dispatch.consumer_id)
        return session is None or session.state.keeps(dispatch)

    def take_all(self, list dispatches not None):
        """Hand over several dispatches, in order."""
        cdef MessageDispatch dispatch
        cdef SessionExecutor session, before = None
        cdef list run = []
        for dispatch in dispatches:
            session = self.find(dispatch.consumer_id)
            if session is not before:
                if before is not None:
                    before.arrive_all(run)
                before, run = session, []
            run.append(dispatch)
        if before is not None:
            before.arrive_all(run)
