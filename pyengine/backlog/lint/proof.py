"""What no test of examples can show: that selectors leave no message out, never meet, or can never be true.

The broker's rules (spec activemq 1.8, 1.9, 1.12) are written down for the solver z3 (extra ``lint``): three values,
missing properties, and the type of each property as a part of the question. What the solver offers as an example is
evaluated by the engine itself before it is reported; what it cannot decide, and what is written down here only in part
(arithmetic that overflows, functions, XPATH, byte, short and float properties), is answered with "not known", and so is
what takes the solver too many steps.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import Any, cast

from pyengine import InvalidSelectorError, SelectorEvaluationError
from pyengine._engine.matching.selector import Selector
from pyengine._engine.selector.ast import Term, TermKind
from pyengine._engine.selector.parser import parse
from pyengine.dataclass import dataclass
from pyengine.errors import MissingExtraError

# Bounds of one question: the solver's own count of its steps (the same on every machine), and time as a last resort.
STEPS = 1_000_000
TIMEOUT_MS = 10_000
TRIES = 6
LONGEST = 8000  # characters of all selectors of a question
EXACT_INTEGERS = 2**53
KINDS = BOOLEAN, LONG, DOUBLE, STRING = "boolean", "long", "double", "string"
# Headers that are never null, or whose type is known; of all others a selector is "not known".
NEVER_NULL = {
    "JMSPriority": LONG, "JMSTimestamp": LONG, "JMSExpiration": LONG, "JMSRedelivered": BOOLEAN,
    "JMSXDeliveryCount": LONG, "JMSXGroupSeq": LONG, "JMSXGroupFirstForConsumer": BOOLEAN, "JMSDeliveryMode": STRING,
}  # fmt: skip
MAY_BE_NULL = {"JMSType": STRING, "JMSCorrelationID": STRING, "JMSXGroupID": STRING}
RANGES = {"JMSPriority": (0, 9), "JMSTimestamp": (0, EXACT_INTEGERS), "JMSExpiration": (0, EXACT_INTEGERS),
          "JMSXDeliveryCount": (1, 2**31 - 1), "JMSXGroupSeq": (-(2**31), 2**31 - 1)}  # fmt: skip
COMPARISONS = {TermKind.LESS: "<", TermKind.LESS_EQUAL: "<=", TermKind.GREATER: ">", TermKind.GREATER_EQUAL: ">="}


class Stage(Enum):
    """How odd an example's message is."""

    USUAL = "every property is there, with the type that the selectors compare it with"
    MISSING = "a property is missing"
    OTHER_TYPE = "a property has another type than the selectors expect"


@dataclass(frozen=True, slots=True)
class Answer:
    """message: an example that the engine confirmed, or None. stage: how odd it is. proven: without an example, that
    there is none; False: not known."""

    message: dict[str, Any] | None
    stage: Stage | None
    proven: bool


class OutOfTimeError(Exception):
    """The time that ``within`` allows is over. asked: questions that were answered."""

    def __init__(self, asked: int) -> None:
        self.asked = asked
        super().__init__(asked)


@dataclass(slots=True)
class _Allowance:
    until: float
    asked: int = 0


_allowance: ContextVar[_Allowance | None] = ContextVar("allowance", default=None)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Questions asked here raise OutOfTimeError once so many seconds are over."""
    token = _allowance.set(_Allowance(time.monotonic() + seconds))
    try:
        yield
    finally:
        _allowance.reset(token)


class _NotWrittenDownError(Exception):
    """A part of the language that the encoding leaves out."""


@dataclass(slots=True)
class _Value:
    """A symbolic value: for each kind, when it has it and what it is then; no kind at all: null."""

    cases: dict[str, tuple[Any, Any]]


@dataclass(slots=True)
class _Truth:
    """A symbolic condition: when it is TRUE, when FALSE; neither: NULL."""

    true: Any
    false: Any


def always_false(selector: str) -> Answer:
    """An example that ``selector`` matches; proven: it never matches anything."""
    return _Question([selector]).find(lambda z3, truths: truths[0].true, lambda found: found[0])


def gap(selectors: Sequence[str]) -> Answer:
    """An example that none of the selectors matches; proven: every message is matched by one."""
    return _Question(selectors).find(
        lambda z3, truths: z3.Not(z3.Or([truth.true for truth in truths])), lambda found: not any(found)
    )


def overlap(one: str, other: str) -> Answer:
    """An example that both match; proven: they are disjoint."""
    return _Question([one, other]).find(
        lambda z3, truths: z3.And(truths[0].true, truths[1].true), lambda found: found[0] and found[1]
    )


def beyond(one: str, other: str) -> Answer:
    """An example that ``other`` matches and ``one`` does not; proven: ``one`` covers ``other``."""
    return _Question([one, other]).find(
        lambda z3, truths: z3.And(truths[1].true, z3.Not(truths[0].true)), lambda found: found[1] and not found[0]
    )


class _Question:
    """Some selectors, written down together over the properties they name."""

    def __init__(self, texts: Sequence[str]) -> None:
        try:
            import z3  # type: ignore[import-untyped]
        except ImportError as error:
            raise MissingExtraError("lint", "z3-solver") from error
        self.z3 = z3
        if allowance := _allowance.get():
            if time.monotonic() > allowance.until:
                raise OutOfTimeError(allowance.asked)
            allowance.asked += 1
        self.selectors = [Selector(text) for text in texts]
        self.symbols: dict[str, dict[str, Any]] = {}
        self.usual: dict[str, set[str]] = {}
        self.exact = True
        self.truths: list[_Truth] | None
        try:
            trees = [parse(text, "activemq") for text in texts]
            if sum(map(len, texts)) > LONGEST:
                raise _NotWrittenDownError("too long")
            if any(tree.convert for tree in trees):
                raise _NotWrittenDownError("convert_string_expressions:")
            self.truths = [self._condition(tree.root) for tree in trees]
        except _NotWrittenDownError:
            self.truths = None

    def find(self, wanted: Callable[[Any, list[_Truth]], Any], confirms: Callable[[list[bool]], bool]) -> Answer:
        """Ask for a usual message first, then for odder ones."""
        if self.truths is None:
            return Answer(None, None, proven=False)
        goal = wanted(self.z3, self.truths)
        decided = self.exact
        for stage in Stage:
            solver = self.z3.Solver()
            solver.set("timeout", TIMEOUT_MS)
            solver.set("rlimit", STEPS)
            solver.add(goal, *self._domain(stage))
            for _ in range(TRIES):
                outcome = solver.check()
                if outcome != self.z3.sat:
                    decided = decided and outcome == self.z3.unsat
                    break
                message, same = self._example(solver.model())
                if self._confirmed(message, confirms):
                    return Answer(message, stage, proven=False)
                solver.add(self.z3.Not(same))
            else:
                decided = False
        return Answer(None, None, proven=decided)

    def _confirmed(self, message: dict[str, Any], confirms: Callable[[list[bool]], bool]) -> bool:
        found = []
        for selector in self.selectors:
            try:
                found.append(selector.matches(message))
            except SelectorEvaluationError:
                found.append(False)
        return confirms(found)

    # ---- the message

    def _property(self, name: str) -> _Value:
        z3 = self.z3
        if name.startswith("JMS") and name not in NEVER_NULL and name not in MAY_BE_NULL:
            raise _NotWrittenDownError(name)
        if name not in self.symbols:
            self.symbols[name] = {
                "kind": z3.Int(f"{name} kind"),
                BOOLEAN: z3.Bool(f"{name} boolean"),
                LONG: z3.Int(f"{name} long"),
                DOUBLE: z3.Real(f"{name} double"),
                STRING: z3.String(f"{name} string"),
            }
            self.usual[name] = set()
        symbol = self.symbols[name]
        return _Value({kind: (symbol["kind"] == number, symbol[kind]) for number, kind in enumerate(KINDS, 1)})

    def _expect(self, term: Term, kind: str) -> None:
        """Note what a property is compared with: that is its usual type."""
        if term.kind == TermKind.PROPERTY and term.value in self.usual:
            self.usual[term.value].add(kind)

    def _domain(self, stage: Stage) -> Iterator[Any]:
        z3 = self.z3
        for name, symbol in self.symbols.items():
            kind = symbol["kind"]
            fixed = NEVER_NULL.get(name) or MAY_BE_NULL.get(name)
            if fixed:
                kinds = {fixed}
            elif stage is Stage.USUAL or stage is Stage.MISSING:
                kinds = self.usual[name] or set(KINDS)
            else:
                kinds = set(KINDS)
            allowed = [kind == KINDS.index(each) + 1 for each in kinds]
            if stage is not Stage.USUAL and name not in NEVER_NULL:
                allowed.append(kind == 0)
            yield z3.Or(allowed)
            low, high = RANGES.get(name, (-EXACT_INTEGERS, EXACT_INTEGERS))
            yield z3.And(symbol[LONG] >= low, symbol[LONG] <= high)
            if name == "JMSDeliveryMode":
                yield z3.Or(symbol[STRING] == "PERSISTENT", symbol[STRING] == "NON_PERSISTENT")

    def _example(self, model: Any) -> tuple[dict[str, Any], Any]:
        """The message that the model describes, and the condition that it is this one."""
        message: dict[str, Any] = {}
        same = []
        for name, symbol in self.symbols.items():
            number = model.eval(symbol["kind"], model_completion=True).as_long()
            same.append(symbol["kind"] == number)
            if number:
                kind = KINDS[number - 1]
                value = model.eval(symbol[kind], model_completion=True)
                same.append(symbol[kind] == value)
                message[name] = self._python(kind, value)
        return message, self.z3.And(same)

    def _python(self, kind: str, value: Any) -> Any:
        if kind == BOOLEAN:
            return self.z3.is_true(value)
        if kind == LONG:
            return value.as_long()
        if kind == DOUBLE:
            if not self.z3.is_rational_value(value):
                value = value.approx(20)
            return float(value.as_fraction())
        return re.sub(r"\\u\{([0-9a-fA-F]+)\}", lambda match: chr(int(match[1], 16)), value.as_string())

    # ---- conditions

    def _condition(self, term: Term) -> _Truth:
        z3 = self.z3
        kind = TermKind(term.kind)
        match kind:
            case TermKind.AND | TermKind.OR:
                parts = [self._condition(each) for each in term.terms]
                true, false = [part.true for part in parts], [part.false for part in parts]
                return (
                    _Truth(z3.And(true), z3.Or(false)) if kind is TermKind.AND else _Truth(z3.Or(true), z3.And(false))
                )
            case TermKind.NOT:
                part = self._condition(term.terms[0])
                return _Truth(part.false, part.true)
            case TermKind.CAST:
                self._expect(term.terms[0], BOOLEAN)
                value = self._value(term.terms[0])
                self._expect(term.terms[0], BOOLEAN)
                guard, payload = value.cases[BOOLEAN]
                true = z3.And(guard, payload)
                return _Truth(true, z3.And(self._present(value), z3.Not(true)))
            case TermKind.LITERAL:
                if term.value is None:
                    return _Truth(z3.BoolVal(False), z3.BoolVal(False))
                return _Truth(z3.BoolVal(bool(term.value)), z3.BoolVal(not term.value))
            case TermKind.EQUAL | TermKind.NOT_EQUAL:
                return self._equal(term, negated=kind is TermKind.NOT_EQUAL)
            case TermKind.LESS | TermKind.LESS_EQUAL | TermKind.GREATER | TermKind.GREATER_EQUAL:
                return self._ordered(COMPARISONS[kind], term.terms[0], term.terms[1])
            case TermKind.BETWEEN | TermKind.NOT_BETWEEN:
                subject, low, high = term.terms
                above = self._ordered(">=", subject, low)
                below = self._ordered("<=", subject, high)
                if kind is TermKind.BETWEEN:
                    return _Truth(z3.And(above.true, below.true), z3.Or(above.false, below.false))
                under, over = self._ordered("<", subject, low), self._ordered(">", subject, high)
                return _Truth(z3.Or(under.true, over.true), z3.And(under.false, over.false))
            case TermKind.IS_NULL | TermKind.IS_NOT_NULL:
                present = self._present(self._value(term.terms[0]))
                absent = z3.Not(present)
                return _Truth(absent, present) if kind is TermKind.IS_NULL else _Truth(present, absent)
            case TermKind.IN | TermKind.NOT_IN:
                value = self._value(term.terms[0])
                self._expect(term.terms[0], STRING)
                guard, text = value.cases[STRING]
                member = z3.Or([text == each for each in cast(tuple[str, ...], term.value)])
                inside, outside = z3.And(guard, member), z3.And(guard, z3.Not(member))
                return _Truth(inside, outside) if kind is TermKind.IN else _Truth(outside, inside)
            case TermKind.LIKE | TermKind.NOT_LIKE:
                value = self._value(term.terms[0])
                self._expect(term.terms[0], STRING)
                guard, text = value.cases.get(STRING, (z3.BoolVal(False), z3.StringVal("")))
                true = z3.And(guard, z3.InRe(text, self._pattern(*cast(tuple[str, str | None], term.value))))
                false = z3.And(self._present(value), z3.Not(true))
                return _Truth(true, false) if kind is TermKind.LIKE else _Truth(false, true)
            case _:
                raise _NotWrittenDownError(kind.name)

    def _present(self, value: _Value) -> Any:
        return self.z3.Or([guard for guard, _ in value.cases.values()])

    def _equal(self, term: Term, *, negated: bool) -> _Truth:
        z3 = self.z3
        left_term, right_term = term.terms
        left, right = self._value(left_term), self._value(right_term)
        self._note(left_term, right_term, right)
        self._note(right_term, left_term, left)
        left_there, right_there = self._present(left), self._present(right)
        same = [z3.And(a[0], b[0], a[1] == b[1]) for a, b in self._pairs(left, right)]
        # Both missing are equal; a value and a missing right side are not; a missing left side makes it unknown.
        true = z3.Or(z3.And(z3.Not(left_there), z3.Not(right_there)), *same)
        false = z3.And(left_there, z3.Not(z3.Or([z3.BoolVal(False), *same])))
        return _Truth(false, true) if negated else _Truth(true, false)

    def _ordered(self, relation: str, left_term: Term, right_term: Term) -> _Truth:
        z3 = self.z3
        left, right = self._value(left_term), self._value(right_term)
        self._note(left_term, right_term, right)
        self._note(right_term, left_term, left)
        holds = []
        for (a_guard, a), (b_guard, b) in self._pairs(left, right):
            if z3.is_bool(a):
                a, b = z3.If(a, 1, 0), z3.If(b, 1, 0)
            if z3.is_string(a):
                self.exact = False  # the broker orders UTF-16 units, z3 orders code points
            order: Any = {"<": lambda x, y: x < y, "<=": lambda x, y: x <= y, ">": lambda x, y: y < x,
                     ">=": lambda x, y: y <= x}[relation]  # fmt: skip
            holds.append(z3.And(a_guard, b_guard, order(a, b)))
        true = z3.Or([z3.BoolVal(False), *holds])
        return _Truth(true, z3.And(self._present(left), self._present(right), z3.Not(true)))

    def _note(self, term: Term, other: Term, value: _Value) -> None:
        if term.kind == TermKind.PROPERTY and other.kind != TermKind.PROPERTY:
            for kind in value.cases:
                self._expect(term, kind)

    def _pairs(self, left: _Value, right: _Value) -> Iterator[tuple[tuple[Any, Any], tuple[Any, Any]]]:
        """Cases of both sides that the broker compares; all others are simply not equal and in no order."""
        for one, a in left.cases.items():
            for other, b in right.cases.items():
                if one == other:
                    yield a, b
                elif {one, other} == {LONG, DOUBLE}:
                    yield (a[0], self._real(one, a[1])), (b[0], self._real(other, b[1]))

    def _real(self, kind: str, payload: Any) -> Any:
        return self.z3.ToReal(payload) if kind == LONG else payload

    # ---- values

    def _value(self, term: Term) -> _Value:
        z3 = self.z3
        kind = TermKind(term.kind)
        if kind is TermKind.PROPERTY:
            return self._property(str(term.value))
        if kind is TermKind.LITERAL:
            return self._literal(term.value)
        if kind is TermKind.NEGATE:
            inner = self._value(term.terms[0])
            return _Value({k: (guard, -payload) for k, (guard, payload) in inner.cases.items() if k in (LONG, DOUBLE)})
        if kind in (TermKind.ADD, TermKind.SUBTRACT, TermKind.MULTIPLY, TermKind.DIVIDE, TermKind.REMAINDER):
            return self._arithmetic(kind, *term.terms)
        truth = self._condition(term)
        return _Value({BOOLEAN: (z3.Or(truth.true, truth.false), truth.true)})

    def _literal(self, value: Any) -> _Value:
        z3 = self.z3
        yes = z3.BoolVal(True)
        if value is None:
            return _Value({})
        if isinstance(value, bool):
            return _Value({BOOLEAN: (yes, z3.BoolVal(value))})
        if isinstance(value, int):
            if abs(value) > EXACT_INTEGERS:
                raise _NotWrittenDownError("a literal beyond 2**53")
            return _Value({LONG: (yes, z3.IntVal(value))})
        if isinstance(value, float):
            if value in (float("inf"), float("-inf")):
                raise _NotWrittenDownError("an infinite literal")
            numerator, denominator = value.as_integer_ratio()
            return _Value({DOUBLE: (yes, z3.Q(numerator, denominator))})
        return _Value({STRING: (yes, z3.StringVal(value))})

    def _arithmetic(self, kind: TermKind, left_term: Term, right_term: Term) -> _Value:
        """Of numbers, without overflow and rounding: enough for an example, never for a proof."""
        z3 = self.z3
        self.exact = False
        if kind is TermKind.REMAINDER:
            raise _NotWrittenDownError("%")
        left, right = self._value(left_term), self._value(right_term)
        for term in (left_term, right_term):
            self._expect(term, LONG)
            self._expect(term, DOUBLE)
        operate: Any = {
            TermKind.ADD: lambda a, b: a + b,
            TermKind.SUBTRACT: lambda a, b: a - b,
            TermKind.MULTIPLY: lambda a, b: a * b,
            TermKind.DIVIDE: lambda a, b: a / b,
        }[kind]
        guards: dict[str, list[tuple[Any, Any]]] = {LONG: [], DOUBLE: []}
        for one in (LONG, DOUBLE):
            for other in (LONG, DOUBLE):
                if one not in left.cases or other not in right.cases:
                    continue
                (a_guard, a), (b_guard, b) = left.cases[one], right.cases[other]
                whole = one == other == LONG and kind is not TermKind.DIVIDE
                if not whole:
                    a, b = self._real(one, a), self._real(other, b)
                guards[LONG if whole else DOUBLE].append((z3.And(a_guard, b_guard), operate(a, b)))
        cases = {}
        for result, found in guards.items():
            if found:
                payload = found[-1][1]
                for guard, value in found[:-1]:
                    payload = z3.If(guard, value, payload)
                cases[result] = (z3.Or([guard for guard, _ in found]), payload)
        return _Value(cases)

    def _pattern(self, pattern: str, escape: str | None) -> Any:
        z3 = self.z3
        any_char = z3.AllChar(z3.ReSort(z3.StringSort()))
        parts = [z3.Re("")]
        position = 0
        while position < len(pattern):
            char = pattern[position]
            following = pattern[position + 1 : position + 2]
            if char == escape and following and following in ("%", "_", escape):
                parts.append(z3.Re(following))
                position += 1
            elif char == "%":
                parts.append(z3.Star(any_char))
            elif char == "_":
                parts.append(any_char)
            else:
                parts.append(z3.Re(char))
            position += 1
        return z3.Concat(*parts) if len(parts) > 1 else parts[0]


__all__ = ["Answer", "InvalidSelectorError", "Stage", "always_false", "beyond", "gap", "overlap"]
