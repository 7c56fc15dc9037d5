# cython: freethreading_compatible=True
"""Java's hash codes of strings (ActiveMQ's group buckets, RocketMQ's tags) and message queues; orders of hash maps."""

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
    """String.hashCode: a signed 32-bit number. Raises ConfigurationError for an object that is not a str."""
    if not isinstance(text, str):
        raise ConfigurationError("text", repr(text), "must be a string")
    return <int32_t>fold(text)


def tags_code(tags):
    """The tagsCode that the broker stores: the tag's hash code, 0 without a tag. Raises ConfigurationError for an
    object that is not a str."""
    if tags is not None and not isinstance(tags, str):
        raise ConfigurationError("tags", repr(tags), "must be a string")
    return 0 if not tags else <int32_t>fold(tags)


def queue_hash_code(str topic, str broker_name, int64_t queue_id):
    """MessageQueue.hashCode; None counts 0."""
    cdef uint32_t hashed = 31 + (0 if broker_name is None else fold(broker_name))
    hashed = 31 * hashed + <uint32_t>queue_id
    return <int32_t>(31 * hashed + (0 if topic is None else fold(topic)))


cdef list by_bucket(list texts, int64_t size):
    """The iteration order of a hash table with ``buckets`` buckets, a power of two. texts: in insertion order."""
    def bucket(str text):
        cdef uint32_t hashed = fold(text)
        return (hashed ^ (hashed >> 16)) & (size - 1)

    return sorted(texts, key=bucket)


def map_order(names):
    """The iteration order of a ConcurrentHashMap with these keys, as a list. names: in insertion order.

    Not modelled: a map that held more keys before, and the order within a bucket after the map has grown.
    """
    cdef list found = list(names)
    cdef int64_t size = 16
    while len(found) >= size - (size >> 2):
        size *= 2
    return by_bucket(found, size)


def set_order(texts, int64_t capacity=16):
    """The iteration order of a HashSet of these strings, or a HashMap with these keys, as a list. texts: in insertion
    order. capacity: the initial capacity.

    Not modelled: eight or more strings in one bucket, which become a tree.
    """
    cdef list found = list(dict.fromkeys(texts))
    cdef int64_t size = 1
    while size < capacity or len(found) > 3 * size // 4:
        size *= 2
    return by_bucket(found, size)
