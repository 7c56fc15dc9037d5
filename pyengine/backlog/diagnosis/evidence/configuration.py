"""A broker's activemq.xml: its policies explain what is seen of its destinations."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyengine.backlog.diagnosis.evidence.model import Evidence, Source
from pyengine.backlog.diagnosis.evidence.needs import JOLOKIA_TOO
from pyengine.topology import BrokerConfiguration


def recognises(text: str) -> bool:
    """True for XML with a broker element, under any prefix."""
    return text.lstrip().startswith("<") and re.search(r"<(?:[\w.-]+:)?broker[\s/>]", text) is not None


def read(text: str, file: str, modified: int | None, properties: Mapping[str, str] | None = None) -> Evidence:
    """The configuration, which speaks of no moment. properties: values of its ``${placeholders}``.

    What of the file pyengine does not model is of no matter here; `pyengine policies` lists it.

    Raises InvalidTopologyError.
    """
    broker = BrokerConfiguration.from_text(text, file, properties=properties)
    return Evidence(brokers=[broker], sources=[Source(file, "activemq.xml", needs=JOLOKIA_TOO)])
