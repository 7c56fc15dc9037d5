"""Transport connectors: the addresses on which a broker listens, what they allow, and who may come in."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from urllib.parse import unquote

from pyengine.activemq.options import whole_number
from pyengine.activemq.transport.tls_options import TlsOptions, refuse_java
from pyengine.attributes import frozen
from pyengine.dataclass import dataclass
from pyengine.destinations import query_options
from pyengine.errors import ConfigurationError, did_you_mean

STOMP_SCHEMES, OPENWIRE_SCHEMES = ("stomp", "stomp+nio", "stomp+ssl", "stomp+nio+ssl"), ("tcp", "nio", "ssl", "nio+ssl")
TLS_SCHEMES = ("stomp+ssl", "stomp+nio+ssl", "ssl", "nio+ssl")
STOMP_PORT, OPENWIRE_PORT, SSL_PORT = 61613, 61616, 61617
WHERE = "transport connector "  # what the errors begin with
OPENWIRE_FRAME_SIZE = 100 * 1024 * 1024  # the real connector has no limit; its activemq.xml has this one


@frozen
@dataclass(frozen=True, slots=True)
class ConnectorURI:
    """An address to listen on, taken apart.

    uri: as it was given. host: without brackets, ``127.0.0.1`` if it names none. port: 0 is any free one.
    maximum_connections: more are closed as they come. max_frame_size, max_data_length: bytes of a frame, and of its
    body. connect_attempt_timeout: ms within which a connection completes its handshake (STOMP: its CONNECT frame,
    OpenWire: its ConnectionInfo), 0 for ever. so_timeout: ms without a byte after which a connection is closed, 0
    never. default_heart_beat: of clients that ask for none. hb_grace_period_multiplier: how many of a client's
    heart-beat intervals may pass. maximum_pending_size: bytes that wait for a client that takes nothing, before it is
    closed. so_write_timeout: ms in which a client takes nothing of what waits for it, before it is closed; 0 for ever.

    Of OpenWire: max_inactivity_duration: ms of silence after which a client is closed, 0 never; its monitor begins
    after max_inactivity_duration_initial_delay. cache_enabled, cache_size, tight_encoding_enabled,
    stack_trace_enabled: what a client may have.

    tls: of the schemes with TLS.
    """

    uri: str
    scheme: str
    host: str
    port: int
    maximum_connections: int = 10_000
    max_frame_size: int = (1 << 63) - 1
    max_data_length: int = 100 * 1024 * 1024
    connect_attempt_timeout: int = 30_000
    so_timeout: int = 0
    default_heart_beat: str = "0,0"
    hb_grace_period_multiplier: float = 1.0
    maximum_pending_size: int = 100 * 1024 * 1024
    so_write_timeout: int = 30_000
    max_inactivity_duration: int = 30_000
    max_inactivity_duration_initial_delay: int = 10_000
    cache_enabled: bool = True
    cache_size: int = 1024
    tight_encoding_enabled: bool = True
    stack_trace_enabled: bool = True
    tls: TlsOptions | None = None

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    def url(self, port: int) -> str:
        """What a client connects to."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{port}"


# Options of a connector's URI that have an effect here -> field, its bits; 0: a string, 1: a number with a fraction, 2:
# a truth.
_SHARED: dict[str, tuple[str, int]] = {
    "maximumConnections": ("maximum_connections", 32),
    "wireFormat.maxFrameSize": ("max_frame_size", 64),
    "transport.connectAttemptTimeout": ("connect_attempt_timeout", 64),
    "transport.soTimeout": ("so_timeout", 32),
    "transport.soWriteTimeout": ("so_write_timeout", 64),
    "transport.maximumPendingSize": ("maximum_pending_size", 64),
}
_STOMP: dict[str, tuple[str, int]] = {
    **_SHARED,
    "wireFormat.maxDataLength": ("max_data_length", 32),
    "transport.defaultHeartBeat": ("default_heart_beat", 0),
    "transport.hbGracePeriodMultiplier": ("hb_grace_period_multiplier", 1),
}
_TLS: dict[str, tuple[str, int]] = {
    "cert": ("cert", 0),
    "key": ("key", 0),
    "keyPassword": ("key_password", 0),
    "trusted": ("trusted", 0),
    "transport.needClientAuth": ("need_client_auth", 2),
    "needClientAuth": ("need_client_auth", 2),
    "transport.wantClientAuth": ("want_client_auth", 2),
    "wantClientAuth": ("want_client_auth", 2),
    "transport.enabledProtocols": ("enabled_protocols", 0),
    "enabledProtocols": ("enabled_protocols", 0),
}
_OPENWIRE: dict[str, tuple[str, int]] = {
    **_SHARED,
    "wireFormat.maxInactivityDuration": ("max_inactivity_duration", 64),
    "wireFormat.maxInactivityDurationInitalDelay": ("max_inactivity_duration_initial_delay", 64),
    "wireFormat.cacheEnabled": ("cache_enabled", 2),
    "wireFormat.cacheSize": ("cache_size", 16),
    "wireFormat.tightEncodingEnabled": ("tight_encoding_enabled", 2),
    "wireFormat.stackTraceEnabled": ("stack_trace_enabled", 2),
}
# Those of the real connector that change nothing that a client of this one can see.
_WITHOUT_EFFECT = frozenset(
    {
        "backlog", "daemon", "name", "soLinger", "socketBufferSize", "transport.closeAsync", "transport.keepAlive",
        "transport.soLinger", "transport.socketBufferSize", "transport.tcpNoDelay", "transport.threadName",
        "transport.trace", "transport.useInactivityMonitor", "useQueueForAccept", "trace",
        "wireFormat.tcpNoDelayEnabled",
    }
)  # fmt: skip


def is_loopback(host: str) -> bool:
    """Whether an address, or ``localhost``, is reached from this machine alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def connector_uri(text: str) -> ConnectorURI:
    """Read ``tcp://host:port?option=value`` or ``stomp://...``.

    Raises ConfigurationError for another scheme, an option that no connector has, and values that it cannot take.
    """
    found = re.fullmatch(r"([A-Za-z][\w+.-]*)://(\[[^\]]*\]|[^\[\]:/?#]*)(?::(\d{1,5}))?/?(?:\?([^#]*))?", text)
    if found is None:
        hint = "write tcp://127.0.0.1:61616, stomp://127.0.0.1:61613, or :0 for any free port"
        raise ConfigurationError("transport connector", text, "not an address to listen on", hint)
    scheme = found[1].lower()
    openwire = scheme in OPENWIRE_SCHEMES
    if not openwire and scheme not in STOMP_SCHEMES:
        problem = f"no connector here speaks {scheme}"
        spoken = ", ".join((*OPENWIRE_SCHEMES, *STOMP_SCHEMES))
        raise ConfigurationError("transport connector", text, problem, f"there are {spoken}")
    tls: dict[str, object] | None = {} if scheme in TLS_SCHEMES else None
    default_port = STOMP_PORT if not openwire else OPENWIRE_PORT if tls is None else SSL_PORT
    host, port = found[2].strip("[]") or "127.0.0.1", default_port if found[3] is None else int(found[3])
    if port > 65535:
        raise ConfigurationError("transport connector", text, "a port is 65535 at most")
    fields: dict[str, object] = {"max_frame_size": OPENWIRE_FRAME_SIZE} if openwire else {}
    options = _OPENWIRE if openwire else _STOMP
    known = options if tls is None else {**options, **_TLS}
    for name, text_of_it in query_options(unquote(found[4] or "")):
        value = text_of_it or ""
        if name in _WITHOUT_EFFECT:
            continue
        refuse_java(WHERE, name, value)
        if name not in known:
            raise ConfigurationError(f"{WHERE}{name}", value, "no such option", did_you_mean(name, known))
        field, kind = known[name]
        target = fields if name in options or tls is None else tls
        target[field] = _value(name, value, kind)
    if tls is not None:
        if not tls.get("cert"):
            hint = "add ?cert=FILE.pem&key=FILE.pem"
            raise ConfigurationError(WHERE.strip(), text, "TLS needs a certificate", hint)
        fields["tls"] = TlsOptions(**tls)  # type: ignore[arg-type]
    return ConnectorURI(text, scheme, host, port, **fields)  # type: ignore[arg-type]


def _value(name: str, text: str, kind: int) -> str | int | float:
    if kind == 0:
        return text
    if kind == 2:
        if text.lower() not in ("true", "false"):
            raise ConfigurationError(name, text, "not true or false")
        return text.lower() == "true"
    if kind == 1:
        if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text):
            raise ConfigurationError(name, text, "not a number")
        return float(text)
    number = whole_number(name, text, kind)
    if number < 0:
        raise ConfigurationError(name, number, "must not be negative")
    return number


def check_open(uris: Iterable[ConnectorURI], *, users: bool, allow_anonymous: bool) -> None:
    """Raise ConfigurationError for an address that other machines reach while any client may connect."""
    for uri in uris:
        if not (uri.loopback or users or allow_anonymous):
            raise ConfigurationError(
                "transport connector",
                uri.uri,
                "other machines reach this address, and the broker has no users",
                "give users={name: password}, or say allow_anonymous=True; 127.0.0.1 is reached from this machine only",
            )
