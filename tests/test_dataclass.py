"""Classes that are declared by the standard dataclass and by ours, which differ only in when a method is made."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import KW_ONLY, field
from typing import Any, ClassVar

import pytest

from pyengine.dataclass import Deferred, dataclass


def declared(decorate: Callable[..., Any]) -> dict[str, Any]:
    """Classes of each kind that pyengine has, by one decorator."""

    @decorate(frozen=True, slots=True)
    class Frozen:
        """Documented."""

        KIND: ClassVar[str] = "frozen"
        a: int
        b: str = field(default="x", repr=False)
        c: list[int] = field(default_factory=list, compare=False)
        d: str = field(default="fixed", init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "a", int(self.a))

    @decorate(frozen=True)
    class Plain:
        a: float
        _: KW_ONLY
        b: int = 2

    @decorate(frozen=True)
    class Derived(Plain):
        c: int = 3

    @decorate(frozen=True, slots=True, kw_only=True)
    class Keywords:
        a: int = 1

    @decorate(slots=True)
    class Changeable:
        a: int
        b: Any = None

    @decorate(eq=False)
    class Identity:
        a: int = 1

        def __repr__(self) -> str:
            return "its own"

    @decorate
    class Bare:
        a: int = 1

    @decorate(frozen=True, slots=True)
    class Empty:
        pass

    @decorate(frozen=True, slots=True)
    class Hashed:
        a: list[int]

        def __hash__(self) -> int:
            return 7

    return {
        kind.__name__: kind for kind in (Frozen, Plain, Derived, Keywords, Changeable, Identity, Bare, Empty, Hashed)
    }


OURS, STANDARD = declared(dataclass), declared(dataclasses.dataclass)
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Frozen", (1,), {}),
    ("Frozen", ("2", "y", [1]), {}),
    ("Frozen", (1, "x", [5]), {}),
    ("Frozen", (), {}),
    ("Frozen", (1,), {"d": "no"}),
    ("Plain", (float("nan"),), {}),
    ("Plain", (1.0,), {"b": 1}),
    ("Plain", (1.0, 1), {}),
    ("Derived", (1.0, 4), {"b": 5}),
    ("Keywords", (), {"a": 4}),
    ("Keywords", (4,), {}),
    ("Changeable", (1,), {}),
    ("Changeable", ([1], {2}), {}),
    ("Identity", (5,), {}),
    ("Bare", (), {}),
    ("Empty", (), {}),
    ("Empty", (1,), {}),
    ("Hashed", ([1],), {}),
]


def tried(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", OURS)
def test_a_class_is_described_alike(name: str) -> None:
    ours, standard = OURS[name], STANDARD[name]
    assert inspect.signature(ours) == inspect.signature(standard)
    assert [(each.name, each.type, each.kw_only, each.init) for each in dataclasses.fields(ours)] == [
        (each.name, each.type, each.kw_only, each.init) for each in dataclasses.fields(standard)
    ]
    assert getattr(ours, "__slots__", None) == getattr(standard, "__slots__", None)
    assert ours.__match_args__ == standard.__match_args__
    assert repr(ours.__dataclass_params__) == repr(standard.__dataclass_params__)
    assert ours.__init__.__qualname__ == standard.__init__.__qualname__
    assert (ours.__hash__ is None) == (standard.__hash__ is None)


@pytest.mark.parametrize(("name", "values", "named"), CALLS)
def test_an_object_behaves_alike(name: str, values: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Made, shown, compared with each other object, hashed, changed, copied."""
    found = []
    for kinds in (OURS, STANDARD):
        kind = kinds[name]
        one = tried(lambda kind=kind: kind(*copy.deepcopy(values), **named))
        if isinstance(one, tuple):
            found.append([one])
            continue
        others = [tried(lambda call=call, kinds=kinds: kinds[call[0]](*call[1], **call[2])) for call in CALLS]
        again = dataclasses.replace(one) if name != "Frozen" else copy.copy(one)
        found.append([
            repr(one) if name != "Identity" else "its own",
            [one == other for other in others],
            one == one,
            again == one,
            tried(lambda one=one: hash(one)),
            tried(lambda one=one: setattr(one, "a", 9)) if name != "Empty" else None,
            tried(lambda one=one: setattr(one, "unknown", 9)) if name in ("Plain", "Derived") else None,
            tried(lambda one=one: delattr(one, "a")) if name != "Empty" else None,
            tried(lambda one=one: one.a),
            tried(lambda one=one: dataclasses.asdict(one)),
        ])  # fmt: skip
    ours, standard = ([str(each) for each in each_found] for each_found in found)
    if name in ("Identity", "Bare", "Changeable"):  # a hash of the object's address
        ours[4:5], standard[4:5] = [], []
    assert ours == standard


@dataclass(frozen=True, slots=True)
class Kept:
    a: int
    b: tuple[int, ...] = ()


def test_a_frozen_class_with_slots_is_pickled_as_a_list_of_values() -> None:
    one = Kept(1, (2, 3))
    assert one.__getstate__() == [1, (2, 3)]  # type: ignore[attr-defined]
    assert [pickle.loads(pickle.dumps(one, protocol)) for protocol in range(2, 6)] == [one] * 4
    assert copy.deepcopy(one) == one


def test_a_repr_that_contains_itself_ends() -> None:
    one = OURS["Changeable"](1)
    one.b = one
    assert repr(one).endswith("Changeable(a=1, b=...)")


def test_frozen_and_changeable_classes_do_not_derive_from_each_other() -> None:
    with pytest.raises(TypeError, match="must both be frozen"):
        dataclass(type("Wrong", (OURS["Plain"],), {}))
    with pytest.raises(TypeError, match="must both be frozen"):
        dataclass(frozen=True)(type("Wrong", (OURS["Bare"],), {}))
    with pytest.raises(TypeError, match="cannot inherit"):
        dataclasses.dataclass(type("Wrong", (OURS["Plain"],), {}))
    dataclasses.dataclass(frozen=True)(type("Right", (OURS["Plain"],), {}))


def test_the_constructor_is_made_when_it_is_first_used() -> None:
    @dataclass(frozen=True, slots=True)
    class One:
        a: int

    class Two(One):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(5)

    assert isinstance(vars(One)["__init__"], Deferred)
    assert Two().a == 5
    assert inspect.isfunction(vars(One)["__init__"])
    assert One(6).a == 6
