"""Messages from the headers of STOMP frames and back; see stomp_messages.pxd."""

from cpython.dict cimport PyDict_Next
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t

from pyengine._engine.java.numbers cimport parsed_long
from pyengine._engine.java.value cimport STRING
from pyengine._engine.message.conversion cimport hidden_prefix
from pyengine._engine.message.message cimport Message

from pyengine._engine.java.hashing import set_order

# Headers that set a header of the message, and those that a client may not set; the rest become properties.
cdef frozenset TAKEN = frozenset({
    "destination", "correlation-id", "expires", "timestamp", "priority", "type", "reply-to", "persistent", "receipt",
    "message-id", "redelivered", "subscription", "JMSXUserID",
})

cdef enum:
    ORDERS = 1024           # kept
    LONGEST = 1024          # characters of the names of an order that is kept

cdef dict orders = {}       # (capacity, name, name ...) -> the names in order


def sent_message(dict headers not None, body, str destination not None, int64_t now, reply_to, bint counted=False):
    """The message that a SEND frame is (FrameTranslator.Helper.copyStandardHeadersFromFrameToMessage).

    body: a str, bytes, a Body or None. destination: qualified, as a message has it. now: ms, its timestamp if the frame
    has none. reply_to: called with the text of that header; returns its destination, None where the header becomes a
    property. counted: ``content-length`` gave the body's length, and is not a property. Raises ValueError and
    InvalidMessageError for a value that the header cannot have.
    """
    cdef Message message = Message.__new__(Message)
    cdef Py_ssize_t place = 0
    cdef PyObject* name
    cdef PyObject* value
    cdef object text, found
    cdef int64_t number
    message._body = body
    message._destination = destination
    message._destination_hidden = <int>hidden_prefix(destination)
    message._persistent = headers.get("persistent") == "true"
    message._correlation_id = headers.get("correlation-id")
    text = headers.get("expires")
    if text is not None:
        message._expiration = parsed_long("expires", text)
    text = headers.get("timestamp")
    message._timestamp = now if text is None else parsed_long("timestamp", text)
    text = headers.get("priority")
    if text is not None:
        number = parsed_long("priority", text)
        if not -0x80000000 <= number <= 0x7FFFFFFF:
            raise ValueError(f"priority = {text!r} is not a signed 32-bit integer")
        message._priority = <int>max(0, min(9, number))
    message._type = headers.get("type")
    text = headers.get("reply-to")
    if text is not None:
        found = reply_to(text)
        if found is None:
            message.put("reply-to", text, False)
        else:
            message.reply_to = found
    while PyDict_Next(headers, &place, &name, &value):
        if <object>name not in TAKEN and not (counted and <object>name == "content-length"):
            message.put(<object>name, <object>value, False)
    return message


def message_headers(Message message not None, shown, int64_t redeliveries):
    """The headers of a MESSAGE frame, except those of its body (copyStandardHeadersFromMessageToFrame).

    shown: called with a destination as ``queue://A``; returns how the client reads it. redeliveries: how often the
    message was dispatched before.
    """
    cdef object destination = message._destination
    cdef dict headers = {
        "destination": shown("" if destination is None else destination),
        "message-id": "" if message._message_id is None else message._message_id,
    }
    if message._correlation_id is not None:
        headers["correlation-id"] = message._correlation_id
    headers["expires"] = str(message._expiration)
    if redeliveries > 0:
        headers["redelivered"] = "true"
    headers["priority"] = str(message._priority)
    if message._reply_to is not None:
        headers["reply-to"] = shown(message._reply_to)
    headers["timestamp"] = str(message._timestamp)
    if message._type is not None:
        headers["type"] = message._type
    if message._user_id is not None:
        headers["JMSXUserID"] = message._user_id
    if message._original_destination is not None:
        headers["original-destination"] = shown(message._original_destination)
    if message._persistent:
        headers["persistent"] = "true"
    cdef int index
    cdef tuple names
    if message.count == 1:
        headers[<object>message.names[0]] = shown_property(message, 0)
    elif message.count:
        names = tuple([<object>message.names[index] for index in range(message.count)])
        places = {name: index for index, name in enumerate(names)}
        for name in hash_order(names, 16):
            headers[name] = shown_property(message, places[name])
    return headers


cdef object shown_property(Message message, int index):
    """``"" + value``."""
    cdef object name = <object>message.names[index]
    if message.values[index].type == STRING:
        return <object>message.owners[index]
    value = message.get_object_property(name)
    if isinstance(value, (dict, list, tuple)):
        return nested(value)
    text = message.get_string_property(name)
    return "null" if text is None else text


cdef str nested(object value):
    """A map or list of a property, as Java's AbstractMap and AbstractCollection show themselves."""
    if isinstance(value, dict):
        return "{" + ", ".join([f"{key}={nested(each)}" for key, each in value.items()]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join([nested(each) for each in value]) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


cdef tuple hash_order(tuple names, int capacity):
    """The order in which a HashMap of that capacity writes these headers."""
    cdef tuple key = (capacity, *names)
    cdef object found = orders.get(key)
    cdef Py_ssize_t length = 0
    if found is None:
        found = tuple(set_order(names, capacity))
        for name in names:
            length += len(<str>name)
        if length <= LONGEST:
            if len(orders) >= ORDERS:
                orders.clear()
            orders[key] = found
    return found


def ordered(dict headers not None, int capacity=16):
    """Headers in the order in which a HashMap of that capacity writes them, which is how ActiveMQ does."""
    if len(headers) < 2:
        return headers
    return {name: headers[name] for name in hash_order(tuple(headers), capacity)}
