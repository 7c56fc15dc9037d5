"""What both ends of an OpenWire connection agree on before anything else (WireFormatInfo, OpenWireFormat)."""

from __future__ import annotations

from typing import Any

from pyengine._engine.wire.data_structure import VERSIONS, DataStructure
from pyengine._engine.wire.openwire_types import TYPES
from pyengine._engine.wire.primitives import read_primitive_map, write_primitive_map
from pyengine.dataclass import dataclass
from pyengine.errors import ProtocolError

MAGIC = b"ActiveMQ"
PROVIDER_NAME, PROVIDER_VERSION = "ActiveMQ", "5.18.6"
NO_LIMIT = (1 << 63) - 1
HANDSHAKE_SIZE = 64 * 1024  # bytes of a frame before both ends have agreed
KEEP_ALIVE = TYPES["KeepAliveInfo"]()
_WIRE_FORMAT_INFO = TYPES["WireFormatInfo"]


@dataclass(frozen=True, slots=True)
class WireFormat:
    """What one end can do, or what both agreed on.

    version: of OpenWire, 9 to 12. cache_size: structures in each cache. max_frame_size: bytes. max_inactivity_duration:
    ms of silence after which the connection counts as lost, 0: never; looked at first after
    max_inactivity_duration_initial_delay ms. provider_version: of the other end, empty if it says none.
    """

    version: int = VERSIONS[-1]
    cache_enabled: bool = True
    cache_size: int = 1024
    tight_encoding_enabled: bool = True
    stack_trace_enabled: bool = True
    tcp_no_delay_enabled: bool = True
    max_frame_size: int = NO_LIMIT
    max_frame_size_enabled: bool = True
    max_inactivity_duration: int = 30_000
    max_inactivity_duration_initial_delay: int = 10_000
    host: str | None = None
    provider_version: str = PROVIDER_VERSION

    def command(self) -> DataStructure:
        """The command that tells the other end. The order of its properties is that of the real one's map."""
        properties: list[tuple[str, str, Any]] = [
            ("StackTraceEnabled", "boolean", self.stack_trace_enabled),
            ("PlatformDetails", "string", "Python"),
            ("CacheEnabled", "boolean", self.cache_enabled),
            ("TcpNoDelayEnabled", "boolean", self.tcp_no_delay_enabled),
            ("SizePrefixDisabled", "boolean", False),
            ("CacheSize", "int", self.cache_size),
            ("ProviderName", "string", PROVIDER_NAME),
            ("TightEncodingEnabled", "boolean", self.tight_encoding_enabled),
            ("MaxFrameSize", "long", self.max_frame_size),
            ("MaxInactivityDuration", "long", self.max_inactivity_duration),
            ("MaxInactivityDurationInitalDelay", "long", self.max_inactivity_duration_initial_delay),
            ("MaxFrameSizeEnabled", "boolean", self.max_frame_size_enabled),
            ("ProviderVersion", "string", self.provider_version),
        ]
        if self.host is not None:
            properties.insert(3, ("Host", "string", self.host))
        return _WIRE_FORMAT_INFO(
            magic=MAGIC, version=self.version, marshalled_properties=write_primitive_map(properties)
        )

    def agree(self, command: DataStructure) -> WireFormat:
        """What this end and the other one have in common (OpenWireFormat.renegotiateWireFormat).

        Raises ProtocolError if the other end does not speak OpenWire, or only a version that is not spoken here.
        """
        if command.magic != MAGIC:
            raise ProtocolError(f"the other end does not speak OpenWire: it begins with {command.magic!r}")
        version = min(self.version, command.version)
        if version not in VERSIONS:
            raise ProtocolError(
                f"version {command.version} of OpenWire is not spoken here: it is {VERSIONS[0]} to {VERSIONS[-1]}"
            )
        data = command.marshalled_properties
        said = {name: value for name, _, value in (() if data is None else read_primitive_map(data) or ())}

        def number(name: str, default: int) -> int:
            value = said.get(name, default)
            return value if isinstance(value, int) else default

        cache_size = min(self.cache_size, number("CacheSize", 0))
        return WireFormat(
            version=version,
            cache_enabled=self.cache_enabled and said.get("CacheEnabled") is True and cache_size > 0,
            cache_size=cache_size,
            tight_encoding_enabled=self.tight_encoding_enabled and said.get("TightEncodingEnabled") is True,
            stack_trace_enabled=self.stack_trace_enabled and said.get("StackTraceEnabled") is True,
            tcp_no_delay_enabled=self.tcp_no_delay_enabled and said.get("TcpNoDelayEnabled") is True,
            max_frame_size=min(self.max_frame_size, number("MaxFrameSize", NO_LIMIT)),
            max_inactivity_duration=min(self.max_inactivity_duration, number("MaxInactivityDuration", 0)),
            max_inactivity_duration_initial_delay=min(
                self.max_inactivity_duration_initial_delay, number("MaxInactivityDurationInitalDelay", 0)
            ),
            host=said.get("Host"),
            provider_version=str(said.get("ProviderVersion") or ""),
        )

    def settings(self) -> dict[str, Any]:
        """As the reader and the writer of openwire take it."""
        return {
            "version": self.version,
            "tight": self.tight_encoding_enabled,
            "cache": self.cache_enabled,
            "stack_trace": self.stack_trace_enabled,
            "cache_size": self.cache_size,
        }
