"""ActiveMQ's and RocketMQ's dispatch rules: which consumer gets which message, when, and why the rest waits."""

try:
    from pyengine._engine.columns.arrow import Columns
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
