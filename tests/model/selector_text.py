"""Trees as tuples and as text, and random selectors."""

from __future__ import annotations

import random
from typing import Any

from pyengine._engine.selector.ast import Term, TermKind

JAVA_TYPES = {
    0: "NULL_VALUE", 1: "BOOLEAN", 4: "INT", 5: "LONG", 7: "DOUBLE", 8: "STRING", 10: "BIG_DECIMAL",
}  # fmt: skip
SYMBOLS = {
    "EQUAL": "=", "NOT_EQUAL": "<>", "LESS": "<", "LESS_EQUAL": "<=", "GREATER": ">", "GREATER_EQUAL": ">=", "ADD": "+",
    "SUBTRACT": "-", "MULTIPLY": "*", "DIVIDE": "/", "REMAINDER": "%",
}  # fmt: skip
WORDS = {"STARTS_WITH": "STARTSWITH", "ENDS_WITH": "ENDSWITH"}


def kind_of(term: Term) -> str:
    return TermKind(term.kind).name


def shape(term: Term) -> tuple[Any, ...]:
    """The tuples of tests.model.selector_grammar."""
    kind = kind_of(term)
    terms = [shape(child) for child in term.terms]
    if kind in ("AND", "OR"):
        joined = terms[0]
        for other in terms[1:]:
            joined = (kind, joined, other)
        return joined
    if kind == "LITERAL":
        return (kind, JAVA_TYPES[term.java_type], term.value)
    if kind == "FUNCTION":
        return (kind, term.value, *terms)
    kind = kind.replace("STARTS_WITH", "STARTSWITH").replace("ENDS_WITH", "ENDSWITH")
    return (kind, *terms) if term.value is None else (kind, *terms, term.value)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def text_of(term: Term) -> str:
    """Selector text that parses to the same Terms, with a bracket round everything that can have one."""
    kind = kind_of(term)
    terms = [text_of(child) for child in term.terms]
    if kind == "LITERAL":
        if term.value is None or isinstance(term.value, bool):
            return str(term.value).upper().replace("NONE", "NULL")
        if isinstance(term.value, str):
            return quoted(term.value)
        if isinstance(term.value, int) and term.value < 0:
            return str(term.value + 2**64)
        return str(term.value).replace("inf", "1e999")
    if kind in ("PROPERTY", "CAST"):
        return str(term.value) if kind == "PROPERTY" else terms[0]
    if kind in ("AND", "OR"):
        return "(" + f" {kind} ".join(terms) + ")"
    if kind in ("NOT", "NEGATE"):
        return f"({'NOT' if kind == 'NOT' else '-'} {terms[0]})"
    if kind in SYMBOLS:
        return f"({terms[0]} {SYMBOLS[kind]} {terms[1]})"
    if kind == "FUNCTION":
        return f"{term.value}({', '.join(terms)})"
    if kind in ("XPATH", "XQUERY"):
        return f"{kind} {quoted(str(term.value))}"
    if kind in ("IS_NULL", "IS_NOT_NULL"):
        return f"({terms[0]} {kind.replace('_', ' ')})"
    word = ("NOT " if kind.startswith("NOT_") else "") + WORDS.get(kind.removeprefix("NOT_"), kind.removeprefix("NOT_"))
    if kind.endswith("BETWEEN"):
        return f"({terms[0]} {word} {terms[1]} AND {terms[2]})"
    if kind.endswith("LIKE"):
        pattern, escape = term.value  # type: ignore[misc]
        return f"({terms[0]} {word} {quoted(pattern)}{'' if escape is None else ' ESCAPE ' + quoted(escape)})"
    if kind.endswith("IN"):
        return f"({terms[0]} {word} ({', '.join(map(quoted, term.value))}))"  # type: ignore[arg-type]
    return f"({terms[0]} {word} {quoted(str(term.value))})"


def java_double(value: float) -> str:
    """Double.toString for the numbers that appear in the recorded selectors."""
    if value == 5e-324:
        return "4.9E-324"
    if 1e-3 <= value < 1e7:
        return repr(value)
    digits, exponent = f"{value:e}".split("e") if "e" not in repr(value) else repr(value).split("e")
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


def rocketmq_canonical(term: Term) -> str:
    """What RocketMQ's expression objects print."""
    kind = kind_of(term)
    terms = [rocketmq_canonical(child) for child in term.terms]
    if kind == "LITERAL":
        return java_double(term.value) if isinstance(term.value, float) else text_of(term)
    if kind in ("PROPERTY", "CAST"):
        return text_of(term)
    if kind in ("AND", "OR"):
        joined = terms[0]
        for other in terms[1:]:
            joined = f"({joined} {'&&' if kind == 'AND' else '||'} {other})"
        return joined
    if kind == "NEGATE":
        return f"(- {terms[0]})"
    if kind == "NOT":
        return f"(NOT {terms[0]})"
    if kind in ("EQUAL", "NOT_EQUAL"):
        equal = f"({terms[0]} == {terms[1]})"
        return equal if kind == "EQUAL" else f"(NOT {equal})"
    if kind in SYMBOLS:
        return f"({terms[0]} {SYMBOLS[kind]} {terms[1]})"
    if kind in ("IS_NULL", "IS_NOT_NULL"):
        null = f"({terms[0]} == NULL)"
        return null if kind == "IS_NULL" else f"(NOT {null})"
    if kind == "BETWEEN":
        return f"(({terms[0]} >= {terms[1]}) && ({terms[0]} <= {terms[2]}))"
    if kind == "NOT_BETWEEN":
        return f"(({terms[0]} < {terms[1]}) || ({terms[0]} > {terms[2]}))"
    if kind in ("IN", "NOT_IN"):
        return f"{terms[0]} {kind.replace('_', ' ')} ( {', '.join(term.value)} )"  # type: ignore[arg-type]
    word = kind.replace("STARTS_WITH", "STARTSWITH").replace("ENDS_WITH", "ENDSWITH").replace("_", " ")
    return f"({word} {terms[0]})"


NAMES = ("a", "b", "s", "i", "price", "JMSPriority", "x_1", "$d", "notx", "missing")
TEXTS = ("", "a", "gold%", "it''s", "3", "1.5", "true", "a_c", "caf\u00e9", "\U0001f600", "x\\%", "%")
NUMBERS = ("0", "1", "3", "7L", "2147483648", "9223372036854775807", "0.5", "1.", ".5", "1e3", "2.5E-3")
ODD_NUMBERS = (
    "0x1F", "017", "18446744073709551617", "9223372036854775808", "1e400", "0.0", "08", "0xFFFFFFFFFFFFFFFF", "5d",
)  # fmt: skip
FRAGMENTS = (
    "NOT", "AND", "OR", "BETWEEN", "IN", "IS", "NULL", "TRUE", "FALSE", "LIKE", "ESCAPE", "XPATH", "CONTAINS",
    "STARTSWITH", "(", ")", ",", "=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "'", "''", '"',
    "--", "/*", "*/", "\n", ".", "&&", "||", "!=", "==", ";", "a", "b", "1", "1.5", "0x1", "'a'", "('a')",
    "IS NULL", "IS NOT NULL", "NOT IN", "\xe9", "\ud800", "\U0001f600", "\x00", "e5", "L", "INLIST(",
    "MAKELIST(", "REGEX('a', ", "convert_string_expressions:",
)  # fmt: skip


class Selectors:
    """Random selector texts of one dialect, most of them legal. ``seed`` decides everything."""

    def __init__(self, seed: int, dialect: str) -> None:
        self.random = random.Random(seed)
        self.activemq = dialect == "activemq"

    def selector(self) -> str:
        text = self.condition(3)
        if self.activemq and self.random.random() < 0.05:
            text = "convert_string_expressions:" + text
        return text

    def mutated(self) -> str:
        text = self.selector()
        for _ in range(self.random.randint(1, 3)):
            at = self.random.randint(0, len(text))
            cut = at + self.random.choice((0, 0, 1, 1, 2, 5))
            text = text[:at] + self.random.choice(("", *FRAGMENTS)) + text[cut:]
        return text

    def soup(self) -> str:
        glue = self.random.choice(("", " ", " "))
        return glue.join(self.random.choices(FRAGMENTS, k=self.random.randint(0, 12)))

    def any(self) -> str:
        return self.random.choice((self.selector, self.mutated, self.mutated, self.soup))()

    def condition(self, depth: int) -> str:
        choice = self.random.random()
        if depth > 0 and choice < 0.45:
            if choice < 0.12:
                return f"NOT {self.inner(depth)}"
            word = " AND " if choice < 0.28 else " or "
            return word.join(self.inner(depth) for _ in range(self.random.randint(2, 4)))
        return self.predicate(depth)

    def inner(self, depth: int) -> str:
        text = self.condition(depth - 1)
        return f"({text})" if self.random.random() < 0.6 else text

    def predicate(self, depth: int) -> str:
        pick = self.random.choice
        negation = pick(("", "", "NOT "))
        kind = self.random.randint(0, 9)
        if kind <= 3:
            return f"{self.value(depth)} {pick(('=', '<>', '<', '<=', '>', '>='))} {self.value(depth)}"
        if kind == 4:
            return f"{self.value(depth)} IS {negation}NULL"
        if kind == 5:
            return f"{self.value(depth)} {negation}between {self.value(depth)} AND {self.value(depth)}"
        if kind == 6:
            texts = ", ".join(self.text() for _ in range(self.random.randint(1, 6)))
            return f"{pick(NAMES)} {negation}IN ({texts})"
        if kind == 7 and self.activemq:
            escape = pick(("", "", " ESCAPE '\\'", " ESCAPE '_'", " ESCAPE 'xx'"))
            return f"{self.value(depth)} {negation}LIKE {self.text()}{escape}"
        if kind == 7:
            return f"{pick(NAMES)} {negation}{pick(('CONTAINS', 'STARTSWITH', 'endswith'))} {self.text()}"
        if kind == 8:
            return pick((*NAMES, "TRUE", "FALSE", "NULL"))
        if self.activemq:
            return pick((
                f"REGEX({self.text()}, {pick(NAMES)})",
                f"INLIST(MAKELIST({self.text()}, {pick(NAMES)}), {pick(NAMES)})",
                f"INLIST(SPLIT({pick(NAMES)}, ','), {self.text()})",
                f"REPLACE({pick(NAMES)}, 'a', 'b') = {self.text()}",
                "XPATH '//a'", "XQUERY 'x'",
            ))  # fmt: skip
        return f"{pick(NAMES)} = {self.text()}"

    def text(self) -> str:
        return "'" + self.random.choice(TEXTS) + "'"

    def value(self, depth: int) -> str:
        choice = self.random.random()
        if choice < 0.4:
            return self.random.choice(NAMES)
        if choice < 0.65:
            return self.random.choice(NUMBERS)
        if choice < 0.68:
            return self.random.choice(ODD_NUMBERS)
        if choice < 0.78:
            return self.text()
        if choice < 0.83:
            return self.random.choice(("-", "+", "- -")) + self.random.choice(NAMES + NUMBERS)
        if choice < 0.86:
            return self.random.choice(("TRUE", "FALSE", "NULL"))
        if depth > 0 and choice < 0.95 and self.activemq:
            return f"{self.value(depth - 1)} {self.random.choice('+-*/%')} {self.value(depth - 1)}"
        return f"({self.value(depth - 1) if depth > 0 else self.random.choice(NAMES)})"
