"""Spring Boot files: their consumers, each by itself with its own name, and their JMS client."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from pyengine.activemq import SESSION_TRANSACTED, Broker, ConnectionFactory
from pyengine.backlog.findings import Said, Severity
from pyengine.backlog.lint.checks import lint_broker, lint_spring
from pyengine.backlog.lint.rules import spring
from pyengine.backlog.lint.rules.broker import tries
from pyengine.cli import lint as linting
from pyengine.clock import ManualClock
from pyengine.errors import InvalidSourceError, InvalidTopologyError, MissingExtraError
from pyengine.topology import BrokerConfiguration
from pyengine.topology.spring_boot import SpringConfiguration

HEALTHY = """
spring:
  application:
    name: shop   # a build fills the next one in
  profiles:
    active: @profile@
  activemq:
    broker-url: "failover:(tcp://a:61616?keepAlive=true,tcp://b:61616)?jms.prefetchPolicy.queuePrefetch=10&randomize=false"
    user: ${AMQ_USER}
    pool: {enabled: true, max-connections: 10}
  jms:
    listener: {min-concurrency: 2, max-concurrency: 8}
    template: {time-to-live: 60s}
  kafka:
    consumer: {group-id: not-ours, max-poll-records: 500}
rocketmq:
  name-server: ${ROCKETMQ:10.0.0.1:9876;10.0.0.2:9876}
  producer:
    group: shop-producer
    send-message-timeout: 3000
  consumer:
    group: billing
    topic: orders
    access-key: ${KEY}
    listeners:
      billing: {orders: false}
my:
  topics: [a, b]
dubbo:
  consumer: {group: x, timeout: 1000}
"""


def configuration(text: str, file: str = "application.yml") -> SpringConfiguration:
    return SpringConfiguration.from_text(text, file, environment={})


def groups(text: str, file: str = "application.yml", profile: str = "") -> list[str]:
    found = dict(configuration(text, file).profiles)[profile]
    return [each.group or each.path for each in spring.consumers_of(found)]


def codes(text: str, file: str = "application.yml") -> set[tuple[str, str]]:
    return {(each.code, str(each.where)) for each in lint_spring(configuration(text, file))}


def test_a_healthy_file_has_no_finding() -> None:
    assert lint_spring(configuration(HEALTHY)) == []
    assert groups(HEALTHY) == ["billing"]


def test_the_consumer_of_rocketmq_spring_has_its_own_name() -> None:
    text = "rocketmq:\n  name-server: 10.0.0.1:9876\n  consumer:\n    group: billing\n    pull-batch-size: 64\n" \
           "    message-model: BROADCASTING\n"  # fmt: skip
    assert codes(text) == {
        ("pull_batch_capped", "consumer group billing"),
        ("broadcasting_drops_failures", "consumer group billing"),
        ("listener_annotation", "consumer group billing"),
    }


SEVERAL = {
    "a list": "rocketmq:\n  consumers:\n    - {group: a, topic: t}\n    - group: b\n      consumeThreadMax: 64\n",
    "a map": "rocketmq:\n  consumer:\n    one: {consumer-group: a}\n"
             "    two: {consumerGroup: b, consume_thread_max: 64}\n",
    "names around": "mq:\n  rocketmq:\n    x: {consumer: {groupName: a}}\n"
                    "    y.consumer: {group: b, consumeThreadMax: 64}\n",
    "no word of the product": "first: {consumerGroup: a, topic: t}\nlast: {consumerGroup: b, consumeThreadMax: 64}\n",
    "an anchor": "x: &d {topic: t, consume-thread-max: 20}\nrocketmq.consumers:\n  p: {<<: *d, group: a}\n"
                 "  q: {<<: *d, group: b, consume-thread-max: 64}\n",
    "properties": "rocketmq.consumers[0].group=a\nrocketmq.consumers[1].group=b\n"
                  "rocketmq.consumers[1].consume-thread-max=64\n",
    "prefixes": "billing.consumerGroup=a\nshipping.consumerGroup = b\nshipping.consumeThreadMax : 64\n",
    "a binder": "spring.cloud.stream:\n  bindings:\n    in1: {destination: t, group: a}\n    in2: {group: b}\n"
                "  rocketmq.bindings:\n    in1.consumer: {push: {orderly: false}}\n"
                "    in2.consumer: {consumeThreadMax: 64}\n",
}  # fmt: skip


@pytest.mark.parametrize("name", SEVERAL)
def test_several_consumers_are_each_by_itself(name: str) -> None:
    text, file = SEVERAL[name], "a.properties" if name in ("properties", "prefixes") else "a.yml"
    assert spring.is_spring(text, file)
    assert groups(text, file) == ["a", "b"]
    assert {each for each in codes(text, file) if each[0] == "thread_max_unused"} == {
        ("thread_max_unused", "consumer group b")
    }


def test_a_binder_has_defaults_of_its_own() -> None:
    text = "spring.cloud.stream:\n  bindings.in: {group: g, destination: t, consumer: {concurrency: 0}}\n" \
           "  rocketmq.bindings.in.consumer.push: {orderly: true, consumeMessageBatchMaxSize: 20}\n"  # fmt: skip
    found = {each.code: each for each in lint_spring(configuration(text))}
    assert found.keys() == {"refused", "batch_larger_than_pull"}
    assert found["batch_larger_than_pull"].evidence == ("consumeMessageBatchMaxSize 20, pullBatchSize 10",)
    endless = text.replace("orderly", "maxReconsumeTimes: -1, orderly")
    assert "orderly_never_gives_up" in {code for code, _ in codes(endless)}


def test_several_consumers_of_toml_and_json_are_not_mixed(tmp_path: Path) -> None:
    toml, document = tmp_path / "a.toml", tmp_path / "a.json"
    toml.write_text('[one]\nconsumer_group = "a"\n[two]\nconsumer_group = "b"\nconsume_thread_max = 64\n')
    document.write_text('{"consumers": [{"consumerGroup": "a"}, {"consumerGroup": "b", "consumeThreadMax": 64}]}')
    for file in (toml, document):
        found = linting.ask([str(file)]).found
        assert [(each.code, str(each.where)) for _, each in found] == [("thread_max_unused", "consumer group b")]


def test_a_consumer_without_a_group_is_named_by_its_place() -> None:
    assert ("thread_max_unused", "consumer of rocketmq.consumer") in codes("rocketmq.consumer.consumeThreadMax: 64\n")
    named = codes("rocketmq.consumer: {group: '${GROUP}', consumeThreadMax: '${X}', pullBatchSize: 64}\n")
    assert ("pull_batch_capped", "consumer group ${GROUP}") in named
    assert "thread_max_unused" not in {code for code, _ in named}


def test_a_profile_says_what_is_other_than_without_it() -> None:
    text = "rocketmq.consumer: {group: g, consumeThreadMax: 64}\n---\nspring.config.activate.on-profile: prod\n" \
           "rocketmq:\n  consumer: {message-model: BROADCASTING}\n---\nspring: {profiles: test}\n" \
           "rocketmq.consumer.group: h\n"  # fmt: skip
    assert codes(text) - {each for each in codes(text) if each[0] == "listener_annotation"} == {
        ("thread_max_unused", "consumer group g"),
        ("broadcasting_drops_failures", "consumer group g, profile prod"),
    }
    properties = "rocketmq.consumer.group=g\n#---\nspring.config.activate.on-profile=prod\n" \
                 "rocketmq.consumer.pullBatchSize=64\n"  # fmt: skip
    assert ("pull_batch_capped", "consumer group g, profile prod") in codes(properties, "application.properties")


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("spring.activemq.broker-url=tcp://a:1\nspring.activemq.brokerUrl=tcp://b:1\n", "tcp://a:1"),
        ("spring.activemq.brokerUrl=tcp://b:1\nspring.activemq.broker-url=tcp://a:1\n", "tcp://a:1"),
        ("spring.activemq.broker-url=tcp://a:1\n#---\nspring.activemq.brokerUrl=tcp://b:1\n", "tcp://b:1"),
    ],
)
def test_of_two_spellings_the_one_with_dashes_counts_and_of_two_documents_the_later(text: str, url: str) -> None:
    as_yaml = text.replace("=", ": ").replace("#---", "---")
    for written, file in ((text, "a.properties"), (as_yaml, "a.yml")):
        ((_, settings),) = configuration(written, file).profiles
        assert settings.text("spring", "activemq", "brokerurl") == url


def test_values_are_those_that_spring_reads() -> None:
    text = "a: {b: 010, c: yes, d: 2024-01-01, e: '${x.yY:${Z:1}}', f: '${a.b}', g: 1_000, h: ~}\n"
    ((_, found),) = configuration(text).profiles
    assert [found.at("a", name).value for name in "bcdefgh"] == [8, True, "2024-01-01", "1", "8", 1000, None]
    given = SpringConfiguration.from_text(text, "a.yml", properties={"Z": "2"}, environment={"X_YY": "3"})
    assert given.profiles[0][1].text("a", "e") == "3"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a:\n\tb: 1\n", "a.yml:2: not valid YAML at column 1"),
        ("a: 1\nb: 1\na: 2\n", "a.yml:3: has 'a' twice; Spring Boot refuses to start"),
        ("a: &x {b: *x}\n", "a.yml:1: has an alias that leads to itself"),
        (f"{'a.' * 300}b: 1\n", "has a name of more than 100 parts; a configuration has a few levels"),
        ("? [1]\n: 2\n", "a.yml:1: has a name that is a list or a mapping"),
        ("[" * 100_000, "a.yml: is nested too deep"),
        ("a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]\n" for n in range(1, 9)),
         "has more than 100,000 settings"),
    ],
)  # fmt: skip
def test_a_file_that_spring_refuses_is_refused_with_its_line(text: str, words: str) -> None:
    with pytest.raises(InvalidTopologyError) as refused:
        configuration(text, "a.yml")
    assert words in str(refused.value)


def test_yaml_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)  # type: ignore[arg-type]
    with pytest.raises(MissingExtraError, match="PyYAML"):
        configuration("a: 1\n")


def test_files_are_known_by_their_names_and_by_what_is_in_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, file, known in (
        ("consumerGroup=g\nspring.application.name=shop\n", "a.properties", False),
        ("rocketmq.name-server=a:9876\n", "a.properties", True),
        ("rocketmq:\n  consumer:\n    group: g\n", "standard input", True),
        ("rocketmq.consumer.group=g x\n", "standard input", True),
        ('consumer_group = "g"\n', "standard input", False),
        ("[source]\npath = 'x'\n", "t.toml", False),
        ('{"a": 1}', "a.json", False),
    ):
        assert spring.is_spring(text, file) is known, (text, file)
    others = {
        "broker.conf": (
            "brokerName = broker-a\nbrokerRole = ASYNC_MASTER\n",
            "is the broker.conf of a RocketMQ broker",
        ),
        "rocketmq.properties": ("#\nslaveReadEnable=true\n", "is the broker.conf of a RocketMQ broker"),
        "consumer.properties": ("bootstrap.servers=k:9092\ngroup.id=billing\n", "is a configuration of Kafka"),
        "rmq-proxy.json": ('{"proxyMode": "CLUSTER"}', "is JSON without a parameter of a push consumer"),
        "log.properties": ("log.level=debug\n", "has no setting that is known here"),
    }
    for file, (text, _) in others.items():
        (tmp_path / file).write_text(text)
    answer = linting.ask([str(tmp_path / file) for file in others])
    refused, shown = answer.refused, io.StringIO()
    linting.show(answer, Console(file=shown))
    assert shown.getvalue() == ""
    assert [words in str(error) for (_, error), (_, words) in zip(refused, others.values(), strict=True)] == [True] * 5
    nothing = tmp_path / "application.yml"
    nothing.write_text("server:\n  port: 8080\n")
    with pytest.raises(InvalidSourceError, match="is a Spring Boot file without settings of RocketMQ or ActiveMQ"):
        linting.ask([str(nothing)])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"rocketmq:\n  consumer:\n    group: g\n")))
    assert linting.ask(["-"])[:2] == ([], [])


def jms(listener: str = "", url: str = "tcp://a:61616", more: str = "", rest: str = "") -> str:
    return f"spring:\n  activemq: {{broker-url: '{url}'{rest}}}\n  jms:\n    listener: {{{listener}}}\n{more}"


NARROW = "tcp://a:61616?jms.prefetchPolicy.queuePrefetch=10"
GROUP = "rocketmq.consumers:\n  - {group: a}\n  - {group: %s}\n"
# code: (trap, neighbour, where)
SPRING: dict[str, tuple[str, str, str]] = {
    "listener_annotation": (
        "rocketmq.consumer: {group: g, consume-thread-min: 40}",
        "my.rocketmq-consumer: {group: g, consume-thread-min: 40}",
        "consumer group g",
    ),
    "number_refused": (
        "rocketmq.consumers:\n  - {group: a, consumeThreadMax: abc}\n  - {group: b, consumeThreadMax: 64}\n",
        "rocketmq.consumers:\n  - {group: a, consumeThreadMax: '20'}\n  - {group: b, consumeThreadMax: '${X}'}\n",
        "consumer group a",
    ),
    "value_unknown": (
        "rocketmq.consumers: [{group: g, consumeFromWhere: FIRST}]",
        "rocketmq.consumers: [{group: g, consumeFromWhere: consume-from-first-offset, messageModel: '${MODEL}'}]",
        "consumer group g",
    ),
    "selector_refused": (
        "rocketmq.consumer: {group: g, selector-type: SQL92, selector-expression: 'price >> 1'}",
        "rocketmq.consumer: {group: g, selector-type: SQL92, selector-expression: '${FILTER}'}",
        "consumer group g",
    ),
    "selector_refused, of a binder": (
        "spring.cloud.stream: {bindings.in.group: g, rocketmq.bindings.in.consumer: {subscription: 'sql:a == 1'}}",
        "spring.cloud.stream: {bindings.in.group: g, rocketmq.bindings.in.consumer: {subscription: 'a || b'}}",
        "consumer group g",
    ),
    "number_refused, of the listeners": (
        jms("max-concurrency: lots"),
        jms("max-concurrency: '@most@', concurrency: '${LOW}'"),
        "spring.jms.listener.max-concurrency",
    ),
    "group_refused": (
        "rocketmq.consumer: {group: bad group!}",
        "rocketmq.consumer: {group: '${NAME}-@stage@ x'}",
        "consumer group bad group!",
    ),
    "group_refused, of one that pulls": (
        "rocketmq.pull-consumer: {group: a b, topic: t}",
        "rocketmq.pull-consumer: {group: a-b, topic: t}",
        "consumer group a b",
    ),
    "group_twice, of a list under a name of one's own": (
        "app.consumers:\n  - {group: a, consumeThreadMin: 20}\n  - {group: a, topic: t}\n",
        "app.consumers:\n  - {group: a, concurrency: 20}\n  - {group: a, topic: t}\n",
        "consumer group a",
    ),
    "group_twice": (GROUP % "a", GROUP % "b", "consumer group a"),
    "name_servers_joined": (
        "rocketmq.name-server: 'a:9876,b:9876'",
        "rocketmq.name-server: a:9876;b:9876",
        "rocketmq.name-server",
    ),
    "option_refused": (
        jms(url="tcp://a:61616?jms.prefetchPolicy.queuePrefech=1"),
        jms(url="tcp://a:61616?jms.prefetchPolicy.queuePrefetch=1&wireFormat.maxInactivityDuration=0"),
        "spring.activemq.broker-url",
    ),
    "option_refused, a value": (jms(url=f"{NARROW}0x"), jms(url=NARROW), "spring.activemq.broker-url"),
    "option_refused, as in XML": (
        jms(url=f"{NARROW}&amp;jms.useAsyncSend=true"),
        jms(url=f"{NARROW}&jms.useAsyncSend=true&jms.xaAckMode=1&jms.blobTransferPolicy.defaultUploadUrl=x"),
        "spring.activemq.broker-url",
    ),
    "addresses_without_failover": (
        jms(url="tcp://a:61616,tcp://b:61616?jms.useAsyncSend=true"),
        jms(url="failover:(tcp://a:61616,tcp://b:61616)?jms.useAsyncSend=true"),
        "spring.activemq.broker-url",
    ),
    "option_inside_brackets": (
        jms(url="failover:(tcp://a:1?jms.useAsyncSend=true,tcp://b:1)"),
        jms(url="failover:(tcp://a:1?soTimeout=1,tcp://b:1)?jms.useAsyncSend=true"),
        "spring.activemq.broker-url",
    ),
    "redelivers_for_ever": (
        jms(url="tcp://a:1?jms.redeliveryPolicy.maximumRedeliveries=-1"),
        jms(url="tcp://a:1?jms.redeliveryPolicy.maximumRedeliveries=3"),
        "spring.activemq.broker-url",
    ),
    "client_never_redelivers": (
        jms(url="failover:(tcp://a:1)?jms.redeliveryPolicy.maximumRedeliveries=0"),
        jms(url="failover:(tcp://a:1)"),
        "spring.activemq.broker-url",
    ),
    "redelivery_reorders": (
        jms(rest=", nonBlockingRedelivery: true"),
        jms(rest=", non-blocking-redelivery: false"),
        "spring.activemq.nonBlockingRedelivery",
    ),
    "acknowledge_mode_ignored": (
        jms("acknowledge-mode: client"),
        jms("session: {acknowledge-mode: client, transacted: false}"),
        "spring.jms.listener.acknowledge-mode",
    ),
    "failure_is_lost": (
        jms("session.transacted: false"),
        jms("session: {transacted: true, acknowledge-mode: auto}"),
        "spring.jms.listener.session.transacted",
    ),
    "every_consumer_gets_all": (
        jms("concurrency: 4", more="    pub-sub-domain: true\n"),
        jms("concurrency: 1", more="    pub-sub-domain: true\n"),
        "spring.jms.listener.concurrency",
    ),
    "durable_without_client_id": (
        jms(more="    subscription-durable: true\n"),
        jms(more="    subscription-durable: true\n    client-id: shop\n"),
        "spring.jms.subscription-durable",
    ),
    "durable_needs_one_consumer": (
        jms("max-concurrency: 2", more="    subscription-durable: true\n    client-id: shop\n"),
        jms("max-concurrency: 1", more="    subscription-durable: true\n    client-id: shop\n"),
        "spring.jms.listener.max-concurrency",
    ),
    "prefetch_hides_work": (jms("concurrency: 4"), jms("concurrency: 4", url=NARROW), "spring.activemq.broker-url"),
    "quality_of_service_off": (
        jms(more="    template: {priority: 9, qos-enabled: false}\n"),
        jms(more="    template: {priority: 9}\n"),
        "spring.jms.template.qos-enabled",
    ),
}


@pytest.mark.parametrize(
    "other",
    ["spring.artemis: {mode: native}", "ibm.mq: {queue-manager: QM1}", "amqphub.amqp10jms: {remote-url: 'amqp://a'}"],
)
def test_the_client_of_another_broker_has_no_prefetch_of_activemq(other: str) -> None:
    text = f"{other}\nspring.jms.listener: {{concurrency: 4}}\n"
    assert codes(text) == set()
    assert "prefetch_hides_work" in {code for code, _ in codes(f"{text}spring.activemq: {{user: a}}\n")}


@pytest.mark.parametrize("case", SPRING)
def test_a_trap_is_found_and_its_neighbour_is_not(case: str) -> None:
    code = case.partition(",")[0]
    trap, neighbour, where = SPRING[case]
    (found,) = [each for each in lint_spring(configuration(trap)) if each.code == code]
    assert found.where == where
    assert found.source
    assert all(isinstance(text, Said) for text in (found.where, found.advice, *found.evidence))
    assert code not in {each.code for each in lint_spring(configuration(neighbour))}
    as_properties = "\n".join(
        f"{each.name}={spring.text_of(each.value)}"
        for each in configuration(trap).profiles[0][1].walk()
        if each.value is not None
    )
    assert lint_spring(configuration(as_properties, "a.properties")) == lint_spring(configuration(trap))


PLUGIN = (
    '<broker xmlns="http://activemq.apache.org/schema/core" schedulerSupport="true"><plugins><redeliveryPlugin>'
    '<redeliveryPolicyMap><redeliveryPolicyMap><defaultEntry><redeliveryPolicy maximumRedeliveries="{}"/>'
    "</defaultEntry></redeliveryPolicyMap></redeliveryPolicyMap></redeliveryPlugin></plugins></broker>"
)


@pytest.mark.parametrize(("client", "broker"), [(1, 1), (1, 3), (2, 5), (6, 3), (6, 8)])
def test_redeliveries_of_client_and_broker_multiply_as_the_broker_does_it(client: int, broker: int) -> None:
    found = BrokerConfiguration.from_text(PLUGIN.format(broker), "a.xml")
    with Broker(redelivery_plugin=found.redelivery_plugin, clock=ManualClock()) as live:
        url = f"vm://localhost?jms.redeliveryPolicy.maximumRedeliveries={client}"
        with ConnectionFactory(url, broker=live).create_connection() as connection:
            connection.create_session().create_producer("Q").send("m")
            session = connection.create_session(SESSION_TRANSACTED)
            consumer, count = session.create_consumer("Q"), 0
            while consumer.receive(timeout=30) is not None:
                count += 1
                session.rollback()
    ((_, advice),) = tries(found, client)
    assert f"is tried {count} times" in advice


def test_redeliveries_that_multiply_are_told_of_each_file(tmp_path: Path) -> None:
    xml, yml = tmp_path / "activemq.xml", tmp_path / "application.yml"
    xml.write_text(PLUGIN.format(3))
    yml.write_text(jms(url="tcp://a:1?jms.redeliveryPolicy.maximumRedeliveries=2"))
    found = [
        (name, each) for name, each in linting.ask([str(xml), str(yml)]).found if each.code == "redeliveries_multiply"
    ]
    assert [(name, each.severity) for name, each in found] == [(str(xml), Severity.INFO), (str(yml), Severity.WARNING)]
    assert "is tried 22 times" in found[0][1].advice
    assert "is tried 7 times" in found[1][1].advice
    yml.write_text(jms(url="tcp://a:1?jms.redeliveryPolicy.maximumRedeliveries=0"))
    assert (
        len([each for _, each in linting.ask([str(xml), str(yml)]).found if each.code == "redeliveries_multiply"]) == 1
    )
    assert lint_broker(BrokerConfiguration.from_text(PLUGIN.format(0), "a.xml")) == []
    for client, broker, words in ((-1, 3, "never gives a message up"), (6, -1, "without end")):
        ((_, advice),) = tries(BrokerConfiguration.from_text(PLUGIN.format(broker), "a.xml"), client)
        assert words in advice
