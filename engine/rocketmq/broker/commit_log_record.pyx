"""Frames of a broker's log: encode, decode, and find them again after a crash."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memchr, memcpy

from pyengine._engine.java.hashing import tags_code
from pyengine._engine.rocketmq.commands.stored_message cimport (
    STORE_HOST_V6, Reader, StoredNumbers, check_hosts, crc_of, is_ascii, joined_properties, put, put_stored,
    stored_length, take_stored,
)
from pyengine.errors import InvalidMessageError

cdef extern from "Python.h":
    void* PyUnicode_DATA(object text) noexcept

cdef extern from "lowlevel/slot_access.h":
    ctypedef struct Slot "pyengine_slot":
        pass
    object read_attribute "pyengine_read"(object item, object name, Slot* known)

cdef Slot BODY, FLAG, PROPERTIES        # of messages

cdef extern from "lowlevel/crc32.h":
    void pyengine_crc32_prepare() noexcept nogil
    uint32_t pyengine_crc32(const unsigned char* data, size_t length) noexcept nogil

pyengine_crc32_prepare()

cdef int64_t HEADER = 9         # size, checksum, kind
HEADER_SIZE = HEADER
DELIVERS_SIZE = 12
cdef int64_t MAX_PROPERTIES = 32767


cpdef enum RecordKind:
    MESSAGE = 1
    DELIVERED = 2
    DELETED = 3


cdef bint separates(str text) except -1:
    """Whether a string holds one of the separators of properties."""
    cdef const void* data
    cdef Py_ssize_t size = len(text)
    if not is_ascii(text):
        return "\x01" in text or "\x02" in text
    data = PyUnicode_DATA(text)
    return memchr(data, 1, size) is not NULL or memchr(data, 2, size) is not NULL


cdef bytes properties_text(dict properties):
    """Properties as the real ``messageProperties2String`` joins them."""
    for name, value in properties.items():
        if value is None:
            continue
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidMessageError("properties", {name: value}, "a property is a pair of str")
        if separates(name) or separates(value):
            raise InvalidMessageError(name, value, "a property cannot hold U+0001 or U+0002, its separators")
    cdef bytes joined = joined_properties(properties)
    if PyBytes_GET_SIZE(joined) > MAX_PROPERTIES:
        raise InvalidMessageError(
            "properties", f"{PyBytes_GET_SIZE(joined)} bytes", f"a message has at most {MAX_PROPERTIES} bytes of them"
        )
    return joined


def encode_message(str topic, body, dict properties, tuple place not None, origin, tuple stored not None):
    """The frame of one message, as bytes; the stored message is its last ``stored_size(frame)`` bytes.

    place: (position of the frame in the log, queue id, queue offset). origin: an Origin. stored: (ms, host) of the
    broker; the system flag need not tell whether that host has 20 bytes. Raises InvalidMessageError for properties that
    cannot be stored.
    """
    cdef StoredNumbers of
    cdef bytes name, born_host, store_host
    of.position, of.queue_id, of.queue_offset = place
    of.born_timestamp, born_host, of.reconsume_times, of.flag, of.sys_flag, delivers, of.prepared_transaction_offset = \
        origin
    of.store_timestamp, store_host = stored
    name = checked_topic(topic, born_host, store_host, &of)
    return message_frame(name, body, properties, born_host, store_host, delivers, &of)


cdef bytes checked_topic(str topic, bytes born_host, bytes store_host, StoredNumbers* of):
    cdef bytes name = topic.encode("utf-8", "replace")
    if PyBytes_GET_SIZE(name) > 127:
        raise InvalidMessageError("topic", topic, "a topic has at most 127 bytes")
    if PyBytes_GET_SIZE(store_host) == 20:
        of.sys_flag |= STORE_HOST_V6
    check_hosts(born_host, store_host, of.sys_flag)
    return name


cdef bytes message_frame(bytes name, body, dict properties, bytes born_host, bytes store_host, delivers,
                         StoredNumbers* of):
    cdef bytes content = b"" if body is None else bytes(body) if type(body) is not bytes else body
    cdef bytes joined = properties_text(properties)
    cdef int64_t size = stored_length(content, name, joined, born_host, store_host, 1)
    cdef int64_t extra = 0 if delivers is None else 12
    if size > 0x7FFFFFFF - 64:
        raise InvalidMessageError("body", f"{PyBytes_GET_SIZE(content)} bytes", "a stored message is below 2 GiB")
    cdef bytes frame = PyBytes_FromStringAndSize(NULL, HEADER + extra + size)
    cdef unsigned char* out = <unsigned char*>PyBytes_AS_STRING(frame) + HEADER
    if delivers is not None:
        out = put(put(out, delivers[0], 4), delivers[1], 8)
    of.crc = crc_of(content)
    put_stored(out, 1, name, content, joined, born_host, store_host, of)
    seal(frame, RecordKind.MESSAGE if delivers is None else RecordKind.DELIVERED)
    return frame


def encode_messages(str topic, messages, tuple place not None, origin, tuple stored not None):
    """The frames of several messages that lie one behind the other: (positions, frames, stored sizes, tags codes).

    messages: whose body, properties, a dict, and flag are stored. place: of the first. The rest is as for
    :func:`encode_message`; of ``origin`` only the producer's time and host and the system flag count.
    """
    cdef list positions = [], frames = [], sizes = [], codes = []
    cdef StoredNumbers of
    cdef dict own
    cdef bytes frame, name, born_host, store_host
    of.position, of.queue_id, of.queue_offset = place
    of.born_timestamp, born_host, of.sys_flag = origin.born, origin.born_host, origin.sys_flag
    of.reconsume_times = of.prepared_transaction_offset = 0
    of.store_timestamp, store_host = stored
    name = checked_topic(topic, born_host, store_host, &of)
    for each in messages:
        own, of.flag = read_attribute(each, "properties", &PROPERTIES), read_attribute(each, "flag", &FLAG)
        frame = message_frame(name, read_attribute(each, "body", &BODY), own, born_host, store_host, None, &of)
        tags = own.get("TAGS")
        positions.append(of.position)
        frames.append(frame)
        sizes.append(PyBytes_GET_SIZE(frame) - HEADER)
        codes.append(0 if tags is None else tags_code(tags))
        of.position += PyBytes_GET_SIZE(frame)
        of.queue_offset += 1
    return positions, frames, sizes, codes


def are_plain(messages, frozenset special not None, Py_ssize_t most):
    """Whether a broker stores each message as it is: its properties are a dict with none of ``special``, and its body
    has at most ``most`` bytes.
    """
    for each in messages:
        properties, body = read_attribute(each, "properties", &PROPERTIES), read_attribute(each, "body", &BODY)
        if type(properties) is not dict or not special.isdisjoint(properties):
            return False
        if body is not None and len(body) > most:
            return False
    return True


def encode_deletion(str topic, int32_t queue_id, int64_t min_offset):
    """The frame that says: of this queue only offsets from ``min_offset`` on are left."""
    cdef bytes name = topic.encode("utf-8", "replace")
    cdef bytes frame = PyBytes_FromStringAndSize(NULL, HEADER + 12 + PyBytes_GET_SIZE(name))
    cdef unsigned char* out = <unsigned char*>PyBytes_AS_STRING(frame) + HEADER
    out = put(put(out, queue_id, 4), min_offset, 8)
    memcpy(out, PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name))
    seal(frame, RecordKind.DELETED)
    return frame


cdef int seal(bytes frame, int kind) except -1:
    """Write the header of a frame whose payload is in place."""
    cdef unsigned char* start = <unsigned char*>PyBytes_AS_STRING(frame)
    cdef int64_t size = PyBytes_GET_SIZE(frame) - HEADER
    put(start + 8, kind, 1)
    put(start, size, 4)
    put(start + 4, pyengine_crc32(start + 8, size + 1), 4)
    return 0


cdef int64_t frame_size(const unsigned char* data, int64_t left) noexcept:
    """Bytes of the frame that starts here, 0 if it is torn."""
    cdef int64_t size
    cdef uint32_t checksum
    if left <= HEADER:
        return 0
    size = <int64_t>data[0] << 24 | <int64_t>data[1] << 16 | <int64_t>data[2] << 8 | data[3]
    if size == 0 or size > 0x7FFFFFFF or size > left - HEADER:
        return 0
    checksum = <uint32_t>data[4] << 24 | <uint32_t>data[5] << 16 | <uint32_t>data[6] << 8 | data[7]
    if not RecordKind.MESSAGE <= data[8] <= RecordKind.DELETED:
        return 0
    return HEADER + size if pyengine_crc32(data + 8, size + 1) == checksum else 0


def stored_size(const unsigned char[::1] frame not None):
    """Bytes of the stored message in the frame of a message."""
    if frame.shape[0] <= HEADER:
        raise ValueError("these bytes are not the frame of a message")
    return frame.shape[0] - HEADER - (12 if frame[8] == RecordKind.DELIVERED else 0)


def payload(bytes frame):
    """The stored message in the frame of a message, as RocketMQ's MessageDecoder reads it."""
    return frame[PyBytes_GET_SIZE(frame) - stored_size(frame):]


def is_whole(const unsigned char[::1] frame not None):
    """True if these bytes are one frame, whole and with the right checksum."""
    return frame.shape[0] > 0 and frame_size(&frame[0], frame.shape[0]) == frame.shape[0]


def whole_size(const unsigned char[::1] data not None):
    """Bytes of the frame that starts here, by its header; 0 where there is no header."""
    if data.shape[0] < HEADER:
        return 0
    return HEADER + (<int64_t>data[0] << 24 | <int64_t>data[1] << 16 | <int64_t>data[2] << 8 | data[3])


def frame_follows(const unsigned char[::1] data not None, int64_t at):
    """True if behind the damaged frame at ``at`` another whole frame begins: the damage is not a torn end."""
    cdef int64_t following, total = data.shape[0]
    if not 0 <= at < total:
        return False
    following = at + whole_size(data[at:])
    if following <= at or following >= total:
        return False
    return frame_size(&data[following], total - following) > 0


def scan(const unsigned char[::1] data not None, int64_t start=0):
    """All whole frames of a log, in order, and where they end: (frames, end).

    start: position of the first byte. A frame is (kind, position, size, topic, queue id, queue offset, store time,
    tags code, delivers): size of the whole frame; of a deletion the queue offset is the smallest that is left and the
    rest 0; delivers is (delay level, offset) or None. ``end`` lies before the first torn frame, or at the end of data.
    """
    cdef int64_t at = 0, size, total = data.shape[0]
    cdef list frames = []
    cdef dict topics = {}
    cdef Reader reader = Reader.__new__(Reader)
    cdef int64_t queue_id, queue_offset, store_time, code
    while at < total:
        size = frame_size(&data[at], total - at)
        if size == 0:
            break
        reader.data, reader.at, reader.end = &data[at], HEADER, size
        delivers = None
        if data[at + 8] == RecordKind.DELETED:
            queue_id = reader.number(4)
            queue_offset = reader.number(8)
            topic = reader.text(size - reader.at)
            store_time = code = 0
        else:
            if data[at + 8] == RecordKind.DELIVERED:
                delivers = (reader.number(4), reader.number(8))
            reader.take(12)
            queue_id = reader.number(4)
            reader.take(4)
            queue_offset = reader.number(8)
            reader.take(28)
            store_time = reader.number(8)
            reader.take(20)
            reader.take(reader.number(4))
            topic = reader.text(reader.number(1) & 0xFF)
            code = tags_code(tags_of(reader.text(reader.number(2))))
        frames.append((
            <int>data[at + 8], start + at, size, topics.setdefault(topic, topic), queue_id, queue_offset, store_time,
            code, delivers,
        ))
        at += size
    return frames, start + at


cdef str tags_of(str joined):
    """The tags among joined properties, None without."""
    if joined:
        for part in joined.split("\x02"):
            if part.startswith("TAGS\x01"):
                return part[5:]
    return None


def decode_message(bytes frame):
    """The fields of a message's frame: (topic, body, properties, position, queue id, queue offset, born time, store
    time, born host, store host, reconsume times, flag, system flag, body CRC, stored size, prepared transaction
    offset).

    Raises ValueError for bytes that are not a frame of a message.
    """
    cdef int64_t total = PyBytes_GET_SIZE(frame)
    cdef Reader reader = Reader.__new__(Reader)
    reader.data, reader.at, reader.end = <const unsigned char*>PyBytes_AS_STRING(frame), HEADER, total
    if total <= HEADER or frame_size(reader.data, total) != total or reader.data[8] == RecordKind.DELETED:
        raise ValueError("these bytes are not the frame of a message")
    if reader.data[8] == RecordKind.DELIVERED:
        reader.take(12)
    return take_stored(reader)
