from typing import NoReturn

from typing_extensions import disjoint_base

@disjoint_base
class Lexer:
    text: str
    activemq: bool
    def __init__(self, text: str, activemq: bool, start: int = 0) -> None: ...
    def __reduce__(self) -> NoReturn: ...
