"""Selectors as Spark's own expressions, if they mean exactly the same for the columns' types.

Spark and the broker agree on three-valued logic and on most comparisons. The rest is written out here: which Java
types are comparable at all (spec activemq 1.9), ``=`` with nulls (spec activemq 1.8), negative zero, the order of
strings by UTF-16 units, integers that wrap (spec activemq 1.11). A selector that may raise in the broker, or cannot be
expressed exactly, is refused with the reason; then a Python worker evaluates the selector.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from pyengine._engine.message.header import fresh_headers
from pyengine._engine.selector.ast import Term, TermKind
from pyengine._engine.selector.parser import parse
from pyengine.dataclass import dataclass
from pyengine.errors import PyengineError

if TYPE_CHECKING:
    from pyspark.sql import Column

WHOLE = ("byte", "short", "int", "long")
NUMBERS = (*WHOLE, "float", "double")
_KINDS = {
    "tinyint": "byte", "smallint": "short", "int": "int", "bigint": "long", "float": "float", "double": "double",
    "boolean": "boolean", "string": "string",
}  # fmt: skip
_SPARK = {"byte": "int", "short": "int", "int": "int", "long": "bigint", "float": "float", "double": "double"}
_LITERALS = {1: "boolean", 4: "int", 5: "long", 7: "double", 8: "string"}
_ORDERED = {
    TermKind.LESS: "<", TermKind.LESS_EQUAL: "<=", TermKind.GREATER: ">", TermKind.GREATER_EQUAL: ">=",
}  # fmt: skip
_REPEATED = (
    *_ORDERED, TermKind.EQUAL, TermKind.NOT_EQUAL, TermKind.BETWEEN, TermKind.NOT_BETWEEN, TermKind.NEGATE,
)  # fmt: skip
# Spark's planner recurses through an expression, on a stack that 500 comparisons are too many for.
LARGEST = 1_000
_ARITHMETIC = {
    TermKind.ADD: "+", TermKind.SUBTRACT: "-", TermKind.MULTIPLY: "*", TermKind.DIVIDE: "/", TermKind.REMAINDER: "%",
}  # fmt: skip


class NotNativeError(PyengineError, ValueError):
    """A selector that Spark's own expressions cannot say exactly. selector: its text. reason: which part, and why."""

    def __init__(self, selector: str, reason: str) -> None:
        self.selector = selector
        self.reason = reason
        super().__init__(selector, reason)

    def _words(self) -> str:
        return f"{self.selector!r} has no exact counterpart among Spark's own expressions: {self.reason}"


@dataclass(frozen=True, slots=True)
class _Value:
    """kind: the Java type that a value has unless it is null. constant: of a literal, else None."""

    kind: str
    column: Any
    constant: Any = None


def truth_of(selector: str, types: Mapping[str, str], columns: Mapping[str, Column], dialect: str) -> Column:
    """The truth of a selector as a boolean Column: true, false, or null where it is unknown.

    types: name -> Spark's simple type of its column. columns: name -> the column. Raises NotNativeError,
    InvalidSelectorError.
    """
    tree = parse(selector, dialect)
    if dialect != "activemq":
        raise NotNativeError(selector, f"in the dialect {dialect} properties are texts that are converted")
    if tree.convert:
        raise NotNativeError(selector, "convert_string_expressions: converts texts")
    if _size(tree.root) > LARGEST:
        raise NotNativeError(selector, "it is too large for Spark's planner")
    return cast("Column", _Writer(selector, types, columns).truth(tree.root))


def _size(term: Term) -> int:
    """About how many expressions a term becomes: what is compared is written several times."""
    return 1 + (4 if TermKind(term.kind) in _REPEATED else 1) * sum(map(_size, term.terms))


class _Writer:
    def __init__(self, selector: str, types: Mapping[str, str], columns: Mapping[str, Column]) -> None:
        from pyspark.sql import functions

        self.F = functions
        self.selector = selector
        self.types = types
        self.columns = columns
        self.headers = fresh_headers()

    def refuse(self, term: Term, reason: str) -> NotNativeError:
        return NotNativeError(self.selector, f"{reason} (position {term.position})")

    # Conditions: boolean columns, null where unknown

    def truth(self, term: Term) -> Any:
        functions = self.F
        kind = TermKind(term.kind)
        match kind:
            case TermKind.AND | TermKind.OR:
                found = self.truth(term.terms[0])
                for each in term.terms[1:]:
                    found = found & self.truth(each) if kind is TermKind.AND else found | self.truth(each)
                return found
            case TermKind.NOT:
                return ~self.truth(term.terms[0])
            case TermKind.LITERAL:
                return functions.lit(term.value).cast("boolean")
            case TermKind.CAST:
                value = self.value(term.terms[0])
                return value.column if value.kind == "boolean" else self.unless_null(value)
            case TermKind.EQUAL:
                return self.equal(term)
            case TermKind.NOT_EQUAL:
                return ~self.equal(term)
            case TermKind.LESS | TermKind.LESS_EQUAL | TermKind.GREATER | TermKind.GREATER_EQUAL:
                left, right = map(self.value, term.terms)
                return self.compared(term, _ORDERED[kind], left, right)
            case TermKind.BETWEEN | TermKind.NOT_BETWEEN:
                subject, low, high = map(self.value, term.terms)
                if kind is TermKind.BETWEEN:
                    return self.compared(term, ">=", subject, low) & self.compared(term, "<=", subject, high)
                return self.compared(term, "<", subject, low) | self.compared(term, ">", subject, high)
            case TermKind.IS_NULL:
                return self.value(term.terms[0]).column.isNull()
            case TermKind.IS_NOT_NULL:
                return self.value(term.terms[0]).column.isNotNull()
            case TermKind.IN | TermKind.NOT_IN:
                value = self.value(term.terms[0])
                if value.kind != "string":
                    return functions.lit(None).cast("boolean")
                inside = value.column.isin(*cast("tuple[str, ...]", term.value))
                return inside if kind is TermKind.IN else ~inside
            case TermKind.LIKE | TermKind.NOT_LIKE:
                value = self.value(term.terms[0])
                like = self.unless_null(value)
                if value.kind == "string":
                    pattern, escape = cast("tuple[str, str | None]", term.value)
                    like = self.like(term, value.column, pattern, escape)
                return like if kind is TermKind.LIKE else ~like
            case _:
                raise self.refuse(term, f"{kind.name} is evaluated by the engine alone")

    def unless_null(self, value: _Value) -> Any:
        """FALSE, or unknown for a null."""
        return self.F.when(value.column.isNotNull(), self.F.lit(False))

    def equal(self, term: Term) -> Any:
        functions = self.F
        left, right = map(self.value, term.terms)
        same = self.compared(term, "=", left, right)
        if right.constant is not None:
            return same  # only the left side may be null, and then it is unknown
        if left.constant is not None:
            return functions.coalesce(same, functions.lit(False))
        missing = functions.when(left.column.isNull() & right.column.isNull(), functions.lit(True))
        return missing.when(left.column.isNotNull() & right.column.isNull(), functions.lit(False)).otherwise(same)

    def compared(self, term: Term, relation: str, left: _Value, right: _Value) -> Any:
        """What Java's equals or compareTo says after promotion; null if a side is null."""
        functions = self.F
        incomparable = functions.when(left.column.isNotNull() & right.column.isNotNull(), functions.lit(False))
        if left.kind == right.kind:
            if left.kind == "string":
                if relation == "=":
                    return left.column == right.column
                # UTF-16 units, the order of Java's texts; Spark's own is that of UTF-8.
                return _related(relation, *(functions.encode(value.column, "UTF-16BE") for value in (left, right)))
            if left.kind == "boolean":
                return _related(relation, left.column, right.column)
            kind = left.kind
        elif left.kind in NUMBERS and right.kind in NUMBERS:
            if left.kind == "double" and right.kind == "float":
                raise self.refuse(term, "the broker raises for a double against a float")
            if right.kind in ("byte", "short") and NUMBERS.index(left.kind) > NUMBERS.index(right.kind):
                return incomparable
            kind = max(left.kind, right.kind, key=NUMBERS.index)
        else:
            return incomparable
        a, b = left.column.cast(_SPARK[kind]), right.column.cast(_SPARK[kind])
        plain = _related(relation, a, b)
        if kind in WHOLE:
            return plain
        # The smallest and largest that files keep of a column do not count NaN, which is above all numbers: what is
        # true of it, or becomes so under a NOT, must not reach them alone.
        if left.constant is None and left.kind not in WHOLE and right.constant is not None:
            plain = plain | functions.isnan(a) if relation in (">", ">=") else plain & ~functions.isnan(a)
        elif right.constant is None and right.kind not in WHOLE and left.constant is not None:
            plain = plain | functions.isnan(b) if relation in ("<", "<=") else plain & ~functions.isnan(b)
        if any(value.constant not in (None, 0) for value in (left, right)):
            return plain
        # Double.compareTo tells -0.0 from 0.0, Spark does not; on NaN they agree.
        negative = [self.negative_zero(value, column) for value, column in ((left, a), (right, b))]
        zeros = (a == 0) & (b == 0)
        signs = {
            "=": negative[0] == negative[1],
            "<": negative[0] & ~negative[1],
            "<=": negative[0] | ~negative[1],
            ">": ~negative[0] & negative[1],
            ">=": ~negative[0] | negative[1],
        }[relation]
        return functions.when(zeros, signs).otherwise(plain)

    def negative_zero(self, value: _Value, column: Any) -> Any:
        if value.kind in WHOLE or value.constant is not None:
            return self.F.lit(str(value.constant) == "-0.0")
        return column.cast("string") == "-0.0"

    def like(self, term: Term, column: Any, pattern: str, escape: str | None) -> Any:
        mark = next((chr(code) for code in range(0x21, 0x7F) if chr(code) not in pattern + "%_"), None)
        if mark is None:
            raise self.refuse(term, "the pattern has every sign that could escape another")
        written = ""
        position = 0
        while position < len(pattern):
            char, following = pattern[position], pattern[position + 1 : position + 2]
            if char == escape and following and following in ("%", "_", escape):
                if following == escape and not 0x10 <= ord(following) <= 0xFF:
                    raise self.refuse(term, "the broker's reading of this escape character is its own")
                written += mark + following if following in "%_" else following
                position += 2
                continue
            written += char
            position += 1
        return self.F.like(column, self.F.lit(written), self.F.lit(mark))

    # Values: a column of one Java type

    def value(self, term: Term) -> _Value:
        kind = TermKind(term.kind)
        if kind is TermKind.PROPERTY:
            return self.property(term)
        if kind is TermKind.LITERAL:
            return self.literal(term, term.value, term.java_type)
        if kind is TermKind.NEGATE:
            return self.negated(term)
        if kind in _ARITHMETIC:
            return self.arithmetic(term, _ARITHMETIC[kind])
        return _Value("boolean", self.truth(term))

    def property(self, term: Term) -> _Value:
        name = str(term.value)
        if name not in self.types:
            raise self.refuse(term, f"the type of {name} is not known")
        kind = _KINDS.get(self.types[name])
        if kind is None:
            raise self.refuse(term, f"{name} is a column of the type {self.types[name]}")
        column: Any = self.columns[name]
        if name in self.headers:
            fresh = self.headers[name]
            if fresh is not None:
                given = {bool: "boolean", int: "int", np.int64: "long", str: "string"}[type(fresh)]
                if given != kind:
                    raise self.refuse(term, f"{name} is a {given}, its column is not")
                column = self.F.coalesce(column, self.F.lit(fresh).cast(self.types[name]))
        return _Value(kind, column)

    def literal(self, term: Term, value: Any, java_type: int) -> _Value:
        if java_type not in _LITERALS:
            raise self.refuse(term, "this literal is beyond long" if java_type else "a null literal")
        kind = _LITERALS[java_type]
        return _Value(kind, self.F.lit(value).cast(_SPARK.get(kind, kind)), value)

    def negated(self, term: Term) -> _Value:
        inner = term.terms[0]
        value = self.value(inner)
        if value.kind in ("boolean", "string"):
            raise self.refuse(term, "the minus of a text or boolean")
        if value.kind in ("byte", "short"):
            raise self.refuse(term, f"the broker raises for the minus of a {value.kind}")
        if value.constant is not None and value.constant not in (-(2**31), -(2**63)):
            return self.literal(inner, -value.constant, {"int": 4, "long": 5, "double": 7}[value.kind])
        if value.kind == "long":
            lowest = self.F.lit(-(2**63)).cast("bigint")
            return _Value("long", self.F.when(value.column == lowest, lowest).otherwise(-value.column))
        if value.kind == "int":
            return _Value("int", self.wrapped(-value.column.cast("bigint")))
        return _Value(value.kind, -value.column)

    def arithmetic(self, term: Term, operator: str) -> _Value:
        left, right = map(self.value, term.terms)
        for value in (left, right):
            if value.kind not in NUMBERS:
                raise self.refuse(term, f"{operator} of a {value.kind}")
        if operator in "/%":
            if not right.constant:
                raise self.refuse(term, f"{operator} by what may be 0")
            a, b = left.column.cast("double"), right.column.cast("double")
            return _Value("double", a / b if operator == "/" else a % b)
        if {left.kind, right.kind} & {"float", "double"}:
            return _Value("double", _computed(operator, *(v.column.cast("double") for v in (left, right))))
        if "long" in (left.kind, right.kind):
            raise self.refuse(term, f"{operator} of longs wraps around, which Spark does not")
        return _Value("int", self.wrapped(_computed(operator, *(v.column.cast("bigint") for v in (left, right)))))

    def wrapped(self, column: Any) -> Any:
        """The low 32 bits of a bigint as an int."""
        low = (column + self.F.lit(2**31)).bitwiseAND(self.F.lit(2**32 - 1).cast("bigint"))
        return (low - self.F.lit(2**31).cast("bigint")).cast("int")


def _related(relation: str, a: Any, b: Any) -> Any:
    match relation:
        case "=":
            return a == b
        case "<":
            return a < b
        case "<=":
            return a <= b
        case ">":
            return a > b
        case _:
            return a >= b


def _computed(operator: str, a: Any, b: Any) -> Any:
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case _:
            return a * b
