"""The Java exceptions that ActiveMQ throws in place of this package's errors."""

from __future__ import annotations

import re

from pyengine.errors import (
    AuthenticationError,
    InvalidClientIDError,
    InvalidDestinationError,
    InvalidSelectorError,
    PyengineError,
)

CONVERT = "convert_string_expressions:"
SECURITY = "java.lang.SecurityException"
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
    ):
        if isinstance(error, kind):
            return name, text, ""
    return "javax.jms.JMSException", text, ""
