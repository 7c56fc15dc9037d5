"""The settings of one named broker of an embedded cluster."""

from __future__ import annotations

from pyengine._engine.rocketmq.broker.delay_levels import DelayLevels
from pyengine.attributes import frozen
from pyengine.dataclass import dataclass


@frozen
@dataclass(frozen=True, slots=True)
class NodeOptions:
    """How a broker is set up; see Broker. address: ``ip:port``, which message ids are made of."""

    address: str
    levels: DelayLevels
    seed: int
    flush_disk_type: str
    segment_bytes: int
    max_message_size: int
