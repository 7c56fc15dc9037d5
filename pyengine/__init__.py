"""ActiveMQ's and RocketMQ's dispatch rules: which consumer gets which message, when, and why the rest waits."""

import sys

try:
    from pyengine._engine.columns.batch import Columns
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("pyengine._engine."):
        raise
    raise ImportError(
        f"pyengine's core is not compiled for this Python in {__path__[0]}, so this is a checkout, not an installed "
        "pyengine: run make build there and use its .venv/bin/python; or, where pyengine is installed with pip, start "
        "Python in another folder",
        name=error.name,
    ) from None
from pyengine._engine.index.subscriptions import Subscriptions
from pyengine._engine.java.value import Char
from pyengine._engine.matching.selector import Selector
from pyengine._engine.message.body import MapBody, ObjectBody, StreamBody
from pyengine._engine.message.message import Message
from pyengine._engine.message.packed_messages import PackedMessages
from pyengine._engine.moved import register
from pyengine.errors import (
    AllocationError,
    AuthenticationError,
    ConfigurationError,
    IllegalStateError,
    InvalidClientIDError,
    InvalidDestinationError,
    InvalidMessageError,
    InvalidSelectorError,
    InvalidSourceError,
    InvalidTopologyError,
    JMSError,
    MessageEOFError,
    MissingColumnError,
    MissingExtraError,
    MissingJavaError,
    MQBrokerError,
    MQClientError,
    NullArgumentError,
    OffsetNotFoundError,
    OutputError,
    OutputExistsError,
    ProtocolError,
    PyengineError,
    RemotingError,
    RemotingTimeoutError,
    SelectorEvaluationError,
    SnapshotError,
    StoreError,
    TransactionRolledBackError,
    UnknownNameError,
    UnreadableBatchError,
    UnsupportedColumnError,
)

# A free-threaded Python has turned the GIL on when it imported the core, unless its user forbade that.
if not getattr(sys, "_is_gil_enabled", lambda: True)():
    raise ImportError(
        "pyengine's core needs the GIL, and this Python keeps it off: start it without PYTHON_GIL=0 and -X gil=0, and "
        "the import turns the GIL on for this process",
        name="pyengine",
    )
register()

__version__ = "0.1.0"

__all__ = [
    "AllocationError",
    "AuthenticationError",
    "Char",
    "Columns",
    "ConfigurationError",
    "IllegalStateError",
    "InvalidClientIDError",
    "InvalidDestinationError",
    "InvalidMessageError",
    "InvalidSelectorError",
    "InvalidSourceError",
    "InvalidTopologyError",
    "JMSError",
    "MQBrokerError",
    "MQClientError",
    "MapBody",
    "Message",
    "MessageEOFError",
    "MissingColumnError",
    "MissingExtraError",
    "MissingJavaError",
    "NullArgumentError",
    "ObjectBody",
    "OffsetNotFoundError",
    "OutputError",
    "OutputExistsError",
    "PackedMessages",
    "ProtocolError",
    "PyengineError",
    "RemotingError",
    "RemotingTimeoutError",
    "Selector",
    "SelectorEvaluationError",
    "SnapshotError",
    "StoreError",
    "StreamBody",
    "Subscriptions",
    "TransactionRolledBackError",
    "UnknownNameError",
    "UnreadableBatchError",
    "UnsupportedColumnError",
]
