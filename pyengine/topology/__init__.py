"""What runs: where messages come from, the destinations, their policies and their consumers; read from TOML."""

from pyengine.topology.model import (
    JAVA_TYPES,
    Consumer,
    DestinationEntry,
    Source,
    Steps,
    TimeColumn,
    Topology,
)
from pyengine.topology.policy import Policy, PolicyMap

__all__ = [
    "JAVA_TYPES",
    "Consumer",
    "DestinationEntry",
    "Policy",
    "PolicyMap",
    "Source",
    "Steps",
    "TimeColumn",
    "Topology",
]
