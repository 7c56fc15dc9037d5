"""Texts of others where people read them: what would command a terminal, or turn the text around it, is shown."""

from __future__ import annotations

import re

# Control characters but for tabs and ends of lines, and those that turn the text around them.
COMMANDS = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"


LINES = "[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"  # and what ends a line


def visible(text: str, commands: str = COMMANDS) -> str:
    r"""The text with each character that commands as its number: ``\u202e``. commands: a pattern of these."""
    return re.sub(commands, lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
