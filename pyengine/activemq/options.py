"""Options as text: ``jms.*`` of a broker URL and ``consumer.*`` of a destination (spec activemq 5).

Names are case-sensitive and those of the setters of ActiveMQConnectionFactory, ActiveMQPrefetchPolicy, RedeliveryPolicy
and ConsumerInfo; so are the defaults. As in the real client a boolean is true for "true" in any case and false for
anything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field, fields, replace
from enum import Enum
from typing import Any
from urllib.parse import unquote

from pyengine._engine.activemq.client.redelivery_policy import RedeliveryPolicy
from pyengine._engine.java.hashing import set_order
from pyengine.attributes import frozen, letters, named_arguments
from pyengine.dataclass import dataclass
from pyengine.destinations import query_options
from pyengine.durations import Milliseconds
from pyengine.errors import ConfigurationError, InvalidTopologyError, did_you_mean, shown
from pyengine.topology.checked import Checked
from pyengine.topology.policy import (
    CLIENT_BROWSER_PREFETCH,
    CLIENT_DURABLE_PREFETCHES,
    CLIENT_QUEUE_PREFETCH,
    CLIENT_TOPIC_PREFETCH,
)

MAX_PREFETCH_SIZE = CLIENT_TOPIC_PREFETCH
BYTE, INT, LONG = (8, 32, 64)
REDELIVERY_NAMES = (
    "maximum_redeliveries", "initial_redelivery_delay", "redelivery_delay", "use_exponential_back_off",
    "back_off_multiplier", "maximum_redelivery_delay", "use_collision_avoidance", "collision_avoidance_percent",
    "pre_dispatch_check",
)  # fmt: skip


class UnknownOptions(Enum):
    """What an unknown option does.

    REFUSE: raise ConfigurationError with the nearest known name. IGNORE: as the real client: on a destination only
    unknown names after ``consumer.`` are refused; on a URL unknown ``jms.`` names are refused only beside a known one.
    """

    REFUSE = "refuse"
    IGNORE = "ignore"


class _JavaOptions(Checked):
    """Options whose whole numbers are those of Java's: of 32 bits, or as a field's metadata say."""

    __slots__ = ()

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        own: Any = self
        for each in fields(own):
            value, bits = getattr(self, each.name), each.metadata.get("bits", INT)
            if isinstance(value, int) and not _fits(value, bits):
                name = f"{type(self).__name__}.{each.name}"
                raise ConfigurationError(name, shown(value), f"not a whole number of {bits} bits")


@named_arguments
@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class PrefetchPolicy(_JavaOptions):
    """How many messages a consumer may hold unacknowledged, by kind of destination; at most 32767.

    durable_topic_prefetch: of durable subscribers; optimize_durable_topic_prefetch counts instead in AUTO_ACKNOWLEDGE
    sessions with optimized_message_dispatch. maximum_pending_message_limit: of topic consumers, 0 is not set.
    """

    queue_prefetch: int = CLIENT_QUEUE_PREFETCH
    queue_browser_prefetch: int = CLIENT_BROWSER_PREFETCH
    topic_prefetch: int = MAX_PREFETCH_SIZE
    durable_topic_prefetch: int = CLIENT_DURABLE_PREFETCHES[0]
    optimize_durable_topic_prefetch: int = CLIENT_DURABLE_PREFETCHES[1]
    maximum_pending_message_limit: int = 0

    def __post_init__(self) -> None:
        _JavaOptions.__post_init__(self)
        for each in fields(self):
            if each.name != "maximum_pending_message_limit":
                object.__setattr__(self, each.name, min(getattr(self, each.name), MAX_PREFETCH_SIZE))


@named_arguments
@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOptions(_JavaOptions):
    """The ``jms.*`` options of a connection. Times are ms, or a timedelta.

    dispatch_async: the broker hands messages to the connection's dispatch task. always_session_async: sessions deliver
    to listeners on a task of their own; at most max_thread_pool_size threads, or with use_dedicated_task_runner one for
    each session. optimize_acknowledge: acknowledge after 65 % of the prefetch or optimize_acknowledge_time_out, and
    every optimized_ack_scheduled_ack_interval (0: off). message_priority_supported: consumers take the highest priority
    first. non_blocking_redelivery: other messages pass one that waits for redelivery. transacted_individual_ack: each
    message of a transaction is acknowledged by itself. consumer_expiry_check_enabled: expired messages are not
    delivered. use_async_send, always_sync_send: whether send() raises the broker's error; neither: for persistent
    messages outside transactions.
    send_acks_async: errors of acknowledgements go to the exception listener, and no thread waits while the broker's
    store is busy with others'. nested_map_and_list_enabled: messages with a property that is a map or a list may be
    sent. connection_id_prefix: what the connection's id begins with. warn_about_unstarted_connection_timeout: a message
    that comes to a connection later than so many ms after it was made, and before it was started, is warned of in the
    log ``pyengine.activemq``; below 0 none is. The rest counts with ``failover:``. check_for_duplicates: what the
    connection was given before does not reach a consumer again; it remembers audit_depth numbers of each of
    audit_maximum_producer_number producers. consumer_failover_redelivery_wait_period: a commit after a failover waits a
    quarter of it, at least 500 ms, for messages that the transaction had and that come again; 0: it does not wait.
    """

    client_id: str = field(default="", metadata={"option": "clientID"})
    connection_id_prefix: str = field(default="ID:", metadata={"option": "connectionIDPrefix"})
    dispatch_async: bool = True
    always_session_async: bool = True
    max_thread_pool_size: int = 1000
    use_dedicated_task_runner: bool = False
    optimize_acknowledge: bool = False
    optimize_acknowledge_time_out: Milliseconds = field(default=Milliseconds(300), metadata={"bits": LONG})
    optimized_ack_scheduled_ack_interval: Milliseconds = field(default=Milliseconds(0), metadata={"bits": LONG})
    message_priority_supported: bool = False
    exclusive_consumer: bool = False
    use_retroactive_consumer: bool = False
    non_blocking_redelivery: bool = False
    transacted_individual_ack: bool = False
    consumer_expiry_check_enabled: bool = True
    optimized_message_dispatch: bool = True
    copy_message_on_send: bool = True
    disable_time_stamps_by_default: bool = False
    use_async_send: bool = False
    always_sync_send: bool = False
    send_acks_async: bool = True
    nested_map_and_list_enabled: bool = True
    prefetch_policy: PrefetchPolicy = field(default_factory=PrefetchPolicy, metadata={"nested": True})
    redelivery_policy: RedeliveryPolicy = field(default_factory=RedeliveryPolicy, metadata={"nested": True})
    warn_about_unstarted_connection_timeout: Milliseconds = field(default=Milliseconds(500), metadata={"bits": LONG})
    check_for_duplicates: bool = True
    audit_depth: int = 2048
    audit_maximum_producer_number: int = 64
    consumer_failover_redelivery_wait_period: Milliseconds = field(default=Milliseconds(0), metadata={"bits": LONG})


# Where the values of the real factory's and connection's setters go: letters of a name -> what to do.
OF_OPTIONS: Mapping[str, str] = {
    **{
        letters(name): f"it belongs to a policy: ConnectionOptions({option}={kind.__name__}({name}=...))"
        for option, kind, names in (
            ("redelivery_policy", RedeliveryPolicy, REDELIVERY_NAMES),
            ("prefetch_policy", PrefetchPolicy, [each.name for each in fields(PrefetchPolicy)]),
        )
        for name in names
    },
    **{
        letters(each.name): f"it is an option: ConnectionFactory(options=ConnectionOptions({each.name}=...))"
        for each in fields(ConnectionOptions)
    },
}

# Setters of the real factory that change nothing inside one process, with a value of the kind that they are given and
# its bound.
WITHOUT_EFFECT: dict[str, tuple[Any, int]] = {
    **dict.fromkeys(("userName", "password", "clientIDPrefix", "trustedPackages"), ("", INT)),
    **dict.fromkeys(
        (
            "useCompression", "objectMessageSerializationDefered", "watchTopicAdvisories", "statsEnabled",
            "trustAllPackages", "rmIdFromConnectionId", "useVirtualThreadTaskRunner",
        ),
        (False, INT),
    ),
    **dict.fromkeys(
        (
            "closeTimeout", "sendTimeout", "producerWindowSize", "connectResponseTimeout", "requestTimeout",
        ),
        (0, INT),
    ),
    "maxInflatedDataSizeRatio": (0.0, INT),
}  # fmt: skip


def camel_case(name: str) -> str:
    """The setter's name of a field."""
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


def _boolean(text: str) -> bool:
    return text.lower() == "true"


def _fits(value: int, bits: int) -> bool:
    return -(1 << bits - 1) <= value < 1 << bits - 1


def whole_number(option: str, text: str, bits: int = INT) -> int:
    """A number as an option gives it. Raises ConfigurationError."""
    if not re.fullmatch(r"[+-]?[0-9]+", text) or not _fits(int(text), bits):
        raise ConfigurationError(option, text, f"not a whole number of {bits} bits")
    return int(text)


def _convert(option: str, text: str, like: object, bits: int) -> Any:
    if isinstance(like, bool):
        return _boolean(text)
    if isinstance(like, int):
        return whole_number(option, text, bits)
    if isinstance(like, float):
        try:
            return float(text.replace("_", "?"))  # which Python takes between digits, and Java nowhere
        except ValueError as error:
            raise ConfigurationError(option, text, "not a number") from error
    return text


_PREFETCH = {camel_case(each.name): each.name for each in fields(PrefetchPolicy)}
_REDELIVERY = {camel_case(name): name for name in REDELIVERY_NAMES}
_PLAIN = {
    each.metadata.get("option", camel_case(each.name)): each
    for each in fields(ConnectionOptions)
    if not each.metadata.get("nested")
}
KNOWN = frozenset(
    {
        *_PLAIN,
        *WITHOUT_EFFECT,
        "prefetchPolicy.all",
        *(f"prefetchPolicy.{name}" for name in _PREFETCH),
        *(f"redeliveryPolicy.{name}" for name in _REDELIVERY),
    }
)


def connection_options(
    options: Mapping[str, str],
    base: ConnectionOptions | None = None,
    unknown: UnknownOptions = UnknownOptions.REFUSE,
) -> ConnectionOptions:
    """``base`` with the options given, names without ``jms.``. Raises ConfigurationError."""
    result = ConnectionOptions() if base is None else base
    plain: dict[str, Any] = {}
    prefetch: dict[str, Any] = {}
    redelivery: dict[str, Any] = {}
    strange: list[tuple[str, str]] = []
    for name, text in options.items():
        option = f"jms.{name}"
        group, _, inner = name.rpartition(".")
        if name in _PLAIN:
            each = _PLAIN[name]
            plain[each.name] = _convert(option, text, getattr(result, each.name), each.metadata.get("bits", INT))
        elif name == "prefetchPolicy.all":
            value = whole_number(option, text, INT)
            prefetch.update({key: value for key in _PREFETCH.values() if key != "maximum_pending_message_limit"})
        elif group == "prefetchPolicy" and inner in _PREFETCH:
            prefetch[_PREFETCH[inner]] = whole_number(option, text, INT)
        elif group == "redeliveryPolicy" and inner in _REDELIVERY:
            like = getattr(result.redelivery_policy, _REDELIVERY[inner])
            redelivery[_REDELIVERY[inner]] = _convert(option, text, like, LONG if "Delay" in inner else INT)
        elif name not in WITHOUT_EFFECT:
            strange.append((name, text))
        else:
            _convert(option, text, *WITHOUT_EFFECT[name])
    if strange and (unknown is UnknownOptions.REFUSE or len(strange) < len(options)):
        name, text = strange[0]
        raise ConfigurationError(f"jms.{name}", text, "no such option", did_you_mean(name, KNOWN))
    if prefetch:
        plain["prefetch_policy"] = replace(result.prefetch_policy, **prefetch)
    if redelivery:
        policy = result.redelivery_policy
        merged = {name: getattr(policy, name) for name in _REDELIVERY.values()} | redelivery
        try:
            plain["redelivery_policy"] = RedeliveryPolicy(**merged)
        except InvalidTopologyError as error:
            raise ConfigurationError(f"jms.redeliveryPolicy.{error.key}", error.value, error.problem) from error
    return replace(result, **plain)


@frozen
@dataclass(frozen=True, slots=True)
class BrokerURL:
    """``vm://name?jms...&broker...`` or ``tcp://host:port?jms...`` (``ssl://``), taken apart.

    name: of the broker in this process, or the host. broker, transport: options of the broker and of the transport
    itself. scheme: "vm", "tcp", "ssl" or "failover". port: of the host. components: the addresses of failover.
    """

    name: str
    jms: dict[str, str]
    broker: dict[str, str]
    transport: dict[str, str]
    scheme: str = "vm"
    port: int = 0
    components: tuple[str, ...] = ()


# Of these create, waitForStart and persistent (false) have an effect in one process.
_TRANSPORT = frozenset({"create", "waitForStart", "marshal", "async", "wireFormat.maxFrameSize"})
_BROKER = frozenset({"persistent", "useJmx", "useShutdownHook", "dataDirectory"})


def broker_url(text: str, unknown: UnknownOptions = UnknownOptions.REFUSE) -> BrokerURL:
    """Read a broker URL. Raises ConfigurationError for URLs but vm, tcp, ssl and failover, unknown options, missing
    values.

    As in the real client what follows the ``?`` is decoded twice, by java.net.URI and by URISupport.parseQuery.
    """
    if text.startswith("failover:"):
        return _failover_url(text)
    network = re.fullmatch(r"(tcp|nio|ssl|nio\+ssl)://(\[[^\]]*\]|[^\[\]:/?#]+)(?::(\d{1,5}))?/?(?:\?([^()#]*))?", text)
    found = network or re.fullmatch(r"(?:vm://([^?/]*)/?|vm:\((.*)\))(?:\?([^()]*))?", text)
    if found is None:
        scheme = re.match(r"(discovery|fanout|mock|http|https|ws|wss|amqp|mqtt|stomp):", text)
        problem = "not a vm://, tcp://, ssl:// or failover: URL" if scheme is None else f"{scheme[0]} is not supported"
        hint = "vm://name is a broker in this process, tcp://host:61616 or ssl://host:61617 one of the network"
        raise ConfigurationError("broker URL", text, problem, hint)
    groups, jms = _options_of(text, found[found.re.groups] or "")
    if unknown is UnknownOptions.REFUSE and network is None:
        for prefix, known in (("broker", _BROKER), ("", _TRANSPORT)):
            for name, value in groups[prefix].items():
                if name not in known:
                    option = f"{prefix}.{name}" if prefix else name
                    names = {f"{prefix}.{one}" if prefix else one for one in known} | {f"jms.{one}" for one in KNOWN}
                    raise ConfigurationError(option, value, "no such option", did_you_mean(option, names))
    if network is None:
        return BrokerURL(found[1] or "localhost", jms, groups["broker"], groups[""])
    secure = network[1].endswith("ssl")
    port = int(network[3] or (61617 if secure else 61616))
    if not 0 < port <= 65535:
        raise ConfigurationError("broker URL", text, "a port is 1 to 65535")
    _refuse_broker(groups["broker"])
    return BrokerURL(network[2].strip("[]"), jms, {}, groups[""], "ssl" if secure else "tcp", port)


def _refuse_broker(options: Mapping[str, str]) -> None:
    for name, value in options.items():
        raise ConfigurationError(f"broker.{name}", value, "a broker of the network is not made by a URL")


def _options_of(text: str, query: str) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """What follows the ``?`` of a URL: ``broker.`` and the rest, and ``jms.`` in the order in which it counts."""
    wrong = re.search(r'[\x00-\x20"<>\\^`{|}\x7f]|%(?![0-9A-Fa-f]{2})', text)
    if wrong is not None:
        problem = f"{wrong[0]!r} at {wrong.start()} cannot stand in a URL"
        raise ConfigurationError("broker URL", text, problem, f"write %{ord(wrong[0]):02X}")
    try:
        given = query_options(unquote(query))
    except ValueError as error:
        raise ConfigurationError("broker URL", text, str(error), "a URL is decoded twice: %2525 is a %") from error
    groups: dict[str, dict[str, str]] = {"jms": {}, "broker": {}, "": {}}
    options = dict(given)
    for name in set_order(options):
        value = options[name]
        group, _, inner = name.partition(".")
        if value is None:
            if group == "jms":
                raise ConfigurationError(name, "", "has no value", f"write {name}=true, or what it is to be")
            value = ""
        if group in ("jms", "broker"):
            groups[group][inner] = value
        else:
            groups[""][name] = value
    # As the real client walks them, a HashMap made of a HashMap: prefetchPolicy.all may come behind what it replaces.
    return groups, {name: groups["jms"][name] for name in set_order(groups["jms"], len(options))}


def _failover_url(text: str) -> BrokerURL:
    """``failover:(a,b)?...``, ``failover://(a,b)?...`` or ``failover:a,b`` (URISupport.parseComposite)."""
    rest = text.removeprefix("failover:").removeprefix("//")
    inner, query = rest, ""
    if rest.startswith("("):
        end = _closing(rest)
        if end < 0:
            raise ConfigurationError("broker URL", text, "a bracket is not closed")
        inner, behind = rest[1:end], rest[end + 1 :]
        if behind and not behind.startswith("?"):
            raise ConfigurationError(
                "broker URL", text, f"{behind!r} stands behind the brackets", "options begin with ?"
            )
        query = behind[1:]
    components = tuple(part.strip() for part in re.split(r",(?![^()]*\))", inner) if part.strip())
    if not components:
        hint = "failover:(tcp://a:61616,tcp://b:61616)?randomize=false"
        raise ConfigurationError("broker URL", text, "no address to connect to", hint)
    groups, jms = _options_of(text, query)
    _refuse_broker(groups["broker"])
    return BrokerURL("", jms, {}, groups[""], "failover", 0, components)


def _closing(text: str) -> int:
    """Where the bracket that ``text`` begins with is closed; -1: nowhere."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return place
    return -1


# What ConsumerInfo has setters for: how the text is read. Some change nothing, in the real broker neither.
CONSUMER_OPTIONS: dict[str, type | int] = {
    "dispatchAsync": bool,
    "priority": BYTE,
    "prefetchSize": INT,
    "noLocal": bool,
    "exclusive": bool,
    "retroactive": bool,
    "maximumPendingMessageLimit": INT,
    "selector": str,
    "browser": bool,
    "clientId": str,
    "subscriptionName": str,
    "optimizedAcknowledge": bool,
    "noRangeAcks": bool,
    "currentPrefetchSize": INT,
    "networkSubscription": bool,
}


def consumer_options(
    options: Iterable[tuple[str, str | None]], unknown: UnknownOptions = UnknownOptions.REFUSE
) -> dict[str, Any]:
    """The ``consumer.*`` options of a destination by their name without the prefix. Raises ConfigurationError."""
    found: dict[str, Any] = {}
    for name, text in options:
        prefix, dot, inner = name.partition(".")
        bare, text = text is None, text or ""
        if prefix != "consumer" or not dot:
            if unknown is UnknownOptions.REFUSE and prefix != "producer":
                near = did_you_mean(name, [f"consumer.{one}" for one in CONSUMER_OPTIONS])
                raise ConfigurationError(name, text, "no such option of a destination", near)
            continue
        kind = CONSUMER_OPTIONS.get(inner)
        if kind is None:
            near = did_you_mean(name, [f"consumer.{one}" for one in CONSUMER_OPTIONS])
            raise ConfigurationError(name, text, "no such option; the consumer cannot be started", near)
        if bare:
            if kind is str:
                continue
            raise ConfigurationError(name, "", "has no value", f"write {name}={'true' if kind is bool else 1}")
        if kind is bool:
            found[inner] = _boolean(text)
        elif kind is str:
            found[inner] = text
        else:
            assert isinstance(kind, int)
            found[inner] = whole_number(name, text, kind)
    return found
