"""The members of a broker's consumer groups and what each group subscribes to, and which members the broker notifies of
a change (ConsumerManager, spec rocketmq 4.1).

Members are kept in the order in which they joined. Invariants: no group is empty; ``_clients`` has who is in a group.
"""

from collections.abc import Iterable
from typing import Any

# How often a broker looks for members that stopped sending heartbeats, ms (ClientHousekeepingService).
SCAN_INTERVAL = 10000


class Group:
    """Members and subscriptions of one group.

    members: client id -> ms of its last heartbeat. subscriptions: topic -> (version, subscription). broadcasting: as
    last heard; no member is notified of changes.
    """

    __slots__ = ("broadcasting", "members", "subscriptions")

    def __init__(self) -> None:
        self.members: dict[str, int] = {}
        self.subscriptions: dict[str, tuple[int, Any]] = {}
        self.broadcasting = False

    def to_be_told(self) -> list[str]:
        """Each member of a broadcasting group has every queue, regardless of the other members."""
        return [] if self.broadcasting else list(self.members)


class ConsumerGroups:
    """The consumer groups of one broker. expiry: ms. Not thread-safe: the caller holds its lock."""

    __slots__ = ("_clients", "_expiry", "_groups")

    def __init__(self, *, expiry: int = 120000) -> None:
        self._groups: dict[str, Group] = {}
        self._clients: dict[str, int] = {}  # client id -> in how many groups it is
        self._expiry = expiry

    @property
    def expiry(self) -> int:
        """ms without a heartbeat until a member is gone."""
        return self._expiry

    def heartbeat(
        self,
        group: str,
        client_id: str,
        subscriptions: Iterable[tuple[str, int, Any]],
        now: int,
        *,
        broadcasting: bool = False,
    ) -> list[str]:
        """A member is alive and the group subscribes to this. Returns the members to notify of a change, or [].

        subscriptions: iterable of (topic, version, subscription). A change is a new member, a topic that came or one
        that is gone; a newer version of a known topic replaces the subscription silently (registerConsumer).
        broadcasting: the member's message model, which counts for the group from now on.
        """
        found = self._groups.get(group)
        changed = False
        topics: set[str] = set()
        if found is None:
            found = Group()
            self._groups[group] = found
        if client_id not in found.members:
            changed = True
            self._clients[client_id] = self._clients.get(client_id, 0) + 1
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

    def leave(self, group: str, client_id: str) -> list[str]:
        """A member is gone, or never was one. Returns the members that are left, to be notified."""
        found = self._groups.get(group)
        if found is None:
            return []
        if found.members.pop(client_id, None) is not None:
            self._clients[client_id] -= 1
            if not self._clients[client_id]:
                del self._clients[client_id]
        if not found.members:
            del self._groups[group]
        return found.to_be_told()

    def expire(self, now: int) -> None:
        """Remove members without a heartbeat for longer than ``expiry``, without a notice (scanNotActiveChannel)."""
        for group, found in list(self._groups.items()):
            late = [client_id for client_id, heartbeat in found.members.items() if now - heartbeat > self._expiry]
            for client_id in late:
                self.leave(group, client_id)

    def members(self, group: str) -> list[str]:
        """Client ids in the order of joining; [] for an unknown group."""
        found = self._groups.get(group)
        return [] if found is None else list(found.members)

    def count_members(self) -> dict[str, int]:
        """Group -> how many members it has."""
        return {group: len(found.members) for group, found in self._groups.items()}

    def is_member(self, client_id: str) -> bool:
        """True if the client is in some group."""
        return client_id in self._clients

    def subscription(self, group: str, topic: str) -> tuple[int, Any] | None:
        """(version, subscription) as last heard; None where the group or the topic is unknown."""
        found = self._groups.get(group)
        return None if found is None else found.subscriptions.get(topic)

    def wants(self, group: str, topic: str) -> bool:
        """Whether the group has a topic's offsets still: it subscribes to the topic, or to nothing at all."""
        found = self._groups.get(group)
        return found is None or not found.subscriptions or topic in found.subscriptions

    def __contains__(self, group: str) -> bool:
        return group in self._groups

    def __len__(self) -> int:
        return len(self._groups)

    def _check(self) -> None:
        """Raise AssertionError unless the invariants hold."""
        counted: dict[str, int] = {}
        for group, found in self._groups.items():
            assert found.members, group
            for client_id in found.members:
                counted[client_id] = counted.get(client_id, 0) + 1
        assert counted == self._clients
