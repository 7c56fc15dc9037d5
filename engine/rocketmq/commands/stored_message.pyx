"""Stored messages and what producers send; see stored_message.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeASCII
from libc.string cimport memchr, memcpy

from pyengine._engine.java.utf8 cimport decode_utf8, encode_utf8
from pyengine.errors import ProtocolError

cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object text) noexcept
    void* PyUnicode_DATA(object text) noexcept
    Py_ssize_t PyUnicode_GET_LENGTH(object text) noexcept
    str PyUnicode_New(Py_ssize_t size, Py_UCS4 largest)

cdef extern from "lowlevel/crc32.h":
    void pyengine_crc32_prepare() noexcept nogil
    uint32_t pyengine_crc32(const unsigned char* data, size_t length) noexcept nogil

pyengine_crc32_prepare()

cdef int64_t MAGIC = -626843481
cdef int64_t MAGIC_2 = -626843477
cdef int64_t FIXED = 74                 # bytes of a stored message without hosts, body, topic's size and properties


cdef class Reader:
    def __init__(self):
        raise TypeError("a Reader is made by decode")

    cdef int64_t take(self, int64_t size) except -1:
        cdef int64_t start = self.at
        if size < 0 or size > self.end - self.at:
            raise ProtocolError("the record ends within a field")
        self.at += size
        return start

    cdef int64_t number(self, int size) except? -1:
        cdef int64_t start = self.take(size)
        cdef uint64_t value = 0
        cdef int i
        for i in range(size):
            value = value << 8 | self.data[start + i]
        return <int64_t>(value << (64 - 8 * size)) >> (64 - 8 * size)

    cdef bytes raw(self, int64_t size):
        cdef int64_t start = self.take(size)
        return (<const char*>self.data)[start:start + size]

    cdef str text(self, int64_t size):
        return decode_utf8(self.raw(size))


cdef Reader reader_of(bytes data, int64_t start):
    cdef Reader reader = Reader.__new__(Reader)
    reader.data, reader.at, reader.end = <const unsigned char*>PyBytes_AS_STRING(data), start, PyBytes_GET_SIZE(data)
    if not 0 <= start <= reader.end:
        raise ValueError(f"start: {start} is not a position within {reader.end} bytes")
    return reader


cdef uint32_t crc_of(bytes body) noexcept:
    return pyengine_crc32(<unsigned char*>PyBytes_AS_STRING(body), PyBytes_GET_SIZE(body)) & 0x7FFFFFFF


def body_crc(bytes body not None):
    """A body's checksum (UtilAll.crc32): 31 bits."""
    return crc_of(body)


cdef bytes joined_properties(dict properties):
    cdef bytes joined
    cdef unsigned char* out
    cdef Py_ssize_t size = 0
    for name, value in properties.items():
        if value is None:
            continue
        if not (is_ascii(name) and is_ascii(value)):
            return encode_utf8(
                "".join([f"{name}\x01{value}\x02" for name, value in properties.items() if value is not None])
            )
        size += PyUnicode_GET_LENGTH(name) + PyUnicode_GET_LENGTH(value) + 2
    joined = PyBytes_FromStringAndSize(NULL, size)
    out = <unsigned char*>PyBytes_AS_STRING(joined)
    for name, value in properties.items():
        if value is not None:
            out = put(put_ascii(put(put_ascii(out, name), 1, 1), value), 2, 1)
    return joined


cdef bint is_ascii(text) noexcept:
    return type(text) is str and PyUnicode_IS_COMPACT_ASCII(text)


cdef unsigned char* put_ascii(unsigned char* out, text) noexcept:
    memcpy(out, PyUnicode_DATA(text), PyUnicode_GET_LENGTH(text))
    return out + PyUnicode_GET_LENGTH(text)


cdef bytes sent_properties(dict properties):
    """Joined as a producer sends them: whether it waits until the message is stored comes first."""
    cdef dict sent = {"WAIT": "true"}
    sent.update(properties)
    return joined_properties(sent)


def is_plain(properties, frozenset special not None):
    """Whether properties are stored as they are: a dict with none of ``special``, and none without a name or a value,
    which brokers leave out.
    """
    if type(properties) is not dict:
        return False
    for name, value in (<dict>properties).items():
        if not name or not value or name in special:
            return False
    return True


cdef dict split_properties(str joined):
    cdef dict properties = {}
    for part in joined.split("\x02"):
        name, _, value = (<str>part).partition("\x01")
        if name and value:
            properties[name] = value
    return properties


cdef dict read_properties(Reader reader, int64_t size):
    """The same from bytes; of ASCII ones without a string of them all."""
    cdef int64_t start = reader.take(size), i
    cdef const char* at = <const char*>reader.data + start
    cdef const char* end = at + size
    cdef const char* stop
    cdef const char* equals
    cdef dict properties = {}
    for i in range(size):
        if at[i] & 0x80:
            return split_properties(decode_utf8(at[:size]))
    while at < end:
        stop = <const char*>memchr(at, 2, end - at)
        if stop is NULL:
            stop = end
        equals = <const char*>memchr(at, 1, stop - at)
        if equals is not NULL and at < equals < stop - 1:
            properties[PyUnicode_DecodeASCII(at, equals - at, NULL)] = \
                PyUnicode_DecodeASCII(equals + 1, stop - equals - 1, NULL)
        at = stop + 1
    return properties


def properties_text(properties):
    """Properties as one string (messageProperties2String): a value that is None is left out."""
    return "" if properties is None else joined_properties(dict(properties)).decode("utf-8")


def sent_properties_text(dict properties not None):
    """The same as a producer sends them, with WAIT."""
    return sent_properties(properties).decode("utf-8")


def parse_properties(text):
    """The properties of a string (string2messageProperties); those without a name or value are left out."""
    return {} if text is None else split_properties(text)


cdef int64_t stored_length(bytes body, bytes topic, bytes properties, bytes born_host, bytes store_host, int version):
    return (FIXED + PyBytes_GET_SIZE(born_host) + PyBytes_GET_SIZE(store_host) + PyBytes_GET_SIZE(body) + version
            + PyBytes_GET_SIZE(topic) + PyBytes_GET_SIZE(properties))


cdef unsigned char* put_bytes(unsigned char* out, bytes source) noexcept:
    memcpy(out, PyBytes_AS_STRING(source), PyBytes_GET_SIZE(source))
    return out + PyBytes_GET_SIZE(source)


cdef unsigned char* put_stored(
    unsigned char* out, int version, bytes topic, bytes body, bytes properties, bytes born_host, bytes store_host,
    const StoredNumbers* of
) noexcept:
    """Write a stored message of ``stored_length`` bytes; every size fits its field."""
    out = put(out, stored_length(body, topic, properties, born_host, store_host, version), 4)
    out = put(out, MAGIC if version == 1 else MAGIC_2, 4)
    out = put(out, of.crc, 4)
    out = put(out, of.queue_id, 4)
    out = put(out, of.flag, 4)
    out = put(out, of.queue_offset, 8)
    out = put(out, of.position, 8)
    out = put(out, of.sys_flag, 4)
    out = put_bytes(put(out, of.born_timestamp, 8), born_host)
    out = put_bytes(put(out, of.store_timestamp, 8), store_host)
    out = put(out, of.reconsume_times, 4)
    out = put(out, of.prepared_transaction_offset, 8)
    out = put_bytes(put(out, PyBytes_GET_SIZE(body), 4), body)
    out = put_bytes(put(out, PyBytes_GET_SIZE(topic), version), topic)
    return put_bytes(put(out, PyBytes_GET_SIZE(properties), 2), properties)


cdef bytes host_of(Reader reader, bint v6):
    cdef bytes host = reader.raw(20 if v6 else 8)
    cdef int size = PyBytes_GET_SIZE(host)
    if host[size - 4] or host[size - 3]:
        raise ProtocolError(f"port out of range:{int.from_bytes(host[size - 4:], 'big', signed=True)}")
    return host


cdef tuple take_stored(Reader reader):
    """(topic, body, properties, position, queue id, queue offset, born time, store time, born host, store host,
    reconsume times, flag, system flag, body CRC, stored size, prepared transaction offset) of the message that starts
    at the cursor. An unsigned size is never taken before its bytes are known to be there.
    """
    cdef int64_t size = reader.number(4), magic = reader.number(4), length
    cdef bytes body = b""
    cdef dict properties = {}
    if magic != MAGIC and magic != MAGIC_2:
        raise ProtocolError(f"Invalid magicCode {magic}")
    crc = reader.number(4)
    queue_id = reader.number(4)
    flag = reader.number(4)
    queue_offset = reader.number(8)
    position = reader.number(8)
    cdef int64_t sys_flag = reader.number(4)
    born_time = reader.number(8)
    born_host = host_of(reader, sys_flag & 16)
    store_time = reader.number(8)
    store_host = host_of(reader, sys_flag & 32)
    reconsume_times = reader.number(4)
    prepared = reader.number(8)
    length = reader.number(4)
    if length > 0:                      # one below 0 counts as no body, as there
        body = reader.raw(length)
    topic = reader.text(reader.number(1 if magic == MAGIC else 2))
    length = reader.number(2)
    if length > 0:
        properties = read_properties(reader, length)
    return (
        topic, body, properties, position, queue_id, queue_offset, born_time, store_time, born_host, store_host,
        reconsume_times, flag, sys_flag, crc, size, prepared,
    )


def decode_stored(bytes data not None, int64_t start=0):
    """The stored message that starts there, as :func:`take_stored` lists its fields, and where it ends: (fields, end).

    The body is as it was stored: compressed if the system flag is set. A message whose body is empty, and one without
    properties, has b"" and {}. Raises ProtocolError for what is not a stored message.
    """
    cdef Reader reader = reader_of(data, start)
    fields = take_stored(reader)
    return fields, reader.at


def encode_stored(str topic not None, bytes body not None, properties, tuple place not None, origin,
                  tuple stored not None, *, int version=1, crc=None):
    """A stored message. place: (position, queue id, queue offset). origin: an Origin, whose ``delivers`` no consumer
    sees. stored: (ms, host) of the broker. crc: the body's own by default. A host is address and port, 8 bytes, or 20
    if the origin's sys_flag says IPv6. Raises ProtocolError for a topic or properties that are longer than their
    fields can say.
    """
    cdef bytes name = encode_utf8(topic), joined = joined_properties(dict(properties or {}))
    cdef bytes born_host, store_host
    cdef StoredNumbers of
    of.position, of.queue_id, of.queue_offset = place
    of.born_timestamp, born_host, of.reconsume_times, of.flag, of.sys_flag, _, of.prepared_transaction_offset = origin
    of.store_timestamp, store_host = stored
    of.crc = crc_of(body) if crc is None else crc
    if version not in (1, 2):
        raise ValueError(f"version: {version} is not 1 or 2")
    if PyBytes_GET_SIZE(name) > (0x7F if version == 1 else 0x7FFF):
        raise ProtocolError(f"a topic of {PyBytes_GET_SIZE(name)} bytes is too long for version {version}")
    if PyBytes_GET_SIZE(joined) > 0x7FFF:
        raise ProtocolError(f"properties of {PyBytes_GET_SIZE(joined)} bytes: at most 32767 are possible")
    check_hosts(born_host, store_host, of.sys_flag)
    cdef int64_t size = stored_length(body, name, joined, born_host, store_host, version)
    if size > 0x7FFFFFFF:
        raise ProtocolError(f"a message of {size} bytes is too long")
    cdef bytes frame = PyBytes_FromStringAndSize(NULL, size)
    put_stored(<unsigned char*>PyBytes_AS_STRING(frame), version, name, body, joined, born_host, store_host, &of)
    return frame


cdef int check_hosts(bytes born_host, bytes store_host, int64_t sys_flag) except -1:
    if (PyBytes_GET_SIZE(born_host) != (20 if sys_flag & BORN_HOST_V6 else 8)
            or PyBytes_GET_SIZE(store_host) != (20 if sys_flag & STORE_HOST_V6 else 8)):
        raise ValueError("a host is 8 bytes, address and port, or 20 where the system flag says so")
    return 0


def encode_client_message(bytes body not None, properties, int64_t flag=0):
    """A message of a batch, as a producer sends it (MessageDecoder.encodeMessage). Raises ProtocolError for properties
    of more than 32767 bytes.
    """
    return client_message(body, joined_properties(dict(properties or {})), flag)


def encode_client_messages(messages):
    """The body of a batch of Messages. Raises ProtocolError as :func:`encode_client_message` does."""
    return b"".join([
        client_message(bytes(each.body or b""), sent_properties(each.properties), each.flag) for each in messages
    ])


cdef bytes client_message(bytes body, bytes joined, int64_t flag):
    if PyBytes_GET_SIZE(joined) > 0x7FFF:
        raise ProtocolError(f"properties of {PyBytes_GET_SIZE(joined)} bytes: at most 32767 are possible")
    cdef int64_t size = 22 + PyBytes_GET_SIZE(body) + PyBytes_GET_SIZE(joined)
    cdef bytes frame = PyBytes_FromStringAndSize(NULL, size)
    cdef unsigned char* out = <unsigned char*>PyBytes_AS_STRING(frame)
    out = put(put(put(put(out, size, 4), 0, 8), flag, 4), PyBytes_GET_SIZE(body), 4)
    put_bytes(put(put_bytes(out, body), PyBytes_GET_SIZE(joined), 2), joined)
    return frame


def decode_client_messages(bytes data not None):
    """The messages of a batch: a list of (body, properties, flag). Raises ProtocolError for what is not a batch."""
    cdef Reader reader = reader_of(data, 0)
    cdef list found = []
    while reader.at < reader.end:
        reader.take(12)
        flag = reader.number(4)
        body = reader.raw(reader.number(4))
        found.append((body, split_properties(reader.text(reader.number(2))), flag))
    return found


def message_id(bytes host not None, int64_t offset):
    """The broker's id of a message: its host and its position in the log, in hex (MessageDecoder.createMessageId)."""
    return f"{host.hex().upper()}{<uint64_t>offset:016X}"


def message_ids(str prefix not None, list positions not None):
    """The ids of several messages of one broker, joined by commas. prefix: what they have before the position."""
    cdef Py_ssize_t each = len(prefix) + 16, number = len(positions), i
    if not is_ascii(prefix) or not number:
        raise ValueError("ids begin with the digits of a host, and there is one for each position")
    cdef str joined = PyUnicode_New(number * (each + 1) - 1, 127)
    cdef unsigned char* out = <unsigned char*>PyUnicode_DATA(joined)
    for i in range(number):
        if i:
            out = put(out, c",", 1)
        out = put_hex(put_ascii(out, prefix), positions[i], 16)
    return joined


def parse_message_id(str text not None):
    """(host, position) of a broker's id of a message. Raises ProtocolError for what is not one."""
    cdef bytes raw
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raw = b""
    if len(raw) not in (16, 28) or len(text) not in (32, 56):
        raise ProtocolError(f"{text[:60]!r} is not a message's id: 32 or 56 hex digits are expected")
    return raw[:len(raw) - 8], int.from_bytes(raw[len(raw) - 8:], "big", signed=True)


def parse_unique_id(str text not None):
    """(address, process id) of the client that made a message's unique id (MessageClientIDSetter). The address has 4
    bytes or 16. Raises ProtocolError for what is not one.
    """
    cdef bytes raw
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raw = b""
    if len(raw) not in (16, 28):
        raise ProtocolError(f"{text[:60]!r} is not a unique id: 32 or 56 hex digits are expected")
    address = raw[:len(raw) - 12]
    return address, int.from_bytes(raw[len(raw) - 12:len(raw) - 10], "big")
