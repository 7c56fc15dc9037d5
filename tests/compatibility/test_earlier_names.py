"""Each module goes on under the names that it had: what pages of docs showed, what pickles of 0.1.0 name."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from pyengine.backlog.moved import MODULES as BACKLOG
from pyengine.rocketmq.moved import MODULES as ROCKETMQ

PACKAGES = {"pyengine.backlog": BACKLOG, "pyengine.rocketmq": ROCKETMQ}
MOVED = {
    f"{package}.{old}": f"{package}.{new}" for package, modules in PACKAGES.items() for old, new in modules.items()
}
SHOWN = {  # module that is a package now, or that docs showed -> names that were imported from it
    "pyengine.backlog.diagnose": "diagnose",
    "pyengine.backlog.evidence": "read_text",
    "pyengine.backlog.evidence.live": "of_consumer",
    "pyengine.backlog.group_simulation": "GroupVariant SimulatedClient simulate_group",
    "pyengine.backlog.lint": "lint lint_broker lint_consumer lint_consumers lint_spring",
    "pyengine.backlog.simulate": "SimulatedConsumer Simulation Variant Workload compare simulate",
    "pyengine.backlog.watch": "Watch",
    "pyengine.rocketmq.broker": "Broker",
    "pyengine.rocketmq.dispatch": "ConsumerGroup ConsumerGroups MessageColumns dispatch_messages",
    "pyengine.rocketmq.remoting": "ConsumeFromWhere MQClientAPI MessageModel PullMessageRequest PullResult PullStatus "
    "SendResult SendStatus SubscriptionData",
}


@pytest.mark.parametrize("old", MOVED)
def test_a_module_that_was_moved_is_the_same_one_under_both_names(old: str) -> None:
    assert importlib.import_module(old) is importlib.import_module(MOVED[old])


@pytest.mark.parametrize("module", SHOWN)
def test_what_was_imported_from_a_module_is_there(module: str) -> None:
    shown = importlib.import_module(module)
    assert [name for name in SHOWN[module].split() if not hasattr(shown, name)] == []


def test_a_function_keeps_the_name_that_a_module_had_too() -> None:
    code = (
        "import pyengine.rocketmq.consume_stats; from pyengine import rocketmq; print(rocketmq.consume_stats.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "consume_stats\n"


@pytest.mark.parametrize("package", PACKAGES)
def test_one_import_by_an_earlier_name_is_enough(package: str) -> None:
    modules = [f"{package}.{old}" for old in PACKAGES[package]]
    code = "".join(f"from {module.rpartition('.')[0]} import {module.rpartition('.')[2]}\n" for module in modules)
    subprocess.run([sys.executable, "-c", code], check=True)
