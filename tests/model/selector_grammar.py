"""A slow, obvious parser of both selector dialects: every token rule a regular expression, the grammar in lark.

Independent of the engine: it shares no code with it. ``parse`` returns nested tuples, or None where the broker refuses.
Binary AND and OR only: ``a OR b OR c`` is ("OR", ("OR", a, b), c).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lark import Lark, Token, Tree, UnexpectedInput
from lark.exceptions import UnexpectedToken
from lark.lexer import Lexer

Node = tuple[Any, ...]

EXPONENT = r"[eE][+-]?[0-9]+"
COMMON_WORDS = ["NOT", "AND", "OR", "BETWEEN", "IN", "IS", "TRUE", "FALSE", "NULL"]
WORDS = {
    "activemq": [*COMMON_WORDS, "LIKE", "ESCAPE", "XPATH", "XQUERY"],
    "rocketmq": [*COMMON_WORDS, "CONTAINS", "STARTSWITH", "ENDSWITH"],
}
FLOAT = rf"[0-9]+\.[0-9]*(?:{EXPONENT})?|\.[0-9]+(?:{EXPONENT})?|[0-9]+{EXPONENT}"
NUMBERS = {
    "activemq": {"DECIMAL": r"[1-9][0-9]*[lL]?", "HEX": r"0[xX][0-9a-fA-F]+", "OCTAL": r"0[0-7]*", "FLOAT": FLOAT},
    "rocketmq": {"DECIMAL": r"0|[1-9][0-9]*[lL]?", "FLOAT": FLOAT},
}
SYMBOLS = {"=": "EQ", "<>": "NE", "<": "LT", "<=": "LE", ">": "GT", ">=": "GE", "+": "PLUS", "-": "MINUS"} | {
    "(": "LPAR",
    ")": "RPAR",
    ",": "COMMA",
}
ARITHMETIC = {"*": "STAR", "/": "SLASH", "%": "PERCENT"}
SKIPPED = {
    "BLANK": r"[ \t\n\r\f]",
    "LINE_COMMENT": r"--[^\n\r]*(?:\r\n|\n|\r)",
    "BLOCK_COMMENT": r"/\*(?s:.)*?\*/",
}


def token_rules(dialect: str) -> list[tuple[str, re.Pattern[str]]]:
    rules = [(name, re.compile(pattern)) for name, pattern in SKIPPED.items()]
    rules += [(word, re.compile(word, re.IGNORECASE | re.ASCII)) for word in WORDS[dialect]]
    for name, pattern in NUMBERS[dialect].items():
        # A float's alternatives overlap, and re takes the first that fits, so each is a rule of its own.
        rules += [(name, re.compile(part)) for part in (pattern.split("|") if name != "HEX" else [pattern])]
    rules.append(("STRING", re.compile(r"'(?:''|[^'])*'")))
    rules.append(("ID", re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")))
    symbols = SYMBOLS | (ARITHMETIC if dialect == "activemq" else {})
    return rules + [(name, re.compile(re.escape(symbol))) for symbol, name in symbols.items()]


RULES = {dialect: token_rules(dialect) for dialect in WORDS}


class RefusedError(Exception):
    """The broker refuses this text."""


def tokens(text: str, dialect: str, start: int = 0) -> Iterator[Token]:
    """Longest match, then the first rule."""
    while start < len(text):
        best, end = "", start
        for name, pattern in RULES[dialect]:
            match = pattern.match(text, start)
            if match and match.end() > end:
                best, end = name, match.end()
        if not best:
            raise RefusedError(f"no token at {start}")
        if best not in SKIPPED:
            yield Token(best, text[start:end], start_pos=start)
        start = end


class Feed(Lexer):
    """Hands lark the tokens made above."""

    __future_interface__ = True

    def __init__(self, lexer_conf: Any) -> None:
        pass

    def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Token]:
        yield from lexer_state


GRAMMAR = """
?start: or
?or: and | or OR and -> or_
?and: equality | and AND equality -> and_
?equality: comparison
    | equality EQ comparison -> binary | equality NE comparison -> binary
    | equality IS NULL -> is_null | equality IS NOT NULL -> is_not_null
?comparison: operand
    | comparison LT operand -> binary | comparison LE operand -> binary
    | comparison GT operand -> binary | comparison GE operand -> binary
    | comparison [NOT] BETWEEN operand AND operand -> between
    | comparison [NOT] IN LPAR STRING (COMMA STRING)* RPAR -> member
    TESTS
OPERANDS
?primary: STRING -> string | DECIMAL -> decimal | FLOAT -> float NUMBERS
    | TRUE -> true | FALSE -> false | NULL -> null | ID -> name | LPAR or RPAR -> bracket
%declare DECLARED
"""
PARTS = {
    "activemq": {
        "TESTS": "| comparison [NOT] LIKE STRING [ESCAPE STRING] -> like",
        "OPERANDS": """
?operand: product | operand PLUS product -> binary | operand MINUS product -> binary
?product: unary | product STAR unary -> binary | product SLASH unary -> binary | product PERCENT unary -> binary
?unary: primary | PLUS unary -> plus | MINUS unary -> minus | NOT unary -> not_
    | XPATH STRING -> xpath | XQUERY STRING -> xquery | ID LPAR unary (COMMA unary)* RPAR -> call
""",
        "NUMBERS": "| HEX -> hex | OCTAL -> octal",
    },
    "rocketmq": {
        "TESTS": "| comparison [NOT] (CONTAINS | STARTSWITH | ENDSWITH) STRING -> search",
        "OPERANDS": """
?operand: unary
?unary: primary | PLUS unary -> plus | MINUS unary -> minus | NOT unary -> not_
""",
        "NUMBERS": "",
    },
}


def build(dialect: str) -> Lark:
    grammar = GRAMMAR
    declared = list(dict.fromkeys(name for name, _ in RULES[dialect] if name not in SKIPPED))
    for key, value in (PARTS[dialect] | {"DECLARED": " ".join(declared)}).items():
        grammar = grammar.replace(key, value, 1) if key != "NUMBERS" else grammar.replace("NUMBERS", value, 1)
    return Lark(grammar, parser="lalr", lexer=Feed, maybe_placeholders=False, keep_all_tokens=True)


PARSERS = {dialect: build(dialect) for dialect in WORDS}


def syntax_tree(text: str, dialect: str) -> Tree[Token]:
    start = 0
    if dialect == "activemq":
        prefix = "convert_string_expressions:"
        start = len(prefix) if text.startswith(prefix) else 0
    parser = PARSERS[dialect].parse_interactive()
    seen: list[str] = []
    for token in tokens(text, dialect, start):
        before = parser.copy()
        try:
            parser.feed_token(token)
        except UnexpectedToken:
            # RocketMQ's loops enter on IS, and on NOT unless IS [NOT] NULL went before, and fail inside.
            null_test = seen[-2:] == ["IS", "NULL"] or seen[-3:] == ["IS", "NOT", "NULL"]
            if dialect == "activemq" or token.type == "IS" or (token.type == "NOT" and not null_test):
                raise
            parser = before  # RocketMQ stops at the first token that cannot follow, and does not look further
            break
        seen.append(token.type)
    return parser.feed_eof()  # type: ignore[no-any-return]


COMPARISONS = {
    "EQ": "EQUAL", "NE": "NOT_EQUAL", "LT": "LESS", "LE": "LESS_EQUAL", "GT": "GREATER", "GE": "GREATER_EQUAL",
}  # fmt: skip
OPERATIONS = {"PLUS": "ADD", "MINUS": "SUBTRACT", "STAR": "MULTIPLY", "SLASH": "DIVIDE", "PERCENT": "REMAINDER"}
FUNCTIONS = {"INLIST": (2,), "REGEX": (2,), "REPLACE": (3,), "SPLIT": (2, 3)}
BOOLEAN = {
    "AND", "OR", "NOT", "EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", "IS_NULL",
    "IS_NOT_NULL", "BETWEEN", "NOT_BETWEEN", "IN", "NOT_IN", "LIKE", "NOT_LIKE", "CAST", "XPATH", "XQUERY",
    "CONTAINS", "NOT_CONTAINS", "STARTSWITH", "NOT_STARTSWITH", "ENDSWITH", "NOT_ENDSWITH",
}  # fmt: skip


def refuse_if(condition: bool) -> None:
    if condition:
        raise RefusedError


def unquoted(token: Token) -> str:
    text = str(token)[1:-1].replace("''", "'")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def integer(value: int, dialect: str, decimal: bool) -> Node:
    low = (value + 2**63) % 2**64 - 2**63
    if value >= 2**63:
        refuse_if(dialect == "rocketmq" or not decimal)
        return ("LITERAL", "INT", low) if -(2**31) <= low < 2**31 else ("LITERAL", "BIG_DECIMAL", value)
    return ("LITERAL", "INT" if value < 2**31 else "LONG", value)


class Meaning:
    """lark's tree to nested tuples, with the checks the real parsers make."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect

    def of(self, tree: Tree[Token]) -> Node:
        children = [child if isinstance(child, Token) else self.of(child) for child in tree.children]
        return getattr(self, tree.data)(children)  # type: ignore[no-any-return]

    def truth(self, node: Node) -> Node:
        if node[0] == "PROPERTY":
            return ("CAST", node)
        refuse_if(not self.is_boolean(node))
        return node

    def is_boolean(self, node: Node) -> bool:
        if node[0] == "LITERAL":
            return node[1] in ("BOOLEAN", "NULL_VALUE")
        return node[0] in BOOLEAN or (node[0] == "FUNCTION" and node[1] in ("INLIST", "REGEX"))

    def string(self, c: list[Any]) -> Node:
        return ("LITERAL", "STRING", unquoted(c[0]))

    def decimal(self, c: list[Any]) -> Node:
        return integer(int(c[0].rstrip("lL")), self.dialect, True)

    def hex(self, c: list[Any]) -> Node:
        return integer(int(c[0], 16), self.dialect, False)

    def octal(self, c: list[Any]) -> Node:
        return integer(int(c[0], 8), self.dialect, False)

    def float(self, c: list[Any]) -> Node:
        value = float(c[0])
        refuse_if(self.dialect == "rocketmq" and (value == 0.0 or value == float("inf")))
        return ("LITERAL", "DOUBLE", value)

    def true(self, c: list[Any]) -> Node:
        return ("LITERAL", "BOOLEAN", True)

    def false(self, c: list[Any]) -> Node:
        return ("LITERAL", "BOOLEAN", False)

    def null(self, c: list[Any]) -> Node:
        return ("LITERAL", "NULL_VALUE", None)

    def name(self, c: list[Any]) -> Node:
        return ("PROPERTY", str(c[0]))

    def bracket(self, c: list[Any]) -> Node:
        return c[1]  # type: ignore[no-any-return]

    def plus(self, c: list[Any]) -> Node:
        return c[1]  # type: ignore[no-any-return]

    def minus(self, c: list[Any]) -> Node:
        return ("NEGATE", c[1])

    def not_(self, c: list[Any]) -> Node:
        return ("NOT", self.truth(c[1]))

    def or_(self, c: list[Any]) -> Node:
        return ("OR", self.truth(c[0]), self.truth(c[2]))

    def and_(self, c: list[Any]) -> Node:
        return ("AND", self.truth(c[0]), self.truth(c[2]))

    def orderable(self, node: Node) -> None:
        if node[0] == "LITERAL":
            refuse_if(node[1] in ("STRING", "BOOLEAN", "NULL_VALUE"))
        else:
            refuse_if(self.is_boolean(node))

    def binary(self, c: list[Any]) -> Node:
        left, operator, right = c
        if operator.type in OPERATIONS:
            return (OPERATIONS[operator.type], left, right)
        if operator.type in ("EQ", "NE"):
            refuse_if("NULL_VALUE" in (left[1], right[1]) and ("LITERAL", "NULL_VALUE", None) in (left, right))
            constants = left[0] == right[0] == "LITERAL"
            refuse_if(constants and left[1] == "BOOLEAN" and right[1] != "BOOLEAN")
        else:
            self.orderable(left)
            self.orderable(right)
        return (COMPARISONS[operator.type], left, right)

    def is_null(self, c: list[Any]) -> Node:
        return ("IS_NULL", c[0])

    def is_not_null(self, c: list[Any]) -> Node:
        return ("IS_NOT_NULL", c[0])

    def between(self, c: list[Any]) -> Node:
        negated = c[1].type == "NOT"
        subject, low, high = (child for child in c if not isinstance(child, Token))
        for node in (subject, low, high):
            self.orderable(node)
        if self.dialect == "rocketmq" and not negated and low[0] == high[0] == "LITERAL":
            both_integers = "DOUBLE" not in (low[1], high[1])
            refuse_if(high[2] < low[2] if both_integers else float(high[2]) < float(low[2]))
        return ("NOT_BETWEEN" if negated else "BETWEEN", subject, low, high)

    def member(self, c: list[Any]) -> Node:
        refuse_if(c[0][0] != "PROPERTY")
        texts = tuple(unquoted(t) for t in c[1:] if t.type == "STRING")
        return ("NOT_IN" if c[1].type == "NOT" else "IN", c[0], texts)

    def like(self, c: list[Any]) -> Node:
        pattern, *escapes = (unquoted(t) for t in c[1:] if t.type == "STRING")
        escape = escapes[0] if escapes else None
        if escape is not None:
            refuse_if(len(escape.encode("utf-16-le", "surrogatepass")) != 2)
            if escape < "\x10":
                doubled = re.escape(escape)
                rest = re.sub(f"{doubled}[%_]|{doubled}{doubled}(?=[0-9a-fA-F])", "", pattern)
                refuse_if(escape * 2 in pattern and bool(re.search(f"{doubled}{doubled}", rest)))
        return ("NOT_LIKE" if c[1].type == "NOT" else "LIKE", c[0], (pattern, escape))

    def search(self, c: list[Any]) -> Node:
        negated = c[1].type == "NOT"
        return (("NOT_" if negated else "") + c[-2].type, c[0], unquoted(c[-1]))

    def xpath(self, c: list[Any]) -> Node:
        return ("XPATH", unquoted(c[1]))

    def xquery(self, c: list[Any]) -> Node:
        return ("XQUERY", unquoted(c[1]))

    def call(self, c: list[Any]) -> Node:
        arguments = [child for child in c if not isinstance(child, Token)]
        name = str(c[0])
        refuse_if(name != "MAKELIST" and len(arguments) not in FUNCTIONS.get(name, ()))
        return ("FUNCTION", name, *arguments)


def parse(text: str, dialect: str) -> Node | None:
    """``text`` as nested tuples, or None where the broker of ``dialect`` refuses it."""
    meaning = Meaning(dialect)
    try:
        return meaning.truth(meaning.of(syntax_tree(text, dialect)))
    except (RefusedError, UnexpectedInput):
        return None
