# cython: freethreading_compatible=True
"""The members of consumer groups, and the notifications when they change (spec rocketmq 4.1, 10.2)."""

from libc.stdint cimport int64_t

# How often a broker looks for members that stopped sending heartbeats, ms (ClientHousekeepingService).
SCAN_INTERVAL = 10000


cdef class Group:
    """Members and subscriptions of one group."""

    def __init__(self):
        raise TypeError("a Group is made by ConsumerGroups")

    cdef list to_be_told(self):
        """Each member of a broadcasting group has every queue."""
        return [] if self.broadcasting else list(self.members)


cdef class ConsumerGroups:
    """The consumer groups of one broker. expiry: ms. Not thread-safe: the caller holds a lock."""

    def __cinit__(self, *, int64_t expiry=120000):
        self.groups = {}
        self.clients = {}
        self.expiry = expiry

    def heartbeat(self, str group, str client_id, subscriptions, int64_t now, *, bint broadcasting=False):
        """A member is alive and the group subscribes to this. Returns the members to notify of a change, or [].

        subscriptions: iterable of (topic, version, subscription). A change is a new member, a topic that came or one
        that is gone; a newer version of a known topic replaces the subscription silently (registerConsumer).
        broadcasting: the member's message model, which counts for the group from now on.
        """
        cdef Group found = self.groups.get(group)
        cdef bint changed = False
        cdef set topics = set()
        if found is None:
            found = Group.__new__(Group)
            found.members, found.subscriptions = {}, {}
            self.groups[group] = found
        if client_id not in found.members:
            changed = True
            self.clients[client_id] = self.clients.get(client_id, 0) + 1
        found.members[client_id] = now
        found.broadcasting = broadcasting
        for topic, version, subscription in subscriptions:
            topics.add(topic)
            known = found.subscriptions.get(topic)
            if known is None:
                changed = True
            if known is None or version > known[0]:
                found.subscriptions[topic] = (version, subscription)
        for topic in [topic for topic in found.subscriptions if topic not in topics]:
            del found.subscriptions[topic]
            changed = True
        return found.to_be_told() if changed else []

    def leave(self, str group, str client_id):
        """A member is gone, or never was one. Returns the remaining members, to be notified."""
        cdef Group found = self.groups.get(group)
        if found is None:
            return []
        if found.members.pop(client_id, None) is not None:
            self.clients[client_id] -= 1
            if not self.clients[client_id]:
                del self.clients[client_id]
        if not found.members:
            del self.groups[group]
        return found.to_be_told()

    def expire(self, int64_t now):
        """Remove members without a heartbeat for longer than ``expiry``, without a notification
        (scanNotActiveChannel)."""
        cdef Group found
        for group, found in list(self.groups.items()):
            for client_id in [client_id for client_id, seen in found.members.items() if now - seen > self.expiry]:
                self.leave(group, client_id)

    def members(self, str group):
        """Client ids in the order of joining; [] for an unknown group."""
        cdef Group found = self.groups.get(group)
        return [] if found is None else list(found.members)

    def is_member(self, str client_id):
        """True if the client is in some group."""
        return client_id in self.clients

    def subscription(self, str group, str topic):
        """(version, subscription) as last heard; None where the group or the topic is unknown."""
        cdef Group found = self.groups.get(group)
        return None if found is None else found.subscriptions.get(topic)

    def wants(self, str group, str topic):
        """Whether the group has a topic's offsets still: it subscribes to the topic, or its members to none."""
        cdef Group found = self.groups.get(group)
        return found is None or not found.subscriptions or topic in found.subscriptions

    def __contains__(self, group):
        return group in self.groups

    def __len__(self):
        return len(self.groups)

    def _check(self):
        """Raise AssertionError unless the invariants hold."""
        cdef Group found
        counted = {}
        for group, found in self.groups.items():
            assert found.members, group
            for client_id in found.members:
                counted[client_id] = counted.get(client_id, 0) + 1
        assert counted == self.clients
