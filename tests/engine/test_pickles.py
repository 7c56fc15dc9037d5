"""What of the core can be pickled says so itself; Cython's own pickling trusts the state it is given."""

from __future__ import annotations

import importlib
import pickle
import pkgutil

import numpy as np
import pytest

import pyengine._engine
import pyengine.activemq._runtime
from pyengine._engine.simulation.queue_simulation import RowMask


def test_no_class_is_pickled_by_cython() -> None:
    for package in (pyengine._engine, pyengine.activemq._runtime):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            for name, thing in vars(importlib.import_module(module.name)).items():
                if not hasattr(thing, "__reduce_cython__"):
                    continue
                try:
                    made = thing.__new__(thing)
                except TypeError:
                    continue  # it cannot be made so, and Cython leaves those alone
                with pytest.raises(TypeError):
                    print(module.name, name, made.__reduce_cython__())


def test_what_points_into_an_array_is_not_pickled() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(RowMask(np.ones(3, np.bool_)))
