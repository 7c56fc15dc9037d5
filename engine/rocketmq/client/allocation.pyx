# cython: freethreading_compatible=True
"""The allocation strategies that need only positions, and the consistent-hash ring."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset
cimport cython
from cpython.object cimport PyObject
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from pyengine._engine.lowlevel.memory cimport allocate, allocate_zeros
from pyengine._engine.lowlevel.bits cimport pyengine_prefetch

import numpy as np

cdef extern from "Python.h":
    bint PyUnicode_CheckExact(PyObject* item) noexcept
    bint PyUnicode_IS_COMPACT_ASCII(PyObject* text) noexcept
    unsigned char* PyUnicode_1BYTE_DATA(PyObject* text) noexcept
    Py_ssize_t PyUnicode_GET_LENGTH(PyObject* text) noexcept
    PyObject* PyList_GET_ITEM(list items, Py_ssize_t i) noexcept
    bint PyTuple_Check(PyObject* item) noexcept
    Py_ssize_t PyTuple_GET_SIZE(PyObject* item) noexcept
    PyObject* PyTuple_GET_ITEM(PyObject* item, Py_ssize_t i) noexcept
    bint PyLong_CheckExact(PyObject* item) noexcept
    long long PyLong_AsLongLongAndOverflow(PyObject* number, int* overflow) except? -1

cdef extern from "lowlevel/md5.h":
    enum:
        PYENGINE_MD5_LANES
        PYENGINE_MD5_SLACK
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


cdef inline unsigned char* put(unsigned char* out, const unsigned char* text, int64_t size) noexcept nogil:
    """Copy a string in pieces of constant size: for a name a call of memcpy costs more. Returns the end of the copy."""
    cdef int64_t i = 0
    if size >= 16:
        while i < size - 16:
            memcpy(out + i, text + i, 16)
            i += 16
        memcpy(out + size - 16, text + size - 16, 16)
    elif size >= 8:
        memcpy(out, text, 8)
        memcpy(out + size - 8, text + size - 8, 8)
    elif size >= 4:
        memcpy(out, text, 4)
        memcpy(out + size - 4, text + size - 4, 4)
    elif size > 0:
        out[0] = text[0]
        out[size >> 1] = text[size >> 1]
        out[size - 1] = text[size - 1]
    return out + size


cdef inline int64_t decimal_size(int64_t number) noexcept nogil:
    """How many characters ``put_decimal`` writes."""
    cdef int64_t size = 1 + (number < 0)
    cdef uint64_t left = <uint64_t>number if number >= 0 else 0 - <uint64_t>number
    while left >= 10:
        left //= 10
        size += 1
    return size


cdef inline unsigned char* put_decimal(unsigned char* out, int64_t number, int64_t size) noexcept nogil:
    """Write a number in its ``size`` decimal characters. Returns where they end."""
    cdef uint64_t left = <uint64_t>number if number >= 0 else 0 - <uint64_t>number
    cdef unsigned char* end = out + size
    cdef unsigned char* digit = end
    out[0] = b"-"
    while True:
        digit -= 1
        digit[0] = <unsigned char>(48 + left % 10)
        left //= 10
        if left == 0:
            return end


@cython.final
cdef class Hasher:
    """Collects texts by their number of MD5 blocks and hashes a vector full of them at a time."""

    def __cinit__(self, uint32_t[::1] heads not None):
        cdef int64_t blocks
        self.owner = heads
        if heads.shape[0]:
            self.heads = &heads[0]
        for blocks in range(1, BATCHED_BLOCKS + 1):
            self.texts[blocks] = <unsigned char*>allocate_zeros(
                PYENGINE_MD5_LANES * 64 * blocks + PYENGINE_MD5_SLACK, 1)

    def __dealloc__(self):
        for blocks in range(1, BATCHED_BLOCKS + 1):
            free(self.texts[blocks])

    cdef void flush(self, int64_t blocks) noexcept:
        cdef uint32_t found[LANES]
        cdef int64_t i
        pyengine_md5_heads(self.texts[blocks], 64 * blocks, blocks, found)
        for i in range(self.filled[blocks]):
            self.heads[self.places[blocks][i]] = found[i]
        self.filled[blocks] = 0

    cdef void finish(self) noexcept:
        cdef int64_t blocks
        for blocks in range(1, BATCHED_BLOCKS + 1):
            if self.filled[blocks]:
                self.flush(blocks)

    cdef inline unsigned char* room(self, int64_t length, int64_t place) noexcept:
        """Address to write a string of at most ``BATCHED`` bytes, and PYENGINE_MD5_SLACK bytes more; then ``close``
        it."""
        cdef int64_t blocks = ((length + 8) >> 6) + 1, lane
        if self.filled[blocks] == PYENGINE_MD5_LANES:
            self.flush(blocks)
        lane = self.filled[blocks]
        self.places[blocks][lane] = place
        self.filled[blocks] = lane + 1
        return self.texts[blocks] + 64 * blocks * lane

    cdef inline void close(self, unsigned char* text, int64_t length) noexcept:
        """``heads[place]`` is there by the end of ``finish``."""
        pyengine_md5_pad(text, length, ((length + 8) >> 6) + 1)

    cdef int add(self, bytes whole, int64_t place) except -1:
        """Hash a string of any size."""
        cdef int64_t length = PyBytes_GET_SIZE(whole), blocks = ((length + 8) >> 6) + 1
        cdef unsigned char* text
        cdef uint32_t found[LANES]
        if length <= BATCHED:
            text = self.room(length, place)
            put(text, <const unsigned char*>PyBytes_AS_STRING(whole), length)
            self.close(text, length)
            return 0
        text = <unsigned char*>allocate_zeros(PYENGINE_MD5_LANES * 64 * blocks + PYENGINE_MD5_SLACK, 1)
        memcpy(text, PyBytes_AS_STRING(whole), length)
        pyengine_md5_pad(text, length, blocks)
        pyengine_md5_heads(text, 64 * blocks, blocks, found)
        free(text)
        self.heads[place] = found[0]
        return 0


cdef bytes utf8(text):
    """UTF-8 as Java writes it, ``?`` for lone surrogates. Raises TypeError for an object that is not a str."""
    if not isinstance(text, str):
        raise TypeError(f"a text to hash must be str, not {type(text).__name__}")
    return (<str>text).encode("utf-8", "replace")


def hash_texts(list texts):
    """The ring's hash of each text: the first four bytes of the MD5 of its UTF-8 form, big endian.

    Lone surrogates count as ``?``, as Java encodes them. Returns uint32, shape (len(texts),).
    Raises TypeError for an item that is not a str.
    """
    cdef int64_t i
    heads = np.empty(len(texts), np.uint32)
    cdef Hasher hasher = Hasher(heads)
    for i in range(len(texts)):
        hasher.add(utf8(texts[i]), i)
    hasher.finish()
    return heads


cdef inline void look_ahead(PyObject* queue) noexcept:
    pyengine_prefetch(queue)


cdef inline void look_ahead_within(PyObject* queue) noexcept:
    if PyTuple_Check(queue) and PyTuple_GET_SIZE(queue) == 3:
        pyengine_prefetch(<const void*>PyTuple_GET_ITEM(queue, 0))
        pyengine_prefetch(<const void*>PyTuple_GET_ITEM(queue, 1))


cdef inline bint is_ascii(PyObject* text) noexcept:
    return PyUnicode_CheckExact(text) and PyUnicode_IS_COMPACT_ASCII(text)


cdef bint add_ascii_queue(Hasher hasher, PyObject* queue, int64_t place) except -1:
    """Hash a queue whose text is written here, byte by byte; False: it is not of this common kind."""
    cdef PyObject* topic
    cdef PyObject* broker
    cdef int64_t topic_size, broker_size, number, number_size, length
    cdef int overflow = 0
    cdef unsigned char* text
    cdef unsigned char* end
    if not PyTuple_Check(queue) or PyTuple_GET_SIZE(queue) != 3:
        return False
    topic, broker = PyTuple_GET_ITEM(queue, 0), PyTuple_GET_ITEM(queue, 1)
    if not (is_ascii(topic) and is_ascii(broker) and PyLong_CheckExact(PyTuple_GET_ITEM(queue, 2))):
        return False
    number = PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(queue, 2), &overflow)
    topic_size, broker_size = PyUnicode_GET_LENGTH(topic), PyUnicode_GET_LENGTH(broker)
    number_size = decimal_size(number)
    length = 44 + topic_size + broker_size + number_size
    if overflow or length > BATCHED:
        return False
    text = hasher.room(length, place)
    memcpy(text, b"MessageQueue [topic=", 20)
    end = put(text + 20, PyUnicode_1BYTE_DATA(topic), topic_size)
    memcpy(end, b", brokerName=\0\0\0", 16)
    end = put(end + 13, PyUnicode_1BYTE_DATA(broker), broker_size)
    memcpy(end, b", queueId=\0\0\0\0\0\0", 16)
    end = put_decimal(end + 10, number, number_size)
    end[0] = b"]"
    hasher.close(text, length)
    return True


def hash_queues(queues):
    """The ring's hash of each queue's text, ``MessageQueue [topic=T, brokerName=B, queueId=N]``.

    queues: sequence of (topic, broker name, queue id). Returns uint32, shape (len(queues),). Raises TypeError for
    names that are not str.
    """
    cdef list items = list(queues)
    cdef int64_t i, count = len(items)
    heads = np.empty(count, np.uint32)
    cdef Hasher hasher = Hasher(heads)
    for i in range(count):
        if i + AHEAD < count:
            look_ahead(PyList_GET_ITEM(items, i + AHEAD))
        if i + AHEAD_WITHIN < count:
            look_ahead_within(PyList_GET_ITEM(items, i + AHEAD_WITHIN))
        if add_ascii_queue(hasher, PyList_GET_ITEM(items, i), i):
            continue
        queue = tuple(items[i])
        if len(queue) != 3:
            raise TypeError(f"a queue is (topic, broker name, queue id), not {queue!r}")
        topic, broker, number = queue
        hasher.add(
            b"MessageQueue [topic=%b, brokerName=%b, queueId=%b]" % (utf8(topic), utf8(broker), f"{number}".encode()), i
        )
    hasher.finish()
    return heads


def first_strange(queues):
    """The position of the first of ``queues`` that is not (topic, broker name, queue id), -1 without one. None is a
    name
    that is null."""
    cdef Py_ssize_t place = 0
    for queue in queues:
        if not isinstance(queue, tuple) or len(<tuple>queue) != 3:
            if not isinstance(queue, list) or len(<list>queue) != 3:
                return place
            queue = tuple(queue)
        if not (
            (isinstance((<tuple>queue)[0], str) or (<tuple>queue)[0] is None)
            and (isinstance((<tuple>queue)[1], str) or (<tuple>queue)[1] is None)
            and isinstance((<tuple>queue)[2], int)
        ):
            return place
        place += 1
    return -1


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
    cdef int64_t i, size, number_size, place = 0
    cdef bytes head
    cdef unsigned char* text
    if len(set(client_ids)) < len(client_ids):
        return np.array(node_hashes(client_ids, virtual_nodes), np.uint32)
    heads = np.empty(len(client_ids) * <int64_t>virtual_nodes, np.uint32)
    cdef Hasher hasher = Hasher(heads)
    for client_id in client_ids:
        head = utf8(client_id)
        size = PyBytes_GET_SIZE(head)
        for i in range(virtual_nodes):
            number_size = decimal_size(i)
            if size + 1 + number_size <= BATCHED:
                text = hasher.room(size + 1 + number_size, place)
                put(text, <const unsigned char*>PyBytes_AS_STRING(head), size)
                text[size] = b"-"
                put_decimal(text + size + 1, i, number_size)
                hasher.close(text, size + 1 + number_size)
            else:
                hasher.add(b"%b-%d" % (head, i), place)
            place += 1
    hasher.finish()
    return heads


cdef int sort_by_hash(RingNode* nodes, int64_t count) except -1:
    """Sort by hash, a digit at a time; equal hashes keep their order."""
    cdef RingNode* spare = <RingNode*>allocate(max(count, 1) * sizeof(RingNode))
    cdef int64_t starts[2048]
    cdef int64_t i, before, digit
    cdef int bits = 8 if count < 4096 else 11, shift = 0
    cdef int64_t mask = (1 << bits) - 1
    cdef RingNode* source = nodes
    cdef RingNode* target = spare
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
        cdef int64_t total, position, place, node = 0
        cdef int32_t owner
        cdef uint32_t hash
        self.virtual_nodes = virtual_nodes
        cdef uint32_t[::1] values = (
            hash_nodes(client_ids, virtual_nodes) if hashes is None
            else np.ascontiguousarray(hashes, np.uint32)
        )
        total = values.shape[0]
        if total != len(client_ids) * <int64_t>virtual_nodes:
            raise ValueError(f"{total} hashes for {len(client_ids)} client ids of {virtual_nodes} nodes")
        self.shift = 24
        while self.shift > 8 and 1 << (32 - self.shift) < 2 * total:
            self.shift -= 1
        self.nodes = <RingNode*>allocate((total + 1) * sizeof(RingNode))
        self.starts = <int32_t*>allocate(((1 << (32 - self.shift)) + 2) * sizeof(int32_t))
        # Put every node into its bucket: starts[b + 1] is where the next node of bucket b goes, and at the end where
        # bucket b + 1 begins.
        self.count_buckets(&values[0] if total else NULL, 1, total, 2)
        for position in range(len(client_ids)):
            owner = first.setdefault(client_ids[position], position)
            for _ in range(virtual_nodes):
                hash = values[node]
                place = self.starts[(hash >> self.shift) + 1]
                self.starts[(hash >> self.shift) + 1] = <int32_t>(place + 1)
                self.nodes[place].hash = hash
                self.nodes[place].owner = owner
                node += 1
        self.sort(total)
        self.drop_replaced(total)
        self.nodes[self.count].hash = 0xFFFFFFFF
        self.nodes[self.count].owner = self.nodes[0].owner if self.count else -1

    cdef void count_buckets(self, const uint32_t* hashes, int64_t step, int64_t count, int64_t offset) noexcept:
        """starts[b + offset]: how many of the hashes, ``step`` apart, lie in the buckets up to b."""
        cdef int64_t i, size = (1 << (32 - self.shift)) + offset
        cdef int32_t before = 0
        memset(self.starts, 0, size * sizeof(int32_t))
        for i in range(count):
            self.starts[(hashes[i * step] >> self.shift) + offset] += 1
        for i in range(size):
            before += self.starts[i]
            self.starts[i] = before

    cdef int sort(self, int64_t total) except -1:
        """Sort the nodes, which lie in their buckets; equal hashes keep their order."""
        cdef int64_t i, place
        cdef RingNode node
        for i in range(total - CROWD):
            if self.nodes[i].hash >> self.shift == self.nodes[i + CROWD].hash >> self.shift:
                return sort_by_hash(self.nodes, total)
        for i in range(1, total):
            node = self.nodes[i]
            place = i
            while place and self.nodes[place - 1].hash > node.hash:
                self.nodes[place] = self.nodes[place - 1]
                place -= 1
            self.nodes[place] = node
        return 0

    cdef void drop_replaced(self, int64_t total) noexcept:
        """Of sorted nodes with equal hashes keep the last."""
        cdef int64_t i = 0, kept
        while i + 1 < total and self.nodes[i + 1].hash != self.nodes[i].hash:
            i += 1
        kept = i
        for i in range(kept, total):
            self.nodes[kept] = self.nodes[i]
            kept += i + 1 == total or self.nodes[i + 1].hash != self.nodes[i].hash
        self.count = kept
        if kept < total:
            self.count_buckets(&self.nodes[0].hash, sizeof(RingNode) // sizeof(uint32_t), kept, 1)

    def __dealloc__(self):
        free(self.nodes)
        free(self.starts)

    def __len__(self):
        return self.count

    cdef int32_t owner_of(self, uint32_t hash) noexcept nogil:
        cdef int64_t bucket = <int64_t>(<uint64_t>hash >> self.shift)
        cdef int64_t low = self.starts[bucket], high = self.starts[bucket + 1], middle
        while high - low > CROWD:
            middle = (low + high) >> 1
            if self.nodes[middle].hash < hash:
                low = middle + 1
            else:
                high = middle
        while self.nodes[low].hash < hash:
            low += 1
        return self.nodes[low].owner

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


def are_all(list items not None, type kind not None):
    """Whether each of them is of exactly this type."""
    cdef Py_ssize_t i
    for i in range(len(items)):
        if type(<object>PyList_GET_ITEM(items, i)) is not kind:
            return False
    return True


def taken(list items not None, order):
    """The items at these places, in this order. Raises IndexError for a place that is not there."""
    cdef const int64_t[::1] places = np.ascontiguousarray(order, np.int64)
    cdef Py_ssize_t i
    cdef list found = [None] * places.shape[0]
    for i in range(places.shape[0]):
        found[i] = items[places[i]]
    return found


def queue_columns(list queues not None):
    """``(topics, brokers, topic codes int32, broker codes int32, queue ids int64)``: the different names in the order
    in which they come, and each queue as places in them; None if one of the queues is not (str, str, int64)."""
    cdef Py_ssize_t count = len(queues), i
    cdef dict topics = {}, brokers = {}
    cdef PyObject* item
    cdef PyObject* topic = NULL
    cdef PyObject* broker = NULL
    cdef PyObject* name
    cdef int overflow = 0
    topic_codes, broker_codes = np.empty(count, np.int32), np.empty(count, np.int32)
    ids = np.empty(count, np.int64)
    cdef int32_t[::1] to_topic = topic_codes, to_broker = broker_codes
    cdef int64_t[::1] to_id = ids
    for i in range(count):
        item = PyList_GET_ITEM(queues, i)
        if not PyTuple_Check(item) or PyTuple_GET_SIZE(item) != 3 or not PyLong_CheckExact(PyTuple_GET_ITEM(item, 2)):
            return None
        name = PyTuple_GET_ITEM(item, 0)
        if not PyUnicode_CheckExact(name):
            return None
        if i and (name == topic or <str>name == <str>topic):         # mostly the same as before, and not hashed
            to_topic[i] = to_topic[i - 1]
        else:
            topic = name
            to_topic[i] = topics.setdefault(<object>topic, len(topics))
        name = PyTuple_GET_ITEM(item, 1)
        if not PyUnicode_CheckExact(name):
            return None
        if i and (name == broker or <str>name == <str>broker):         # mostly the same as before, and not hashed
            to_broker[i] = to_broker[i - 1]
        else:
            broker = name
            to_broker[i] = brokers.setdefault(<object>broker, len(brokers))
        to_id[i] = PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(item, 2), &overflow)
        if overflow:
            return None
    return list(topics), list(brokers), topic_codes, broker_codes, ids
