"""Names and texts of others where people read them: what would command a terminal, turn the text around it or begin a
line of its own, is shown as its number.

They are escaped once, at the output: in an error's text, a log line, a sentence, a page, a command's answer.
"""

from __future__ import annotations

import contextlib
import logging
import re
import traceback
from collections.abc import Iterator, Mapping

# Control characters except tabs and line ends, Unicode's ends of lines, and what turns the text around it.
COMMANDS = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]"
_COMMANDS = re.compile(COMMANDS)
_COMMANDS_AND_ENDS = re.compile(COMMANDS[:-1] + "\n]")


def visible(text: str, commands: str | re.Pattern[str] = _COMMANDS) -> str:
    r"""The text with each character that commands as its number: ``\u202e``. commands: a pattern of these."""
    return re.sub(commands, lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def one_line(text: str) -> str:
    r"""The same for what stands on a line: its ends of lines are shown too, as ``\n``."""
    return visible(text, _COMMANDS_AND_ENDS)


# What RocketMQ's client puts behind its texts, on a line of its own (FAQUrl).
_POINTERS = (
    "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.",
    "\nFor more information, please visit the url, https://rocketmq.apache.org/docs/bestPractice/06FAQ",
)


def one_sentence(text: str) -> str:
    """The same for the text of an error, which may have RocketMQ's own pointer to its FAQ on a second line."""
    pointer = next((each for each in _POINTERS if text.endswith(each)), "")
    return one_line(text.removesuffix(pointer)) + pointer


def visible_json(document: str) -> str:
    """A JSON document with the same characters as JSON writes them; it reads as before."""
    return _COMMANDS.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


class _Shown:
    """An argument of a log line whose text is that of others."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __str__(self) -> str:
        return one_sentence(str(self._value))

    def __repr__(self) -> str:
        return one_line(repr(self._value))


def _said(error: BaseException | None) -> Iterator[str]:
    """What an exception says, and its notes, and so on for those that it came of."""
    visited = set()
    while error is not None and id(error) not in visited:
        visited.add(id(error))
        with contextlib.suppress(Exception):  # the traceback says that its text cannot be made
            yield str(error)
        yield from getattr(error, "__notes__", ())
        error = error.__cause__ or error.__context__


def shown_traceback(error: BaseException) -> str:
    """A traceback in which what its exceptions say stands on their lines and commands nothing."""
    text = "".join(traceback.format_exception(error)).rstrip("\n")
    for said in _said(error):
        shown = one_sentence(said)
        if shown != said:
            text = text.replace(said, shown)
    return visible(text)


class _OneLine(logging.Filter):
    """Lets every record pass, its arguments shown, and its traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(each if isinstance(each, (int, float)) else _Shown(each) for each in record.args)
        elif isinstance(record.args, Mapping):
            record.args = {
                name: each if isinstance(each, (int, float)) else _Shown(each) for name, each in record.args.items()
            }
        if record.exc_info and record.exc_info[1] is not None and not record.exc_text:
            record.exc_text = shown_traceback(record.exc_info[1])  # which formatters take as it is
        return True


def logger(name: str) -> logging.Logger:
    """The logger of this name, in whose lines the arguments are on one line and command nothing."""
    found = logging.getLogger(name)
    if not any(isinstance(each, _OneLine) for each in found.filters):
        found.addFilter(_OneLine())
    return found
