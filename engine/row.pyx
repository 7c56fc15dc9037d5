# cython: freethreading_compatible=True
"""See row.pxd."""

from cpython.dict cimport PyDict_CheckExact
from cpython.object cimport PyObject, PyObject_Hash
from cpython.ref cimport Py_XDECREF, Py_XINCREF
from libc.stdint cimport INT32_MAX, int64_t, uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memset

from pyengine._engine.like cimport pattern_matches
from pyengine._engine.message cimport Message, slot_value
from pyengine._engine.program cimport (
    ACCEPT,
    GENERAL,
    NUMBER,
    PATTERN,
    TEXT,
    TEXTS,
    Leaf,
    Program,
    evaluate_values,
    general_truth,
    is_member,
    leaf_truth,
    takes_integer,
    takes_real,
)
from pyengine._engine.value cimport (
    LATIN1,
    NULL_VALUE,
    RAISED,
    STRING,
    Scratch,
    Value,
    is_exact_integer,
    is_exact_real,
    is_exact_text,
    keep_object,
    pyengine_small_integer,
    quick_value,
    read_text,
    read_value,
    real_of,
    text_data,
    text_kind,
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
    """
    PyObject* pyengine_look_up(PyObject* mapping, PyObject* name, Py_hash_t hash)
    PyObject* PyErr_Occurred()


cdef enum:
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
        if PyErr_Occurred() is not NULL:
            raise
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


cdef inline bint quick_truth(const Leaf* leaf, PyObject* found, int* truth) noexcept:
    """leaf_truth of the commonest objects, without a Value between."""
    cdef int64_t integer
    cdef Value value
    cdef int kind = leaf.kind
    if kind == NUMBER:
        if is_exact_integer(found) and pyengine_small_integer(found, &integer):
            truth[0] = takes_integer(leaf, integer)
            return True
        if is_exact_real(found):
            truth[0] = takes_real(leaf, real_of(found))
            return True
    elif kind == TEXT:
        if is_exact_text(found) and text_kind(found) == LATIN1 and leaf.constant.encoding == LATIN1:
            truth[0] = text_length(found) == leaf.constant.length and not memcmp(
                text_data(found), leaf.constant.payload.text, leaf.constant.length
            )
            return text_length(found) <= INT32_MAX
    elif kind == TEXTS or kind == PATTERN:
        if not is_exact_text(found) or text_kind(found) != LATIN1 or text_length(found) > INT32_MAX:
            return False
        value.type = STRING
        value.encoding = LATIN1
        value.length = <uint32_t>text_length(found)
        value.payload.text = text_data(found)
        if kind == TEXTS:
            truth[0] = is_member(&value, leaf.texts, leaf.count) != leaf.negated
        else:
            truth[0] = pattern_matches(leaf.pattern, &value)
        return True
    return False


cdef int match_dict(Program program, PyObject* message, Scratch* scratch) except -1:
    cdef int at = program.start
    cdef int truth = 0
    cdef const Leaf* leaf
    cdef PyObject* found
    cdef Value value
    cdef Slots slots
    slots.values = NULL
    try:
        while at >= 0:
            leaf = &program.leaves[at]
            if leaf.kind >= GENERAL:
                truth = general_row(program, leaf, <object>message, &slots, scratch)
            else:
                found = pyengine_look_up(message, leaf.name, leaf.hash)
                if found is NULL or not quick_truth(leaf, found, &truth):
                    found_value(program, found, leaf.slot, &value, scratch)
                    truth = leaf_truth(leaf, &value, scratch)
            if truth == RAISED:
                return RAISED
            at = leaf.next[truth]
        return at == ACCEPT
    finally:
        if slots.values is not NULL:
            end_slots(&slots, <int>len(program.names))


cdef int match_message(Program program, Message message, Scratch* scratch) except -1:
    cdef int at = program.start
    cdef int truth
    cdef const Leaf* leaf
    cdef Value value
    cdef Slots slots
    slots.values = NULL
    try:
        while at >= 0:
            leaf = &program.leaves[at]
            if leaf.kind >= GENERAL:
                truth = general_row(program, leaf, message, &slots, scratch)
            else:
                if program.every_text:
                    read_slot(program, message, leaf.slot, &value, NULL, scratch)
                else:
                    slot_value(message, leaf.name, leaf.header, &value)
                truth = leaf_truth(leaf, &value, scratch)
            if truth == RAISED:
                return RAISED
            at = leaf.next[truth]
        return at == ACCEPT
    finally:
        if slots.values is not NULL:
            end_slots(&slots, <int>len(program.names))


cdef int match_mapping(Program program, object message, Scratch* scratch) except -1:
    cdef int at = program.start
    cdef int truth
    cdef const Leaf* leaf
    cdef Value value
    cdef Slots slots
    slots.values = NULL
    try:
        while at >= 0:
            leaf = &program.leaves[at]
            if leaf.kind >= GENERAL:
                truth = general_row(program, leaf, message, &slots, scratch)
            else:
                read_mapping(program, message, leaf.slot, &value, scratch)
                truth = leaf_truth(leaf, &value, scratch)
            if truth == RAISED:
                return RAISED
            at = leaf.next[truth]
        return at == ACCEPT
    finally:
        if slots.values is not NULL:
            end_slots(&slots, <int>len(program.names))


cdef int match_row(Program program, object message, Scratch* scratch) except -1:
    if PyDict_CheckExact(message):
        return match_dict(program, <PyObject*>message, scratch)
    if isinstance(message, Message):
        return match_message(program, <Message>message, scratch)
    return match_mapping(program, message, scratch)


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
