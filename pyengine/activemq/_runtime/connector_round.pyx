"""The connectors' thread, frame by frame; see connector_round.pxd."""

from cpython.pythread cimport PyThread_get_thread_ident

from pyengine.activemq._runtime.outbox cimport Outbox

from collections import deque
from time import monotonic

from pyengine.errors import PyengineError
from pyengine.visible import logger

LOG = logger("pyengine.activemq")

cdef enum:
    READING = 1             # selectors.EVENT_READ
    WRITING = 2             # selectors.EVENT_WRITE
    READ = 64 * 1024        # bytes read from a connection before others have their turn
    AHEAD = 128 * 1024      # bytes written ahead of what the socket took; beyond them its client is not read from
    CLOSINGS = 50           # clients that have gone, which are closed in a round; the others in the next ones
    TURN = 500              # messages that one connection is given before others have their turn


cdef class ConnectorRound:
    """The rounds of a broker's connectors; ConnectorThread has the rest."""

    def __cinit__(self, *unused, **also_unused):
        self.gathers = True
        self.asked = deque()
        self.departed = deque()
        self.buffer = bytearray(READ)
        self.piece = memoryview(self.buffer)

    def __reduce__(self):
        raise TypeError("a connectors' thread belongs to its broker and cannot be pickled")

    cpdef call(self, action):
        """Do it on the connectors' thread: a function, or a connection to be flushed. From any thread."""
        self.asked.append(action)
        if not self.woken and PyThread_get_thread_ident() != self.thread_id:
            self._wake()

    def _wake(self):
        raise NotImplementedError

    def _refute(self, error):
        raise NotImplementedError

    def _run_checks(self):
        raise NotImplementedError

    def look_at(self, double when):
        """Have ``_run_checks`` called when that time has come, or earlier."""
        if self.due == 0 or when < self.due:
            self.due = when

    def patience(self):
        """Seconds until something is due that no socket asks for; None: nothing is."""
        if self.asked or self.departed:
            return 0
        return None if self.due == 0 else max(0.0, self.due - <double>monotonic())

    def round(self, list ready not None, broker):
        """Act upon what sockets that are ready have sent, keep what that changed, and then answer."""
        cdef Outbox outbox = broker.outbox
        cdef object clock = broker.clock
        self.act(ready, outbox)
        if self.due != 0 and <double>monotonic() >= self.due:
            self._run_checks()
        clock.settle()
        if self.asked:
            self.answer(outbox)
            clock.settle()

    cdef int act(self, list ready, Outbox outbox) except -1:
        self.closings = CLOSINGS
        self.begin(outbox)
        try:
            while self.departed and self.closings:
                self.closings -= 1
                (<ClientSocket>self.departed.popleft()).close()
            for each in ready:
                if isinstance(each, ClientSocket):
                    (<ClientSocket>each).act()
                else:
                    each()
        finally:
            self.end(outbox)
        return 0

    cdef int answer(self, Outbox outbox) except -1:
        # Do all that was asked for until now, and keep it in the same way.
        cdef Py_ssize_t number = len(self.asked)
        self.begin(outbox)
        try:
            while number:
                number -= 1
                each = self.asked.popleft()
                if isinstance(each, ClientSocket):
                    (<ClientSocket>each)._asked = False
                    if (<ClientSocket>each).open:
                        (<ClientSocket>each).flush()
                else:
                    each()
        finally:
            self.end(outbox)
        return 0

    cdef int begin(self, Outbox outbox) except -1:
        if self.gathers and outbox.units is not None:
            outbox.gather()
        return 0

    cdef int end(self, Outbox outbox) except -1:
        # A store that has failed is asked each time again.
        if outbox.units is None:
            return 0
        try:
            outbox.settle()
        except PyengineError as error:
            self.gathers = False
            self._refute(error)
        return 0


cdef class ClientSocket:
    """A client's socket, and the messages and bytes that wait for it; ClientConnection has the rest."""

    def __cinit__(self, ConnectorRound thread not None, connector, socket, address):
        self._thread = thread
        self._connector = connector
        self.socket = socket
        self._address = address
        self.open = True
        self._out = bytearray()
        self._dispatches = deque()
        self._last_read = self._last_write = self._last_taken = monotonic()

    def __reduce__(self):
        raise TypeError("a connection belongs to its broker and cannot be pickled")

    # What ClientConnection does.

    def receive(self, data):
        """Bytes have come; they are gone when it returns. Raises PyengineError once the broker has stopped."""
        raise NotImplementedError

    def close(self):
        """End the connection; what it holds goes back to the broker."""
        raise NotImplementedError

    def _shake_hands(self):
        raise NotImplementedError

    def _stopped(self, error):
        raise NotImplementedError

    # From any thread

    def _dispatch(self, dispatch):
        self._dispatches.append(dispatch)
        self._ask()

    cpdef _ask(self):
        """Have ``flush`` called soon."""
        if not self._asked:
            self._asked = True
            self._thread.call(self)

    # On the connectors' thread

    cpdef _wait_for(self, int events):
        if events != self._events:
            self._thread.register(self, events, self._events)
            self._events = events

    cdef int act(self) except -1:
        # The socket has something to read, or takes more. Answers are sent once what they confirm is kept.
        if self.open and self._handshaking and not self._shake_hands():
            return 0
        if self.open and self._events & READING:
            self.read()
        if self.open:
            self._ask()
        return 0

    cdef int read(self) except -1:
        cdef Py_ssize_t size
        cdef object data
        try:
            if self._tls is None:
                size = self.socket.recv_into(self._thread.buffer)
                data = self._thread.piece[:size]
            else:
                data = self.socket.recv(READ)
                while data and self._tls.pending():  # what TLS has decrypted does not make the socket ready
                    data += self.socket.recv(READ)
        except self._connector.would_block:
            return 0
        except OSError:
            return self.gone()
        if not len(data):
            return self.gone()
        self._last_read = monotonic()
        self._received = True
        try:
            self.receive(data)
        except PyengineError as error:
            self._stopped(error)
        except Exception:
            LOG.exception("%s: closed: what came could not be handled", self._address)
            self.close()
        return 0

    cdef int gone(self) except -1:
        # As many may go at once as there are, and closing them costs more than others should wait for.
        if self._thread.closings:
            self._thread.closings -= 1
            self.close()
        else:
            self._gone = True
            self._wait_for(0)
            self._thread.departed.append(self)
        return 0

    cpdef flush(self):
        """Give the socket what it takes, and then look at what is left."""
        cdef bytearray out = self._out
        cdef object dispatches = self._dispatches, session = self.session
        cdef Py_ssize_t taken
        cdef int turn = TURN, wanted
        if self._handshaking or self._gone:
            return
        try:
            while True:
                while turn and dispatches and len(out) < AHEAD and not session.closing:
                    turn -= 1
                    session.deliver(dispatches.popleft())
                if not out:
                    break
                taken = self.socket.send(out)
                del out[:taken]
                self._last_write = self._last_taken = monotonic()
        except self._connector.would_block:
            pass
        except OSError:
            self.close()
            return
        except PyengineError as error:
            self._stopped(error)
            return
        if not self.open:
            return
        if session.closing and not out:
            self.close()
            return
        if not out and dispatches:
            self._ask()
        if self._blocked != (len(out) > 0):
            self._blocked = not self._blocked
            self._thread.block(self, self._blocked)
        wanted = READING if len(out) < AHEAD and not session.closing else 0
        self._wait_for(wanted | (WRITING if out else 0))
