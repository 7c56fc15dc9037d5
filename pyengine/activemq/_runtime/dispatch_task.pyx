"""The dispatch task of one connection; see dispatch_task.pxd."""

from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch
from pyengine.activemq._runtime.arrivals cimport Arrivals
from pyengine.activemq._runtime.reentrant_lock cimport ReentrantLock
from pyengine.activemq._runtime.route cimport Answer, Route

from collections import deque

from pyengine.errors import PyengineError

cimport cython


@cython.final
cdef class DispatchTask(Route):
    """Hands a connection what is dispatched asynchronously, in order, on a worker of its own.

    clock: whose worker it is. name: its thread's. sink: the connection's (ConnectionSink). acknowledge: called with
    what the connection answers. Called with a dispatch it delivers that on the worker, after those before it; if none
    is before it and its session only keeps it until a thread receives it, at once, on the calling thread. A manual
    clock's worker runs when that is settled, which keeps its order.
    """

    def __cinit__(self, clock, name, sink, acknowledge):
        self.clock = clock
        self.name = name
        self.dispatch = sink.dispatch
        if isinstance(sink.dispatch, Arrivals) and not clock.settles:
            self.arrivals = sink.dispatch
        self.dispatch_all = sink.dispatch_all
        self.acknowledge = acknowledge
        self.waiting = deque()
        self.lock = ReentrantLock()

    cdef object take(self, MessageDispatch dispatch):
        if self.arrivals is not None and not self.asked and not self.waiting and self.arrivals.keeps(dispatch):
            return None if self.closed else self.arrivals.take(dispatch)
        self.waiting.append(dispatch)
        if not self.asked:
            self.ask()

    cdef int ask(self) except -1:
        cdef bint asking = False
        self.lock.take(True)
        try:
            if self.asked or self.closed:
                return 0
            if self.worker is None:
                self.worker = self.clock.worker(self.name)
            self.asked = True
            asking = True
            self.worker.submit(self._run)  # with the lock, so that the worker is not closed in between
            asking = False
        finally:
            if asking:  # it was not submitted: the next dispatch asks again
                self.asked = False
            self.lock.give_back()
        return 0

    def close(self):
        """Stop; what was not delivered yet is not."""
        self.lock.take(True)
        try:
            self.closed = True
            self.waiting.clear()
            worker = self.worker
        finally:
            self.lock.give_back()
        if worker is not None:
            worker.close()

    def _run(self):
        cdef Answer answer
        try:
            while self.waiting:
                if len(self.waiting) > 1 and self.dispatch_all is not None:
                    self.dispatch_all([self.waiting.popleft() for _ in range(len(self.waiting))])
                    continue
                answer = self.dispatch(self.waiting.popleft())
                if answer is not None:
                    try:
                        self.acknowledge(answer.ack, answer.failed)
                    except PyengineError as error:  # the store's, which no call can raise
                        answer.failed(error)
        finally:
            # A thread that adds looks at ``asked`` afterwards, so it is taken back before the last look at what waits.
            self.asked = False
            if self.waiting:
                self.ask()
