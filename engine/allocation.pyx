# cython: freethreading_compatible=True
"""The allocation strategies that need only positions, and the consistent-hash ring."""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free, malloc, qsort
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

import numpy as np

cdef extern from "md5.h":
    enum:
        PYENGINE_MD5_LANES
    void pyengine_md5_heads(
        const unsigned char** texts, const int64_t* lengths, int count, int64_t blocks, uint32_t* heads
    ) noexcept nogil


def averagely(int64_t queues, int64_t clients):
    """AVG: consecutive runs; the first ``queues % clients`` clients own one more.

    Returns owners, int32, shape (queues,). Source: AllocateMessageQueueAveragely, spec rocketmq 3.1.
    """
    owners = np.full(queues, -1, np.int32)
    cdef int32_t[::1] out = owners
    cdef int64_t surplus = queues % clients, share, start, client, queue
    for client in range(clients):
        share = 1 if queues <= clients else queues // clients + (surplus > 0 and client < surplus)
        start = client * share if surplus > 0 and client < surplus else client * share + surplus
        for queue in range(start, min(start + share, queues)):
            out[queue] = <int32_t>client
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


def hash_texts(list texts):
    """The ring's hash of each text: the first four bytes of the MD5 of its UTF-8 form, big endian.

    Lone surrogates count as ``?``, as Java encodes them. Returns uint32, shape (len(texts),).
    Raises TypeError for an item that is not a str.
    """
    cdef int64_t count = len(texts), i, blocks, at
    heads = np.empty(count, np.uint32)
    if count == 0:
        return heads
    cdef uint32_t[::1] out = heads
    cdef list encoded = []
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"a text to hash must be str, not {type(text).__name__}")
        encoded.append((<str>text).encode("utf-8", "replace"))
    cdef const unsigned char* lanes[16]
    cdef int64_t lengths[16]
    cdef int64_t places[16]
    cdef uint32_t found[16]
    cdef dict waiting = {}
    for i in range(count):
        blocks = (PyBytes_GET_SIZE(encoded[i]) + 8) // 64 + 1
        (<list>waiting.setdefault(blocks, [])).append(i)
    cdef int filled
    cdef list members
    for blocks, members in waiting.items():
        at = 0
        while at < len(members):
            filled = <int>min(<int64_t>PYENGINE_MD5_LANES, <int64_t>len(members) - at)
            for i in range(filled):
                places[i] = members[at + i]
                lanes[i] = <const unsigned char*>PyBytes_AS_STRING(encoded[places[i]])
                lengths[i] = PyBytes_GET_SIZE(encoded[places[i]])
            pyengine_md5_heads(lanes, lengths, filled, blocks, found)
            for i in range(filled):
                out[places[i]] = found[i]
            at += filled
    return heads


cdef int by_hash_then_order(const void* left, const void* right) noexcept nogil:
    cdef const RingNode* a = <const RingNode*>left
    cdef const RingNode* b = <const RingNode*>right
    if a.hash != b.hash:
        return -1 if a.hash < b.hash else 1
    return (a.order > b.order) - (a.order < b.order)


cdef class HashRing:
    """The consistent-hash ring of one list of client ids, built once and asked for many queues.

    client_ids: in the order of the list given to the strategy; an id that stands twice gets twice the nodes, and all of
    them belong to its first position. virtual_nodes: nodes an id. hashes: one value per node instead of MD5, in
    the order of ``node_keys``. Source: ConsistentHashRouter, spec rocketmq 3.6.
    """

    def __cinit__(self, list client_ids, int virtual_nodes, hashes=None):
        cdef dict first = {}
        cdef list owners = []
        cdef int64_t i, position, kept
        self.virtual_nodes = virtual_nodes
        for position, client_id in enumerate(client_ids):
            first.setdefault(client_id, position)
            owners.append(first[client_id])
        cdef uint32_t[::1] values = (
            hash_texts(node_keys(client_ids, virtual_nodes)) if hashes is None
            else np.ascontiguousarray(hashes, np.uint32)
        )
        cdef int64_t total = values.shape[0]
        if total != len(client_ids) * <int64_t>virtual_nodes:
            raise ValueError(f"{total} hashes for {len(client_ids)} client ids of {virtual_nodes} nodes")
        self.nodes = <RingNode*>malloc(max(total, 1) * sizeof(RingNode))
        if self.nodes == NULL:
            raise MemoryError
        for i in range(total):
            self.nodes[i].hash = values[i]
            self.nodes[i].owner = owners[i // virtual_nodes]
            self.nodes[i].order = i
        qsort(self.nodes, total, sizeof(RingNode), by_hash_then_order)
        kept = 0
        for i in range(total):
            if i + 1 < total and self.nodes[i + 1].hash == self.nodes[i].hash:
                continue
            self.nodes[kept] = self.nodes[i]
            kept += 1
        self.count = kept

    def __dealloc__(self):
        free(self.nodes)

    def __len__(self):
        return self.count

    cdef int32_t owner_of(self, uint32_t hash) noexcept nogil:
        cdef int64_t low = 0, high = self.count, middle
        if high == 0:
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
        """Raise AssertionError unless the hashes strictly ascend."""
        for i in range(1, self.count):
            assert self.nodes[i - 1].hash < self.nodes[i].hash, (i, self.nodes[i - 1].hash, self.nodes[i].hash)


def node_keys(list client_ids, int virtual_nodes):
    """The text of every ring node: ``id-n``, n counting on where the same id stood before."""
    cdef dict existing = {}
    cdef list keys = []
    cdef int64_t start
    for client_id in client_ids:
        start = existing.get(client_id, 0)
        keys.extend([f"{client_id}-{start + i}" for i in range(virtual_nodes)])
        existing[client_id] = start + virtual_nodes
    return keys


def plan_difference(before, after):
    """The queues whose owner differs between two owner arrays. Returns int64 positions, ascending.

    The arrays must number the clients alike; a queue that only one plan has is not compared.
    """
    cdef const int32_t[::1] old = np.ascontiguousarray(before, np.int32)
    cdef const int32_t[::1] new = np.ascontiguousarray(after, np.int32)
    if old.shape[0] != new.shape[0]:
        raise ValueError(f"plans of {old.shape[0]} and {new.shape[0]} queues cannot be compared")
    return np.flatnonzero(np.asarray(old) != np.asarray(new))
