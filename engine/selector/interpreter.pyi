from typing import Any

from pyengine._engine.selector.program import Program

def match_and_tree(program: Program, values: list[Any]) -> tuple[int, int]: ...
