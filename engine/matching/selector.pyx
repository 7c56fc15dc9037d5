# cython: freethreading_compatible=True, binding=False, always_allow_keywords=False
"""See selector.pxd."""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.object cimport PyObject
from libc.stdint cimport int8_t
from libc.string cimport memset

from pyengine._engine.columns.batch cimport columns_of
from pyengine._engine.columns.evaluation cimport mask_columns, truth_columns, words_columns
from pyengine._engine.message.packed_messages cimport PackedMessages
from pyengine._engine.selector.compiler cimport compile_tree
from pyengine._engine.selector.program cimport ACCEPT, Program, raised_error
from pyengine._engine.selector.row cimport evaluate_row, match_row, quick_match, quick_rows
from pyengine._engine.selector.pitfalls cimport surprises
from pyengine._engine.columns.packed_scan cimport EVALUATE, MATCH_OR_RAISE, MATCH_OR_REJECT, packed_truth
from pyengine._engine.selector.parser cimport parse
from pyengine._engine.java.value cimport RAISED, TRUE, UNKNOWN, Scratch, free_scratch

import numpy

from pyengine.errors import SelectorEvaluationError, unknown_arguments

cdef object TRUTH = numpy.dtype(numpy.int8)
cdef object FLAG = numpy.dtype(numpy.bool_)

cdef enum:
    CACHED = 512              # compiled selectors in one generation of the cache
    LONGEST_CACHED = 8192     # characters of one
    FREED = 4                 # of the forgotten, for each that is remembered

# Text, or (text, dialect) if the dialect is not activemq -> Selector. A cache of two generations: a hit in ``older``
# moves to ``recent``; a full ``recent`` becomes ``older``, so the least recently used half is forgotten at once and a
# hit costs one look-up. What is forgotten is freed little by little: five hundred programs take a millisecond.
cdef dict recent = {}
cdef dict older = {}
cdef dict forgotten = {}

cdef extern from *:
    """
    #define pyengine_call_type(type, arguments, named) PyType_Type.tp_call(type, arguments, named)
    #define pyengine_set_call(type, function) (((PyTypeObject *)(type))->tp_vectorcall = (vectorcallfunc)(function))
    """
    object pyengine_call_type(object type, tuple arguments, dict named)
    void pyengine_set_call(object type, object (*function)(object, PyObject**, size_t, PyObject*)) noexcept
    Py_ssize_t PyVectorcall_NARGS(size_t given) noexcept
    bint is_exact_text "PyUnicode_CheckExact"(PyObject* source) noexcept


cdef inline void release(Scratch* scratch) noexcept:
    if scratch.blocks is not NULL or scratch.objects is not NULL or scratch.error is not NULL:
        free_scratch(scratch)


cdef int check_choice(str argument, object given, tuple choices) except -1:
    if given not in choices:
        raise ValueError(f"{argument} is {given!r}; it must be one of {', '.join(map(repr, choices))}")
    return 0


cdef object key_of(object text, object dialect):
    if not isinstance(text, str) or not isinstance(dialect, str):
        raise TypeError(f"a selector and its dialect are str, not {type(text).__name__}, {type(dialect).__name__}")
    return text if <str>dialect == "activemq" else (text, dialect)


cdef int remember(object key, Selector selector) except -1:
    global recent, older, forgotten
    cdef int _
    if len(selector.text) > LONGEST_CACHED:
        return 0
    if len(recent) >= CACHED:
        forgotten, older, recent = older, recent, {}
    for _ in range(min(FREED, <int> len(forgotten))):
        forgotten.popitem()
    recent[key] = selector
    return 0


def forget_selectors():
    """Empty the cache of compiled selectors."""
    global recent, older, forgotten
    recent, older, forgotten = {}, {}, {}


cdef object make(object cls, PyObject** given, size_t count, PyObject* names):
    """The call of the class: returns the cached Selector of a known text."""
    cdef Py_ssize_t i, places = PyVectorcall_NARGS(count)
    cdef object found
    if places == 1 and names is NULL and cls is Selector and is_exact_text(given[0]):
        found = recent.get(<object>given[0])
        if found is not None:
            return found
    named = {} if names is NULL else {
        name: <object>given[places + i] for i, name in enumerate(<tuple><object>names)
    }
    return pyengine_call_type(cls, tuple([<object>given[i] for i in range(places)]), named)


cdef class Selector:
    """A message selector, compiled once; the same answer on every shape of message.

    text: the selector. dialect: "activemq" (default; the language of ActiveMQ Classic, with XPATH, functions and
    ``convert_string_expressions:``) or "rocketmq" (SQL92 of RocketMQ; every property is text, there are no headers).
    Raises InvalidSelectorError if the broker refuses the text, with the position and a hint.

    A message is a mapping or a pyengine.Message. Python values have Java types: bool Boolean, int Integer or Long by
    its size, float Double, str String, numpy scalars by their width, pyengine.Char Character; None is absent. A header
    that is never null (JMSPriority, ...) has the value of a fresh JMS message unless the mapping has a key of its name.
    Rules: ActiveMQ's org.apache.activemq.filter, RocketMQ's org.apache.rocketmq.filter.
    """

    def __cinit__(self, text, dialect="activemq", **unknown):
        if unknown:
            raise unknown_arguments("Selector", unknown, ("text", "dialect"))
        cdef object key = key_of(text, dialect)
        cdef Selector known = recent.get(key)
        if known is None:
            known = older.get(key)
        if known is None and type(self) is not Selector:
            known = Selector(text, dialect)
        self.text = text
        self.dialect = dialect
        if known is not None:
            self.program = known.program
        else:
            check_choice("dialect", dialect, ("activemq", "rocketmq"))
            self.program = compile_tree(parse(text, dialect))
        self.leaves = self.program.leaves
        self.start = self.program.start
        if type(self) is Selector:
            remember(key, self)

    cdef int outcome(self, object message) except -1:
        cdef int at = quick_match(self.leaves, self.start, <PyObject*>message)
        cdef Scratch scratch
        if at < 0:
            return at == ACCEPT
        memset(&scratch, 0, sizeof(Scratch))
        try:
            return match_row(self.program, at, message, &scratch)
        finally:
            release(&scratch)

    def matches(self, message, /):
        """True if a consumer with this selector would get the message: the selector is TRUE; FALSE and unknown are not.

        Raises SelectorEvaluationError if the broker's matches() throws, InvalidMessageError for a property value that
        no message can carry.
        """
        cdef int at = quick_match(self.leaves, self.start, <PyObject*>message)
        if at < 0:
            return at == ACCEPT
        return self.match_from(at, message)

    cdef bint match_from(self, int at, object message) except -1:
        """matches() from the first leaf that the quick test leaves undecided."""
        cdef Scratch scratch
        cdef int truth
        memset(&scratch, 0, sizeof(Scratch))
        try:
            truth = match_row(self.program, at, message, &scratch)
            if truth == RAISED:
                raise raised_error(self.program.text, &scratch, None)
            return truth == TRUE
        finally:
            release(&scratch)

    def evaluate(self, message, /):
        """The selector's three-valued answer: True, False, or None for unknown. Raises as ``matches`` does.

        It may raise where ``matches`` does not: the broker's matches() leaves an AND at the first unknown operand.
        """
        cdef Scratch scratch
        cdef int truth
        memset(&scratch, 0, sizeof(Scratch))
        try:
            truth = evaluate_row(self.program, message, &scratch)
            if truth == RAISED:
                raise raised_error(self.program.text, &scratch, None)
            return None if truth == UNKNOWN else truth == TRUE
        finally:
            release(&scratch)

    def mask(self, batch, on_error="raise", missing="raise"):
        """``matches`` of every message of a batch: a numpy bool array.

        batch: a list or tuple of messages, a PackedMessages, a dict of numpy arrays of equal length by property name,
        or any object with the Arrow PyCapsule interface (a record batch, table, data frame).
        ``pyengine.Columns(batch)`` imports columns once for many selectors.
        on_error: "raise" SelectorEvaluationError with the row if the broker's matches() throws, or "reject" the row.
        missing: for columns and names that the batch does not have, "raise" MissingColumnError or read them as "null".
        """
        check_choice("on_error", on_error, ("raise", "reject"))
        check_choice("missing", missing, ("raise", "null"))
        question = MATCH_OR_RAISE if on_error == "raise" else MATCH_OR_REJECT
        if isinstance(batch, PackedMessages):
            return packed_truth(self.program, batch, question, missing == "null")
        if isinstance(batch, (list, tuple)):
            return self.rows_truth(batch, question)
        return mask_columns(self.program, columns_of(batch, self.program.names), on_error, missing)

    def mask_words(self, batch, on_error="raise", missing="raise"):
        """``mask`` as a packed bitmap: numpy uint64, row r is bit r % 64 of word r // 64; bits beyond the last row are
        0.
        """
        check_choice("on_error", on_error, ("raise", "reject"))
        check_choice("missing", missing, ("raise", "null"))
        if not isinstance(batch, (list, tuple, PackedMessages)):
            return words_columns(self.program, columns_of(batch, self.program.names), on_error, missing)
        mask = self.mask(batch, on_error, missing)
        return numpy.packbits(numpy.pad(mask, (0, -len(mask) % 64)), bitorder="little").view("<u8")

    def truth(self, batch, missing="raise"):
        """``evaluate`` of every message of a batch, as for ``mask``: numpy int8, 1 true, 0 false, -1 unknown, -2
        raises.
        """
        check_choice("missing", missing, ("raise", "null"))
        if isinstance(batch, PackedMessages):
            return packed_truth(self.program, batch, EVALUATE, missing == "null")
        if isinstance(batch, (list, tuple)):
            return self.rows_truth(batch, EVALUATE)
        return truth_columns(self.program, columns_of(batch, self.program.names), missing)

    cdef object rows_truth(self, object messages, int question):
        cdef list rows = messages if type(messages) is list else list(messages)
        cdef Py_ssize_t count = len(rows)
        cdef object answer = numpy.empty(count, TRUTH if question == EVALUATE else FLAG)
        cdef Py_buffer buffer
        if not count:
            return answer
        PyObject_GetBuffer(answer, &buffer, PyBUF_WRITABLE)
        try:
            self.ask_rows(rows, <int8_t*>buffer.buf, count, question)
        finally:
            PyBuffer_Release(&buffer)
        return answer

    cdef int ask_rows(self, list rows, int8_t* truths, Py_ssize_t count, int question) except -1:
        cdef Program program = self.program
        cdef Scratch scratch
        cdef Py_ssize_t i = 0
        cdef int truth
        cdef int at = self.start
        memset(&scratch, 0, sizeof(Scratch))
        try:
            while True:
                if question != EVALUATE:
                    i = quick_rows(self.leaves, self.start, rows, i, count, truths, &at)
                if i >= count or i >= len(rows):
                    break
                message = rows[i]
                if question != EVALUATE:
                    truth = match_row(program, at, message, &scratch)
                else:
                    truth = evaluate_row(program, message, &scratch)
                if truth == RAISED:
                    error = raised_error(program.text, &scratch, i)
                    if question == MATCH_OR_RAISE or not isinstance(error, SelectorEvaluationError):
                        raise error
                    truths[i] = 0 if question == MATCH_OR_REJECT else -2
                else:
                    truths[i] = -1 if truth == UNKNOWN else truth
                i += 1
                release(&scratch)
        finally:
            release(&scratch)
        if i != count or count != len(rows):
            raise RuntimeError("the list of messages changed its length while it was read")
        return 0

    @property
    def names(self):
        """Names of the properties and headers that the selector reads, in their order in the text: a tuple of str."""
        return self.program.names

    @property
    def surprises(self):
        """Legal constructs that often do not mean what their author intends: (position, advice) pairs."""
        return surprises(self._tree)

    def __repr__(self):
        if self.dialect == "activemq":
            return f"Selector({self.text!r})"
        return f"Selector({self.text!r}, dialect={self.dialect!r})"

    def __eq__(self, other):
        if not isinstance(other, Selector):
            return NotImplemented
        return self.text == (<Selector>other).text and self.dialect == (<Selector>other).dialect

    def __hash__(self):
        return hash((self.text, self.dialect))

    def __reduce__(self):
        return Selector, (self.text, self.dialect)

    def _check(self):
        """Raise AssertionError if an invariant of the compiled program does not hold."""
        self.program._check()

    @property
    def _program(self):
        return self.program

    @property
    def _tree(self):
        # Made on first use: most selectors are never asked, and this is larger than the program.
        return parse(self.text, self.dialect)


pyengine_set_call(Selector, make)
