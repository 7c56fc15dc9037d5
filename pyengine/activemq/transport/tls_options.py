"""TLS of connectors and of connections to them: PEM files, the protocols, and what Java has in their place."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from pyengine.dataclass import dataclass
from pyengine.errors import ConfigurationError

if TYPE_CHECKING:
    import ssl

# Names of Java's key stores, which Python cannot read (SslContext, SslBrokerService, ActiveMQSslConnectionFactory).
KEY_STORES = frozenset(
    {"keystore", "keystorepassword", "keystorekeypassword", "keystoretype", "truststore", "truststorepassword",
     "truststoretype"}
)  # fmt: skip
_PEM_OF_KEY_STORES = (
    "give PEM files: cert=own.pem&key=own-key.pem&trusted=others.pem; of a key store (PKCS12; keytool -importkeystore "
    "-deststoretype PKCS12 makes one of JKS) they are made by openssl pkcs12 -in own.p12 -nokeys -out own.pem, and "
    "with -nocerts for the key"
)
_PROTOCOLS = {"TLSv1.2": "TLSv1_2", "TLSv1.3": "TLSv1_3"}  # -> the name in ssl.TLSVersion


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """What one end shows, and which certificates it trusts.

    cert, key: PEM files of its certificate, with the chain, and of its key (in the same file without key);
    key_password: of an encrypted key. trusted: PEM file of the authorities of the other end's certificate, the system's
    without it. enabled_protocols: ``TLSv1.2``, ``TLSv1.3`` or both with a comma; empty: those. need_client_auth,
    want_client_auth: of a broker, whether clients need a certificate, or may show one. verify_host_name: of a client,
    whether the broker's certificate has to be of the host that is connected to.
    """

    cert: str = ""
    key: str = ""
    key_password: str = field(default="", repr=False)
    trusted: str = ""
    enabled_protocols: str = ""
    need_client_auth: bool = False
    want_client_auth: bool = False
    verify_host_name: bool = True


def refuse_java(where: str, name: str, value: str) -> None:
    """Raise ConfigurationError for an option, ``prefix.name``, that only Java's TLS has."""
    inner = name.rpartition(".")[2]
    if inner.lower() in KEY_STORES:
        raise ConfigurationError(f"{where}{name}", value, "Java key stores are not read", _PEM_OF_KEY_STORES)
    if inner == "enabledCipherSuites":
        hint = "OpenSSL chooses the suite; enabledProtocols=TLSv1.3 leaves the oldest ones out"
        raise ConfigurationError(f"{where}{name}", value, "Java's names of cipher suites are not read", hint)


def tls_context(options: TlsOptions, where: str, *, server: bool) -> ssl.SSLContext:
    """The TLS of one end. where: what the errors begin with. Raises ConfigurationError for what cannot be used."""
    import ssl  # it takes time to import, and few have TLS

    purpose = ssl.Purpose.CLIENT_AUTH if server else ssl.Purpose.SERVER_AUTH
    try:
        context = ssl.create_default_context(purpose, cafile=options.trusted or None)
    except (OSError, ssl.SSLError) as error:
        problem = f"the certificates cannot be used: {error}"
        raise ConfigurationError(f"{where}trusted", options.trusted, problem, "give a PEM file") from error
    if options.key and not options.cert:
        raise ConfigurationError(f"{where}key", options.key, "a key without cert", "add cert=FILE.pem")
    if options.cert:
        try:
            context.load_cert_chain(options.cert, options.key or None, options.key_password)
        except (OSError, ssl.SSLError) as error:
            problem = f"the certificate or its key cannot be used: {error}"
            raise ConfigurationError(f"{where}cert", options.cert, problem, "give PEM files") from error
    if server:
        if options.need_client_auth or options.want_client_auth:
            if not options.trusted:
                context.load_default_certs(purpose)
            context.verify_mode = ssl.CERT_REQUIRED if options.need_client_auth else ssl.CERT_OPTIONAL
    else:
        context.check_hostname = options.verify_host_name
    if options.enabled_protocols:
        versions = [_protocol(where, each.strip()) for each in options.enabled_protocols.split(",")]
        context.minimum_version, context.maximum_version = min(versions), max(versions)
    return context


def _protocol(where: str, name: str) -> ssl.TLSVersion:
    import ssl

    if name not in _PROTOCOLS:
        hint = f"there are {' and '.join(_PROTOCOLS)}; older ones are not safe"
        raise ConfigurationError(f"{where}enabledProtocols", name, "this protocol is not spoken here", hint)
    return ssl.TLSVersion[_PROTOCOLS[name]]
