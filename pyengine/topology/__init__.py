"""What runs: where messages come from, the destinations, their policies and their consumers; read from TOML.

A broker's part of it is read from ``activemq.xml`` too.
"""

from pyengine.topology.broker import BrokerConfiguration, NotModelled
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
    "BrokerConfiguration",
    "Consumer",
    "DestinationEntry",
    "NotModelled",
    "Policy",
    "PolicyMap",
    "Source",
    "Steps",
    "TimeColumn",
    "Topology",
]
