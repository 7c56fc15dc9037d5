"""Where the modules are that pickles and programs of 0.1.0 name: a pickle finds a class by the module that had it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

PACKAGE = "pyengine._engine"
MODULES = {  # module of 0.1.0 -> wing and room
    "arrow": "columns.arrow",
    "channel": "activemq.client.dispatch_channel",
    "consume_lag": "rocketmq.broker.consume_lag",
    "consume_orderly": "rocketmq.client.consume_orderly",
    "consume_queue": "rocketmq.broker.consume_queue",
    "consume_rates": "rocketmq.client.consume_rates",
    "consume_timestamp": "rocketmq.client.consume_timestamp",
    "consumption": "activemq.client.message_consumer",
    "delay": "rocketmq.broker.delay_levels",
    "eviction": "activemq.topic.eviction_strategies",
    "exchange": "activemq.client.session_commands",
    "groups": "activemq.queue.group_map",
    "hash_code": "java.hashing",
    "offset_table": "rocketmq.client.offset_table",
    "packed": "message.packed_messages",
    "process_queue": "rocketmq.client.process_queue",
    "pull": "rocketmq.client.pull_gate",
    "queue": "activemq.queue.queue",
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


class MovedModules(MetaPathFinder, Loader):
    """An import of a module's former name in one package gives the module itself; asked last of all finders."""

    def __init__(self, package: str, modules: Mapping[str, str]) -> None:
        self._package = package
        self._modules = modules  # former name -> today's, both below the package

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's spec, None for any other name."""
        package, _, name = fullname.rpartition(".")
        return ModuleSpec(fullname, self) if package == self._package and name in self._modules else None

    def exec_module(self, module: ModuleType) -> None:
        """Put today's module in the place of the one that the import has made."""
        name = module.__name__.rpartition(".")[2]
        sys.modules[module.__name__] = importlib.import_module(f"{self._package}.{self._modules[name]}")


def register() -> None:
    """Let pickles of 0.1.0 find what they name. Called once, when ``pyengine`` is imported."""
    sys.meta_path.append(MovedModules(PACKAGE, MODULES))
    for wing, (room, names) in WINGS.items():
        source = importlib.import_module(f"{PACKAGE}.{room}")
        vars(importlib.import_module(f"{PACKAGE}.{wing}")).update({name: vars(source)[name] for name in names})
