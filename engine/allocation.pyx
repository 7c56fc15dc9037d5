# cython: freethreading_compatible=True
"""The allocation strategies that need only positions, and the consistent-hash ring."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy
from cpython.object cimport PyObject
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE

import numpy as np

cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object text) noexcept
    unsigned char* PyUnicode_1BYTE_DATA(object text) noexcept
    Py_ssize_t PyUnicode_GET_LENGTH(object text) noexcept
    PyObject* PyList_GET_ITEM(list items, Py_ssize_t i) noexcept
    bint PyTuple_Check(PyObject* item) noexcept

cdef extern from *:
    """
    #ifdef __GNUC__
    #define pyengine_prefetch(address) __builtin_prefetch(address)
    #else
    #define pyengine_prefetch(address) ((void)(address))
    #endif
    """
    void pyengine_prefetch(const void* address) noexcept nogil
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1

cdef extern from "md5.h":
    enum:
        PYENGINE_MD5_LANES
    void pyengine_md5_pad(unsigned char* text, int64_t length, int64_t blocks) noexcept nogil
    void pyengine_md5_heads(const unsigned char* text, int64_t stride, int64_t blocks, uint32_t* heads) noexcept nogil


def averagely(int64_t queues, int64_t clients):
    """AVG: consecutive runs; the first ``queues % clients`` clients own one more.

    Returns owners, int32, shape (queues,). Source: AllocateMessageQueueAveragely, spec rocketmq 3.1.
    """
    owners = np.empty(queues, np.int32)
    cdef int32_t[::1] out = owners
    cdef int64_t surplus = queues % clients, share, queue = 0, client, end
    for client in range(min(queues, clients)):
        share = queues // clients + (client < surplus)
        end = queue + share
        while queue < end:
            out[queue] = <int32_t>client
            queue += 1
    return owners


def averagely_by_circle(int64_t queues, int64_t clients):
    """AVG_BY_CIRCLE: queue i belongs to client ``i % clients``.

    Returns owners, int32, shape (queues,). Source: AllocateMessageQueueAveragelyByCircle, spec rocketmq 3.2.
    """
    owners = np.empty(queues, np.int32)
    cdef int32_t[::1] out = owners
    cdef int64_t queue, client = 0
    for queue in range(queues):
        out[queue] = <int32_t>client
        client = client + 1 if client + 1 < clients else 0
    return owners


def by_machine_room(int64_t queues, int64_t clients):
    """MACHINE_ROOM on the queues of the consumer rooms: equal runs, then the tail one each.

    Returns owners, int32, shape (queues,). Source: AllocateMessageQueueByMachineRoom, spec rocketmq 3.4.
    """
    owners = np.empty(queues, np.int32)
    cdef int32_t[::1] out = owners
    cdef int64_t share = queues // clients, queue
    for queue in range(queues):
        out[queue] = <int32_t>(queue // share if queue < share * clients else queue - share * clients)
    return owners


cdef class Hasher:
    """Collects texts by their number of MD5 blocks and hashes a vector full of them at a time."""

    def __cinit__(self, uint32_t[::1] heads not None):
        cdef int64_t blocks
        self.heads = heads
        for blocks in range(1, BATCHED_BLOCKS + 1):
            self.texts[blocks] = <unsigned char*>calloc(PYENGINE_MD5_LANES, 64 * blocks)
            if self.texts[blocks] == NULL:
                raise MemoryError

    def __dealloc__(self):
        for blocks in range(1, BATCHED_BLOCKS + 1):
            free(self.texts[blocks])

    cdef int flush(self, int64_t blocks) except -1:
        cdef uint32_t found[LANES]
        cdef int64_t i
        pyengine_md5_heads(self.texts[blocks], 64 * blocks, blocks, found)
        for i in range(self.filled[blocks]):
            self.heads[self.places[blocks][i]] = found[i]
        self.filled[blocks] = 0
        return 0

    cdef int finish(self) except -1:
        cdef int64_t blocks
        for blocks in range(1, BATCHED_BLOCKS + 1):
            if self.filled[blocks]:
                self.flush(blocks)
        return 0

    cdef int add(self, const char* head, int64_t head_size, const char* tail, int64_t tail_size,
                 int64_t place) except -1:
        """Hash head + tail into ``heads[place]``, by the end of ``finish``."""
        cdef int64_t length = head_size + tail_size, blocks = (length + 8) // 64 + 1
        cdef unsigned char* text
        cdef uint32_t found[LANES]
        if blocks > BATCHED_BLOCKS:
            text = <unsigned char*>calloc(PYENGINE_MD5_LANES, 64 * blocks)
            if text == NULL:
                raise MemoryError
        else:
            if self.filled[blocks] == PYENGINE_MD5_LANES:
                self.flush(blocks)
            text = self.texts[blocks] + 64 * blocks * self.filled[blocks]
        memcpy(text, head, head_size)
        memcpy(text + head_size, tail, tail_size)
        pyengine_md5_pad(text, length, blocks)
        if blocks > BATCHED_BLOCKS:
            pyengine_md5_heads(text, 64 * blocks, blocks, found)
            free(text)
            self.heads[place] = found[0]
        else:
            self.places[blocks][self.filled[blocks]] = place
            self.filled[blocks] += 1
        return 0


cdef bytes utf8(text):
    """UTF-8 as Java writes it, ``?`` for lone surrogates. Raises TypeError for what is no str."""
    if not isinstance(text, str):
        raise TypeError(f"a text to hash must be str, not {type(text).__name__}")
    return (<str>text).encode("utf-8", "replace")


cdef int64_t decimal(int64_t number, char* out) noexcept:
    """Write a number in decimal digits, at most 20 characters. Returns how many."""
    cdef char digits[20]
    cdef int64_t count = 0, size = 0
    cdef uint64_t left = <uint64_t>number
    if number < 0:
        out[0] = b"-"
        size = 1
        left = 0 - left
    while True:
        digits[count] = <char>(48 + left % 10)
        count += 1
        left //= 10
        if left == 0:
            break
    while count:
        count -= 1
        out[size] = digits[count]
        size += 1
    return size


def hash_texts(list texts):
    """The ring's hash of each text: the first four bytes of the MD5 of its UTF-8 form, big endian.

    Lone surrogates count as ``?``, as Java encodes them. Returns uint32, shape (len(texts),).
    Raises TypeError for an item that is not a str.
    """
    cdef int64_t i
    cdef bytes encoded
    heads = np.empty(len(texts), np.uint32)
    cdef Hasher hasher = Hasher(heads)
    for i in range(len(texts)):
        encoded = utf8(texts[i])
        hasher.add(PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded), NULL, 0, i)
    hasher.finish()
    return heads


# Queues and their names lie anywhere in memory: ask for them this many queues before they are read.
cdef int64_t AHEAD = 16


cdef inline void look_ahead(PyObject* queue) noexcept:
    pyengine_prefetch(queue)


cdef inline void look_ahead_within(PyObject* queue) noexcept:
    if PyTuple_Check(queue) and PyTuple_GET_SIZE(<object>queue) == 3:
        pyengine_prefetch(<const void*>PyTuple_GET_ITEM(<object>queue, 0))
        pyengine_prefetch(<const void*>PyTuple_GET_ITEM(<object>queue, 1))


cdef int64_t ascii_of(text, const char** data) except -1:
    """The size of an ASCII text and where it lies; of any other text 0 and NULL."""
    if not isinstance(text, str):
        raise TypeError(f"a text to hash must be str, not {type(text).__name__}")
    if not PyUnicode_IS_COMPACT_ASCII(text):
        data[0] = NULL
        return 0
    data[0] = <const char*>PyUnicode_1BYTE_DATA(text)
    return PyUnicode_GET_LENGTH(text)


def hash_queues(queues):
    """The ring's hash of each queue's text, ``MessageQueue [topic=T, brokerName=B, queueId=N]``.

    queues: sequence of (topic, broker name, queue id). Returns uint32, shape (len(queues),). Raises TypeError for
    names that are not str.
    """
    cdef list items = list(queues)
    cdef int64_t i, size, head_size = 0
    cdef int overflow
    cdef long long number
    cdef int64_t topic_size, broker_size, count = len(items)
    cdef char short_head[512]
    cdef char* head = short_head
    cdef const char* topic_text
    cdef const char* broker_text
    cdef bytes long_head = b"", tail
    cdef char digits[24]
    cdef object known_topic = None, known_broker = None
    heads = np.empty(len(items), np.uint32)
    cdef Hasher hasher = Hasher(heads)
    for i in range(count):
        if i + AHEAD < count:
            look_ahead(PyList_GET_ITEM(items, i + AHEAD))
        if i + AHEAD // 2 < count:
            look_ahead_within(PyList_GET_ITEM(items, i + AHEAD // 2))
        queue = items[i]
        if not isinstance(queue, tuple):
            queue = tuple(queue)
        if PyTuple_GET_SIZE(queue) != 3:
            raise TypeError(f"a queue is (topic, broker name, queue id), not {queue!r}")
        topic, broker, queue_id = <object>PyTuple_GET_ITEM(queue, 0), <object>PyTuple_GET_ITEM(queue, 1), \
            <object>PyTuple_GET_ITEM(queue, 2)
        if topic is not known_topic or broker is not known_broker:
            topic_size, broker_size = ascii_of(topic, &topic_text), ascii_of(broker, &broker_text)
            if topic_text == NULL or broker_text == NULL or 43 + topic_size + broker_size > 512:
                long_head = b"MessageQueue [topic=%b, brokerName=%b, queueId=" % (utf8(topic), utf8(broker))
                head, head_size = PyBytes_AS_STRING(long_head), PyBytes_GET_SIZE(long_head)
            else:
                head = short_head
                memcpy(head, b"MessageQueue [topic=", 20)
                memcpy(head + 20, topic_text, topic_size)
                memcpy(head + 20 + topic_size, b", brokerName=", 13)
                memcpy(head + 33 + topic_size, broker_text, broker_size)
                memcpy(head + 33 + topic_size + broker_size, b", queueId=", 10)
                head_size = 43 + topic_size + broker_size
            known_topic, known_broker = topic, broker
        overflow = 1
        if type(queue_id) is int:
            number = PyLong_AsLongLongAndOverflow(queue_id, &overflow)
        if overflow == 0:
            size = decimal(number, digits)
            digits[size] = b"]"
            hasher.add(head, head_size, digits, size + 1, i)
        else:
            tail = f"{queue_id}]".encode()
            hasher.add(head, head_size, PyBytes_AS_STRING(tail), PyBytes_GET_SIZE(tail), i)
    hasher.finish()
    return heads


def node_hashes(list client_ids, int virtual_nodes, hash_function=None):
    """The hash of every ring node, id by id: of the text ``id-n``, n counting on from the nodes that the ring holds.

    An id that stands twice adds nodes twice; nodes that others of equal hash replaced meanwhile are not counted.
    hash_function: text -> unsigned 32 bits; MD5's head by default. Source: ConsistentHashRouter.addNode.
    """
    cdef dict ring = {}, held = {}
    cdef list hashes = [], texts, added
    cdef int64_t start
    for client_id in client_ids:
        start = held.get(client_id, 0)
        texts = [f"{client_id}-{start + i}" for i in range(virtual_nodes)]
        added = hash_texts(texts).tolist() if hash_function is None else list(map(hash_function, texts))
        for number in added:
            before = ring.get(number)
            if before is not None:
                held[before] -= 1
            ring[number] = client_id
            held[client_id] = held.get(client_id, 0) + 1
        hashes += added
    return hashes


cdef object hash_nodes(list client_ids, int virtual_nodes):
    """MD5's head of every ring node's text; the fast way where no id stands twice."""
    cdef int64_t i, size, place = 0
    cdef char tail[24]
    cdef bytes head
    if len(set(client_ids)) < len(client_ids):
        return np.array(node_hashes(client_ids, virtual_nodes), np.uint32)
    heads = np.empty(len(client_ids) * <int64_t>virtual_nodes, np.uint32)
    cdef Hasher hasher = Hasher(heads)
    for client_id in client_ids:
        head = utf8(client_id)
        tail[0] = b"-"
        for i in range(virtual_nodes):
            size = decimal(i, &tail[1])
            hasher.add(PyBytes_AS_STRING(head), PyBytes_GET_SIZE(head), tail, size + 1, place)
            place += 1
    hasher.finish()
    return heads


cdef int sort_by_hash(RingNode* nodes, int64_t count) except -1:
    """Sort by hash, a digit at a time; equal hashes keep their order."""
    cdef RingNode* spare = <RingNode*>malloc(max(count, 1) * sizeof(RingNode))
    cdef int64_t starts[2048]
    cdef int64_t i, before, digit
    cdef int bits = 8 if count < 4096 else 11, shift = 0
    cdef int64_t mask = (1 << bits) - 1
    cdef RingNode* source = nodes
    cdef RingNode* target = spare
    if spare == NULL:
        raise MemoryError
    while shift < 32:
        for i in range(mask + 1):
            starts[i] = 0
        for i in range(count):
            starts[source[i].hash >> shift & mask] += 1
        before = 0
        for i in range(mask + 1):
            digit = starts[i]
            starts[i] = before
            before += digit
        for i in range(count):
            digit = source[i].hash >> shift & mask
            target[starts[digit]] = source[i]
            starts[digit] += 1
        source, target = target, source
        shift += bits
    if source != nodes:
        memcpy(nodes, source, count * sizeof(RingNode))
    free(spare)
    return 0


cdef class HashRing:
    """The consistent-hash ring of one list of client ids, built once and asked for many queues.

    client_ids: in the order of the list given to the strategy; an id that stands twice gets twice the nodes, and all of
    them belong to its first position. virtual_nodes: nodes an id. hashes: one value per node instead of MD5, in
    the order of ``node_hashes``. Source: ConsistentHashRouter, spec rocketmq 3.6.
    """

    def __cinit__(self, list client_ids, int virtual_nodes, hashes=None):
        cdef dict first = {}
        cdef int64_t i, position, kept, node = 0
        cdef int32_t owner
        self.virtual_nodes = virtual_nodes
        cdef uint32_t[::1] values = (
            hash_nodes(client_ids, virtual_nodes) if hashes is None
            else np.ascontiguousarray(hashes, np.uint32)
        )
        cdef int64_t total = values.shape[0]
        if total != len(client_ids) * <int64_t>virtual_nodes:
            raise ValueError(f"{total} hashes for {len(client_ids)} client ids of {virtual_nodes} nodes")
        self.nodes = <RingNode*>malloc(max(total, 1) * sizeof(RingNode))
        if self.nodes == NULL:
            raise MemoryError
        for position in range(len(client_ids)):
            owner = first.setdefault(client_ids[position], position)
            for _ in range(virtual_nodes):
                self.nodes[node].hash = values[node]
                self.nodes[node].owner = owner
                node += 1
        sort_by_hash(self.nodes, total)
        kept = 0
        for i in range(total):
            if i + 1 < total and self.nodes[i + 1].hash == self.nodes[i].hash:
                continue
            self.nodes[kept] = self.nodes[i]
            kept += 1
        self.count = kept
        self.shift = 32
        while self.shift > 8 and 1 << (32 - self.shift) < kept:
            self.shift -= 1
        self.starts = <int32_t*>malloc(((1 << (32 - self.shift)) + 1) * sizeof(int32_t))
        if self.starts == NULL:
            raise MemoryError
        position = 0
        for i in range((1 << (32 - self.shift)) + 1):
            while position < kept and <int64_t>(<uint64_t>self.nodes[position].hash >> self.shift) < i:
                position += 1
            self.starts[i] = <int32_t>position

    def __dealloc__(self):
        free(self.nodes)
        free(self.starts)

    def __len__(self):
        return self.count

    cdef int32_t owner_of(self, uint32_t hash) noexcept nogil:
        cdef int64_t bucket = <int64_t>(<uint64_t>hash >> self.shift)
        cdef int64_t low = self.starts[bucket], high = self.starts[bucket + 1], middle
        if self.count == 0:
            return -1
        while low < high:
            middle = (low + high) >> 1
            if self.nodes[middle].hash < hash:
                low = middle + 1
            else:
                high = middle
        return self.nodes[low if low < self.count else 0].owner

    def owners(self, hashes):
        """The owner of each queue hash: the node at or after it, round the ring. int32, same shape; -1: empty ring."""
        cdef const uint32_t[::1] asked = np.ascontiguousarray(hashes, np.uint32)
        found = np.empty(asked.shape[0], np.int32)
        cdef int32_t[::1] out = found
        cdef int64_t i
        with nogil:
            for i in range(asked.shape[0]):
                out[i] = self.owner_of(asked[i])
        return found

    def _check(self):
        """Raise AssertionError unless the hashes strictly ascend and every start is where its hashes begin."""
        for i in range(1, self.count):
            assert self.nodes[i - 1].hash < self.nodes[i].hash, (i, self.nodes[i - 1].hash, self.nodes[i].hash)
        for i in range((1 << (32 - self.shift)) + 1):
            start = self.starts[i]
            assert start == 0 or <int64_t>(<uint64_t>self.nodes[start - 1].hash >> self.shift) < i, i
            assert start == self.count or <int64_t>(<uint64_t>self.nodes[start].hash >> self.shift) >= i, i


def plan_difference(before, after):
    """The queues whose owner differs between two owner arrays. Returns int64 positions, ascending.

    The arrays must number the clients alike; a queue that only one plan has is not compared.
    """
    cdef const int32_t[::1] old = np.ascontiguousarray(before, np.int32)
    cdef const int32_t[::1] new = np.ascontiguousarray(after, np.int32)
    if old.shape[0] != new.shape[0]:
        raise ValueError(f"plans of {old.shape[0]} and {new.shape[0]} queues cannot be compared")
    return np.flatnonzero(np.asarray(old) != np.asarray(new))
