"""What runs: where messages come from, the destinations, their policies and their consumers; read from TOML."""

from pyengine.topology.model import (
    JAVA_TYPES,
    Consumer,
    DestinationEntry,
    Policy,
    Source,
    Steps,
    TimeColumn,
    Topology,
)

__all__ = [
    "JAVA_TYPES",
    "Consumer",
    "DestinationEntry",
    "Policy",
    "Source",
    "Steps",
    "TimeColumn",
    "Topology",
]
