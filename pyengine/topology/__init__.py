"""What runs: where messages come from, the destinations, their policies and their consumers; read from TOML.

A broker's part of it is read from ``activemq.xml`` too.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

# The module that has a name; the rest lies in ``model``. A broker imports policies, and needs none of the readers.
_MODULES = {"BrokerConfiguration": "broker", "NotModelled": "broker", "Policy": "policy", "PolicyMap": "policy"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES.get(name, 'model')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
