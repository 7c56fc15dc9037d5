# cython: freethreading_compatible=True
"""Java's hash codes: of texts, by which ActiveMQ finds a group's bucket and RocketMQ a tag, and of message queues."""

from libc.stdint cimport int32_t, int64_t, uint32_t

from pyengine.errors import ConfigurationError


cdef uint32_t fold(str text) except? 0:
    """h = 31 * h + unit over the UTF-16 units, wrapping at 32 bits."""
    cdef uint32_t hashed = 0
    cdef Py_UCS4 character
    cdef uint32_t unit
    for character in text:
        unit = <uint32_t>character
        if unit > 0xFFFF:
            hashed = 31 * hashed + 0xD800 + ((unit - 0x10000) >> 10)
            unit = 0xDC00 + ((unit - 0x10000) & 0x3FF)
        hashed = 31 * hashed + unit
    return hashed


def hash_code(text):
    """String.hashCode: a signed 32-bit number. Raises ConfigurationError for what is no text."""
    if not isinstance(text, str):
        raise ConfigurationError("text", repr(text), "must be a text")
    return <int32_t>fold(text)


def tags_code(tags):
    """What the broker stores of a message's tag: 0 without one, else its hash code. Raises ConfigurationError for what
    is no text."""
    if tags is not None and not isinstance(tags, str):
        raise ConfigurationError("tags", repr(tags), "must be a text")
    return 0 if not tags else <int32_t>fold(tags)


def queue_hash_code(str topic, str broker_name, int64_t queue_id):
    """MessageQueue.hashCode; None counts 0."""
    cdef uint32_t hashed = 31 + (0 if broker_name is None else fold(broker_name))
    hashed = 31 * hashed + <uint32_t>queue_id
    return <int32_t>(31 * hashed + (0 if topic is None else fold(topic)))


cdef list by_bucket(list texts, int64_t size):
    """Texts as a hash table of so many buckets, a power of two, is walked; ``texts`` in the order of their coming."""
    def bucket(str text):
        cdef uint32_t hashed = fold(text)
        return (hashed ^ (hashed >> 16)) & (size - 1)

    return sorted(texts, key=bucket)


def map_order(names):
    """The order in which a ConcurrentHashMap with these keys is walked, as a list. names: in the order of their coming.

    What a map that once held more keys does, and keys of one bucket once it has grown, is not followed.
    """
    cdef list found = list(names)
    cdef int64_t size = 16
    while len(found) >= size - (size >> 2):
        size *= 2
    return by_bucket(found, size)


def set_order(texts, int64_t capacity=16):
    """The order in which a HashSet of these texts, or a HashMap with these keys, is walked, as a list. texts: in the
    order of their coming. capacity: that it was made with.

    Eight texts and more of one bucket, which become a tree, are not followed.
    """
    cdef list found = list(dict.fromkeys(texts))
    cdef int64_t size = 1
    while size < capacity or len(found) > 3 * size // 4:
        size *= 2
    return by_bucket(found, size)
