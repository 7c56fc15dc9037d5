"""The table of metrics, and what Prometheus and OpenTelemetry make of it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from pyengine import Message, activemq, rocketmq
from pyengine.clock import ManualClock
from pyengine.metrics import Metric, MetricKind, PrometheusCollector, metric_table, observe, prometheus_text


class Two:
    """A source of two counters and a gauge."""

    def __init__(self) -> None:
        self.sent = 3

    def metrics(self) -> Iterable[Metric]:
        labels = [{"topic": 'a"b\\c\nd'}, {"topic": "x"}]
        yield Metric("sent_total", MetricKind.COUNTER, "Messages sent", self.sent, labels[0])
        yield Metric("depth", MetricKind.GAUGE, "Messages waiting", 1.5)
        yield Metric("sent_total", MetricKind.COUNTER, "Messages sent", 4, labels[1])


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """What Prometheus reads from a page."""
    return {
        (sample.name, tuple(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_text_is_what_prometheus_reads() -> None:
    expected = {
        ("depth", ()): 1.5,
        ("sent_total", (("topic", 'a"b\\c\nd'),)): 3.0,
        ("sent_total", (("topic", "x"),)): 4.0,
    }
    assert samples(prometheus_text(Two())) == expected
    registry = CollectorRegistry()
    registry.register(PrometheusCollector(Two()))
    assert samples(generate_latest(registry).decode()) == expected


class Numpy:
    """A source that counts with numpy and names its labels as they come."""

    def metrics(self) -> Iterable[Metric]:
        yield Metric("sent_total", MetricKind.COUNTER, "Messages sent", np.float64(2), {"topic": "a", "shard": "b"})
        yield Metric("sent_total", MetricKind.COUNTER, "Messages sent", np.float64(3), {"shard": "c", "topic": "d"})


def test_a_value_is_a_number_of_any_kind_and_labels_are_known_by_name() -> None:
    registry = CollectorRegistry()
    registry.register(PrometheusCollector(Numpy()))
    for text in (prometheus_text(Numpy()), generate_latest(registry).decode()):
        found = {(dict(labels)["topic"], dict(labels)["shard"]): value for (_, labels), value in samples(text).items()}
        assert found == {("a", "b"): 2.0, ("d", "c"): 3.0}


def test_opentelemetry_observes_the_source_as_it_changes() -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    source = Two()
    observe(provider.get_meter("test"), source)
    source.sent = 10
    data = reader.get_metrics_data()
    assert data is not None
    found = {
        (metric.name, point.attributes.get("topic")): point.value  # type: ignore[union-attr]
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        for point in metric.data.data_points
    }
    assert found == {("sent_total", 'a"b\\c\nd'): 10, ("sent_total", "x"): 4, ("depth", None): 1.5}
    provider.shutdown()


def test_a_consumer_is_a_source() -> None:
    clock = ManualClock()
    broker = rocketmq.Broker(clock=clock)
    broker.create_topic("T", 1)
    consumer = rocketmq.DefaultMQPushConsumer("G", broker=broker)
    consumer.subscribe("T")
    consumer.register_message_listener(lambda messages, context: None)
    consumer.start()
    clock.advance(3_000)
    rocketmq.Producer(broker).send("T", b"x")
    clock.advance(1_000)
    rows = {(row.name, row.labels.get("topic", row.labels.get("result"))): row.value for row in metric_table(consumer)}
    assert rows["pyengine_rocketmq_listener_returns_total", "RETURNNULL"] == 1
    assert rows["pyengine_rocketmq_commit_offset", "T"] == 1
    assert rows["pyengine_rocketmq_cached_messages", "T"] == 0
    assert rows["pyengine_rocketmq_consume_threads", None] == 20
    assert samples(prometheus_text(consumer))
    consumer.shutdown()
    broker.close()
    with pytest.raises(rocketmq.MQClientError, match="service state not OK"):
        list(rocketmq.DefaultMQPushConsumer("H").metrics())


def test_a_cluster_s_queues_and_groups_are_a_source() -> None:
    clock = ManualClock()
    with rocketmq.Broker(clock=clock) as broker:
        reader = InMemoryMetricReader()
        provider = MeterProvider([reader])
        observe(provider.get_meter("test"), broker)  # before there is any topic
        broker.create_topic("T", 2)
        queue = rocketmq.MessageQueue("T", "broker-a", 0)
        consumer = rocketmq.DefaultMQPushConsumer("G", broker=broker)
        consumer.subscribe("T")
        consumer.register_message_listener(lambda messages, context: rocketmq.ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
        producer = rocketmq.Producer(broker)
        with consumer:
            clock.advance(3_000)
            producer.send("T", b"x", queue=queue)
            clock.advance(6_000)
            assert {row.name: row.value for row in metric_table(broker)}[
                "pyengine_rocketmq_broker_consumer_members"
            ] == 1
        producer.send("T", b"x", queue=queue)
        producer.send("T", b"x", queue=queue)
        broker.delete_below(queue, 1)
        rows = {
            (row.name.removeprefix("pyengine_rocketmq_broker_"), row.labels["queue"]): row.value
            for row in metric_table(broker)
            if row.labels["topic"] == "T"
        }
        assert rows == {
            ("messages_put_total", "0"): 3,
            ("messages_put_total", "1"): 0,
            ("messages_stored", "0"): 2,
            ("messages_stored", "1"): 0,
            ("consumer_lag_messages", "0"): 2,  # the other queue's offset was never committed
        }
        assert len(samples(prometheus_text(broker))) == len(metric_table(broker))
        assert {row.name for row in metric_table(broker)} <= {name for name, _, _ in broker.metric_families()}
        data = reader.get_metrics_data()
        assert data is not None
        names = {metric.name for metric in data.resource_metrics[0].scope_metrics[0].metrics}
        assert names == {row.name for row in metric_table(broker)}
        provider.shutdown()


def test_a_broker_s_destinations_are_a_source() -> None:
    with activemq.Broker(name="b", clock=ManualClock()) as broker:
        reader = InMemoryMetricReader()
        provider = MeterProvider([reader])
        observe(provider.get_meter("test"), broker)  # before there is any destination
        with activemq.ConnectionFactory("vm://b", broker=broker).create_connection() as connection:
            session = connection.create_session(activemq.CLIENT_ACKNOWLEDGE)
            producer = session.create_producer("orders")
            for price in (1, 2, 300):
                producer.send(Message({"price": price}, body=b"x"))
            consumer = session.create_consumer("orders?consumer.prefetchSize=1", "price < 100")
            session.create_consumer("topic://prices")
            session.create_producer("topic://prices").send(b"x")
            assert consumer.receive(timeout=0) is not None
            rows = {
                (row.name.removeprefix("pyengine_activemq_"), row.labels["destination"], row.labels.get("reason")): row
                for row in metric_table(broker)
            }
            numbers = {key: row.value for key, row in rows.items()}
            assert numbers["queue_size", "orders", None] == 3
            assert numbers["enqueued_total", "orders", None] == 3
            assert numbers["in_flight", "orders", None] == 2
            assert numbers["held", "orders", "SELECTOR"] == 1
            assert numbers["enqueued_total", "prices", None] == 1
            assert numbers["discarded_total", "prices", None] == 0
            assert rows["queue_size", "orders", None].labels == {
                "broker": "b",
                "destination": "orders",
                "type": "queue",
            }
            assert len(samples(prometheus_text(broker))) == len(metric_table(broker))
            assert {row.name for row in metric_table(broker)} <= {name for name, _, _ in broker.metric_families()}
            data = reader.get_metrics_data()
            assert data is not None
            names = {metric.name for metric in data.resource_metrics[0].scope_metrics[0].metrics}
            assert names == {row.name for row in metric_table(broker)}
        provider.shutdown()
