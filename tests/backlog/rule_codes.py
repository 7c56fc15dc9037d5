"""Which codes the rules and traps can give, read from their sources: no rule stays without its two cases."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import pyengine.backlog

ROOMS = Path(pyengine.backlog.__file__).parent


def codes_of(room: str) -> set[str]:
    """Codes that a module gives, as ``diagnosis/rules/offsets.py``: first arguments of calls that name a severity."""
    found: set[str] = set()
    for node in ast.walk(ast.parse((ROOMS / room).read_text("utf-8"))):
        if isinstance(node, ast.Call) and len(node.args) > 1 and "Severity" in ast.dump(node.args[1]):
            found |= {
                each.value
                for each in ast.walk(node.args[0])
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            }
    return found


def without_a_case(rooms: Iterable[str], cases: Iterable[str]) -> set[str]:
    """Codes that no case is for. A code that two modules give needs one for each: ``module.code``."""
    given = {Path(room).stem: codes_of(room) for room in rooms}
    assert all(given.values())
    twice = {code for one, codes in given.items() for other, more in given.items() if one != other
             for code in codes & more}  # fmt: skip
    wanted = {f"{room}.{code}" if code in twice else code for room, codes in given.items() for code in codes}
    return wanted - set(cases)
