"""The names that modules had in 0.1.0 go on working: imports, attributes, what pickles look up."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from pyengine import activemq
from pyengine.activemq.moved import MODULES, PACKAGES


@pytest.mark.parametrize("name", MODULES)
def test_a_former_name_is_the_module_itself(name: str) -> None:
    module = importlib.import_module(f"pyengine.activemq.{MODULES[name]}")
    assert importlib.import_module(f"pyengine.activemq.{name}") is module
    assert getattr(activemq, name) is module


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_gives_the_names_of_the_module_that_it_replaced(name: str) -> None:
    package = importlib.import_module(f"pyengine.activemq.{name}")
    module = importlib.import_module(f"pyengine.activemq.{PACKAGES[name]}")
    for each in module.__dict__:
        if not each.startswith("__"):
            assert getattr(package, each) in (getattr(module, each), sys.modules.get(f"{package.__name__}.{each}"))
    with pytest.raises(AttributeError, match="brokr"):
        _ = package.brokr


def test_a_program_of_0_1_0_finds_what_it_imports() -> None:
    code = (
        "from pyengine import activemq\n"
        "assert activemq.events.DeadLetter and activemq.broker.running_broker\n"
        "from pyengine.activemq.assignments import ASSIGNMENT_SCHEMA\n"
        "from pyengine.activemq.broker import Broker, running_broker\n"
        "from pyengine.activemq.carry import STREAM_SCHEMA, Carry\n"
        "from pyengine.activemq.commands import ConnectionInfo, Transport\n"
        "from pyengine.activemq.connection import Connection\n"
        "from pyengine.activemq.connection_factory import ConnectionFactory\n"
        "from pyengine.activemq.dispatch import Dispatcher, dispatch_batches, dispatch_table\n"
        "from pyengine.activemq.events import DeadLetter\n"
        "from pyengine.activemq.options import ConnectionOptions, consumer_options\n"
        "from pyengine.activemq.store import SqliteStore, SyncStrategy\n"
        "import pyengine.activemq.views\n"
        "assert pyengine.activemq.views is pyengine.activemq.broker.views\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_another_name_is_unknown() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("pyengine.activemq.nothing")
    with pytest.raises(AttributeError, match=r"^module 'pyengine\.activemq' has no attribute 'nothing'$"):
        _ = activemq.nothing  # type: ignore[attr-defined]
