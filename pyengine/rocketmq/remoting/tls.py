"""TLS of both ends' connections, and the contexts of it by the real client's names (TlsHelper, TlsSystemConfig)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pyengine.attributes import meant
from pyengine.errors import ConfigurationError

if TYPE_CHECKING:
    import ssl

HANDSHAKE = 0x16  # the first byte of a client that speaks TLS (TLS_HANDSHAKE_MAGIC_CODE)

CLIENT_NAMES = (
    "tls.client.trustCertPath",
    "tls.client.certPath",
    "tls.client.keyPath",
    "tls.client.keyPassword",
    "tls.client.authServer",
)
# What the real client's file may have beside them: they have no effect here.
OTHER_NAMES = ("tls.enable", "tls.test.mode.enable", "tls.server.", "tls.config.file")


def check_context(context: object, server: bool = False) -> None:
    """Raise ConfigurationError for what is neither None nor an SSLContext of the right side."""
    if context is None:
        return
    import ssl  # it takes time to import, and few have TLS

    wanted = "ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)" if server else "ssl.create_default_context()"
    if not isinstance(context, ssl.SSLContext):
        hint = f"give {wanted}, with your certificates loaded"
        raise ConfigurationError("ssl_context", repr(context), "an ssl.SSLContext is needed", hint)
    if context.protocol == (ssl.PROTOCOL_TLS_CLIENT if server else ssl.PROTOCOL_TLS_SERVER):
        raise ConfigurationError("ssl_context", repr(context), "a context of the other side", f"give {wanted}")


@cache
def _default_context() -> ssl.SSLContext:
    import ssl

    return ssl.create_default_context()


def tls_of(use_tls: bool, context: ssl.SSLContext | None) -> ssl.SSLContext | None:
    """What a client's ``use_tls`` and ``ssl_context`` come to: the system's trust if no context is given."""
    check_context(context)
    return context if context is not None or not use_tls else _default_context()


def client_ssl_context(properties: Mapping[str, str] | str | Path) -> ssl.SSLContext:
    """The TLS of a client, by the real client's names: a mapping, or the path of its ``tls.properties``.

    tls.client.trustCertPath: the certificates that are trusted, PEM; the system's without it. tls.client.certPath,
    tls.client.keyPath, tls.client.keyPassword: the client's own certificate and key, PEM. tls.client.authServer:
    ``false`` trusts every server. It is ``true`` here unless said otherwise, and then the certificate has to be for
    the address that is connected to; in the real client it is ``false``. Names of servers are passed over.

    Raises ConfigurationError for an unknown name, a value that cannot be used, and a file that cannot be read.
    """
    import ssl

    where = "tls.properties" if isinstance(properties, Mapping) else str(properties)
    given = dict(properties) if isinstance(properties, Mapping) else _read(Path(properties))
    for name, value in given.items():
        if name not in CLIENT_NAMES and not name.startswith(OTHER_NAMES):
            near = meant(name, CLIENT_NAMES)
            hint = f"did you mean {near!r}?" if near else f"known: {', '.join(CLIENT_NAMES)}"
            raise ConfigurationError(f"{where}: {name}", repr(value), "unknown", hint)
        if not isinstance(value, str):
            raise ConfigurationError(f"{where}: {name}", repr(value), "a string is needed")
    auth = given.get("tls.client.authServer", "true").lower()
    if auth not in ("true", "false"):
        raise ConfigurationError(f"{where}: tls.client.authServer", repr(auth), "true or false is needed")
    trusted, cert, key = (given.get(f"tls.client.{name}") for name in ("trustCertPath", "certPath", "keyPath"))
    try:
        context = ssl.create_default_context(cafile=trusted)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(f"{where}: tls.client.trustCertPath", repr(trusted), f"{error}") from error
    if auth == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if key is not None and cert is None:
        raise ConfigurationError(f"{where}: tls.client.keyPath", repr(key), "a key without tls.client.certPath")
    if cert is not None:
        try:
            context.load_cert_chain(cert, key, given.get("tls.client.keyPassword", ""))
        except (OSError, ssl.SSLError) as error:
            raise ConfigurationError(f"{where}: tls.client.certPath", repr(cert), f"{error}") from error
    return context


def server_ssl_context(cert: str | Path, key: str | Path, trusted: str | Path | None = None) -> ssl.SSLContext:
    """The TLS of a server. cert, key: PEM files. trusted: certificates of clients, which then need one.

    Raises ConfigurationError for a file that cannot be used.
    """
    import ssl

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(cert, key)
        if trusted is not None:
            context.load_verify_locations(trusted)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as error:
        problem = f"cannot be used: {error}"
        raise ConfigurationError("tls certificate, key", f"{cert}, {key}", problem, "give PEM files") from error
    return context


def _read(path: Path) -> dict[str, str]:
    """A .properties file of simple lines."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError("tls.properties", str(path), f"cannot be read: {error}") from error
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith(("#", "!")):
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise ConfigurationError(f"{path}, line {number}", repr(line), "name=value is needed")
        found[name.strip()] = value.strip()
    return found
