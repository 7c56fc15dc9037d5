# cython: freethreading_compatible=True
"""See row.pxd."""

from cpython.dict cimport PyDict_CheckExact
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF, Py_XINCREF
from libc.stdint cimport int8_t, int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from pyengine._engine.lowlevel.memory cimport allocate_zeros
from pyengine._engine.message.header cimport NO_HEADER, PRIORITY
from pyengine._engine.lowlevel.dict_entries cimport pyengine_entry, pyengine_fetch
from pyengine._engine.message.message cimport Message, place_of, slot_value
from pyengine._engine.selector.interpreter cimport evaluate_values, general_truth
from pyengine._engine.selector.program cimport (
    ACCEPT,
    ARITHMETIC,
    FEW_TEXTS,
    GENERAL,
    NO_SLOT,
    NUMBER,
    PREFIX,
    SLOT,
    STACK,
    TEXT,
    UNDECIDED,
    Access,
    Leaf,
    Program,
    StackStep,
    arithmetic_truth,
    compute,
    leaf_truth,
    push,
    quick_truth,
    takes_integer,
    takes_real,
)
from pyengine._engine.java.value cimport (
    CONVERT_OR_RAISE,
    INT,
    LATIN1,
    NULL_VALUE,
    RAISED,
    STRING,
    Scratch,
    Value,
    ascii_data,
    is_ascii,
    is_exact_integer,
    is_exact_real,
    is_exact_text,
    keep_object,
    pyengine_same_bytes,
    pyengine_small_integer,
    quick_value,
    read_text,
    read_value,
    real_of,
    text_length,
    text_of,
)

cdef extern from *:
    """
    #if PY_VERSION_HEX < 0x030D0000
    #define pyengine_look_up(mapping, name, hash) _PyDict_GetItem_KnownHash(mapping, name, hash)
    #else
    #define pyengine_look_up(mapping, name, hash) PyDict_GetItemWithError(mapping, name)
    #endif
    #define pyengine_error() (PyErr_Occurred() ? -1 : 0)
    """
    int pyengine_error() except -1       # raises the exception that a look-up left
    PyObject* pyengine_look_up(PyObject* mapping, PyObject* name, Py_hash_t hash) noexcept nogil
    PyObject* PyErr_Occurred() noexcept nogil
    PyObject* PyList_GET_ITEM(object messages, Py_ssize_t row) noexcept
    Py_ssize_t PyList_GET_SIZE(object messages) noexcept
    void PyErr_Clear() noexcept nogil
    bint PyDict_Next(PyObject* mapping, Py_ssize_t* at, PyObject** name, PyObject** value) noexcept nogil


cdef enum:
    LAST_PLACE = 64           # largest position that is guessed
    LONGEST_PAUSE = 4096      # most messages without a guess after wrong ones
    AHEAD = 8                 # messages of a list to prefetch
    FEW = 12                  # slots for which no memory is allocated


cdef struct Slots:            # the slots that GENERAL leaves have read so far
    Value* values
    PyObject** held           # keeps what the values borrow from alive; NULL: not read yet or nothing to keep
    char* read
    Value[FEW] few_values
    PyObject* few_held[FEW]
    char[FEW] few_read


cdef int begin_slots(Slots* slots, int count) except -1:
    cdef char* block
    if count <= FEW:
        slots.values = slots.few_values
        slots.held = slots.few_held
        slots.read = slots.few_read
        memset(slots.held, 0, count * sizeof(PyObject*))
        memset(slots.read, 0, count)
        return 0
    block = <char*>allocate_zeros(count, sizeof(Value) + sizeof(PyObject*) + 1)
    slots.values = <Value*>block
    slots.held = <PyObject**>(block + count * sizeof(Value))
    slots.read = block + count * (sizeof(Value) + sizeof(PyObject*))
    return 0


cdef void end_slots(Slots* slots, int count) noexcept:
    cdef int i
    if slots.values is NULL:
        return
    for i in range(count):
        Py_XDECREF(slots.held[i])
    if slots.values != slots.few_values:
        free(slots.values)


cdef int slow_value(Program program, PyObject* found, int slot, Value* into, Scratch* scratch) except -1:
    """Read an object that quick_value does not handle, or that the dialect converts to text."""
    cdef object source = <object>found
    if program.every_text:
        return read_text(source, into, program.names[slot], scratch)
    return read_value(source, into, program.names[slot], False)


cdef int found_value(Program program, PyObject* found, int slot, Value* into, Scratch* scratch) except -1:
    """The value of an object found in a dict; NULL: absent, or the look-up failed."""
    if found is NULL:
        pyengine_error()
        into[0] = program.defaults[slot]
        return 0
    if not quick_value(found, into) or (program.every_text and into.type != STRING):
        slow_value(program, found, slot, into, scratch)
    if into.type == NULL_VALUE:
        into[0] = program.defaults[slot]
    return 0


cdef int read_mapping(Program program, object message, int slot, Value* into, Scratch* scratch) except -1:
    cdef object found
    try:
        found = message.get(program.names[slot])
    except AttributeError:
        if hasattr(message, "get"):
            raise
        raise TypeError(
            f"a message is a mapping or a pyengine.Message, not {type(message).__name__!r}"
        ) from None
    if found is None:
        into[0] = program.defaults[slot]
        return 0
    keep_object(scratch, found)
    return slow_value(program, <PyObject*>found, slot, into, scratch)


cdef int read_slot(Program program, object message, int slot, Value* into, PyObject** held, Scratch* scratch) except -1:
    cdef PyObject* name
    cdef PyObject* found
    cdef Value value
    if PyDict_CheckExact(message):
        name = <PyObject*>program.names[slot]
        found = pyengine_look_up(<PyObject*>message, name, hash(program.names[slot]))
        Py_XINCREF(found)              # reading it may run code that removes it from the dict
        held[0] = found
        found_value(program, found, slot, into, scratch)
        return 0
    if isinstance(message, Message):
        name = <PyObject*>program.names[slot]
        if slot_value(<Message>message, name, program.headers[slot], into):
            if program.every_text and into.type != STRING:
                value = into[0]
                if text_of(&value, into, scratch) == RAISED:
                    raise MemoryError()
        return 0
    return read_mapping(program, message, slot, into, scratch)


cdef void* body_of(object message) noexcept:
    if isinstance(message, Message):
        return <void*>(<Message>message)._body
    return NULL


cdef int general_row(
    Program program, const Leaf* leaf, object message, Slots* slots, Scratch* scratch
) except -1:
    """Read the leaf's slots that have not been read yet, then evaluate it."""
    cdef int i, slot
    cdef int count = <int>len(program.names)
    if slots.values is NULL:
        begin_slots(slots, count)
    for i in range(leaf.count):
        slot = leaf.slots[i]
        if not slots.read[slot]:
            read_slot(program, message, slot, &slots.values[slot], &slots.held[slot], scratch)
            slots.read[slot] = 1
    return general_truth(program, leaf, slots.values, body_of(message), scratch)


# ---- the fast path: exact dicts and native messages with the most common types; no Python code runs, nothing is owned

cdef PyObject* find_anew(Access* access, PyObject* mapping) noexcept nogil:
    """Look a name up in a dict after a wrong guess. Needs the GIL."""
    cdef PyObject* found = pyengine_look_up(mapping, access.name, access.hash)
    cdef PyObject* name
    cdef PyObject* value
    cdef Py_ssize_t at = 0
    if access.place >= 0:
        access.place = NO_SLOT
        access.wait = access.pause
        access.pause = min(2 * access.pause, LONGEST_PAUSE)
    elif access.wait > 0:
        access.wait -= 1
    elif found is not NULL:
        while at < LAST_PLACE and PyDict_Next(mapping, &at, &name, &value):
            if name == access.name:
                access.place = <int32_t>(at - 1)
                access.width = 0
                break
        if access.place < 0:
            access.wait = LONGEST_PAUSE
    return found


cdef int other_truth(const Leaf* leaf, PyObject* found) noexcept nogil:
    """object_truth for any other object."""
    cdef Value value
    if not quick_value(found, &value):
        return UNDECIDED
    if value.type == NULL_VALUE:
        return leaf.absent
    if value.type != STRING and leaf.rules == CONVERT_OR_RAISE:
        return UNDECIDED
    return quick_truth(leaf, &value)


cdef inline bint is_same_ascii(PyObject* text, const Value* constant, size_t length) noexcept nogil:
    return length == constant.length and pyengine_same_bytes(ascii_data(text), constant.payload.text, length)


cdef inline int object_truth(const Leaf* leaf, PyObject* found) noexcept nogil:
    """Truth of a leaf that reads one slot, given the object in the dict; UNDECIDED if the general rule must decide.

    The common cases are decided here without a Value; only a LATIN1 constant can equal an ASCII string.
    """
    cdef int kind = leaf.kind
    cdef int64_t integer
    cdef size_t length
    cdef int i
    if kind == NUMBER:
        if is_exact_integer(found):
            if pyengine_small_integer(found, &integer):
                return takes_integer(leaf, integer)
        elif is_exact_real(found):
            return takes_real(leaf, real_of(found))
    elif kind <= PREFIX and is_exact_text(found) and is_ascii(found):
        length = text_length(found)
        if kind == TEXT:
            return leaf.constant.encoding == LATIN1 and is_same_ascii(found, &leaf.constant, length)
        if kind == PREFIX:
            return length >= leaf.constant.length and pyengine_same_bytes(
                ascii_data(found), leaf.constant.payload.text, leaf.constant.length
            )
        if leaf.count <= FEW_TEXTS:
            for i in range(leaf.count):
                if leaf.texts[i].encoding == LATIN1 and is_same_ascii(found, &leaf.texts[i], length):
                    return not leaf.negated
            return leaf.negated
    return other_truth(leaf, found)


cdef inline PyObject* guessed(Access* access, PyObject* mapping) noexcept nogil:
    """The value of a dict under a name if the guess is right, otherwise NULL."""
    return pyengine_entry(mapping, access.place, &access.width, &access.offset, access.name)


cdef inline bint find(Access* access, PyObject* mapping, PyObject** found) noexcept nogil:
    """The value of a dict under a name, NULL if absent; False if the look-up failed."""
    found[0] = guessed(access, mapping)
    if found[0] is NULL:
        found[0] = find_anew(access, mapping)
        if found[0] is NULL and PyErr_Occurred() is not NULL:
            PyErr_Clear()
            return False
    return True


cdef inline bint find_native(Access* access, Message message, Value* into) noexcept nogil:
    """The value of a slot in a Message; False if absent."""
    cdef int at = access.place
    cdef Value header
    if access.header == PRIORITY:
        into.type = INT
        into.payload.integer = message._priority
        return True
    if access.header:
        if not slot_value(message, access.name, access.header, &header):
            return False
        into[0] = header
        return True
    if at < 0 or at >= message.count or message.names[at] != access.name:
        at = place_of(message, access.name)
        if at < 0:
            return False
        access.place = at
        access.width = 0
    into[0] = message.values[at]
    return True


cdef bint read_number(Access* access, PyObject* message, bint native, Value* into) noexcept nogil:
    """A slot of an ARITHMETIC, null if absent; False if the general rules must read it."""
    cdef PyObject* found
    if native:
        if find_native(access, <Message>message, into):
            return True
    else:
        if not find(access, message, &found):
            return False
        if found is not NULL:
            return quick_value(found, into) and (into.type != NULL_VALUE or access.header == NO_HEADER)
    into.type = NULL_VALUE
    return access.header == NO_HEADER


cdef int computed_truth(Leaf* leaf, PyObject* message, bint native) noexcept nogil:
    """Truth of an ARITHMETIC; UNDECIDED if a value is not an int, long or double."""
    cdef Value[STACK] stack
    cdef const StackStep* step
    cdef bint missing = False
    cdef int height = 0
    cdef int i
    for i in range(leaf.step_count):
        step = &leaf.steps[i]
        if step.operation == SLOT:
            if not read_number(&leaf.steps[i].access, message, native, &stack[height]):
                return UNDECIDED
            if not push(&stack[height], &stack[height], &missing):
                return UNDECIDED
            height += 1
        else:
            compute(step, stack, &height, missing)
    return arithmetic_truth(leaf, stack, missing)


cdef inline int walk(Leaf* leaves, int at, PyObject* message, bint sure) noexcept nogil:
    """Evaluate leaf after leaf from ``at`` on: ACCEPT, REJECT, or the leaf that the general rules must decide. sure:
    stop also at a leaf whose value no guess finds, so that no code runs that could change the dict."""
    cdef Leaf* leaf
    cdef PyObject* found
    cdef int truth
    while at >= 0:
        leaf = &leaves[at]
        if leaf.kind < GENERAL:
            if sure:
                found = guessed(leaf.access, message)
                if found is NULL:
                    return at
            elif not find(leaf.access, message, &found):
                return at
            truth = leaf.absent if found is NULL else object_truth(leaf, found)
        elif leaf.kind == ARITHMETIC and not sure:
            truth = computed_truth(leaf, message, False)
        else:
            return at
        if truth >= RAISED:
            return at
        at = leaf.next[truth]
    return at


cdef int walk_dict(Leaf* leaves, int at, PyObject* message) noexcept nogil:
    return walk(leaves, at, message, False)


cdef int walk_native(Leaf* leaves, int at, Message message) noexcept nogil:
    cdef Leaf* leaf
    cdef Value value
    cdef int truth
    while at >= 0:
        leaf = &leaves[at]
        if leaf.kind < GENERAL:
            if not find_native(leaf.access, message, &value):
                truth = leaf.absent
            elif value.type != STRING and leaf.rules == CONVERT_OR_RAISE:
                return at
            else:
                truth = quick_truth(leaf, &value)
        elif leaf.kind == ARITHMETIC:
            truth = computed_truth(leaf, <PyObject*>message, True)
        else:
            return at
        if truth >= RAISED:
            return at
        at = leaf.next[truth]
    return at


cdef int quick_match(Leaf* leaves, int at, PyObject* message) noexcept:
    if PyDict_CheckExact(<object>message):
        return walk_dict(leaves, at, message)
    if isinstance(<object>message, Message):
        return walk_native(leaves, at, <Message>message)
    return at


cdef Py_ssize_t quick_rows(
    Leaf* leaves, int start, list messages, Py_ssize_t row, Py_ssize_t count, int8_t* truths, int* at
) noexcept:
    cdef PyObject* message
    cdef int next_leaf
    while row < count and row < PyList_GET_SIZE(messages):
        if row + AHEAD < PyList_GET_SIZE(messages):
            pyengine_fetch(
                PyList_GET_ITEM(messages, row + (AHEAD >> 1)), PyList_GET_ITEM(messages, row + AHEAD)
            )
        message = PyList_GET_ITEM(messages, row)
        if PyDict_CheckExact(<object>message):
            next_leaf = walk(leaves, start, message, True)
            if next_leaf >= 0:
                Py_INCREF(<object>message)     # __eq__ of a key that is not a str may change the list
                next_leaf = walk_dict(leaves, next_leaf, message)
                Py_DECREF(<object>message)
        else:
            next_leaf = quick_match(leaves, start, message)
        if next_leaf >= 0:
            at[0] = next_leaf
            break
        truths[row] = next_leaf == ACCEPT
        row += 1
    return row


# ---- the general rules

cdef int general_leaf(Program program, const Leaf* leaf, object message, Slots* slots, Scratch* scratch) except -1:
    cdef Value value
    cdef PyObject* held = NULL
    if leaf.kind >= GENERAL:
        return general_row(program, leaf, message, slots, scratch)
    try:
        read_slot(program, message, leaf.slot, &value, &held, scratch)
        return leaf_truth(leaf, &value, scratch)
    finally:
        Py_XDECREF(held)


cdef int match_row(Program program, int at, object message, Scratch* scratch) except -1:
    cdef int truth
    cdef Slots slots
    slots.values = NULL
    try:
        while at >= 0:
            truth = general_leaf(program, &program.leaves[at], message, &slots, scratch)
            if truth == RAISED:
                return RAISED
            at = quick_match(program.leaves, program.leaves[at].next[truth], <PyObject*>message)
        return at == ACCEPT
    finally:
        if slots.values is not NULL:
            end_slots(&slots, <int>len(program.names))


cdef int evaluate_row(Program program, object message, Scratch* scratch) except -1:
    cdef Slots slots
    cdef int slot
    cdef int count = <int>len(program.names)
    slots.values = NULL
    begin_slots(&slots, count)
    try:
        for slot in range(count):
            read_slot(program, message, slot, &slots.values[slot], &slots.held[slot], scratch)
        return evaluate_values(program, slots.values, body_of(message), scratch)
    finally:
        end_slots(&slots, count)
