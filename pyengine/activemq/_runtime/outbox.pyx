"""The broker's lock and what is delivered once it is free; see outbox.pxd."""

from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdint cimport int64_t

from pyengine.activemq._runtime.reentrant_lock cimport ReentrantLock
from pyengine.activemq._runtime.route cimport Route

from collections import deque

cimport cython


def _nothing(*unused):
    """Default of what an outbox calls."""


@cython.final
cdef class Outbox:
    """``with outbox:`` is one change of the broker's state; ``post`` takes what to call once it is over, and ``posted``
    are these calls, for a caller that has many of them.

    A call that was posted returns None, or an answer: then ``answered`` is called with it, as a change
    that no caller waits for. units: where changes are kept, each whole: a store with ``seal()``, which ends the present
    change and returns its number, 0 if there is nothing to keep; ``wait(number)`` until it is kept; ``write()`` all
    that are over, False if another thread is at it. A change that kept something is over when it is written. later:
    called, with the lock free, when a change that no caller waits for was left unwritten because another thread was
    writing. handed_over: arguments for ``answered`` of threads that found another one at work; these changes are made
    before any that begins later.
    """

    def __cinit__(self, units=None, later=_nothing, answered=_nothing):
        self.lock = ReentrantLock()
        self.units = units
        self.later = later
        self.answered = answered
        self.posted = deque()
        self.handed_over = deque()

    def __reduce__(self):
        raise TypeError("an outbox belongs to its broker and cannot be pickled")

    def post(self, call, argument):
        """Call ``call(argument)`` after this change. The lock is held by the caller."""
        self.posted.append((call, argument))

    def __enter__(self):
        self.begin()
        return self

    def __exit__(self, kind, error, trace):
        self.leave()

    cpdef bint begin(self, bint wait=True) except -1:
        """Begin a change, or a part of one; ``leave`` ends it, as ``with`` does by itself.

        wait: False not to wait for a thread that is making one; nothing is begun then, and False returned.
        """
        if not self.lock.take(wait):
            return False
        self.depth += 1
        if self.handed_over:
            self.take_over()
        return True

    def hand_over(self, answer):
        """Have the thread that is making a change call ``answered`` with this, as a change that no caller waits for.

        Waiting for that thread would stop this one at every message, once the two have met.
        """
        self.handed_over.append(answer)
        # That thread looks once more when it has given the lock back; here it has done so already.
        if self.begin(False):
            self.leave(False)

    cdef int take_over(self) except -1:
        # The lock is held.
        if self.depth == 1:
            while self.handed_over:
                self.answered(self.handed_over.popleft())
        return 0

    cpdef leave(self, bint wait=True):
        """A change, or a part of one, is over: it is kept, and the calls that it posted are made, unless another change
        is at it.

        wait: False if the caller needs no answer: the change is written at once unless another thread is writing.
        """
        cdef int64_t unit, answers
        while True:
            self.depth -= 1
            if self.depth:
                self.lock.give_back()
                return
            unit = answers = 0
            try:
                if self.units is not None:
                    unit = self.units.seal()
                if not self.delivering and self.posted:
                    self.deliver(&answers)
            finally:
                self.lock.give_back()
                if unit:
                    self.keep(unit, wait)
                if answers:
                    self.keep(answers, False)
            if not self.handed_over or not self.begin(False):
                return
            wait = False

    cdef int deliver(self, int64_t* unit) except -1:
        # Make the calls that were posted, the lock free meanwhile. unit: becomes the last change's that they asked for.
        cdef tuple post
        cdef object answer
        cdef int64_t answers
        self.delivering = True
        try:
            while self.posted:
                post = self.posted.popleft()
                self.lock.give_back()
                try:
                    if isinstance(post[0], Route):
                        answer = (<Route> post[0]).take(post[1])
                    else:
                        answer = post[0](post[1])
                finally:
                    self.lock.take(True)
                if answer is not None:
                    answers = self.answer(answer)
                    if answers:
                        unit[0] = answers
        finally:
            self.delivering = False
        return 0

    cdef int64_t answer(self, object answer) except -1:
        # Make the change that a posted call asked for; its unit. The lock is held.
        self.depth += 1
        try:
            if self.handed_over:
                self.take_over()
            self.answered(answer)
        finally:
            self.depth -= 1
        return 0 if self.units is None else self.units.seal()

    cpdef gather(self):
        """Until ``settle`` this thread's changes end unwritten: no client may have its answer before.

        For a thread that has the commands of many clients: they are written together. One thread at a time may gather.
        """
        self.gatherer = PyThread_get_thread_ident()

    cpdef settle(self):
        """Return when the changes since ``gather`` are written. Raises what ``units.wait`` raises."""
        cdef int64_t gathered = self.gathered, unasked = self.unasked
        self.gatherer = 0
        self.gathered = self.unasked = 0
        if gathered:
            self.keep(gathered, True)
        if unasked > gathered:
            self.keep(unasked, False)

    cdef int keep(self, int64_t unit, bint wait) except -1:
        if self.gatherer and self.gatherer == PyThread_get_thread_ident():
            if wait:
                self.gathered = unit
            else:
                self.unasked = unit
        elif wait:
            self.units.wait(unit)
        elif not self.units.write():
            self.later()
        return 0

    def _check(self):
        """Raise AssertionError if an invariant of the room does not hold."""
        assert self.depth >= 0 and (self.depth == 0 or self.lock.depth > 0)
