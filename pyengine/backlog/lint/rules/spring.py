"""Traps in a Spring Boot file: its RocketMQ consumers, each by itself, and its JMS client of ActiveMQ.

RocketMQ: ``rocketmq.*`` of rocketmq-spring, consumers under names of the user's own, and the RocketMQ binder of Spring
Cloud Stream. JMS: ``spring.activemq.*`` and ``spring.jms.*``.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from difflib import get_close_matches
from typing import Any
from urllib.parse import unquote

from pyengine.activemq.options import ConnectionOptions, UnknownOptions, connection_options
from pyengine.backlog.findings import Finding, Said, Severity, say
from pyengine.backlog.lint.rules import broker as brokers
from pyengine.backlog.lint.rules import push_consumer
from pyengine.backlog.sentence_templates import heard
from pyengine.dataclass import dataclass
from pyengine.destinations import query_options
from pyengine.errors import ConfigurationError, InvalidSourceError
from pyengine.rocketmq.consumer.parameters import java_name
from pyengine.topology import BrokerConfiguration
from pyengine.topology.properties import parse_properties
from pyengine.topology.spring_boot import (
    Settings,
    SpringConfiguration,
    Unresolved,
    from_mapping,
    is_yaml,
    relaxed,
    text_of,
)

# Parameters by their relaxed names; those of @RocketMQMessageListener and of people's own classes beside the client's.
PARAMETERS = {relaxed(name): name for name in (*push_consumer.DEFAULTS, *push_consumer.ABOUT)} | {
    "group": "consumer_group",
    "groupname": "consumer_group",
    "groupid": "consumer_group",
    "consumergroupname": "consumer_group",
    "consumergroupid": "consumer_group",
    "consumethreadnumber": "consume_thread_min",
    "nameserver": "namesrv_addr",
    "consumermaxspan": "consume_concurrently_max_span",
    "consumemaxspan": "consume_concurrently_max_span",
}
GROUPS = {name for name, meant in PARAMETERS.items() if meant == "consumer_group"}
# What no other library's consumer has.
ROCKETMQ_ONLY = {
    relaxed(name)
    for name in push_consumer.DEFAULTS
    if name.startswith(("consume_", "pull_", "pop_", "suspend_current", "max_reconsume"))
} | {"messagemodel", "consumethreadnumber", "consumemode"}
# Parts of a name below which no RocketMQ consumer stands.
ELSEWHERE = {"kafka", "rabbit", "rabbitmq", "pulsar", "dubbo", "listeners", "producer", "producers", "template"}
# What rocketmq-spring's own properties of a consumer are, those that matter here; all else is for a class of yours.
STARTER = {"consumer_group", "topic"}
PULL_CODES = {
    "pull_batch_capped",
    "unknown_parameter",
    "number_refused",
    "group_refused",
    "value_unknown",
    "selector_refused",
    "selector_misread",
}  # what of a push consumer's traps a DefaultLitePullConsumer has
# Options of the URL that the factory takes and that have no effect here.
ELSEWHERE_OPTIONS = ("jms.blobTransferPolicy.", "jms.xaAckMode", "jms.brokerURL", "jms.strictCompliance")
# Settings of JMS clients that are not ActiveMQ's.
OTHER_JMS = (("spring", "artemis"), ("ibm", "mq"), ("amqphub", "amqp10jms"), ("solace", "jms"))
OWN = re.compile(r"(?:^|\.)rocketmq\.consumer$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SpringConsumer:
    """A RocketMQ consumer that a file describes. path: where, as written. pulls: a DefaultLitePullConsumer. binder: of
    Spring Cloud Stream."""

    path: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    pulls: bool = False
    binder: bool = False

    def may_have(self, code: str) -> bool:
        """Whether a trap of a push consumer can be one of this consumer."""
        if self.pulls:
            return code in PULL_CODES
        # Its releases differ in what they set where nothing is said.
        return not (self.binder and code == "orderly_never_gives_up" and "max_reconsume_times" not in self.parameters)

    @property
    def group(self) -> str:
        return text_of(self.parameters.get("consumer_group"))


def consumers_of(settings: Settings) -> list[SpringConsumer]:
    """Every RocketMQ consumer, in the order of the file."""
    return [*_binder(settings), *_found(settings, False, False)]


def _found(node: Settings, rocketmq: bool, consumer: bool) -> Iterator[SpringConsumer]:
    """The consumers at and below a setting. rocketmq, consumer: whether a part of its name has that word."""
    leaves = {name: each for name, each in node.below.items() if not each.below and not name.isdecimal()}
    known = {name for name in leaves if name in PARAMETERS}
    grouped = bool(known & GROUPS)
    if (
        (rocketmq and consumer and known)
        or (known & ROCKETMQ_ONLY and (consumer or grouped))
        or "consumergroup" in known
    ):
        last = relaxed(node.name.rpartition(".")[2])
        yield SpringConsumer(node.name, _parameters(leaves), pulls="pull" in last or "simple" in last)
    listed = [each for name, each in node.below.items() if name.isdecimal()]
    # Of a list whose one consumer is RocketMQ's the others are, too.
    rocketmq = rocketmq or (consumer and any(ROCKETMQ_ONLY & each.below.keys() for each in listed))
    for name, each in node.below.items():
        if each.below and not (name in ELSEWHERE or name.endswith("producer")) and each.name != "spring.cloud":
            yield from _found(each, rocketmq or "rocketmq" in name, consumer or "consumer" in name)


def _parameters(leaves: Mapping[str, Settings]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, each in leaves.items():
        value = each.value
        if value is None or (isinstance(value, Unresolved) and name not in GROUPS):
            continue
        if name == "consumemode":
            found["orderly"] = "orderly" in text_of(value).lower()
        elif name in PARAMETERS:
            found[PARAMETERS[name]] = value
        elif get_close_matches(name, PARAMETERS, n=1, cutoff=0.9):  # most others are the user's own
            written = re.sub(
                r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match[1].lower(), each.name.rpartition(".")[2]
            )
            found[written.replace("-", "_")] = value
    return found


def _binder(settings: Settings) -> Iterator[SpringConsumer]:
    """The consumers of Spring Cloud Stream's RocketMQ binder."""
    stream = settings.at("spring", "cloud", "stream")
    rocketmq, common = stream.at("rocketmq"), stream.at("rocketmq", "default", "consumer")
    for name, each in rocketmq.at("bindings").below.items():
        own = each.at("consumer")
        if not own.below:
            continue
        binding = stream.at("bindings", name)
        # Of the binder's own (RocketMQConsumerFactory.initPushConsumer): one thread, ten messages a pull.
        asked = binding.at("consumer", "concurrency").value
        threads = 1 if asked is None or isinstance(asked, Unresolved) else asked
        parameters: dict[str, Any] = {
            "pull_batch_size": 10, "consume_thread_min": threads, "consume_thread_max": threads,
        }  # fmt: skip
        for part in (common, common.at("push"), own, own.at("push")):
            parameters |= _parameters({key: leaf for key, leaf in part.below.items() if not leaf.below})
        if group := binding.text("group"):
            parameters["consumer_group"] = group
        if topic := binding.text("destination"):
            parameters["topic"] = topic
        yield SpringConsumer(binding.name or each.name, parameters, bool(own.at("pull").below), binder=True)


def is_spring(text: str, file: str) -> bool:
    """Whether content that is neither XML nor JSON is a Spring Boot file: by its name, else by the names in it.

    Parameters of one consumer without a prefix are a push consumer's own file.
    """
    if file.endswith((".yml", ".yaml")):
        return True
    if file.endswith(".toml") or text.lstrip()[:1] in ("<", "{"):
        return False
    if not file.endswith(".properties"):
        try:
            tomllib.loads(text)
        except (ValueError, RecursionError):
            if is_yaml(text, file):
                return re.search("rocketmq|spring|consumer", text, re.IGNORECASE) is not None
        else:
            return False
    names = parse_properties(text, bare_names=False)
    if any("." not in name and relaxed(name) in PARAMETERS for name in names):
        return False
    lasts = {relaxed(name.rpartition(".")[2]) for name in names if "." in name}
    return bool(lasts & (GROUPS | ROCKETMQ_ONLY)) or any(name.startswith(("spring.", "rocketmq.")) for name in names)


def grouped_consumers(text: str) -> list[SpringConsumer]:
    """The consumers of a TOML or JSON document that have groups of their own, if there are several."""
    try:
        given = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except (ValueError, RecursionError):
        return []
    if not isinstance(given, dict) or {"source", "policy", "variant"} & given.keys():
        return []
    found = [each for each in consumers_of(from_mapping(given)) if each.group]
    return found if len(found) > 1 else []


def is_known(configuration: SpringConfiguration) -> bool:
    """Whether a file says anything of RocketMQ or of JMS."""
    for _, settings in configuration.profiles:
        jms = settings.at("spring", "activemq").below or settings.at("spring", "jms").below
        if jms or consumers_of(settings) or any("rocketmq" in relaxed(each.name) for each in settings.walk()):
            return True
    return False


def of_consumers(consumers: Sequence[SpringConsumer]) -> Iterator[Finding]:
    """Every trap of consumers that no Spring Boot file describes."""
    for consumer in consumers:
        yield from _of_parameters(consumer, push_consumer.place_of(consumer.group, consumer.path))


def findings(configuration: SpringConfiguration) -> Iterator[Finding]:
    """Every trap. What a profile leaves as it is without it is said once."""
    always: set[tuple[object, ...]] = set()
    for profile, settings in configuration.profiles:
        for key, found in _of_profile(profile, settings):
            trap = (key, found.code, found.evidence, found.advice)
            if not profile:
                always.add(trap)
            if not profile or trap not in always:
                yield found


def _of_profile(profile: str, settings: Settings) -> Iterator[tuple[str, Finding]]:
    """Findings with what they are about, of any profile."""
    consumers = consumers_of(settings)
    for consumer in consumers:
        where = push_consumer.place_of(consumer.group, consumer.path, profile)
        for found in _of_parameters(consumer, where):
            if consumer.may_have(found.code):
                yield consumer.path, found
        for found in (*_annotation(consumer, where), *_twice(consumer, consumers, where)):
            yield consumer.path, found
    for found in _name_servers(settings, profile):
        yield "", found
    client = JmsClient(settings, profile)
    for rule in JMS_RULES:
        for found in rule(client):
            yield "", found


def _of_parameters(consumer: SpringConsumer, where: Said) -> Iterator[Finding]:
    """The traps of a push consumer; number_refused: what is not a number, which hides no trap of another consumer."""
    try:
        yield from push_consumer.findings(consumer.parameters, where=where)
    except InvalidSourceError as error:
        yield Finding(
            "number_refused",
            Severity.ERROR,
            where,
            (say("{name}: {value}", name=error.source, value=text_of(consumer.parameters.get(error.source))),),
            say("It is not a number that the client takes: the program does not start. Write digits only."),
            "DefaultMQPushConsumer",
        )


def _annotation(consumer: SpringConsumer, where: Said) -> Iterator[Finding]:
    """listener_annotation: settings that a listener of rocketmq-spring does not take from the file."""
    others = [name for name in consumer.parameters if name not in STARTER and name in push_consumer.DEFAULTS]
    if OWN.search(consumer.path) and others:
        yield Finding(
            "listener_annotation",
            Severity.INFO,
            where,
            (say("{path}: {names}", path=consumer.path, names=", ".join(map(java_name, others))),),
            say(
                "A listener of rocketmq-spring takes these from @RocketMQMessageListener alone; here they count for "
                "DefaultLitePullConsumer (until 2.2.2) or for a class of your own that reads them."
            ),
            "RocketMQProperties, ListenerContainerConfiguration",
        )


def _twice(consumer: SpringConsumer, consumers: list[SpringConsumer], where: Said) -> Iterator[Finding]:
    """group_twice: two consumers of one program in one group."""
    first = next(each for each in consumers if each.group == consumer.group)
    if consumer.group and first is not consumer and not (consumer.pulls or first.pulls):
        yield Finding(
            "group_twice",
            Severity.ERROR,
            where,
            (say("{one} and {other} have the same group", one=first.path, other=consumer.path),),
            say(
                "One client takes a group once: start() of the second one throws MQClientException. And all members of "
                "a group must subscribe to the same topics with the same tags. Give each consumer a group of its own."
            ),
            "MQClientInstance.registerConsumer",
        )


def _name_servers(settings: Settings, profile: str) -> Iterator[Finding]:
    """name_servers_joined: several name servers with a comma between them, which makes one address of them."""
    binder = ("spring", "cloud", "stream", "rocketmq", "binder", "nameserver")
    for path in (("rocketmq", "nameserver"), binder):
        servers = settings.text(*path)
        if "," in servers:
            yield Finding(
                "name_servers_joined",
                Severity.ERROR,
                _where(settings.at(*path).name, profile),
                (say("{servers}", servers=servers),),
                say("The client parts addresses by semicolons; with a comma they are one that cannot be reached."),
                "NettyRemotingClient.updateNameServerAddressList",
            )


def _where(name: str, profile: str) -> Said:
    if profile:
        return say("{setting}, profile {profile}", setting=name, profile=profile)
    return say("{setting}", setting=name)


class JmsClient:
    """The settings of the JMS client in a file: its broker's URL, its listeners, its template."""

    def __init__(self, settings: Settings, profile: str) -> None:
        self.profile = profile
        self.activemq = settings.at("spring", "activemq")
        self.jms = settings.at("spring", "jms")
        self.listener = self.jms.at("listener")
        self.is_another = not self.activemq.below and any(settings.at(*path).below for path in OTHER_JMS)
        self.url = self.activemq.text("brokerurl")
        brackets = re.fullmatch(r"(?s)[a-zA-Z+:]*\((.*)\)(?:\?(.*))?", self.url)
        self.inside = brackets[1] if brackets else ""
        query = (brackets[2] or "") if brackets else self.url.partition("?")[2]
        self.known = not isinstance(self.activemq.at("brokerurl").value, Unresolved)
        self.jms_options: dict[str, str] = {}
        self.problem: ConfigurationError | None = None
        self.options = ConnectionOptions()
        try:
            given = query_options(unquote(query)) if self.known else ()
            self.jms_options = {
                name.removeprefix("jms."): value or ""
                for name, value in given
                if name.startswith("jms.") and not name.startswith(ELSEWHERE_OPTIONS)
            }
            self.options = connection_options(self.jms_options, unknown=UnknownOptions.REFUSE)
        except ValueError as error:
            self.problem = (
                error if isinstance(error, ConfigurationError) else ConfigurationError("broker-url", query, str(error))
            )

    @property
    def is_there(self) -> bool:
        return bool(self.activemq.below or self.jms.below)

    def trap(
        self, code: str, severity: Severity, setting: Settings, evidence: tuple[Said, ...], advice: Said, source: str
    ) -> Finding:
        return Finding(code, severity, _where(setting.name, self.profile), evidence, advice, source)

    def number(self, node: Settings, name: str) -> int | None:
        text = node.text(name)
        return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None

    @property
    def consumers(self) -> int:
        """The most consumers of one listener."""
        low = self.number(self.listener, "minconcurrency") or self.number(self.listener, "concurrency") or 1
        return max(low, self.number(self.listener, "maxconcurrency") or 0)

    @property
    def of_topics(self) -> bool:
        return _is(self.jms.text("pubsubdomain"), "true") or self.durable

    @property
    def durable(self) -> bool:
        """Whether listeners are durable subscribers, which are of topics."""
        return _is(self.jms.text("subscriptiondurable"), "true")

    @property
    def transacted(self) -> str:
        return self.listener.text("session", "transacted").lower()

    @property
    def acknowledge_mode(self) -> Settings:
        newer = self.listener.at("session", "acknowledgemode")
        return newer if newer.value is not None else self.listener.at("acknowledgemode")


def _is(text: str, wanted: str) -> bool:
    return text.strip().lower() == wanted


def url_options(client: JmsClient) -> Iterator[Finding]:
    """option_refused, addresses_without_failover, option_inside_brackets: what of the broker's URL does not connect."""
    setting = client.activemq.at("brokerurl")
    if client.problem is not None:
        error = client.problem
        yield client.trap(
            "option_refused",
            Severity.ERROR,
            setting,
            (say("{option}={value}: {problem}", option=error.option, value=error.value, problem=heard(error.problem)),),
            heard(error.hint) if error.hint else say("Connections cannot be made with it: correct it."),
            "ActiveMQConnectionFactory.setBrokerURL",
        )
    if "&amp;" in client.url:
        yield client.trap(
            "option_refused",
            Severity.ERROR,
            setting,
            (say("{url}", url=client.url),),
            say("&amp; is how XML writes &. Here it becomes a part of the next option's name: write & alone."),
            "URISupport.parseParameters",
        )
    if re.match(r"[a-z+]+://[^(),?]*,[a-z+]+://", client.url):
        yield client.trap(
            "addresses_without_failover",
            Severity.ERROR,
            setting,
            (say("{url}", url=client.url),),
            say("Several addresses are one that cannot be reached. Write failover:(address,address)."),
            "TransportFactory.connect",
        )
    if client.known and re.search(r"[?&]jms\.", client.inside):
        yield client.trap(
            "option_inside_brackets",
            Severity.ERROR,
            setting,
            (say("{url}", url=client.inside),),
            say(
                "Options of one address inside the brackets are the transport's, which refuses jms. ones: the client "
                "tries to connect for ever. Put them behind the brackets: failover:(...)?jms.name=value."
            ),
            "ActiveMQConnectionFactory.setBrokerURL, TransportFactory.doConnect",
        )


def redeliveries(client: JmsClient) -> Iterator[Finding]:
    """redelivers_for_ever, client_never_redelivers, redelivery_reorders: what a failed message does."""
    setting, policy = client.activemq.at("brokerurl"), client.options.redelivery_policy
    if policy.maximum_redeliveries == -1:
        yield client.trap(
            "redelivers_for_ever",
            Severity.WARNING,
            setting,
            (say("jms.redeliveryPolicy.maximumRedeliveries -1"),),
            say(
                "A message that always fails comes again without end, and its consumer does nothing else. Give a "
                "number: then it becomes a dead letter."
            ),
            "ActiveMQMessageConsumer.rollback",
        )
    elif policy.maximum_redeliveries == 0:
        yield client.trap(
            "client_never_redelivers",
            Severity.INFO,
            setting,
            (say("jms.redeliveryPolicy.maximumRedeliveries 0"),),
            say("The first failure makes it a dead letter, unless the broker has a redeliveryPlugin."),
            "ActiveMQMessageConsumer.rollback",
        )
    by_file = _is(client.activemq.text("nonblockingredelivery"), "true")
    if client.options.non_blocking_redelivery or by_file:
        yield client.trap(
            "redelivery_reorders",
            Severity.INFO,
            client.activemq.at("nonblockingredelivery") if by_file else setting,
            (say("nonBlockingRedelivery true"),),
            say("Messages pass one that waits for its redelivery: they are not consumed in the order of sending."),
            "ActiveMQMessageConsumer.rollback",
        )


def sessions(client: JmsClient) -> Iterator[Finding]:
    """acknowledge_mode_ignored, failure_is_lost: how listeners acknowledge."""
    mode = client.acknowledge_mode
    written = text_of(mode.value)
    if written and not _is(written, "auto") and client.transacted != "false":
        yield client.trap(
            "acknowledge_mode_ignored",
            Severity.WARNING,
            mode,
            (
                say("acknowledge-mode {mode}, session.transacted {value}", mode=written, value=client.transacted)
                if client.transacted
                else say("acknowledge-mode {mode}, session.transacted is not set", mode=written),
            ),
            say(
                "Sessions of listeners are transacted unless a JTA transaction manager is there, and those have no "
                "acknowledge mode. If it is meant, set spring.jms.listener.session.transacted to false (Spring Boot "
                "3.2 and newer), or make the DefaultJmsListenerContainerFactory yourself."
            ),
            "DefaultJmsListenerContainerFactoryConfigurer",
        )
    if client.transacted == "false" and (not written or _is(written, "auto")):
        yield client.trap(
            "failure_is_lost",
            Severity.WARNING,
            client.listener.at("session", "transacted"),
            (say("session.transacted false, acknowledge-mode {mode}", mode=written or "auto"),),
            say(
                "A message is acknowledged before the listener gets it: one whose listener fails, or whose process "
                "ends, is gone. Leave the sessions transacted, or set acknowledge-mode to client."
            ),
            "DefaultMessageListenerContainer, AbstractMessageListenerContainer.setSessionAcknowledgeMode",
        )


def subscribers(client: JmsClient) -> Iterator[Finding]:
    """every_consumer_gets_all, durable_without_client_id, durable_needs_one_consumer: listeners of topics."""
    concurrency = next(
        (each for name in ("maxconcurrency", "minconcurrency", "concurrency")
         if (each := client.listener.at(name)).value is not None), client.listener,
    )  # fmt: skip
    if client.of_topics and client.consumers > 1 and not client.durable:
        yield client.trap(
            "every_consumer_gets_all",
            Severity.WARNING,
            concurrency,
            (say("pub-sub-domain true, up to {consumers} consumers of each listener", consumers=client.consumers),),
            say(
                "Each consumer of a topic gets every message: the listener is called up to {consumers} times for each. "
                "Set the concurrency to 1, or consume a queue (of a virtual topic).",
                consumers=client.consumers,
            ),
            "DefaultMessageListenerContainer.setConcurrentConsumers",
        )
    if client.durable and not (client.jms.text("clientid") or client.options.client_id):
        yield client.trap(
            "durable_without_client_id",
            Severity.ERROR,
            client.jms.at("subscriptiondurable"),
            (say("subscription-durable true, no client-id"),),
            say("A durable subscriber needs a client id: set spring.jms.client-id, another one for each process."),
            "ActiveMQConnection.checkClientIDWasManuallySpecified",
        )
    if client.durable and client.consumers > 1:
        yield client.trap(
            "durable_needs_one_consumer",
            Severity.ERROR,
            concurrency,
            (
                say(
                    "subscription-durable true, up to {consumers} consumers of each listener",
                    consumers=client.consumers,
                ),
            ),
            say("A durable subscription has one consumer at a time; the others are refused. Set the concurrency to 1."),
            "DurableTopicSubscription, TopicRegion.addConsumer",
        )


def prefetch(client: JmsClient) -> Iterator[Finding]:
    """prefetch_hides_work: several consumers of a queue, each of which may hold a thousand messages."""
    size = client.options.prefetch_policy.queue_prefetch
    if client.consumers > 1 and not client.of_topics and size >= 1000 and client.known and not client.is_another:
        yield client.trap(
            "prefetch_hides_work",
            Severity.INFO,
            client.activemq.at("brokerurl") if client.url else client.listener,
            (say("up to {consumers} consumers, queuePrefetch {size}", consumers=client.consumers, size=size),),
            say(
                "Each consumer takes up to {size} messages before it acknowledges one, so that a small backlog may lie "
                "with one of them while the others are idle. For slow work write ?jms.prefetchPolicy.queuePrefetch=10 "
                "(or 1) behind the URL.",
                size=size,
            ),
            "ActiveMQPrefetchPolicy, PrefetchSubscription.isFull",
        )


def template(client: JmsClient) -> Iterator[Finding]:
    """quality_of_service_off: settings of a JmsTemplate for its messages that it does not apply."""
    node = client.jms.at("template")
    named = [each for name in ("deliverymode", "priority", "timetolive") if (each := node.at(name)).value is not None]
    if named and _is(node.text("qosenabled"), "false"):
        yield client.trap(
            "quality_of_service_off",
            Severity.WARNING,
            node.at("qosenabled"),
            (say("{names}", names=", ".join(f"{each.name} {text_of(each.value)}" for each in named)),),
            say(
                "With qos-enabled false the template sends persistent messages of priority 4 that never expire. "
                "Remove it."
            ),
            "JmsTemplate.doSend",
        )


def numbers(client: JmsClient) -> Iterator[Finding]:
    """number_refused: what is not a number where Spring Boot binds one."""
    of_listeners = (client.listener.at(name) for name in ("concurrency", "minconcurrency", "maxconcurrency"))
    for setting in (*of_listeners, client.jms.at("template", "priority"), client.jms.at("cache", "sessioncachesize")):
        written = text_of(setting.value).strip()
        if isinstance(setting.value, Unresolved) or push_consumer.is_filled_in(written):
            continue
        if written and not re.fullmatch(r"[+-]?[0-9]+|-?(?:0[xX]|#)[0-9a-fA-F]+", written):
            yield client.trap(
                "number_refused",
                Severity.ERROR,
                setting,
                (say("{name}: {value}", name=setting.name.rpartition(".")[2], value=written),),
                say("It is not a whole number: the program does not start. Write digits only."),
                "JmsProperties",
            )


def tries_multiply(configuration: SpringConfiguration, broker: BrokerConfiguration) -> Iterator[Finding]:
    """redeliveries_multiply: the client's redeliveries and those of the broker's plugin."""
    for profile, settings in configuration.profiles:
        client = JmsClient(settings, profile)
        if client.activemq.below and client.known and client.problem is None:
            maximum = client.options.redelivery_policy.maximum_redeliveries
            setting = client.activemq.at("brokerurl") if client.url else client.activemq
            for count, advice in brokers.tries(broker, maximum):
                yield client.trap(
                    "redeliveries_multiply",
                    Severity.WARNING,
                    setting,
                    (count,),
                    advice,
                    "RedeliveryPlugin, RedeliveryPolicy",
                )


JMS_RULES = (url_options, redeliveries, sessions, subscribers, prefetch, template, numbers)
