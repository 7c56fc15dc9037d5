"""ActiveMQ's and RocketMQ's dispatch rules: which consumer gets which message, when, and why the rest waits."""

from pyengine.errors import (
    IllegalStateError,
    InvalidMessageError,
    InvalidSelectorError,
    InvalidTopologyError,
    MissingColumnError,
    MissingExtraError,
    PyengineError,
    SelectorEvaluationError,
    UnsupportedColumnError,
)

__all__ = [
    "IllegalStateError",
    "InvalidMessageError",
    "InvalidSelectorError",
    "InvalidTopologyError",
    "MissingColumnError",
    "MissingExtraError",
    "PyengineError",
    "SelectorEvaluationError",
    "UnsupportedColumnError",
]
