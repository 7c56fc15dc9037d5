"""The Java exceptions that ActiveMQ throws in place of this package's errors, and the other way round."""

from __future__ import annotations

import re

from pyengine._engine.wire.data_structure import JavaThrowable
from pyengine.errors import (
    AuthenticationError,
    InvalidClientIDError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    PyengineError,
    TransactionRolledBackError,
)

CONVERT = "convert_string_expressions:"
SECURITY = "java.lang.SecurityException"
THROWABLE = "java.lang.Throwable"
_TOKEN = re.compile(r"[A-Za-z_$][\w$]*|\d[\w.]*|'(?:[^']|'')*'|<>|<=|>=|.", re.DOTALL)


class MissingDestinationError(InvalidDestinationError):
    """A temporary destination that has gone (DestinationDoesNotExistException)."""


def java_error(error: Exception) -> tuple[str, str, str]:
    """The class and the message of the exception that ActiveMQ throws in place of ours, and its cause or ""."""
    text = error._words() if isinstance(error, PyengineError) else str(error)
    if isinstance(error, InvalidSelectorError):
        ahead = len(CONVERT) if error.text.startswith(CONVERT) else 0
        selector, position = error.text[ahead:], error.position - ahead
        line = selector.count("\n", 0, position) + 1
        column = position - selector.rfind("\n", 0, position)
        found = _TOKEN.match(selector, position)
        problem = f"Parse error at line {line}, column {column}.  Encountered: {found[0] if found else '<EOF>'}"
        return "javax.jms.InvalidSelectorException", selector, f"org.apache.activemq.selector.ParseException: {problem}"
    for kind, name in (
        (MissingDestinationError, "org.apache.activemq.DestinationDoesNotExistException"),
        (InvalidDestinationError, "javax.jms.InvalidDestinationException"),
        (InvalidClientIDError, "javax.jms.InvalidClientIDException"),
        (AuthenticationError, SECURITY),
        (TransactionRolledBackError, "javax.jms.TransactionRolledBackException"),
    ):
        if isinstance(error, kind):
            return name, text, ""
    return "javax.jms.JMSException", text, ""


def error_of(exception: JavaThrowable | None) -> PyengineError:
    """The error of this package that a broker's exception is: JMSError for a class that has none of its own."""
    if exception is None:
        return JMSError("the broker answers with an error that it does not name")
    name, text = (exception.class_name or "").rpartition(".")[2], exception.message or exception.class_name or ""
    if name == "InvalidSelectorException":
        return InvalidSelectorError(text, 0, "the broker refuses it")
    if name in ("InvalidDestinationException", "DestinationDoesNotExistException"):
        return InvalidDestinationError(text)
    if name == "InvalidClientIDException":
        return InvalidClientIDError(text)
    if name == "TransactionRolledBackException":
        return TransactionRolledBackError(text)
    if name in ("SecurityException", "JMSSecurityException"):
        return AuthenticationError(text)
    return JMSError(text)


def cause_of(text: str) -> JavaThrowable | None:
    """The exception that a poison acknowledgement carries for a cause; None for an empty one."""
    return JavaThrowable(THROWABLE, text.removeprefix(f"{THROWABLE}: ")) if text else None
