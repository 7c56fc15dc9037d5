"""The names that activemq's modules had in 0.1.0, when they all lay in one folder: programs and pickles use them."""

from __future__ import annotations

import importlib
import sys
from functools import partial
from types import ModuleType

from pyengine._engine.moved import import_by_earlier_names

PACKAGE = "pyengine.activemq"
MODULES = {  # module of 0.1.0 -> package and module
    "administration": "broker.administration",
    "advisories": "broker.advisories",
    "assignments": "tables.assignments",
    "browser": "client.browser",
    "carry": "tables.stream_state",
    "commands": "transport.commands",
    "connection": "client.connection",
    "connection_factory": "client.connection_factory",
    "consumer": "client.consumer",
    "dead_letters": "broker.dead_letters",
    "dispatch": "tables.dispatch",
    "durable_subscriptions": "broker.durable_subscriptions",
    "events": "broker.events",
    "inactive": "broker.inactive_destinations",
    "journal": "store.journal",
    "producer": "client.producer",
    "queues": "broker.queues",
    "record": "store.record",
    "reserve": "store.reserve",
    "router": "broker.router",
    "session": "client.session",
    "shapes": "tables.shapes",
    "slow_consumers": "broker.slow_consumers",
    "store_file": "store.store_file",
    "store_reader": "store.store_reader",
    "store_unit": "store.store_unit",
    "subscription": "broker.subscription",
    "tasks": "client.tasks",
    "topic_destination": "broker.topic_destination",
    "topic_dispatch": "tables.topic_dispatch",
    "topics": "broker.topics",
    "transaction": "broker.transaction",
    "views": "broker.views",
}
PACKAGES = {"broker": "broker.broker", "store": "store.store"}  # module whose name is a package now -> module


def former(name: str) -> ModuleType:
    """The module that was ``pyengine.activemq.name``, if it is looked up as an attribute."""
    if name not in MODULES:
        raise AttributeError(f"module {PACKAGE!r} has no attribute {name!r}", name=name, obj=sys.modules[PACKAGE])
    return importlib.import_module(f"{PACKAGE}.{name}")


def register() -> None:
    """Let the former names be found. Called once, when ``pyengine.activemq`` is imported."""
    import_by_earlier_names(PACKAGE, MODULES)
    vars(sys.modules[PACKAGE])["__getattr__"] = former
    for package, module in PACKAGES.items():
        vars(importlib.import_module(f"{PACKAGE}.{package}"))["__getattr__"] = partial(_of_module, module)


def _of_module(module: str, name: str) -> object:
    return getattr(importlib.import_module(f"{PACKAGE}.{module}"), name)
