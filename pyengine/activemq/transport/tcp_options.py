"""The options of a ``tcp://`` broker URL: of the socket, the wire format, and ``jms.*`` ones that a network needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from pyengine._engine.wire.data_structure import VERSIONS
from pyengine.activemq.options import ConnectionOptions, UnknownOptions, whole_number
from pyengine.activemq.transport.openwire_format import WireFormat
from pyengine.activemq.transport.tls_options import TlsOptions, refuse_java, tls_context
from pyengine.dataclass import dataclass
from pyengine.errors import ConfigurationError, did_you_mean


@dataclass(frozen=True, slots=True)
class TcpOptions:
    """How a connection is made and kept.

    format: what this end can do. connection_timeout: ms in which the broker's address must answer. so_timeout: ms of
    silence after which reading fails, 0 never. request_timeout: ms in which the broker must answer a command, 0: for
    ever; connect_response_timeout, send_timeout: the same of the connection and of a message. close_timeout: ms that
    closing waits for the broker. watch_advisories: whether the connection knows the temporary destinations of others.
    use_inactivity_monitor: whether silence is looked for. user_name, password: for the broker. client_id_prefix: of the
    client id of a connection that is given none. tls: of ``ssl://``. use_async_send, always_sync_send: see
    ConnectionOptions. dispatch_on_worker: listeners may be called by the thread that dispatches, which then is not the
    one that reads.
    """

    format: WireFormat = field(default_factory=WireFormat)
    connection_timeout: int = 30_000
    so_timeout: int = 0
    keep_alive: bool = False
    tcp_no_delay: bool = True
    connect_response_timeout: int = 0
    request_timeout: int = 0
    send_timeout: int = 0
    close_timeout: int = 15_000
    watch_advisories: bool = True
    use_inactivity_monitor: bool = True
    user_name: str | None = None
    password: str | None = field(default=None, repr=False)
    client_id_prefix: str = "ID:"
    tls: TlsOptions | None = None
    use_async_send: bool = False
    always_sync_send: bool = False
    dispatch_on_worker: bool = False


# Option of the URL -> field of the wire format, or of TcpOptions.
_FORMAT = {
    "version": "version",
    "cacheEnabled": "cache_enabled",
    "cacheSize": "cache_size",
    "tightEncodingEnabled": "tight_encoding_enabled",
    "stackTraceEnabled": "stack_trace_enabled",
    "tcpNoDelayEnabled": "tcp_no_delay_enabled",
    "maxFrameSize": "max_frame_size",
    "maxInactivityDuration": "max_inactivity_duration",
    "maxInactivityDurationInitalDelay": "max_inactivity_duration_initial_delay",
}
_SOCKET = {
    "connectionTimeout": "connection_timeout",
    "soTimeout": "so_timeout",
    "keepAlive": "keep_alive",
    "tcpNoDelay": "tcp_no_delay",
    "useInactivityMonitor": "use_inactivity_monitor",
}
_TLS = {
    "cert": "cert",
    "key": "key",
    "keyPassword": "key_password",
    "trusted": "trusted",
    "verifyHostName": "verify_host_name",
    "enabledProtocols": "enabled_protocols",
}
_JMS = {
    "userName": "user_name",
    "password": "password",
    "clientIDPrefix": "client_id_prefix",
    "watchTopicAdvisories": "watch_advisories",
    "sendTimeout": "send_timeout",
    "requestTimeout": "request_timeout",
    "connectResponseTimeout": "connect_response_timeout",
    "closeTimeout": "close_timeout",
}
# Those of the real client that change nothing that a user of this one sees.
_WITHOUT_EFFECT = frozenset(
    {"trace", "daemon", "soLinger", "socketBufferSize", "ioBufferSize", "threadName", "jmxPort", "useLocalHost",
     "dynamicManagement", "startLogging", "logWriterName", "closeAsync", "backgroundConnect", "sendBufferSize",
     "receiveBufferSize", "reuseAddress", "trafficClass", "OOBInline", "enableSessionCreation"}
)  # fmt: skip
# Options that a network has and this client does not do.
_REFUSED = {
    "jms.useCompression": "bodies are sent as they are, and compressed ones are received",
    "jms.producerWindowSize": "a producer is not held back; leave it out",
    "wireFormat.sizePrefixDisabled": "a frame begins with its size",
}


def tcp_options(
    given: Mapping[str, str],
    jms: Mapping[str, str],
    options: ConnectionOptions,
    unknown: UnknownOptions = UnknownOptions.REFUSE,
    *,
    secure: bool = False,
) -> TcpOptions:
    """Read the options of a URL. given: those without ``jms.``. jms: those with it, by the rest of their names. secure:
    whether the scheme is ``ssl``.

    Raises ConfigurationError for an option that does not exist, or is not done, and for a value that it cannot have.
    """
    names = {
        **{f"wireFormat.{name}": each for name, each in _FORMAT.items()},
        **_SOCKET,
        **(_TLS if secure else {}),
        **{f"jms.{name}": each for name, each in _JMS.items()},
    }
    own = TcpOptions(
        use_async_send=options.use_async_send,
        always_sync_send=options.always_sync_send,
        dispatch_on_worker=not options.always_session_async,
    )
    tls = TlsOptions()
    found: dict[str, dict[str, Any]] = {"wireFormat": {}, "": {}, "tls": {}}
    for name, text in {**given, **{f"jms.{each}": value for each, value in jms.items()}}.items():
        name = name.removeprefix("transport.").removeprefix("socket.")
        if secure:
            refuse_java("", name, text)
        if name in _REFUSED and text.lower() not in ("false", "0"):
            raise ConfigurationError(name, text, "not supported over tcp", _REFUSED[name])
        if name not in names:
            if name.startswith("jms.") or name in _WITHOUT_EFFECT or name in _REFUSED:
                continue
            if unknown is UnknownOptions.REFUSE:
                raise ConfigurationError(name, text, "no such option", did_you_mean(name, names))
            continue
        group = "wireFormat" if name.startswith("wireFormat.") else "tls" if secure and name in _TLS else ""
        like = getattr({"wireFormat": own.format, "tls": tls, "": own}[group], names[name])
        value: Any = text
        if isinstance(like, bool):
            value = text.lower() == "true"
        elif isinstance(like, int):
            value = whole_number(name, text, 64)
            if value < 0:
                raise ConfigurationError(name, text, "must not be negative")
        found[group][names[name]] = value
    version = found["wireFormat"].get("version", VERSIONS[-1])
    if version < VERSIONS[0]:
        problem = f"OpenWire is spoken here from version {VERSIONS[0]} on"
        raise ConfigurationError("wireFormat.version", version, problem)
    found["wireFormat"]["version"] = min(version, VERSIONS[-1])
    cache_size = found["wireFormat"].get("cache_size", 1024)
    if not 128 <= cache_size <= 16383:
        problem = "must be 128 to 16383; with less the broker's codec does not end"
        raise ConfigurationError("wireFormat.cacheSize", cache_size, problem)
    if secure:
        tls = replace(tls, **found["tls"])
        tls_context(tls, "", server=False)  # it is refused here
        found[""]["tls"] = tls
    return replace(own, format=replace(own.format, **found["wireFormat"]), **found[""])
