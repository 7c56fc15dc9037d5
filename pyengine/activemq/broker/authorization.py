"""What the users of a broker's connections may do (AuthorizationBroker)."""

from __future__ import annotations

from pyengine.activemq.transport.commands import ConnectionInfo
from pyengine.dataclass import dataclass
from pyengine.destinations import Destination, is_advisory
from pyengine.errors import AuthenticationError
from pyengine.topology.authorization import AuthorizationPlugin, Operation

ANONYMOUS = "anonymous"  # the user without a name, and its group
WORDS: dict[Operation, str] = {"read": "read from", "write": "write to", "admin": "create"}


@dataclass(slots=True)
class _User:
    name: str | None
    groups: tuple[str, ...]
    may_write: set[Destination]


class Authorization:
    """The users of the connections that came over a network; programs in the broker's own process may do everything."""

    def __init__(self, plugin: AuthorizationPlugin) -> None:
        self._plugin = plugin
        self._users: dict[str, _User] = {}

    def connected(self, info: ConnectionInfo) -> None:
        """A connection is there."""
        if info.groups is not None:
            name = info.user_name if info.user_name is not None or ANONYMOUS not in info.groups else ANONYMOUS
            self._users[info.connection_id] = _User(name, info.groups, set())

    def disconnected(self, connection_id: str) -> None:
        """It is gone."""
        self._users.pop(connection_id, None)

    def check(self, connection_id: str, destination: Destination, operation: Operation) -> None:
        """Raises AuthenticationError for a user without that right."""
        user = self._users.get(connection_id)
        if user is None:
            return
        if user.name is None:
            raise AuthenticationError("User is not authenticated.")
        if not self._plugin.allows(user.groups, destination, operation):
            shown = destination.name if "," in destination.name else str(destination)
            raise AuthenticationError(f"User {user.name} is not authorized to {WORDS[operation]}: {shown}")

    def check_send(self, connection_id: str, destination: Destination) -> None:
        """The same of a message; a destination is looked up once a connection."""
        user = self._users.get(connection_id)
        if user is not None and destination not in user.may_write:
            self.check(connection_id, destination, "write")
            user.may_write.add(destination)

    def check_creation(self, connection_id: str | None, destination: Destination) -> None:
        """The same of a destination that a command of a connection makes. Topics of advisories are the broker's own."""
        if connection_id is not None and not is_advisory(destination):
            self.check(connection_id, destination, "admin")
