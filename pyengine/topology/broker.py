"""A broker's configuration as a file gives it: policies, virtual destinations, what exists from the start, and the
parts of the file that are not read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Literal

from pyengine.attributes import frozen, named_arguments
from pyengine.dataclass import dataclass
from pyengine.destinations import Destination
from pyengine.topology import activemq_xml, broker_toml
from pyengine.topology.authorization import AuthorizationPlugin
from pyengine.topology.checked import Checked, check_arguments
from pyengine.topology.not_modelled import NotModelled as NotModelled
from pyengine.topology.policy import (
    DEFAULT_VIRTUAL_TOPIC,
    DiscardingPlugin,
    ForcePersistencyModePlugin,
    Policy,
    PolicyMap,
    RedeliveryPlugin,
    TimeStampingPlugin,
    VirtualDestination,
)


@named_arguments
@frozen
@dataclass(frozen=True)
class BrokerConfiguration(Checked):
    """What a broker is started with.

    virtual_destinations: a file's destinationInterceptors replace the default, consumer queues of ``VirtualTopic.>``.
    destinations: exist from the start. store_directory: the folder that the file names for messages, None: in memory
    (also without such a setting). journal_disk_sync_strategy: KahaDB's, "always" by default.
    offline_durable_subscriber_timeout, offline_durable_subscriber_task_schedule, schedule_period_for_destination_purge:
    ms, as Broker has them. delete_all_messages_on_startup: the broker begins with an empty store. transport_connectors:
    addresses that pyengine can listen on, as the file has them. users: names with their passwords, of
    simpleAuthenticationPlugin, None without it; anonymous_access_allowed, groups (of each user): of the same.
    statistics_plugin: whether there is one. not_modelled: everything in the
    file that is left out. places: of each policy entry, by its destination (the default entry's is empty), and of each
    transport connector, by its address, its line and its element as NotModelled names it. Equal configurations may come
    from different files: file, not_modelled and places take no part in comparing.
    """

    name: str = "localhost"
    persistent: bool = True
    data_directory: str = ""
    policies: PolicyMap = field(default=PolicyMap())
    virtual_destinations: tuple[VirtualDestination, ...] = (DEFAULT_VIRTUAL_TOPIC,)
    destinations: tuple[Destination, ...] = ()
    redelivery_plugin: RedeliveryPlugin | None = None
    discarding_plugin: DiscardingPlugin | None = None
    store_directory: str | None = None
    journal_disk_sync_strategy: Literal["always", "periodic", "never"] = "always"
    delete_all_messages_on_startup: bool = False
    offline_durable_subscriber_timeout: int = -1
    offline_durable_subscriber_task_schedule: int = 300_000
    schedule_period_for_destination_purge: int = 0
    transport_connectors: tuple[str, ...] = ()
    scheduler_support: bool = False
    time_stamping_plugin: TimeStampingPlugin | None = None
    force_persistency_mode_plugin: ForcePersistencyModePlugin | None = None
    users: tuple[tuple[str, str], ...] | None = field(default=None, repr=False)
    anonymous_access_allowed: bool = False
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    authorization_plugin: AuthorizationPlugin | None = None
    statistics_plugin: bool = False
    file: str = field(default="", compare=False)
    not_modelled: tuple[NotModelled, ...] = field(default=(), compare=False)
    places: Mapping[str, tuple[int, str]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        properties: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        broker: str = "",
    ) -> BrokerConfiguration:
        """Read an ``activemq.xml`` (any ``.xml``), or the same in TOML; see docs/policies.md.

        properties: values of ``${placeholders}``, before the property files that the XML names and the environment;
        activemq.conf, .base, .home and .data are last of all what the file's own folder says. environment: None is the
        process's own. broker: the brokerName to take if a file has several. Raises InvalidTopologyError with file,
        line, element and value; what ActiveMQ understands and pyengine does not is not an error but listed in
        ``not_modelled``.
        """
        check_arguments("BrokerConfiguration.load", cls.load, locals())
        if Path(path).suffix == ".toml":
            return cls(**broker_toml.load(path))
        return cls(**activemq_xml.load(Path(path), {} if properties is None else properties, environment, broker))

    @classmethod
    def from_text(
        cls,
        text: str,
        file: str = "",
        *,
        properties: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        broker: str = "",
    ) -> BrokerConfiguration:
        """The same of a string: XML if it begins with ``<``, else TOML. file: its name in errors; imports and property
        files of an XML are looked for beside it."""
        check_arguments("BrokerConfiguration.from_text", cls.from_text, locals())
        if not text.lstrip("\ufeff \t\r\n").startswith("<"):
            return cls(**broker_toml.parse(text, file))
        given, document = {} if properties is None else properties, _document(text)
        return cls(**activemq_xml.load(Path(file), given, environment, broker, document))

    @classmethod
    def each_from_text(
        cls, text: str, file: str = "", *, properties: Mapping[str, str] | None = None
    ) -> tuple[BrokerConfiguration, ...]:
        """The same of content that may have several brokers, in the order of the file."""
        names: list[str] = []
        if text.lstrip("\ufeff \t\r\n").startswith("<"):
            names = activemq_xml.names(Path(file), {} if properties is None else properties, None, _document(text))
        if len(set(names)) < 2:
            return (cls.from_text(text, file, properties=properties),)
        return tuple(cls.from_text(text, file, properties=properties, broker=name) for name in dict.fromkeys(names))

    def left_out_of(self, element: str) -> Mapping[str, str]:
        """The parts of an element that are not modelled, as NotModelled names them: attribute or child -> value as
        written."""
        return self._left_out.get(element, {})

    @cached_property
    def _left_out(self) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {}
        for part in self.not_modelled:
            if part.name:
                found.setdefault(part.element, {})[part.name] = part.value
        return found

    @cached_property
    def left_out_of_broker(self) -> Mapping[str, str]:
        """The same of the broker element itself."""
        found: dict[str, str] = {}
        for element, parts in self._left_out.items():
            if element.partition(" ")[0] == "broker":
                found = {**parts, **found}
        return found

    def policy_of(self, destination: Destination) -> Policy | None:
        """The policy entry that counts for a destination; None: the broker's built-in defaults."""
        return self.policies.policy_of(destination)


def _document(text: str) -> str:
    """XML without what may not stand before its declaration."""
    text = text.removeprefix("\ufeff")
    begun = text.lstrip()
    return begun if begun.startswith("<?xml") else text
