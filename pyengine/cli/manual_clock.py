"""What ``--manual-clock`` understands: a line of standard input moves the time or asks, and one line answers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyengine.clock import ManualClock
from pyengine.errors import PyengineError

Question = Callable[[str], str]
NO_QUESTIONS: Mapping[str, Question] = {}


def answer(clock: ManualClock, line: str, questions: Mapping[str, Question] = NO_QUESTIONS) -> str:
    """``advance MS`` is answered ``now MS`` when all that fell due is done, ``now`` with the same, a command of
    ``questions`` with what its function answers to the rest of the line, anything else ``error`` and what is wrong."""
    command, _, argument = line.strip().partition(" ")
    argument = argument.strip()
    try:
        if command in questions:
            return questions[command](argument)
        if command == "advance":
            if not (argument.isascii() and argument.isdecimal()):
                return f"error advance {argument}: say how many ms, a whole number"
            clock.advance(int(argument))
        elif command != "now":
            return f"error {command}: say {', '.join(['advance MS', 'now', *questions])}"
    except (PyengineError, ValueError) as error:
        return f"error {error}"
    return f"now {clock.now()}"
