"""Signed requests: RocketMQ's access keys (AclClientRPCHook)."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import field

from pyengine._engine.wire.remoting import RemotingCommand
from pyengine.attributes import frozen, named_arguments
from pyengine.dataclass import dataclass
from pyengine.errors import ConfigurationError


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class SessionCredentials:
    """The identity of a client. access_key, secret_key: as the broker's administrator gave them. security_token: of
    temporary credentials, None without one.
    """

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)

    def sign(self, command: RemotingCommand) -> None:
        """Add the keys and the signature to a request's extFields: HMAC-SHA1 of all their values, in order of the
        names, and of the body.
        """
        fields = {name: text for name, text in (command.ext_fields or {}).items() if name != "Signature"}
        fields["AccessKey"] = self.access_key
        if self.security_token is not None:
            fields["SecurityToken"] = self.security_token
        fields["Signature"] = self._signature(fields, command.body)
        command.ext_fields = fields

    def has_signed(self, command: RemotingCommand) -> bool:
        """Whether a request has the signature of these keys."""
        fields = dict(command.ext_fields or {})
        signature = fields.pop("Signature", "")
        import hmac  # it loads OpenSSL

        return hmac.compare_digest(signature.encode(), self._signature(fields, command.body).encode())

    def _signature(self, fields: dict[str, str], body: bytes | None) -> str:
        signed = "".join(fields[name] for name in sorted(fields, key=_utf16)).encode() + (body or b"")
        import hmac

        return base64.b64encode(hmac.digest(self.secret_key.encode(), signed, "sha1")).decode()


def _utf16(name: str) -> bytes:
    """What Java compares strings by."""
    return name.encode("utf-16-be", "surrogatepass")


def check_accounts(accounts: object) -> tuple[SessionCredentials, ...]:
    """The accounts of a listening Broker. Raises ConfigurationError for anything but SessionCredentials."""
    listed = tuple(accounts) if isinstance(accounts, Iterable) and not isinstance(accounts, str) else (accounts,)
    for each in listed:
        if not isinstance(each, SessionCredentials):
            hint = "give [rocketmq.SessionCredentials(access_key, secret_key)]"
            raise ConfigurationError("accounts", repr(each), "SessionCredentials are needed", hint)
    return listed
