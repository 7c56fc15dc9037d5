"""The slow, obvious evaluator of selectors: three-valued, on the Tree, one Python value at a time.

Written from the rules of both brokers (spec activemq 1.8-1.12, rocketmq 8.3). A value is None or a pair (Java type,
payload). Text of doubles and floats comes from pyengine's ``digits``, tested against recorded answers of a JVM.
"""

from __future__ import annotations

import math
import re
import struct
import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy

import pyengine
from pyengine._engine.java.numbers import double_text, float_text
from pyengine._engine.selector.ast import Term, TermKind, Tree

Value = tuple[str, Any] | None
INTEGERS = {"byte": 8, "short": 16, "int": 32, "long": 64}
NUMBERS = {*INTEGERS, "float", "double", "big"}
REAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?", re.ASCII)
HEXADECIMAL = re.compile(r"[+-]?0[xX]([0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?\d+[fFdD]?", re.ASCII)


class RaisesError(Exception):
    """The real classes throw here."""


def units(text: str) -> list[int]:
    """UTF-16 code units."""
    return [unit for (unit,) in struct.iter_unpack("<H", text.encode("utf-16-le", "surrogatepass"))]


def points(text: str) -> str:
    """Surrogate pairs joined."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def wrap(number: int, bits: int) -> int:
    """Two's complement."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def single(number: int | float | Fraction) -> float:
    """The nearest 32-bit float, ties to even, of an exact number."""
    if isinstance(number, float) and (number == 0 or not math.isfinite(number)):
        return number
    exact = Fraction(number)
    with numpy.errstate(over="ignore"):
        guess = numpy.float32(float(exact) if abs(exact) < 10**300 else math.copysign(math.inf, exact))
    near = {float(guess)}
    for towards in (-math.inf, math.inf):
        near.add(float(numpy.nextafter(guess, numpy.float32(towards), dtype=numpy.float32)))

    def distance(candidate: float) -> tuple[Fraction, int]:
        finite = Fraction(candidate) if math.isfinite(candidate) else Fraction(2) ** 128 * (1 if candidate > 0 else -1)
        bits = struct.unpack("<I", struct.pack("<f", candidate))[0]
        return abs(finite - exact), bits & 1

    return min(near, key=distance)


def from_python(value: Any) -> Value:
    """A property value of a message."""
    if value is None:
        return None
    if isinstance(value, (bool, numpy.bool_)):
        return "boolean", bool(value)
    if isinstance(value, numpy.integer):
        return {8: "byte", 16: "short", 32: "int", 64: "long"}[value.itemsize * 8], int(value)
    if isinstance(value, numpy.float32):
        return "float", float(value)
    if isinstance(value, pyengine.Char):
        return "char", str(value)
    if isinstance(value, int):
        return ("int" if -(2**31) <= value < 2**31 else "long"), value
    return ("double", value) if isinstance(value, float) else ("string", value)


def java_text(value: Value) -> str:
    """String.valueOf."""
    if value is None:
        return "null"
    kind, payload = value
    if kind == "boolean":
        return "true" if payload else "false"
    if kind == "double":
        return double_text(payload)
    return float_text(payload) if kind == "float" else str(payload)


def parse_number(text: str, kind: str) -> Any:
    """Byte.valueOf .. Double.valueOf; ValueError where they throw."""
    if kind in INTEGERS:
        sign, digits = (text[0], text[1:]) if text[:1] in ("+", "-") else ("+", text)
        if not digits or any(ord(digit) > 0xFFFF for digit in digits):
            raise ValueError
        number = int(sign + "".join(str(unicodedata.decimal(digit)) for digit in digits))
        if wrap(number, INTEGERS[kind]) != number:
            raise ValueError
        return number
    text = text.strip("".join(map(chr, range(33))))
    sign = -1.0 if text[:1] == "-" else 1.0
    if text.lstrip("+-") in ("NaN", "Infinity") and len(text) - len(text.lstrip("+-")) < 2:
        return sign * float(text.lstrip("+-"))
    if HEXADECIMAL.fullmatch(text):
        return float.fromhex(text.rstrip("fFdD") if text[-1] in "fFdD" else text)
    if not REAL.fullmatch(text):
        raise ValueError
    exact = Decimal(text.rstrip("fFdD"))
    if kind == "double":
        return float(exact)
    return math.copysign(single(Fraction(exact)), sign)


def order(kind: str, left: Any, right: Any) -> int:
    """compareTo of two values of one type."""
    if kind in ("float", "double"):
        left, right = ((1, 0.0, 0) if math.isnan(real) else (0, real, math.copysign(1, real)) for real in (left, right))
    elif kind in ("string", "char"):
        left, right = units(left), units(right)
    return (left > right) - (left < right)


def meets(relation: int, sign: int) -> bool:
    """A compareTo result against a relation."""
    return {
        TermKind.EQUAL: sign == 0,
        TermKind.LESS: sign < 0,
        TermKind.LESS_EQUAL: sign <= 0,
        TermKind.GREATER: sign > 0,
        TermKind.GREATER_EQUAL: sign >= 0,
    }[TermKind(relation)]


class Model:
    """One selector on one message."""

    def __init__(self, tree: Tree, properties: Mapping[str, Any]) -> None:
        self.tree = tree
        self.rocketmq = tree.dialect == "rocketmq"
        self.values = {name: from_python(value) for name, value in properties.items()}
        if self.rocketmq:
            self.values = {
                name: None if value is None else ("string", java_text(value)) for name, value in self.values.items()
            }

    def matches(self) -> bool:
        """matches() of the whole selector."""
        return self.matched(self.tree.root)

    def evaluate(self) -> bool | None:
        """evaluate() of the whole selector."""
        return self.truth(self.tree.root)

    def matched(self, term: Any) -> bool:
        if isinstance(term, tuple):
            return self.compared(*term) is True
        if not self.rocketmq and term.kind in (TermKind.AND, TermKind.BETWEEN):
            return all(self.matched(part) for part in self.parts(term))
        if not self.rocketmq and term.kind in (TermKind.OR, TermKind.NOT_BETWEEN):
            return any(self.matched(part) for part in self.parts(term))
        return self.truth(term) is True

    def parts(self, term: Term) -> list[Any]:
        """The operands of AND and OR, of which BETWEEN is one: (relation, left, right) for its ends."""
        if term.kind == TermKind.BETWEEN:
            subject, low, high = term.terms
            return [(TermKind.GREATER_EQUAL, subject, low), (TermKind.LESS_EQUAL, subject, high)]
        if term.kind == TermKind.NOT_BETWEEN:
            subject, low, high = term.terms
            return [(TermKind.LESS, subject, low), (TermKind.GREATER, subject, high)]
        return list(term.terms)

    def truth(self, term: Any) -> bool | None:
        """True, False, None for unknown."""
        if isinstance(term, tuple):
            return self.compared(*term)
        kind = term.kind
        if kind in (TermKind.AND, TermKind.BETWEEN, TermKind.OR, TermKind.NOT_BETWEEN):
            stop = kind in (TermKind.OR, TermKind.NOT_BETWEEN)
            unknown = False
            for part in self.parts(term):
                answer = self.truth(part)
                if answer is stop:
                    return stop
                unknown = unknown or answer is None
            return None if unknown else not stop
        if kind in (TermKind.NOT, TermKind.NOT_EQUAL, TermKind.IS_NOT_NULL, TermKind.NOT_LIKE):
            if kind == TermKind.NOT:
                answer = self.truth(term.terms[0])
            elif kind == TermKind.NOT_EQUAL:
                answer = self.compared(TermKind.EQUAL, *term.terms)
            elif kind == TermKind.IS_NOT_NULL:
                answer = self.value(term.terms[0]) is None
            else:
                answer = self.like(term)
            return None if answer is None else not answer
        if TermKind.EQUAL <= kind <= TermKind.GREATER_EQUAL:
            return self.compared(kind, *term.terms)
        if kind == TermKind.IS_NULL:
            return self.value(term.terms[0]) is None
        if kind == TermKind.LIKE:
            return self.like(term)
        if kind in (TermKind.IN, TermKind.NOT_IN):
            subject = self.value(term.terms[0])
            if subject is None or subject[0] != "string":
                return None
            return (units(subject[1]) in [units(text) for text in term.value]) is (kind == TermKind.IN)
        if TermKind.CONTAINS <= kind <= TermKind.NOT_ENDS_WITH:
            return self.has_text(term)
        if kind == TermKind.CAST:
            subject = self.value(term.terms[0])
            return None if subject is None else subject == ("boolean", True)
        if kind == TermKind.XQUERY:
            return False
        assert kind == TermKind.LITERAL, kind
        assert term.value is None or term.value is True or term.value is False
        return term.value

    def has_text(self, term: Term) -> bool:
        if not term.value:
            return False
        subject = self.value(term.terms[0])
        if subject is None or subject[0] != "string":
            return False
        text, part = units(subject[1]), units(term.value)
        places = [at for at in range(len(text) - len(part) + 1) if text[at : at + len(part)] == part]
        if term.kind in (TermKind.STARTS_WITH, TermKind.NOT_STARTS_WITH):
            places = [at for at in places if at == 0]
        if term.kind in (TermKind.ENDS_WITH, TermKind.NOT_ENDS_WITH):
            places = [at for at in places if at == len(text) - len(part)]
        negated = term.kind in (TermKind.NOT_CONTAINS, TermKind.NOT_STARTS_WITH, TermKind.NOT_ENDS_WITH)
        return bool(places) is not negated

    def like(self, term: Term) -> bool | None:
        subject = self.value(term.terms[0])
        if subject is None:
            return None
        if subject[0] != "string":
            return False
        pattern, escape = term.value
        expression, at = "", 0
        while at < len(pattern):
            mark = pattern[at]
            at += 1
            if mark == escape and at < len(pattern) and pattern[at] in (escape, "%", "_"):
                digits = f"{ord(pattern[at]):x}"
                expression += re.escape(chr(int(digits[:2], 16)) + digits[2:])
                at += 1
            else:
                expression += {"%": ".*", "_": "."}.get(mark, re.escape(mark))
        return re.fullmatch(points(expression), points(subject[1]), re.DOTALL) is not None

    def value(self, term: Term) -> Value:
        kind = term.kind
        if kind == TermKind.PROPERTY:
            return self.values.get(term.value)
        if kind == TermKind.LITERAL:
            if isinstance(term.value, str):
                return "string", term.value
            if isinstance(term.value, int) and not isinstance(term.value, bool) and not -(2**63) <= term.value < 2**63:
                return "big", term.value
            return from_python(term.value)
        if kind == TermKind.NEGATE:
            return self.negated(self.value(term.terms[0]))
        if TermKind.ADD <= kind <= TermKind.REMAINDER:
            left = self.value(term.terms[0])
            if left is None:
                return None
            right = self.value(term.terms[1])
            return None if right is None else self.computed(kind, left, right)
        answer = self.truth(term)
        return None if answer is None else ("boolean", answer)

    def negated(self, value: Value) -> Value:
        if value is None or value[0] not in NUMBERS:
            return None
        kind, number = value
        if kind in ("byte", "short"):
            raise RaisesError
        if kind == "big":
            return ("long", -(2**63)) if number == 2**63 else ("big", -number)
        return kind, wrap(-number, INTEGERS[kind]) if kind in INTEGERS else -number

    def computed(self, kind: int, left: tuple[str, Any], right: tuple[str, Any]) -> Value:
        if left[0] == "string" and kind == TermKind.ADD:
            return "string", points(left[1] + java_text(right))
        if left[0] not in NUMBERS or right[0] not in NUMBERS:
            raise RaisesError
        types = {left[0], right[0]}
        if kind in (TermKind.DIVIDE, TermKind.REMAINDER) or types & {"float", "double"}:
            x, y = float(left[1]), float(right[1])
            with numpy.errstate(all="ignore"):
                if kind == TermKind.DIVIDE:
                    return "double", float(numpy.float64(x) / numpy.float64(y))
                if kind == TermKind.REMAINDER:
                    return "double", float(numpy.fmod(numpy.float64(x), numpy.float64(y)))
                return "double", {TermKind.ADD: x + y, TermKind.SUBTRACT: x - y, TermKind.MULTIPLY: x * y}[kind]
        bits = 64 if "long" in types else 32
        m, n = left[1], right[1]
        return ("long" if bits == 64 else "int"), wrap(
            {TermKind.ADD: m + n, TermKind.SUBTRACT: m - n, TermKind.MULTIPLY: m * n}[kind], bits
        )

    def compared(self, relation: int, left_term: Term, right_term: Term) -> bool | None:
        left = self.value(left_term)
        if relation == TermKind.EQUAL:
            right = self.value(right_term)
            if left is None:
                return True if right is None else None
            if right is None:
                return False
        else:
            if left is None:
                return None
            right = self.value(right_term)
            if right is None:
                return None
        (a, x), (b, y) = left, right
        if a == b == "string" and self.rocketmq and relation != TermKind.EQUAL:
            try:
                return meets(relation, order("double", parse_number(x, "double"), parse_number(y, "double")))
            except ValueError:
                raise RaisesError from None
        converting = self.rocketmq or self.tree.convert
        if a != b and "string" in (a, b) and converting and {a, b} & {"boolean", *INTEGERS, "float", "double"}:
            return self.converted(relation, left, right)
        return self.alike(relation, left, right)

    def converted(self, relation: int, left: tuple[str, Any], right: tuple[str, Any]) -> bool:
        (a, x), (b, y) = left, right
        if a == "boolean":
            raise RaisesError
        if b == "boolean":
            return meets(relation, order("boolean", x.lower() == "true" and x.isascii(), y))
        try:
            if a == "string":
                return meets(relation, order(b, parse_number(x, b), y))
            return meets(relation, order(a, x, parse_number(y, a)))
        except ValueError:
            if self.rocketmq:
                raise RaisesError from None
            return False

    def alike(self, relation: int, left: tuple[str, Any], right: tuple[str, Any]) -> bool:
        """Numbers of two types meet in the wider one, in the directions the broker knows."""
        (a, x), (b, y) = left, right
        if a == b:
            return meets(relation, order(a, x, y))
        if not {a, b} <= NUMBERS - {"big"} or b == "byte" or (b == "short" and a != "byte"):
            return False
        if a == "double" and b == "float":
            raise RaisesError
        if a in INTEGERS and b in INTEGERS:
            return meets(relation, order("long", x, y))
        if "double" in (a, b):
            return meets(relation, order("double", float(x), float(y)))
        return meets(relation, order("float", single(x), single(y)))
