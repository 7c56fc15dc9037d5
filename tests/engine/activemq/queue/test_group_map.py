"""The three group maps against plain dictionaries, and what the broker documents about them."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyengine._engine.java.hashing import hash_code
from pyengine.activemq import GroupMap
from pyengine.errors import InvalidTopologyError
from tests.model.queue_model import ModelGroups

NAMES = ["a", "b", "c", "d", "Aa", "BB", "", "\U0001f600"]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "get", "close", "remove", "consumer", "all"]),
        st.sampled_from(NAMES),
        st.integers(0, 3),
    ),
    max_size=60,
)
KINDS = ["simple", "cached", "cached?cacheSize=2", "cached?cacheSize=1", "bucket", "bucket?bucketCount=3"]


@settings(max_examples=200, deadline=None)
@given(kind=st.sampled_from(KINDS), steps=STEPS)
def test_maps_behave_as_dictionaries(kind: str, steps: list[tuple[str, str, int]]) -> None:
    groups = GroupMap(kind)
    model = ModelGroups(kind.partition("?")[0], groups.capacity, groups.bucket)
    for step, name, consumer in steps:
        match step:
            case "put":
                groups.put(name, consumer)
                model.assign(name, consumer)
            case "get":
                assert groups.get(name) == model.get(name)
            case "close":
                owner = model.get(name, refresh=False)
                if owner is not None:
                    groups.close_group(name, owner)
                    model.close(name, owner)
            case "remove":
                groups.remove_group(name)
                model.drop(name)
            case "consumer":
                groups.remove_consumer(consumer)
                model.drop_consumer(consumer)
            case _:
                groups.remove_all()
                model.drop_all()
        groups._check()
        assert len(groups) == len(model.owner)
        assert [groups.count(number) for number in range(4)] == [model.counts.get(number, 0) for number in range(4)]
        if model.kind != "bucket":
            assert groups.owners() == dict(model.owner)
        if model.kind == "cached":
            assert list(groups.owners()) == list(model.owner)
    for twin in (pickle.loads(pickle.dumps(groups)), copy.copy(groups)):
        twin._check()
        assert twin.owners() == groups.owners()
        assert [twin.count(number) for number in range(4)] == [groups.count(number) for number in range(4)]
        assert [twin.get(name) for name in NAMES] == [groups.get(name) for name in NAMES]


def test_two_groups_of_one_bucket_share_an_owner() -> None:
    assert hash_code("Aa") == hash_code("BB") == 2112
    groups = GroupMap("bucket")
    groups.put("Aa", 3)
    assert groups.get("BB") == 3
    groups.close_group("BB", 3)
    assert groups.get("Aa") is None


def test_a_take_over_does_not_lower_the_count_of_the_old_owner() -> None:
    groups = GroupMap("simple")
    groups.put("a", 0)
    groups.put("a", 1)
    assert (groups.count(0), groups.count(1)) == (1, 1)


@pytest.mark.parametrize("factory", ["cache", "cached?bucketCount=3", "cached?cacheSize=x", "bucket?bucketCount=0", ""])
def test_a_wrong_factory_is_refused(factory: str) -> None:
    with pytest.raises(InvalidTopologyError):
        GroupMap(factory)
