"""A broker as a file configures it: what of an ``activemq.xml`` the broker in this process is made with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import EllipsisType
from typing import Any

from pyengine.activemq.transport.connectors import check_open, connector_uri
from pyengine.dataclass import dataclass
from pyengine.destinations import Destination
from pyengine.errors import ConfigurationError
from pyengine.topology.broker import BrokerConfiguration, NotModelled


@dataclass(frozen=True, slots=True)
class Configured:
    """A broker as its file describes it.

    arguments: of Broker. empty_store: a folder whose store is deleted before the broker starts, None: none is.
    destinations: exist from the start. left_out: the settings of the file that the broker does not have.
    """

    arguments: dict[str, Any]
    empty_store: str | Path | None
    destinations: tuple[Destination, ...]
    left_out: tuple[NotModelled, ...]


@dataclass(frozen=True, slots=True)
class InPlace:
    """Arguments of the caller, which take the place of the file. directory: ``...`` is the file's."""

    name: str
    directory: str | Path | EllipsisType | None
    transport_connectors: tuple[str, ...] | None
    users: Mapping[str, str] | None
    allow_anonymous: bool


def configuration(
    source: str | Path, properties: Mapping[str, str] | None, environment: Mapping[str, str] | None, broker: str
) -> BrokerConfiguration:
    """Read a file, or its text, which begins with ``<``."""
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<"):
        return BrokerConfiguration.from_text(source, properties=properties, environment=environment, broker=broker)
    return BrokerConfiguration.load(source, properties=properties, environment=environment, broker=broker)


def configured(found: BrokerConfiguration, given: InPlace) -> Configured:
    """What a broker of this file is made with. A connector that other machines reach is left out if any client may
    connect, unless the caller names it."""
    folder = found.store_directory if isinstance(given.directory, EllipsisType) else given.directory
    left_out = list(found.not_modelled)
    users = dict(found.users) if given.users is None and found.users is not None else given.users
    connectors = given.transport_connectors
    if connectors is None:
        listened_on = []
        for uri in found.transport_connectors:
            try:
                check_open([connector_uri(uri)], users=users is not None, allow_anonymous=given.allow_anonymous)
            except ConfigurationError as error:
                line, element = found.places[uri]
                left_out.append(NotModelled(found.file, line, element, "uri", uri, str(error), False))
            else:
                listened_on.append(uri)
        connectors = tuple(listened_on)
    arguments = {
        "directory": folder,
        "name": given.name or found.name,
        "policies": found.policies,
        "virtual_destinations": found.virtual_destinations,
        "redelivery_plugin": found.redelivery_plugin,
        "discarding_plugin": found.discarding_plugin,
        "journal_disk_sync_strategy": found.journal_disk_sync_strategy,
        "offline_durable_subscriber_timeout": found.offline_durable_subscriber_timeout,
        "offline_durable_subscriber_task_schedule": found.offline_durable_subscriber_task_schedule,
        "schedule_period_for_destination_purge": found.schedule_period_for_destination_purge,
        "transport_connectors": connectors,
        "users": users,
        "allow_anonymous": given.allow_anonymous or found.anonymous_access_allowed,
        "scheduler_support": found.scheduler_support,
        "time_stamping_plugin": found.time_stamping_plugin,
        "force_persistency_mode_plugin": found.force_persistency_mode_plugin,
        "groups": dict(found.groups),
        "authorization_plugin": found.authorization_plugin,
        "statistics_plugin": found.statistics_plugin,
    }
    empty_store = folder if found.delete_all_messages_on_startup else None
    return Configured(arguments, empty_store, found.destinations, tuple(left_out))
