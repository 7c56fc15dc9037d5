"""``activemq.xml`` to a BrokerConfiguration (spec activemq 2.6, 2.13, 3.2-3.7, 4.3-4.5).

Elements and attributes are those of ActiveMQ's schema; a Spring bean of the same class is the same thing. What the
schema knows and pyengine does not do is listed; what the schema does not know is an error, as it is for the broker.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyengine.topology.activemq_xml.broker_element import DEFAULT_DATA_DIRECTORY, broker_names, read_broker
from pyengine.topology.activemq_xml.element_reader import ElementReader
from pyengine.topology.spring import SpringContext

__all__ = ["DEFAULT_DATA_DIRECTORY", "load", "names"]


def load(
    path: Path,
    properties: Mapping[str, str],
    environment: Mapping[str, str] | None,
    broker: str,
    data: bytes | str | None = None,
) -> dict[str, Any]:
    """The arguments of the BrokerConfiguration that a file describes; see its ``load``.

    data: the file's content, if it was read already.
    """
    context = SpringContext(path, properties, os.environ if environment is None else environment, data)
    return read_broker(ElementReader(context), broker)


def names(
    path: Path, properties: Mapping[str, str], environment: Mapping[str, str] | None, data: bytes | str | None = None
) -> list[str]:
    """The names of the brokers in a file, in its order. Raises InvalidTopologyError."""
    context = SpringContext(path, properties, os.environ if environment is None else environment, data)
    return broker_names(ElementReader(context))
