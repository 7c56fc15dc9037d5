"""The users that may connect over a network, and their groups (SimpleAuthenticationPlugin)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyengine.activemq.broker.authorization import ANONYMOUS
from pyengine.activemq.transport.connectors import ConnectorURI, check_open
from pyengine.errors import AuthenticationError


class Authentication:
    """The users of one broker.

    users: names and passwords; None: every client may come in, from this machine alone without allow_anonymous.
    groups: user -> groups. allow_anonymous: clients without a name may come in too.
    """

    def __init__(
        self, users: Mapping[str, str] | None, groups: Mapping[str, Iterable[str]], *, allow_anonymous: bool
    ) -> None:
        self._users = None if users is None else dict(users)
        self._groups = {user: tuple(each) for user, each in groups.items()}
        self._allow_anonymous = allow_anonymous

    def check_open(self, uris: Iterable[ConnectorURI]) -> None:
        """Raise ConfigurationError for an address that other machines reach while every client may come in."""
        check_open(uris, users=self._users is not None, allow_anonymous=self._allow_anonymous)

    def groups_of(self, user: str | None, password: str | None) -> tuple[str, ...]:
        """The groups of a client's user. Raises AuthenticationError for a user that is not known or has another
        password, and for one without a name where there are users and anonymous ones are not allowed."""
        if self._users is None:
            return ()
        if user is None and self._allow_anonymous:
            return (ANONYMOUS,)
        from hmac import compare_digest  # it loads OpenSSL

        known = self._users.get(user or "")
        if known is None or not compare_digest(known.encode(), (password or "").encode()):
            name = "null" if user is None else user
            raise AuthenticationError(f"User name [{name}] or password is invalid.")
        return self._groups.get(user or "", ())
