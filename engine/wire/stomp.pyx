"""STOMP frames as ActiveMQ's StompWireFormat reads and writes them; see stomp.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_Next
from cpython.ref cimport PyObject
from libc.stdint cimport INT32_MAX, INT64_MAX, int64_t
from libc.string cimport memchr, memcmp, memcpy

cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    const unsigned char* PyUnicode_1BYTE_DATA(object text)
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* length)

from pyengine._engine.java.strings import BLANKS
from pyengine._engine.java.utf8 cimport decode_utf8, decode_utf8_of, encode_utf8
from pyengine.errors import ProtocolError

# StompWireFormat's limits, in bytes except for the number of headers.
cdef enum:
    MAX_COMMAND_LENGTH = 1024
    MAX_HEADER_LENGTH = 10 * 1024
    MAX_HEADERS = 1000

# Actions and headers that most frames have: their strings are not made again.
cdef tuple KNOWN = (
    "ACK", "ABORT", "BEGIN", "COMMIT", "CONNECT", "DISCONNECT", "MESSAGE", "NACK", "RECEIPT", "SEND", "SUBSCRIBE",
    "ack", "content-length", "content-type", "correlation-id", "destination", "expires", "id", "message-id",
    "persistent", "priority", "receipt", "receipt-id", "reply-to", "selector", "subscription", "timestamp",
    "transaction", "type",
)
cdef enum:
    SLOTS = 256

cdef struct Known:
    const char* bytes
    Py_ssize_t length
    PyObject* text

cdef Known[SLOTS] known


cdef inline Known* slot_of(const char* name, Py_ssize_t length) noexcept:
    # Each known name has a slot of its own.
    return &known[(<unsigned char>name[0] + <unsigned char>name[length - 1] + length * 3) % SLOTS]


cdef int note_known() except -1:
    cdef Known* slot
    cdef const char* data
    cdef Py_ssize_t length = 0
    for text in KNOWN:
        data = PyUnicode_AsUTF8AndSize(text, &length)
        slot = slot_of(data, length)
        assert slot.text is NULL, f"{text} and {<object>slot.text} have one slot"
        slot.bytes, slot.length, slot.text = data, length, <PyObject*>text
    return 0

note_known()


cdef inline str known_name(const char* name, Py_ssize_t length):
    cdef Known* slot
    if not length:
        return None
    slot = slot_of(name, length)
    return <str>slot.text if slot.length == length and memcmp(slot.bytes, name, length) == 0 else None


MAX_DATA_LENGTH = 100 * 1024 * 1024
VERSIONS = ("1.0", "1.1", "1.2")


cdef int minor_of(str version) except -1:
    if version not in VERSIONS:
        raise ValueError(f"version: {version!r} is not one of {', '.join(VERSIONS)}")
    return VERSIONS.index(version)


cdef class StompFrame:
    """A frame: its action, its headers, its body.

    action: the command or response ("SEND", "MESSAGE"), as it was written. headers: name to value; of a name that
    comes twice the first (StompWireFormat.parseHeaders). body: bytes, without the NUL that ends a frame.
    """

    def __init__(self, str action not None, headers=(), bytes body not None=b""):
        self.action = action
        self.headers = dict(headers)
        self.body = body

    def __eq__(self, other):
        if not isinstance(other, StompFrame):
            return NotImplemented
        return (self.action, self.headers, self.body) == (other.action, other.headers, other.body)

    def __hash__(self):
        raise TypeError("a StompFrame has headers that may change: it has no hash")

    def __repr__(self):
        return f"StompFrame({self.action!r}, {self.headers!r}, {self.body!r})"

    def __reduce__(self):
        return StompFrame, (self.action, self.headers, self.body)

    @property
    def text(self):
        """The body decoded from UTF-8; other bytes become U+FFFD, as in Java (StompFrame.getBody)."""
        return decode_utf8(self.body)


cdef class StompReader(FrameReader):
    """Frames from bytes that arrive in pieces of any size (StompWireFormat.unmarshal).

    version: "1.0" (default), "1.1" or "1.2": which escapes and line ends count; assign ``version`` once CONNECT has
    been answered. max_data_length: most bytes of a body, 100 MiB by default. max_frame_size: most bytes of action,
    header lines and body together; no limit by default. nio: as StompCodec reads, of a ``stomp+nio`` connector: a frame
    begins behind line feeds only, a body may be cut by any byte behind its content-length, and -1 is none.

    Feed it and iterate: the frames that are complete come out, the rest waits for more bytes. Raises ProtocolError,
    with ActiveMQ's words, at the frame that is not one; the frames before it came out, none comes after it.
    """

    def __init__(
        self,
        str version="1.0",
        int64_t max_data_length=MAX_DATA_LENGTH,
        int64_t max_frame_size=INT64_MAX,
        bint nio=False,
    ):
        self.use(version)
        self.max_data_length = max_data_length
        self.max_frame_size = max_frame_size
        self.nio = nio
        self.length = -1

    def use(self, str version):
        """Read what comes next as this version. Raises ValueError for an unknown one."""
        self.minor = minor_of(version)
        self.version = version

    cdef bint line(self, Py_ssize_t most, str refusal, const char** found, Py_ssize_t* length) except -1:
        """Take off the next line; False if it has not arrived. found: without its end, until more is fed."""
        cdef const char *start = self.buffer
        cdef Py_ssize_t size = len(self.buffer)
        cdef const char *end = <const char*>memchr(start + self.at, c"\n", size - self.at)
        cdef Py_ssize_t stop = (end - start if end is not NULL else size) - self.begin
        found[0] = start + self.begin
        if stop > most + 1:
            self.begin += most + 2
            raise ProtocolError(refusal)
        if end is NULL:
            self.at = size
            return False
        self.begin += stop + 1
        self.at = self.begin
        if self.minor != 1 and stop and found[0][stop - 1] == c"\r":
            stop -= 1
        length[0] = stop
        return True

    cdef object next_frame(self):
        """The next frame; once no whole one is left, the bytes that were taken off leave the buffer."""
        cdef StompFrame frame
        try:
            frame = self.found_frame()
        except BaseException:
            self.drop()
            raise
        if frame is None:
            self.drop()
        return frame

    cdef int drop(self) except -1:
        if self.begin:
            del self.buffer[:self.begin]
            self.at = max(0, self.at - self.begin)
            self.begin = 0
        return 0

    cdef StompFrame found_frame(self):
        cdef const char *start
        cdef const char *end
        cdef const char *line = NULL
        cdef Py_ssize_t size, stop, length = 0
        if self.nio and not self.in_body and not self.nio_headers():
            return None
        if self.action is None and self.at == self.begin:    # heart-beats, at once: many may come
            start, size = self.buffer, len(self.buffer)
            while self.begin < size and start[self.begin] == c"\n":
                self.begin += 1
            self.at = self.begin
        while self.action is None:
            if not self.line(MAX_COMMAND_LENGTH, "The maximum command length was exceeded", &line, &length):
                return None
            self.action = known_name(line, length)
            if self.action is None:
                self.action = decode_utf8_of(line, length).strip(BLANKS) or None
            if self.action is not None:
                self.size = len(self.action)
                self.headers = {}
        while not self.in_body:
            if not self.line(MAX_HEADER_LENGTH, "The maximum header length was exceeded", &line, &length):
                return None
            if length > 1:              # a line of one character ends the headers too, as the empty one does
                self.read_header(line, length)
                continue
            self.in_body = True
            if self.action in ("SEND", "MESSAGE") and "content-length" in self.headers:
                self.length = self.content_length(self.headers["content-length"])
        start, size = self.buffer, len(self.buffer)
        if self.length >= 0:
            if size - self.begin <= self.length:
                return None
            stop = self.length
            if start[self.begin + stop] and not self.nio:
                self.begin += stop + 1
                raise ProtocolError("content-length bytes were read and there was no trailing null byte")
        else:
            end = <const char*>memchr(start + self.at, 0, size - self.at)
            stop = (end - start if end is not NULL else size) - self.begin
            if stop > self.max_data_length + 1:
                raise ProtocolError("The maximum data length was exceeded")
            if stop and self.size + stop - 1 > self.max_frame_size:
                raise ProtocolError("The maximum frame size was exceeded")
            if end is NULL:
                self.at = size
                return None
        cdef StompFrame frame = StompFrame.__new__(StompFrame)
        frame.action, frame.headers, frame.body = self.action, self.headers, start[self.begin:self.begin + stop]
        self.action, self.headers, self.in_body, self.length = None, None, False, -1
        self.begin += stop + 1
        self.at = self.begin
        self.after_nul = True
        return frame

    cdef bint nio_headers(self) except -1:
        """Whether a whole header section has arrived; what stands before it is taken off."""
        cdef Py_ssize_t end, other
        if self.at == self.begin:
            while self.begin < len(self.buffer) and (
                self.buffer[self.begin] == c"\n" or (self.after_nul and self.buffer[self.begin] == 0)
            ):
                self.after_nul = self.buffer[self.begin] == 0
                self.begin += 1
            self.at = self.begin
        end = self.buffer.find(b"\n\n", max(self.begin, self.at - 3))
        other = self.buffer.find(b"\r\n\r\n", max(self.begin, self.at - 3))
        if other >= 0 and (end < 0 or other + 4 < end + 2):
            end = other + 2
        if end < 0:
            self.at = len(self.buffer)
            if self.at - self.begin > self.max_frame_size:
                raise ProtocolError("The maximum frame size was exceeded while processing headers.")
            return False
        self.at = self.begin
        if not bytes(self.buffer[self.begin:end]).strip(b"\r\n"):
            raise EOFError("a header section without an action")
        return True

    @property
    def waiting(self):
        """How many bytes were fed that belong to no frame that came out."""
        return len(self.buffer) - self.begin

    cdef int read_header(self, const char* line, Py_ssize_t length) except -1:
        """name:value, unescaped as the version says; a line without a colon is a header with an empty value."""
        cdef const char *colon
        cdef const char *value
        cdef Py_ssize_t name_length = length, value_length = 0
        cdef str name, text
        if len(self.headers) > MAX_HEADERS:
            raise ProtocolError("The maximum number of headers was exceeded")
        self.size += length
        colon = <const char*>memchr(line, c":", length)
        if colon is not NULL:
            name_length = colon - line
            value_length = length - name_length - 1
        name = known_name(line, name_length)
        if name is None:
            name = decode_utf8_of(line, name_length)
        value = line + name_length + 1
        if value_length and memchr(value, c"\\", value_length) is not NULL:
            text = decode_utf8(unescaped(value[:value_length], self.minor == 2))
        else:
            text = decode_utf8_of(value, value_length) if value_length else ""
        self.headers.setdefault(name, text.strip(BLANKS) if self.minor == 0 else text)
        return 0

    cdef int64_t content_length(self, str text) except? -1:
        """Integer.parseInt, and what is refused beyond it."""
        cdef str digits = text.strip(BLANKS)
        cdef str bare = digits[1:] if digits[:1] in ("+", "-") else digits
        try:
            length = int(digits) if bare.isdecimal() and len(bare) <= 400 else None
        except ValueError:
            length = None
        if length is None or not -INT32_MAX - 1 <= length <= INT32_MAX:
            raise ProtocolError("Specified content-length is not a valid integer")
        if length == -1 and self.nio:
            return -1
        if length < 0:
            raise ProtocolError("Specified content-length may not be negative")
        if length > self.max_data_length:
            raise ProtocolError("The maximum data length was exceeded")
        self.size += length
        if self.size > self.max_frame_size:
            raise ProtocolError("The maximum frame size was exceeded")
        return length


cdef bytes unescaped(bytes value, bint carriage_return):
    r"""\n, \c and \\; \r from 1.2 on. Any other pair stays as it is (StompWireFormat.decodeHeader)."""
    cdef list parts = []
    cdef Py_ssize_t start = 0, at = value.find(b"\\")
    while at >= 0 and at + 1 < len(value):
        meant = {110: b"\n", 99: b":", 92: b"\\", 114: b"\r" if carriage_return else None}.get(value[at + 1])
        if meant is not None:
            parts += (value[start:at], meant)
            start = at + 2
        at = value.find(b"\\", at + (1 if meant is None else 2))
    parts.append(value[start:])
    return b"".join(parts)


def text_body(str text not None):
    """The body of a string: UTF-8; half a surrogate pair becomes a question mark (String.getBytes)."""
    return encode_utf8(text)


cdef inline bint plain(object text):
    # ASCII, so that its bytes are those of UTF-8.
    return PyUnicode_IS_COMPACT_ASCII(text)


cdef inline char* put(char* at, object text) noexcept:
    cdef Py_ssize_t length = PyUnicode_GET_LENGTH(text)
    memcpy(at, PyUnicode_1BYTE_DATA(text), length)
    return at + length


cdef inline char* put_escaped(char* at, const unsigned char* source, Py_ssize_t length, int minor) noexcept:
    cdef Py_ssize_t place
    cdef unsigned char character
    for place in range(length):
        character = source[place]
        if character > c":" and character != c"\\" or minor == 0:
            at[0] = character
        elif character == c"\\" or character == c":" or character == c"\n" or (character == c"\r" and minor > 1):
            at[0] = c"\\"
            at += 1
            at[0] = c"c" if character == c":" else c"n" if character == c"\n" else c"r" if character == c"\r" else c"\\"
        else:
            at[0] = character
        at += 1
    return at


cdef inline Py_ssize_t escapes(const unsigned char* source, Py_ssize_t length, int minor) noexcept:
    # How many bytes put_escaped adds.
    cdef Py_ssize_t place, found = 0
    for place in range(length):
        found += (source[place] == c":" or source[place] == c"\\" or source[place] == c"\n"
                  or source[place] == c"\r" and minor > 1)
    return found if minor else 0


cdef bytes escaped(bytes value, int minor):
    cdef const unsigned char* source = value
    cdef bytes found = PyBytes_FromStringAndSize(NULL, len(value) + escapes(source, len(value), minor))
    put_escaped(PyBytes_AS_STRING(found), source, len(value), minor)
    return found


cdef bytes write_plain(str action, dict headers, bytes body, int minor):
    """A frame's bytes in one pass if all its texts are ASCII, None otherwise."""
    cdef Py_ssize_t place = 0, length, size = len(body)
    cdef PyObject* name
    cdef PyObject* text
    cdef char* at
    if not plain(action):
        return None
    length = PyUnicode_GET_LENGTH(action) + 4 + size
    while PyDict_Next(headers, &place, &name, &text):
        if type(<object>name) is not str or type(<object>text) is not str:
            return None
        if not (plain(<object>name) and plain(<object>text)):
            return None
        length += PyUnicode_GET_LENGTH(<object>name) + PyUnicode_GET_LENGTH(<object>text) + 2
        length += escapes(PyUnicode_1BYTE_DATA(<object>text), PyUnicode_GET_LENGTH(<object>text), minor)
    cdef bytes found = PyBytes_FromStringAndSize(NULL, length)
    at = put(PyBytes_AS_STRING(found), action)
    place = 0
    while PyDict_Next(headers, &place, &name, &text):
        at[0] = c"\n"
        at = put(at + 1, <object>name)
        at[0] = c":"
        at = put_escaped(
            at + 1, PyUnicode_1BYTE_DATA(<object>text), PyUnicode_GET_LENGTH(<object>text), minor
        )
    at[0] = at[1] = c"\n"
    memcpy(at + 2, PyBytes_AS_STRING(body), size)
    at += size + 2
    at[0], at[1] = 0, c"\n"
    return found


def write_frame(StompFrame frame not None, str version not None):
    """A frame's bytes (StompWireFormat.marshal): values are escaped from 1.1 on, names never are.

    Raises ValueError for an unknown version, TypeError for a name or value that is not a str.
    """
    cdef int minor = minor_of(version)
    cdef bytes written = write_plain(frame.action, frame.headers, frame.body, minor)
    if written is not None:
        return written
    cdef list lines = [encode_utf8(frame.action)]
    for name, text in frame.headers.items():
        if type(name) is not str or type(text) is not str:
            raise TypeError(f"header {name!r}: {text!r} is not a text")
        lines.append(encode_utf8(name) + b":" + escaped(encode_utf8(text), minor))
    return b"\n".join(lines) + b"\n\n" + frame.body + b"\0\n"
