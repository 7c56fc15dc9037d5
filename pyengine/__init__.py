"""ActiveMQ's and RocketMQ's dispatch rules: which consumer gets which message, when, and why the rest waits."""

from pyengine._engine.arrow import Columns
from pyengine._engine.message import Message
from pyengine._engine.packed import PackedMessages
from pyengine._engine.selector import Selector
from pyengine._engine.subscriptions import Subscriptions
from pyengine._engine.value import Char
from pyengine.errors import (
    IllegalStateError,
    InvalidMessageError,
    InvalidSelectorError,
    InvalidSourceError,
    InvalidTopologyError,
    MissingColumnError,
    MissingExtraError,
    MissingJavaError,
    OutputError,
    OutputExistsError,
    PyengineError,
    SelectorEvaluationError,
    UnsupportedColumnError,
)

__all__ = [
    "Char",
    "Columns",
    "IllegalStateError",
    "InvalidMessageError",
    "InvalidSelectorError",
    "InvalidSourceError",
    "InvalidTopologyError",
    "Message",
    "MissingColumnError",
    "MissingExtraError",
    "MissingJavaError",
    "OutputError",
    "OutputExistsError",
    "PackedMessages",
    "PyengineError",
    "Selector",
    "SelectorEvaluationError",
    "Subscriptions",
    "UnsupportedColumnError",
]
