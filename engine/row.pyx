# cython: freethreading_compatible=True
"""See row.pxd."""

from cpython.dict cimport PyDict_CheckExact
from cpython.object cimport PyObject, PyObject_Hash
from cpython.ref cimport Py_XDECREF, Py_XINCREF
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from pyengine._engine.header cimport NO_HEADER, PRIORITY
from pyengine._engine.message cimport Message, place_of, slot_value
from pyengine._engine.program cimport (
    ACCEPT,
    ARITHMETIC,
    GENERAL,
    NO_SLOT,
    SLOT,
    STACK,
    UNDECIDED,
    Access,
    Leaf,
    Program,
    StackStep,
    arithmetic_truth,
    compute,
    evaluate_values,
    general_truth,
    leaf_truth,
    push,
    quick_truth,
)
from pyengine._engine.value cimport (
    CONVERT_OR_RAISE,
    INT,
    NULL_VALUE,
    RAISED,
    STRING,
    Scratch,
    Value,
    keep_object,
    quick_value,
    read_text,
    read_value,
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
    int pyengine_error() except -1       # raises what a look-up left
    PyObject* pyengine_look_up(PyObject* mapping, PyObject* name, Py_hash_t hash) noexcept nogil
    PyObject* PyErr_Occurred() noexcept nogil
    void PyErr_Clear() noexcept nogil
    bint PyDict_Next(PyObject* mapping, Py_ssize_t* at, PyObject** name, PyObject** value) noexcept nogil


cdef enum:
    LAST_PLACE = 64           # no guess goes beyond
    LONGEST_PAUSE = 4096      # messages without a guess after many wrong ones
    FEW = 12                  # slots that need no memory of their own


cdef struct Slots:            # the slots a GENERAL leaf has asked for so far
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
    block = <char*>calloc(count, sizeof(Value) + sizeof(PyObject*) + 1)
    if block is NULL:
        raise MemoryError()
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
    """A found object that quick_value does not know, or that the dialect wants as text."""
    cdef object source = <object>found
    if program.every_text:
        return read_text(source, into, program.names[slot], scratch)
    return read_value(source, into, program.names[slot], False)


cdef int found_value(Program program, PyObject* found, int slot, Value* into, Scratch* scratch) except -1:
    """The value of what a dict has for a slot; NULL: nothing, or the look-up failed."""
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
        found = pyengine_look_up(<PyObject*>message, name, PyObject_Hash(program.names[slot]))
        found_value(program, found, slot, into, scratch)
        if found is not NULL and into.type >= STRING:
            Py_XINCREF(found)
            held[0] = found
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
    """Reads what the leaf needs and has not been read, then asks it."""
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


# ---- the quick walk: exact dicts and native messages, the commonest types; no Python code runs, nothing is owned

cdef enum Found:
    NOTHING
    A_VALUE
    UNREADABLE


cdef PyObject* find_anew(Access* access, PyObject* mapping) noexcept nogil:
    """What a dict has under a name, where no guess is right. Needs the GIL."""
    cdef PyObject* found = pyengine_look_up(mapping, access.name, access.hash)
    cdef PyObject* name
    cdef PyObject* value
    cdef Py_ssize_t at = 0
    cdef int32_t place = 0
    if access.place >= 0:
        access.place = NO_SLOT
        access.wait = access.pause
        access.pause = min(2 * access.pause, LONGEST_PAUSE)
    elif access.wait > 0:
        access.wait -= 1
    elif found is not NULL:
        while place < LAST_PLACE and PyDict_Next(mapping, &at, &name, &value):
            if name == access.name:
                access.place = place
                break
            place = <int32_t>at
        if access.place < 0:
            access.wait = LONGEST_PAUSE
    return found


cdef inline int find(Access* access, PyObject* mapping, Value* into) noexcept nogil:
    cdef Py_ssize_t at = access.place
    cdef PyObject* name
    cdef PyObject* found
    if at < 0 or not PyDict_Next(mapping, &at, &name, &found) or name != access.name:
        found = find_anew(access, mapping)
        if found is NULL:
            if PyErr_Occurred() is NULL:
                return NOTHING
            PyErr_Clear()
            return UNREADABLE
    if not quick_value(found, into):
        return UNREADABLE
    return A_VALUE if into.type != NULL_VALUE else NOTHING


cdef inline int find_native(Access* access, Message message, Value* into) noexcept nogil:
    cdef int at = access.place
    cdef Value header
    if access.header == PRIORITY:
        into.type = INT
        into.payload.integer = message._priority
        return A_VALUE
    if access.header:
        if not slot_value(message, access.name, access.header, &header):
            return NOTHING
        into[0] = header
        return A_VALUE
    if at < 0 or at >= message.count or message.names[at] != access.name:
        at = place_of(message, access.name)
        if at < 0:
            return NOTHING
        access.place = at
    into[0] = message.values[at]
    return A_VALUE


cdef inline int read_quickly(Access* access, PyObject* message, bint native, Value* into) noexcept nogil:
    return find_native(access, <Message>message, into) if native else find(access, message, into)


cdef int computed_truth(Leaf* leaf, PyObject* message, bint native) noexcept nogil:
    """An ARITHMETIC; UNDECIDED where a value is no int, long or double."""
    cdef Value[STACK] stack
    cdef const StackStep* step
    cdef bint missing = False
    cdef int height = 0
    cdef int i, found
    for i in range(leaf.step_count):
        step = &leaf.steps[i]
        if step.operation == SLOT:
            found = read_quickly(&leaf.steps[i].access, message, native, &stack[height])
            if found == NOTHING and step.access.header == NO_HEADER:
                stack[height].type = NULL_VALUE
            elif found != A_VALUE:
                return UNDECIDED
            if not push(&stack[height], &stack[height], &missing):
                return UNDECIDED
            height += 1
        else:
            compute(step, stack, &height, missing)
    return arithmetic_truth(leaf, stack, missing)


cdef inline int walk(Leaf* leaves, int at, PyObject* message, bint native) noexcept nogil:
    """Ask leaf after leaf from ``at`` on: ACCEPT, REJECT, or the leaf that the general rules must answer."""
    cdef Leaf* leaf
    cdef Value value
    cdef int truth, found
    while at >= 0:
        leaf = &leaves[at]
        if leaf.kind < GENERAL:
            found = read_quickly(&leaf.access, message, native, &value)
            if found == A_VALUE:
                if value.type != STRING and leaf.rules == CONVERT_OR_RAISE:
                    return at
                truth = quick_truth(leaf, &value)
            elif found == NOTHING:
                truth = leaf.absent
            else:
                return at
        else:
            return at
        if truth >= RAISED:
            return at
        at = leaf.next[truth]
    return at


cdef int quick_match(Program program, int at, PyObject* message) noexcept:
    cdef Leaf* leaf
    cdef int truth
    cdef bint native = False
    if not PyDict_CheckExact(<object>message):
        if not isinstance(<object>message, Message):
            return at
        native = True
    while at >= 0:
        at = walk(program.leaves, at, message, True) if native else walk(program.leaves, at, message, False)
        if at < 0 or program.leaves[at].kind != ARITHMETIC:
            return at
        leaf = &program.leaves[at]
        truth = computed_truth(leaf, message, native)
        if truth >= RAISED:
            return at
        at = leaf.next[truth]
    return at


# ---- the general rules

cdef int general_leaf(Program program, const Leaf* leaf, object message, Slots* slots, Scratch* scratch) except -1:
    cdef Value value
    cdef PyObject* held = NULL
    if leaf.kind >= GENERAL:
        return general_row(program, leaf, message, slots, scratch)
    read_slot(program, message, leaf.access.slot, &value, &held, scratch)
    try:
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
            at = quick_match(program, program.leaves[at].next[truth], <PyObject*>message)
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
