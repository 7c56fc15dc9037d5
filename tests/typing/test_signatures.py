"""The signature that ``inspect`` finds for each public class, method and function is that of its stub or source: names,
kinds and defaults of the parameters, in their order."""

from __future__ import annotations

import ast
import enum
import functools
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pyengine
import pyengine.rocketmq
from tests.memory.cases import public_classes

Parameters = list[tuple[str, str, str]]
KINDS = dict(zip(inspect._ParameterKind, ("/", "", "*args", "*", "**"), strict=True))
OPEN = "..."  # a default that the stub leaves open


@functools.cache
def declared(module: str) -> ast.Module:
    """The stub of a compiled module, the source of another one."""
    path = Path(sys.modules[module].__file__ or "")
    stub = path.parent / f"{path.name.partition('.')[0]}.pyi"
    return ast.parse((stub if stub.exists() else path).read_text("utf-8"))


def class_of(kind: type) -> ast.ClassDef:
    """Where a class is declared."""
    tree = ast.walk(declared(kind.__module__))
    return next(each for each in tree if isinstance(each, ast.ClassDef) and each.name == kind.__name__)


def default(node: ast.expr | None) -> str:
    """A default as its value is written; empty without one, OPEN for what is not a literal."""
    if node is None:
        return ""
    try:
        return repr(ast.literal_eval(node)).replace("Ellipsis", OPEN)
    except ValueError:
        return OPEN


def stated(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Parameters:
    """The parameters that a declaration names."""
    given = function.args
    places = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(places) - len(given.defaults)) + list(given.defaults)
    found = [
        (each.arg, "/" if number < len(given.posonlyargs) else "", default(value))
        for number, (each, value) in enumerate(zip(places, defaults, strict=True))
    ]
    found += [(given.vararg.arg, "*args", "")] if given.vararg else []
    found += [(each.arg, "*", default(value)) for each, value in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    # What refuses an unknown keyword with the name that was meant is not a parameter.
    found += [(given.kwarg.arg, "**", "")] if given.kwarg and given.kwarg.arg != "unknown" else []
    return found


def shown(of: Any) -> Parameters:
    """The parameters that a reader of signatures sees."""
    found = []
    for each in inspect.signature(of).parameters.values():
        value = "" if each.default is each.empty else repr(each.default).replace("Ellipsis", OPEN)
        assert "<object object at" not in value, f"{each.name}={value} cannot be read"
        found.append((each.name, KINDS[each.kind], value))
    return found


def same(is_stated: Parameters, is_shown: Parameters) -> bool:
    """Whether they say the same; a default that the declaration leaves open, or names, is there."""
    return [each[:2] for each in is_stated] == [each[:2] for each in is_shown] and all(
        one == other or (one == OPEN and other != "")
        for (_, _, one), (_, _, other) in zip(is_stated, is_shown, strict=True)
    )


def constructor(kind: type) -> ast.FunctionDef | None:
    """What makes objects of a class, of its own or of the nearest base; None where a decorator makes it."""
    for each in kind.__mro__[:-1]:
        if each.__module__.partition(".")[0] != "pyengine":
            continue
        for node in (found := class_of(each)).body:
            if isinstance(node, ast.FunctionDef) and node.name in ("__init__", "__new__"):
                return node
        made = [*map(ast.unparse, found.decorator_list), *map(ast.unparse, found.bases)]
        if any("dataclass" in each or "NamedTuple" in each for each in made):
            return None
    return None


def methods(kind: type) -> Iterator[tuple[str, Any, ast.FunctionDef | ast.AsyncFunctionDef, int]]:
    """Name, object, declaration, and how many of the first parameters do not count, of each public method."""
    for each in kind.__mro__[:-1]:
        if each.__module__.partition(".")[0] != "pyengine":
            continue
        for node in class_of(each).body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
                continue
            marks = {ast.unparse(mark).rpartition(".")[2] for mark in node.decorator_list}
            if marks & {"property", "cached_property", "setter", "deleter", "overload"}:
                continue
            first = 0 if "staticmethod" in marks else 1
            yield f"{each.__name__}.{node.name}", getattr(each, node.name), node, first


CLASSES = {
    f"{kind.__module__}.{kind.__name__}": kind for kind in public_classes().values() if not issubclass(kind, enum.Enum)
}
FUNCTIONS = {
    f"{value.__module__}.{value.__name__}": value
    for module in (
        pyengine,
        *(
            importlib.import_module(each.name)
            for each in pkgutil.walk_packages(pyengine.__path__, "pyengine.")
            if "__main__" not in each.name and "_engine" not in each.name
        ),
    )
    for name in getattr(module, "__all__", ())
    if callable(value := getattr(module, name))
    and not inspect.isclass(value)
    and getattr(value, "__module__", "").startswith("pyengine")
    and hasattr(value, "__name__")
}


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_and_its_methods_are_called_as_declared(name: str) -> None:
    kind = CLASSES[name]
    made = constructor(kind)
    found = shown(kind)  # there is one, of each kind of constructor
    if made is not None:
        assert same(stated(made)[1:], found), f"{stated(made)[1:]}\n{found}"
    for method, of, node, first in methods(kind):
        is_class_method = inspect.ismethod(of) or (inspect.isbuiltin(of) and isinstance(of.__self__, type))
        found = shown(of)[0 if is_class_method else first :]
        assert same(stated(node)[first:], found), f"{method}: {stated(node)[first:]}\n{found}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_called_as_declared(name: str) -> None:
    of = FUNCTIONS[name]
    (node,) = (
        each
        for each in declared(of.__module__).body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name == of.__name__
    )
    assert same(stated(node), shown(of)), f"{stated(node)}\n{shown(of)}"


def test_help_shows_the_call_and_the_docstring_does_not_repeat_it() -> None:
    for kind in (pyengine.Selector, pyengine.Message, pyengine.Subscriptions):
        assert kind.__text_signature__
        assert "--\n" not in (kind.__doc__ or ""), kind
        assert not (kind.__doc__ or "").startswith(f"{kind.__name__}("), kind
    assert str(inspect.signature(pyengine.Selector)) == "(text, dialect='activemq')"
    assert str(inspect.signature(pyengine.Selector("a = 1").matches)) == "(message, /)"


def test_the_limits_of_a_pull_are_those_of_the_parameters() -> None:
    """They are written by hand, too."""
    shown_limits = inspect.signature(pyengine.rocketmq.ProcessQueue.flow_control).parameters
    parameters = pyengine.rocketmq.ConsumerParameters
    for name in ("pull_threshold_for_queue", "pull_threshold_size_for_queue", "consume_concurrently_max_span"):
        assert shown_limits[name].default == getattr(parameters, name)


def test_a_message_takes_each_keyword_that_its_signature_names() -> None:
    """They are written by hand: the constructor takes what has an attribute."""
    parameters = inspect.signature(pyengine.Message).parameters
    fresh = pyengine.Message()
    for name, each in list(parameters.items())[1:]:
        made = pyengine.Message(**{name: each.default})
        assert getattr(made, name) == getattr(fresh, name), name
        assert each.default is None or getattr(fresh, name) == each.default, name
