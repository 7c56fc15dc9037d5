"""STOMP frames as ActiveMQ's StompWireFormat reads and writes them; see stomp.pxd."""

from libc.stdint cimport INT32_MAX, INT64_MAX, int64_t
from libc.string cimport memchr

from pyengine._engine.java.strings import BLANKS
from pyengine._engine.java.utf8 cimport decode_utf8, encode_utf8
from pyengine.errors import ProtocolError

# StompWireFormat's limits, in bytes except for the number of headers.
cdef enum:
    MAX_COMMAND_LENGTH = 1024
    MAX_HEADER_LENGTH = 10 * 1024
    MAX_HEADERS = 1000

MAX_DATA_LENGTH = 100 * 1024 * 1024
VERSIONS = ("1.0", "1.1", "1.2")


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
        """The body as a text, UTF-8; what is not UTF-8 becomes U+FFFD, as Java decodes it (StompFrame.getBody)."""
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
        if version not in VERSIONS:
            raise ValueError(f"version: {version!r} is not one of {', '.join(VERSIONS)}")
        self.version = version
        self.max_data_length = max_data_length
        self.max_frame_size = max_frame_size
        self.nio = nio
        self.length = -1

    def use(self, str version):
        """Read what comes next as this version. Raises ValueError for an unknown one."""
        if version not in VERSIONS:
            raise ValueError(f"version: {version!r} is not one of {', '.join(VERSIONS)}")
        self.version = version

    cdef bytes line(self, Py_ssize_t most, str refusal):
        """The next line without its end, None if that has not arrived. most: a line may be one byte longer."""
        cdef const char *start = self.buffer
        cdef Py_ssize_t size = len(self.buffer)
        cdef const char *end = <const char*>memchr(start + self.at, c"\n", size - self.at)
        cdef Py_ssize_t stop = end - start if end is not NULL else size
        cdef bytes found
        if stop > most + 1:
            del self.buffer[:most + 2]
            raise ProtocolError(refusal)
        if end is NULL:
            self.at = size
            return None
        found = bytes(self.buffer[:stop])
        del self.buffer[:stop + 1]
        self.at = 0
        if self.version != "1.1" and found.endswith(b"\r"):
            found = found[: len(found) - 1]
        return found

    cdef object next_frame(self):
        cdef bytes line, body
        cdef const char *start
        cdef const char *end
        cdef Py_ssize_t size, stop
        if self.nio and not self.in_body and not self.nio_headers():
            return None
        if self.action is None and self.at == 0:    # heart-beats, at once: many may come
            start, size, stop = self.buffer, len(self.buffer), 0
            while stop < size and start[stop] == c"\n":
                stop += 1
            if stop:
                del self.buffer[:stop]
        while self.action is None:
            line = self.line(MAX_COMMAND_LENGTH, "The maximum command length was exceeded")
            if line is None:
                return None
            self.action = decode_utf8(line).strip(BLANKS) or None
            if self.action is not None:
                self.size = len(self.action)
                self.headers = {}
        while not self.in_body:
            line = self.line(MAX_HEADER_LENGTH, "The maximum header length was exceeded")
            if line is None:
                return None
            if len(line) > 1:           # a line of one character ends the headers too, as the empty one does
                self.read_header(line)
                continue
            self.in_body = True
            if self.action in ("SEND", "MESSAGE") and "content-length" in self.headers:
                self.length = self.content_length(self.headers["content-length"])
        size = len(self.buffer)
        if self.length >= 0:
            if size <= self.length:
                return None
            stop = self.length
            if self.buffer[stop] and not self.nio:
                del self.buffer[:stop + 1]
                raise ProtocolError("content-length bytes were read and there was no trailing null byte")
        else:
            start = self.buffer
            end = <const char*>memchr(start + self.at, 0, size - self.at)
            stop = end - start if end is not NULL else size
            if stop > self.max_data_length + 1:
                raise ProtocolError("The maximum data length was exceeded")
            if stop and self.size + stop - 1 > self.max_frame_size:
                raise ProtocolError("The maximum frame size was exceeded")
            if end is NULL:
                self.at = size
                return None
        body = bytes(self.buffer[:stop])
        del self.buffer[:stop + 1]
        cdef StompFrame frame = StompFrame.__new__(StompFrame)
        frame.action, frame.headers, frame.body = self.action, self.headers, body
        self.action, self.headers, self.in_body, self.length, self.at = None, None, False, -1, 0
        self.after_nul = True
        return frame

    cdef bint nio_headers(self) except -1:
        """Whether a whole header section has arrived; what stands before it is taken off."""
        cdef Py_ssize_t skipped = 0, end, other
        if self.at == 0:
            while skipped < len(self.buffer) and (
                self.buffer[skipped] == c"\n" or (self.after_nul and self.buffer[skipped] == 0)
            ):
                self.after_nul = self.buffer[skipped] == 0
                skipped += 1
            del self.buffer[:skipped]
        end = self.buffer.find(b"\n\n", max(0, self.at - 3))
        other = self.buffer.find(b"\r\n\r\n", max(0, self.at - 3))
        if other >= 0 and (end < 0 or other + 4 < end + 2):
            end = other + 2
        if end < 0:
            self.at = len(self.buffer)
            if self.at > self.max_frame_size:
                raise ProtocolError("The maximum frame size was exceeded while processing headers.")
            return False
        self.at = 0
        if not bytes(self.buffer[:end]).strip(b"\r\n"):
            raise EOFError("a header section without an action")
        return True

    cdef int read_header(self, bytes line) except -1:
        """name:value, unescaped as the version says; a line without a colon is a header with an empty value."""
        cdef bytes name, value
        if len(self.headers) > MAX_HEADERS:
            raise ProtocolError("The maximum number of headers was exceeded")
        self.size += len(line)
        name, _, value = line.partition(b":")
        if b"\\" in value:
            value = unescaped(value, self.version == "1.2")
        cdef str text = decode_utf8(value)
        self.headers.setdefault(decode_utf8(name), text.strip(BLANKS) if self.version == "1.0" else text)
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
    """The body of a text: UTF-8; half a surrogate pair becomes a question mark (String.getBytes)."""
    return encode_utf8(text)


def write_frame(StompFrame frame not None, str version not None):
    """A frame's bytes (StompWireFormat.marshal): values are escaped from 1.1 on, names never are.

    Raises ValueError for an unknown version, TypeError for a name or value that is not a str.
    """
    if version not in VERSIONS:
        raise ValueError(f"version: {version!r} is not one of {', '.join(VERSIONS)}")
    cdef list lines = [encode_utf8(frame.action)]
    cdef bytes value
    for name, text in frame.headers.items():
        if type(name) is not str or type(text) is not str:
            raise TypeError(f"header {name!r}: {text!r} is not a text")
        value = encode_utf8(text)
        if version != "1.0":
            value = value.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b":", b"\\c")
            if version == "1.2":
                value = value.replace(b"\r", b"\\r")
        lines.append(encode_utf8(name) + b":" + value)
    return b"\n".join(lines) + b"\n\n" + frame.body + b"\0\n"
