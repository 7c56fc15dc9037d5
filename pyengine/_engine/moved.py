"""Modules that were moved go on under their earlier names: a pickle finds a class by the module that had it then."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # Python asks for its methods only, and importlib.abc imports all that reads packed resources
    from importlib.abc import Loader
else:
    Loader = object

PACKAGE = "pyengine._engine"
MODULES = {  # module of 0.1.0 -> wing and room; several: what it had is in all of them now
    "arrow": "columns.batch",
    "channel": "activemq.client.dispatch_channel activemq.commands.message_dispatch",
    "consume_lag": "rocketmq.broker.consume_lag",
    "consume_orderly": "rocketmq.client.consume_orderly",
    "consume_queue": "rocketmq.broker.consume_queue",
    "consume_rates": "rocketmq.client.consume_rates",
    "consume_timestamp": "rocketmq.client.consume_timestamp",
    "consumption": "activemq.client.message_consumer",
    "delay": "rocketmq.broker.delay_levels",
    "eviction": "activemq.topic.eviction_strategies",
    "exchange": "activemq.client.session_commands activemq.commands.message_ack",
    "groups": "activemq.queue.group_map",
    "hash_code": "java.hashing",
    "offset_table": "rocketmq.client.offset_table",
    "packed": "message.packed_messages",
    "process_queue": "rocketmq.client.process_queue",
    "pull": "rocketmq.client.pull_gate",
    "queue": "activemq.queue.queue activemq.commands.message_ack",
    "reasons": "activemq.queue.hold_reasons",
    "rebalance": "rocketmq.client.rebalance",
    "record": "rocketmq.broker.commit_log_record",
    "recovery": "activemq.topic.recovery_policies",
    "redelivery": "activemq.client.redelivery_policy",
    "regex": "java.regex",
    "subscriptions": "index.subscriptions",
    "syntax": "selector.parser",
    "topic_ledger": "activemq.topic.ledger",
    "tree": "selector.ast",
    "value": "java.value",
    "varint": "serialization.codec",
    "virtual": "activemq.region.virtual_destinations",
    "work": "rocketmq.client.work_table",
    "xpath": "selector.xpath",
}
# Module of 0.1.0 whose name is a wing now -> its room, and the names that pickles look up in it.
WINGS = {
    "message": ("message.message", ("Message", "rebuild")),
    "selector": ("matching.selector", ("Selector",)),
}


class MovedModules(Loader):
    """An import by the name that a module had gives the module, asked before a package's own folder is."""

    def __init__(self) -> None:
        self.modules: dict[str, str] = {}  # full name that a module had -> full name that it has

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's spec, None for any other name."""
        return ModuleSpec(fullname, self) if fullname in self.modules else None

    def create_module(self, spec: ModuleSpec) -> None:
        """The default: an empty one."""

    def exec_module(self, module: ModuleType) -> None:
        """Have the import give the module that has another name now, not a second one; of several, their names."""
        name = module.__name__
        found = [importlib.import_module(each) for each in self.modules[name].split()]
        if len(found) == 1:
            sys.modules[name] = found[0]
        for each in found:
            vars(module).update({key: value for key, value in vars(each).items() if not key.startswith("__")})


_moved = MovedModules()


def import_by_earlier_names(package: str, modules: Mapping[str, str]) -> None:
    """Let a package's modules be imported by their earlier names too, relative to it: name that each had -> has.

    Called at the end of the package's ``__init__``; a name that the package has itself, as of a function, stays.
    """
    for old, new in modules.items():
        if hasattr(sys.modules[package], old):
            sys.modules[f"{package}.{old}"] = importlib.import_module(f"{package}.{new}")
        else:
            _moved.modules[f"{package}.{old}"] = f"{package}.{new}"


def register() -> None:
    """Let pickles of 0.1.0 find what they name. Called once, when ``pyengine`` is imported."""
    sys.meta_path.insert(0, _moved)
    _moved.modules |= {
        f"{PACKAGE}.{old}": " ".join(f"{PACKAGE}.{each}" for each in new.split()) for old, new in MODULES.items()
    }
    for wing, (room, names) in WINGS.items():
        source = importlib.import_module(f"{PACKAGE}.{room}")
        vars(importlib.import_module(f"{PACKAGE}.{wing}")).update({name: vars(source)[name] for name in names})
