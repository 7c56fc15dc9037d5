"""The fixtures of pyengine_pytest under their first name, for ``-p pyengine.activemq.pytest_plugin``."""

from pyengine_pytest import (
    activemq_broker,
    activemq_clock,
    activemq_connection,
    activemq_make_broker,
    activemq_stomp,
    activemq_stomp_memory,
)

__all__ = [
    "activemq_broker",
    "activemq_clock",
    "activemq_connection",
    "activemq_make_broker",
    "activemq_stomp",
    "activemq_stomp_memory",
]
