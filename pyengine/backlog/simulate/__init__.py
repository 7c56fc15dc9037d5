"""What if: queues and groups played with other settings."""

from pyengine.backlog.simulate.groups import GroupSimulation, GroupVariant, SimulatedClient, simulate_group
from pyengine.backlog.simulate.queues import (
    Playable,
    SimulatedConsumer,
    Simulation,
    Variant,
    Workload,
    compare,
    simulate,
)

__all__ = [
    "GroupSimulation",
    "GroupVariant",
    "Playable",
    "SimulatedClient",
    "SimulatedConsumer",
    "Simulation",
    "Variant",
    "Workload",
    "compare",
    "simulate",
    "simulate_group",
]
