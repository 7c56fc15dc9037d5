"""The options of ``failover:(tcp://a:61616,ssl://b:61617)?randomize=false`` (FailoverTransport)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from pyengine.activemq.options import BrokerURL, UnknownOptions, broker_url, camel_case, whole_number
from pyengine.attributes import frozen
from pyengine.errors import ConfigurationError, did_you_mean

LONG = 64


@frozen
@dataclass(frozen=True, slots=True)
class FailoverOptions:
    """How a connection is made again. Times are ms; -1 attempts or ms: no limit.

    initial_reconnect_delay: before the first attempt after a failure, then between rounds through all addresses, with
    use_exponential_back_off each time back_off_multiplier times longer, up to max_reconnect_delay. reconnect_delay: the
    first wait of all, while no broker is reached. max_reconnect_attempts: rounds before the connection fails, 0: it is
    never made again; startup_max_reconnect_attempts: the same before it was there once. timeout: that a message waits
    for a broker. randomize: the order of the addresses. backup: backup_pool_size connections to other addresses stand
    ready. priority_backup: go back to priority_uris, or without them to the first address, as soon as it is there.
    track_messages: messages outside transactions are sent again, the last max_cache_size bytes of them.
    track_transaction_producers: see ConnectionStateTracker. update_uris_supported: the broker may name other
    addresses; update_uris_url: a file that does; rebalance_update_uris: the connection moves then. reconnect_supported:
    the broker may send the client elsewhere. warn_after_reconnect_attempts: rounds between two warnings in the log,
    0 for none. nested: options of every address.
    """

    initial_reconnect_delay: int = 10
    max_reconnect_delay: int = 30_000
    reconnect_delay: int = 10
    back_off_multiplier: float = 2.0
    use_exponential_back_off: bool = True
    max_reconnect_attempts: int = -1
    startup_max_reconnect_attempts: int = -1
    timeout: int = -1
    randomize: bool = True
    backup: bool = False
    backup_pool_size: int = 1
    priority_backup: bool = False
    priority_uris: tuple[str, ...] = ()
    track_messages: bool = False
    track_transaction_producers: bool = True
    max_cache_size: int = 128 * 1024
    update_uris_supported: bool = True
    update_uris_url: str = ""
    rebalance_update_uris: bool = True
    reconnect_supported: bool = True
    warn_after_reconnect_attempts: int = 10
    nested: str = ""


_INTS = ("max_reconnect_attempts", "startup_max_reconnect_attempts", "backup_pool_size", "max_cache_size",
         "warn_after_reconnect_attempts")  # fmt: skip
_NAMES = {
    **{camel_case(each.name): each for each in fields(FailoverOptions) if each.name != "nested"},
    **{
        name: each
        for each in fields(FailoverOptions)
        for name, field in (
            ("reconnectDelayExponent", "back_off_multiplier"),  # the setter's name; pages say backOffMultiplier
            ("priorityURIs", "priority_uris"),
            ("updateURIsSupported", "update_uris_supported"),
            ("updateURIsURL", "update_uris_url"),
            ("rebalanceUpdateURIs", "rebalance_update_uris"),
        )
        if each.name == field
    },
}
for _name in ("priorityUris", "updateUrisSupported", "updateUrisUrl", "rebalanceUpdateUris"):
    del _NAMES[_name]


def failover_options(given: Mapping[str, str], unknown: UnknownOptions = UnknownOptions.REFUSE) -> FailoverOptions:
    """Read the options behind the brackets, those of ``jms.`` left out.

    Raises ConfigurationError for one that does not exist, and for a value that it cannot have.
    """
    found: dict[str, Any] = {}
    nested = []
    for name, text in given.items():
        if name.startswith("nested."):
            nested.append(f"{name.removeprefix('nested.')}={text}")
            continue
        each = _NAMES.get(name)
        if each is None:
            if unknown is UnknownOptions.REFUSE:
                hint = did_you_mean(name, _NAMES) or f"nested.{name} gives it to every address"
                raise ConfigurationError(name, text, "no such option of failover:", hint)
            continue
        like = each.default
        value: Any = text
        if isinstance(like, bool):
            value = text.lower() == "true"
        elif isinstance(like, int):
            value = whole_number(name, text, 32 if each.name in _INTS else LONG)
        elif isinstance(like, float):
            try:
                value = float(text)
            except ValueError as error:
                raise ConfigurationError(name, text, "not a number") from error
        elif isinstance(like, tuple):
            value = tuple(part.strip() for part in text.split(",") if part.strip())
            for part in value:
                address_of(part)
        if name == "updateURIsURL" and "://" in text and not text.startswith("file://"):
            raise ConfigurationError(name, text, "only a file is read", "write its path, or file:///path")
        found[each.name] = value
    return FailoverOptions(**found, nested="&".join(nested))


def address_of(text: str, nested: str = "", unknown: UnknownOptions = UnknownOptions.REFUSE) -> BrokerURL:
    """One address between the brackets, with the options that all have. Raises ConfigurationError."""
    if nested:
        text += f"{'&' if '?' in text else '?'}{nested}"
    parts = broker_url(text, unknown)
    if parts.scheme not in ("tcp", "ssl"):
        raise ConfigurationError("failover:", text, "not an address of the network", "tcp://host:61616 is one")
    for name, value in parts.jms.items():
        hint = f"write it behind the brackets: failover:({text.partition('?')[0]})?jms.{name}={value}"
        raise ConfigurationError(f"jms.{name}", value, "it is not an option of one address", hint)
    return parts
