"""RocketMQ's remoting commands; see remoting.pxd."""

from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint32_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy

from pyengine._engine.java.utf8 cimport decode_utf8, encode_utf8
from pyengine._engine.wire.beans cimport Beans
from pyengine._engine.wire.fastjson cimport is_ascii, put_quoted, quoted, quoted_size
from pyengine.errors import ProtocolError

MAX_FRAME_SIZE = 16 * 1024 * 1024       # with its length field (com.rocketmq.remoting.frameMaxLength)
LANGUAGES = (
    "JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST",
    "NODE_JS",
)
RESPONSE = 1                            # bits of a flag
ONE_WAY = 2

cdef Beans headers = Beans(
    "RemotingCommand code:int extFields:Map<String,String> flag:int language:Language=JAVA opaque:int remark "
    "version:int",
    f"Language {' '.join(LANGUAGES)}",
)


cdef class RemotingCommand:
    """A request or an answer. ``flag`` has the bits RESPONSE and ONE_WAY; ``opaque`` pairs an answer with its request.

    language: of LANGUAGES. version: MQVersion's number of the sender's release, 0 if unknown. ext_fields:
    what the command's header holds, texts. serialize_type: the form of the header, "JSON" or "ROCKETMQ".
    """

    def __init__(self, int code, *, str language="JAVA", int version=0, int opaque=0, int flag=0, str remark=None,
                 dict ext_fields=None, bytes body=None, str serialize_type="JSON"):
        if serialize_type not in ("JSON", "ROCKETMQ"):
            raise ValueError(f"serialize_type: {serialize_type!r} is not JSON or ROCKETMQ")
        self.code, self.version, self.opaque, self.flag = code, version, opaque, flag
        self.language, self.remark, self.ext_fields, self.body = language, remark, ext_fields, body
        self.serialize_type = serialize_type

    cdef tuple state(self):
        return (self.code, self.language, self.version, self.opaque, self.flag, self.remark, self.ext_fields, self.body,
                self.serialize_type)

    def __eq__(self, other):
        if not isinstance(other, RemotingCommand):
            return NotImplemented
        return self.state() == (<RemotingCommand>other).state()

    def __hash__(self):
        raise TypeError("a RemotingCommand may change: it has no hash")

    def __repr__(self):
        return (f"RemotingCommand({self.code}, language={self.language!r}, version={self.version}, "
                f"opaque={self.opaque}, flag={self.flag}, remark={self.remark!r}, ext_fields={self.ext_fields!r}, "
                f"body={self.body!r}, serialize_type={self.serialize_type!r})")

    def __reduce__(self):
        raise TypeError("a RemotingCommand is pickled as its frame: write_command")

    @property
    def is_response(self):
        """True for an answer."""
        return (self.flag & RESPONSE) != 0

    @property
    def is_one_way(self):
        """True for a request that wants no answer."""
        return (self.flag & ONE_WAY) != 0


cdef class RemotingReader(FrameReader):
    """Commands from bytes that arrive in pieces of any size.

    max_frame_size: most bytes of a frame with its length field, 16 MiB by default. Feed it and iterate: the commands
    that are complete come out, the rest waits for more bytes. Raises ProtocolError at the frame that is not one; the
    commands before it came out, none comes after it.
    """

    def __init__(self, Py_ssize_t max_frame_size=MAX_FRAME_SIZE):
        self.max_frame_size = max_frame_size

    cdef object next_frame(self):
        cdef bytes frame
        cdef int64_t length
        if len(self.buffer) < 4:
            return None
        length = signed32(PyByteArray_AS_STRING(self.buffer))
        if length < 0:
            raise ProtocolError(f"a frame cannot have the length {length}")
        if length + 4 > self.max_frame_size:
            raise ProtocolError(f"a frame of {length + 4} bytes is longer than {self.max_frame_size}")
        if len(self.buffer) < length + 4:
            return None
        frame = PyBytes_FromStringAndSize(PyByteArray_AS_STRING(self.buffer) + 4, length)
        del self.buffer[:length + 4]
        return read_command(frame)


cdef int64_t signed32(const char* start) noexcept:
    cdef const unsigned char* data = <const unsigned char*>start
    cdef uint32_t value = <uint32_t>data[0] << 24 | <uint32_t>data[1] << 16 | <uint32_t>data[2] << 8 | data[3]
    return <int>value


cdef class Cursor:
    """Reads a frame's fields; raises instead of reading past its end."""
    cdef bytes frame
    cdef Py_ssize_t at

    cdef bytes take(self, int64_t size):
        cdef Py_ssize_t start = self.at
        if size < 0 or size > len(self.frame) - start:
            raise ProtocolError(f"the frame ends within a field of {size} bytes")
        self.at = start + size
        return self.frame[start:self.at]

    cdef int64_t number(self, int size) except? -1:
        return int.from_bytes(self.take(size), "big", signed=True)

    cdef str text(self, int size, int64_t limit):
        """A string after its length, which has ``size`` bytes; None for length 0 (RocketMQSerializable.readStr)."""
        cdef int64_t length = self.number(size)
        if length == 0:
            return None
        if length > limit:
            raise ProtocolError(f"string length exceed limit:{limit}")
        return decode_utf8(self.take(length))


def read_command(bytes frame not None):
    """The command in a frame without its length field (RemotingCommand.decode). Raises ProtocolError."""
    cdef Cursor cursor = Cursor.__new__(Cursor)
    cdef RemotingCommand command = RemotingCommand.__new__(RemotingCommand)
    cdef int64_t word, header_length, body_length
    cdef dict found
    cursor.frame = frame
    word = cursor.number(4)
    header_length = word & 0xFFFFFF
    if header_length > len(frame) - 4:
        raise ProtocolError(f"decode error, bad header length: {header_length}")
    kind = word >> 24 & 0xFF
    if kind == 0:
        found = headers.read("RemotingCommand", cursor.take(header_length))
        if found is None:
            raise ProtocolError("the header of a command is empty")
        command.code, command.version, command.opaque = found["code"], found["version"], found["opaque"]
        command.flag, command.language, command.remark = found["flag"], found["language"], found["remark"]
        command.ext_fields, command.serialize_type = found["extFields"], "JSON"
    elif kind == 1:
        read_binary_header(command, cursor, header_length)
    else:
        raise ProtocolError(f"{kind} is not the kind of a header")
    # As there: if a binary header ends before its length, the body begins there.
    body_length = len(frame) - 4 - header_length
    command.body = cursor.take(body_length) if body_length else None
    return command


cdef int read_binary_header(RemotingCommand command, Cursor cursor, int64_t header_length) except -1:
    cdef int64_t size, end
    command.serialize_type = "ROCKETMQ"
    command.code = cursor.number(2)
    language = cursor.number(1)
    command.language = LANGUAGES[language] if 0 <= language < len(LANGUAGES) else None
    command.version = cursor.number(2)
    command.opaque = cursor.number(4)
    command.flag = cursor.number(4)
    command.remark = cursor.text(4, header_length)
    size = cursor.number(4)
    if size <= 0:
        return 0
    if size > header_length:
        raise ProtocolError(
            f"RocketMQ protocol decoding failed, extFields length: {size}, but header length: {header_length}"
        )
    command.ext_fields = {}
    end = cursor.at + size
    while cursor.at < end:
        name = cursor.text(2, size)
        command.ext_fields[name] = cursor.text(4, size)
    return 0


def write_command(RemotingCommand command not None):
    """The frame of a command, with its length field (NettyEncoder).

    Raises ProtocolError for a command that has no frame: a name or header too long, a language that is not one.
    """
    cdef bytes header, body = command.body if command.body is not None else b"", frame
    cdef int64_t header_length, length
    cdef Writer writer = Writer(NULL, 0, 0)
    cdef list others = []
    cdef bint is_json = command.serialize_type == "JSON"
    if is_json:
        put_json_header(&writer, command, others)
        header_length = writer.size
    else:
        header = binary_header(command)
        header_length = len(header)
    length = 4 + header_length + len(body)
    if header_length > 0xFFFFFF:
        raise ProtocolError(f"a header of {header_length} bytes is longer than {0xFFFFFF}")
    if length > 0x7FFFFFFF:
        raise ProtocolError(f"a frame of {length} bytes is longer than {0x7FFFFFFF}")
    frame = PyBytes_FromStringAndSize(NULL, 4 + length)
    writer = Writer(PyBytes_AS_STRING(frame), 8, 0)
    put32(writer.out, length)
    put32(writer.out + 4, (0 if is_json else 1) << 24 | header_length)
    if is_json:
        put_json_header(&writer, command, others)
    else:
        put_raw(&writer, PyBytes_AS_STRING(header), header_length)
    put_raw(&writer, PyBytes_AS_STRING(body), len(body))
    return frame


cdef struct Writer:
    char* out                           # NULL: nothing is written, only counted
    Py_ssize_t size                     # bytes until now
    Py_ssize_t other                    # how many texts that are not ASCII there were


cdef void put32(char* out, int64_t value) noexcept:
    out[0], out[1], out[2], out[3] = <char>(value >> 24), <char>(value >> 16), <char>(value >> 8), <char>value


cdef void put_raw(Writer* writer, const char* data, Py_ssize_t size) noexcept:
    if writer.out is not NULL:
        memcpy(writer.out + writer.size, data, size)
    writer.size += size


cdef int put_text(Writer* writer, object text, list others) except -1:
    """A string in JSON, null for None. others: the bytes of those that are not ASCII, in order; counting fills it."""
    cdef bytes encoded
    if text is None:
        put_raw(writer, b"null", 4)
        return 0
    if not isinstance(text, str):
        raise TypeError(f"{text!r} is not a text")
    if is_ascii(text):
        if writer.out is not NULL:
            writer.size = put_quoted(writer.out + writer.size, text) - writer.out
        else:
            writer.size += quoted_size(text)
        return 0
    if writer.out is NULL:
        others.append(encode_utf8(quoted(text)))
    encoded = others[writer.other]
    writer.other += 1
    put_raw(writer, PyBytes_AS_STRING(encoded), len(encoded))
    return 0


cdef void put_number(Writer* writer, int value) noexcept:
    cdef char digits[12]
    put_raw(writer, digits, snprintf(digits, 12, b"%d", value))


cdef int put_json_header(Writer* writer, RemotingCommand command, list others) except -1:
    """Called twice: to count, and to write."""
    cdef bint first = True
    put_raw(writer, b'{"code":', 8)
    put_number(writer, command.code)
    if command.ext_fields is not None:
        put_raw(writer, b',"extFields":{', 14)
        for name, value in command.ext_fields.items():
            if value is None:
                continue
            if not first:
                put_raw(writer, b",", 1)
            first = False
            put_text(writer, name, others)
            put_raw(writer, b":", 1)
            put_text(writer, value, others)
        put_raw(writer, b"}", 1)
    put_raw(writer, b',"flag":', 8)
    put_number(writer, command.flag)
    if command.language is not None:
        put_raw(writer, b',"language":', 12)
        put_text(writer, command.language, others)
    put_raw(writer, b',"opaque":', 10)
    put_number(writer, command.opaque)
    if command.remark is not None:
        put_raw(writer, b',"remark":', 10)
        put_text(writer, command.remark, others)
    put_raw(writer, b',"serializeTypeCurrentRPC":"JSON","version":', 44)
    put_number(writer, command.version)
    put_raw(writer, b"}", 1)
    return 0


cdef bytes binary_header(RemotingCommand command):
    cdef bytes remark = encode_utf8(command.remark) if command.remark is not None else b""
    cdef bytes name, value, fields
    cdef list parts = []
    if command.language not in LANGUAGES:
        raise ProtocolError(f"language: {command.language!r} is not one of {', '.join(LANGUAGES)}")
    if command.ext_fields is not None:
        for key, text in command.ext_fields.items():
            if key is None or text is None:
                continue
            name, value = encode_utf8(key), encode_utf8(text)
            if len(name) > 32767:
                raise ProtocolError(f"the name of a field has {len(name)} bytes: at most 32767 are possible")
            parts += (len(name).to_bytes(2, "big"), name, len(value).to_bytes(4, "big"), value)
    fields = b"".join(parts)
    return b"".join((
        (command.code & 0xFFFF).to_bytes(2, "big"), bytes([LANGUAGES.index(command.language)]),
        (command.version & 0xFFFF).to_bytes(2, "big"), (command.opaque & 0xFFFFFFFF).to_bytes(4, "big"),
        (command.flag & 0xFFFFFFFF).to_bytes(4, "big"), len(remark).to_bytes(4, "big"), remark,
        len(fields).to_bytes(4, "big"), fields,
    ))
