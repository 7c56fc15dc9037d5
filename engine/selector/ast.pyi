from enum import IntFlag
from typing import NoReturn

from typing_extensions import disjoint_base

class TermKind(IntFlag):
    LITERAL = 0
    PROPERTY = 1
    AND = 2
    OR = 3
    NOT = 4
    EQUAL = 5
    NOT_EQUAL = 6
    LESS = 7
    LESS_EQUAL = 8
    GREATER = 9
    GREATER_EQUAL = 10
    IS_NULL = 11
    IS_NOT_NULL = 12
    BETWEEN = 13
    NOT_BETWEEN = 14
    IN = 15
    NOT_IN = 16
    LIKE = 17
    NOT_LIKE = 18
    ADD = 19
    SUBTRACT = 20
    MULTIPLY = 21
    DIVIDE = 22
    REMAINDER = 23
    NEGATE = 24
    CAST = 25
    FUNCTION = 26
    XPATH = 27
    XQUERY = 28
    CONTAINS = 29
    NOT_CONTAINS = 30
    STARTS_WITH = 31
    NOT_STARTS_WITH = 32
    ENDS_WITH = 33
    NOT_ENDS_WITH = 34

@disjoint_base
class Term:
    kind: int
    position: int
    height: int
    java_type: int
    value: bool | int | float | str | tuple[str, ...] | tuple[str, str | None] | None
    terms: tuple[Term, ...]
    def __init__(self, *args: object, **kwargs: object) -> None: ...
    def __reduce__(self) -> NoReturn: ...

@disjoint_base
class Tree:
    text: str
    dialect: str
    convert: bool
    root: Term
    end: int
    def __init__(self, *args: object, **kwargs: object) -> None: ...
