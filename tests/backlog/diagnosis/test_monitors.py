"""What monitoring tools export: the RocketMQ dashboard, Burrow, Prometheus' exporters, Arthas, a broker's log."""

from __future__ import annotations

import json

import pytest

from pyengine.backlog.diagnosis.diagnose import diagnose, judged_healthy, to_bring
from pyengine.backlog.diagnosis.evidence import ALL_QUEUES, Evidence, read_text
from pyengine.backlog.diagnosis.incidents import flat
from pyengine.errors import InvalidSourceError

T, LATER = 1_593_511_201_000, 1_593_511_261_000


def codes(evidence: Evidence) -> set[str]:
    return {finding.code for finding in flat(diagnose(evidence))}


def twice(text: str, **later: str) -> Evidence:
    """A text with ``{names}``, and the same a minute later with other values: ``name="before after"``."""
    found = Evidence()
    for number, time in enumerate((T, LATER)):
        said = text
        for name, values in later.items():
            said = said.replace("{" + name + "}", values.split()[number])
        found.add(read_text(said, f"{number}.txt", time))
    return found


def dashboard(reached: int, client: str | None, **more: object) -> str:
    """What /consumer/queryTopicByConsumer.query answers."""
    queues = [
        {"brokerName": "broker-a", "queueId": 0, "brokerOffset": 52000, "consumerOffset": reached, "clientInfo": client,
         "lastTimestamp": T},
        {"brokerName": "broker-a", "queueId": 1, "brokerOffset": 52000, "consumerOffset": 52000,
         "clientInfo": "10.0.0.4@7120", "lastTimestamp": T},
    ]  # fmt: skip
    topics = [{"topic": "orders", "diffTotal": 52000 - reached, "lastTimestamp": T, "queueStatInfoList": queues},
              {"topic": "%RETRY%billing", "diffTotal": 0, "lastTimestamp": 0, "queueStatInfoList": []}]  # fmt: skip
    return json.dumps({"status": 0, "data": topics, "errMsg": None} | more)


def test_the_dashboard_tells_queues_their_clients_and_the_group() -> None:
    evidence = read_text(dashboard(41000, None), "dash.json", T)
    assert [(each.group, each.queue, each.lag, each.client) for each in evidence.offsets] == [
        ("billing", 0, 11000, ""), ("billing", 1, 0, "10.0.0.4@7120"),
    ]  # fmt: skip
    assert codes(evidence) == {"unassigned_queue"}
    assert judged_healthy(read_text(dashboard(52000, "10.0.0.4@7120"), "dash.json", T))


def test_answers_of_the_dashboard_stand_one_after_the_other_in_a_file() -> None:
    command = "$ curl -s 'http://dash:8080/consumer/queryTopicByConsumer.query?consumerGroup=billing'\n"
    queue = dashboard(41000, "10.0.0.4@7120").replace("%RETRY%billing", "other")
    text = f"Tue Jun 30 10:00:01 UTC 2020\n{command}{queue}\nTue Jun 30 10:01:01 UTC 2020\n{command}{queue}\n"
    evidence = read_text(text, "f.txt", 5)
    assert {(each.group, each.time) for each in evidence.offsets} == {("billing", T), ("billing", LATER)}
    assert codes(evidence) == {"stalled"}


def test_the_other_answers_of_the_dashboard() -> None:
    groups = {"status": 0, "data": [{"group": "gone", "version": "V5_3_3", "count": 0, "consumeType": None,
              "messageModel": "CLUSTERING", "consumeTps": 0, "diffTotal": 77}], "errMsg": None}  # fmt: skip
    assert codes(read_text(json.dumps(groups), "f.json")) == {"stopped"}
    by_topic = {"status": 0, "data": {"billing": json.loads(dashboard(41000, None))["data"][0]}, "errMsg": None}
    assert {each.group for each in read_text(json.dumps(by_topic), "f.json").offsets} == {"billing"}
    stats = {"status": 0, "errMsg": None, "data": {"offsetTable": {
        "MessageQueue [topic=orders, brokerName=broker-a, queueId=0]":
            {"minOffset": 5, "maxOffset": 9, "lastUpdateTimestamp": T}}}}  # fmt: skip
    evidence = read_text(json.dumps(stats), "f.json")
    assert [(each.topic, each.min_offset, each.max_offset) for each in evidence.ranges] == [("orders", 5, 9)]
    assert "consumerProgress" in to_bring(evidence)[0]
    topics = json.dumps(json.loads(dashboard(41000, None))["data"])  # copied out of the answer
    assert {each.group for each in read_text(topics, "f.json").offsets} == {"billing"}
    refused = read_text('{"status":-1,"data":null,"errMsg":"CODE: 17 DESC: topic not exist"}', "f.json")
    assert "CODE: 17" in refused.remarks[0].why
    with pytest.raises(InvalidSourceError, match="brokerName"):
        read_text(dashboard(1, None).replace("brokerName", "broker"), "f.json")


def burrow(status: str, offsets: tuple[int, int], lags: tuple[int, int], owner: str = "/10.0.0.5") -> str:
    """What /v3/kafka/CLUSTER/consumer/GROUP/lag answers, of two partitions, the first of which is well."""

    def partition(number: int, of: tuple[int, int], behind: tuple[int, int], its: str, who: str) -> dict[str, object]:
        return {
            "topic": "orders", "partition": number, "owner": who, "client_id": "c", "status": its,
            "start": {"offset": of[0], "timestamp": T, "observedAt": T, "lag": behind[0]},
            "end": {"offset": of[1], "timestamp": LATER, "observedAt": LATER, "lag": behind[1]},
            "current_lag": behind[1], "complete": 1,
        }  # fmt: skip

    partitions = [partition(0, (100, 700), (2, 3), "OK", owner), partition(1, offsets, lags, status, owner)]
    return json.dumps({
        "error": False, "message": "consumer status returned",
        "status": {"cluster": "local", "group": "billing", "status": "ERR", "complete": 1, "partitions": partitions,
                   "partition_count": 2, "maxlag": None, "totallag": lags[1]},
        "request": {"url": "/v3/kafka/local/consumer/billing/lag", "host": "b"},
    })  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (burrow("OK", (100, 700), (5, 4)), set()),
        (burrow("STALL", (100, 100), (20, 620)), {"one_queue_stuck"}),
        (burrow("STOP", (100, 400), (20, 620)), {"one_queue_stuck"}),
        (burrow("WARN", (100, 400), (2000, 4000)), {"slow"}),
        (burrow("REWIND", (9000, 100), (20, 9620)), {"rewound"}),
        (burrow("REWIND", (100, 120), (20, 9620)), {"rewound"}),
    ],
)
def test_burrow_s_verdicts_are_the_findings(answer: str, told: set[str]) -> None:
    evidence = read_text(answer, "burrow.json", 5)
    assert codes(evidence) - {"too_few_consumers"} | ({"slow"} & told) == told
    assert judged_healthy(evidence) or told


@pytest.mark.parametrize("owner", ["/10.0.0.5", ""])
@pytest.mark.parametrize(("verdict", "offsets"), [("STALL", (100, 100)), ("STOP", (100, 400))])
def test_burrow_s_status_lists_only_the_partitions_that_are_not_well(
    verdict: str, offsets: tuple[int, int], owner: str
) -> None:
    answer = json.loads(burrow(verdict, offsets, (20, 620), owner))
    del answer["status"]["partitions"][0]
    (finding,) = diagnose(read_text(json.dumps(answer), "burrow.json", 5))
    assert (finding.code, finding.evidence[0]) == ("one_queue_stuck", "1 other partition is well by the monitor")
    answer["status"]["partition_count"] = 1
    (finding,) = diagnose(read_text(json.dumps(answer), "burrow.json", 5))
    assert finding.code == ("stopped" if verdict == "STOP" and not owner else "stalled")


def test_what_burrow_does_not_tell_is_said() -> None:
    (said,) = to_bring(read_text('{"error":false,"message":"consumer list returned","consumers":["billing"],'
                                 '"request":{"url":"/v3/kafka/local/consumer","host":"b"}}', "f.json"))  # fmt: skip
    assert "consumer/GROUP/lag" in said
    refused = read_text('{"error":true,"message":"cluster or consumer not found",'
                        '"request":{"url":"/v3/kafka/local/consumer/x/lag","host":"b"}}', "f.json")  # fmt: skip
    assert "not found" in refused.remarks[0].why
    kept = {"error": False, "message": "consumer detail returned", "topics": {"orders": [
        {"offsets": [None, {"offset": 5, "timestamp": T, "lag": 1}, {"offset": 5, "timestamp": LATER, "lag": 9}],
         "owner": "", "client_id": "", "current-lag": 12}]},
        "request": {"url": "/v3/kafka/local/consumer/billing", "host": "b"}}  # fmt: skip
    evidence = read_text(json.dumps(kept), "f.json")
    assert [(each.group, each.time, each.lag) for each in evidence.offsets] == [
        ("billing", T, 1),
        ("billing", LATER, 12),
    ]
    with pytest.raises(InvalidSourceError, match="timestamp"):
        read_text(burrow("OK", (1, 2), (3, 4)).replace("timestamp", "time"), "f.json")


KAFKA_EXPORTER = """# HELP kafka_consumergroup_lag Current Approximate Lag of a ConsumerGroup at Topic/Partition
# TYPE kafka_consumergroup_lag gauge
kafka_consumergroup_lag{consumergroup="billing",partition="0",topic="orders"} 5
kafka_consumergroup_lag{consumergroup="billing",partition="1",topic="orders"} {lag}
kafka_consumergroup_lag{consumergroup="billing",partition="2",topic="orders"} -1
kafka_consumergroup_current_offset{consumergroup="billing",partition="0",topic="orders"} {moving}
kafka_consumergroup_current_offset{consumergroup="billing",partition="1",topic="orders"} 41000
kafka_consumergroup_members{consumergroup="billing"} {members}
kafka_topic_partition_current_offset{partition="1",topic="orders"} 50004
kafka_topic_partition_oldest_offset{partition="1",topic="orders"} 100
go_goroutines 12
"""


def test_kafka_exporter() -> None:
    evidence = twice(KAFKA_EXPORTER, lag="9000 9600", moving="100 700", members="2 2")
    last = {each.queue: each for each in evidence.offsets if each.time == LATER}
    assert (last[1].consumer_offset, last[1].broker_offset, last[1].lag, last[1].min_offset) == (
        41000,
        50600,
        9600,
        100,
    )
    assert last[2].consumer_offset is None
    (finding,) = diagnose(evidence)
    assert finding.code == "one_queue_stuck"
    assert "kafka-transactions" in finding.advice
    empty = KAFKA_EXPORTER.replace("{lag}", "9000").replace("{moving}", "100").replace("{members}", "0")
    assert codes(read_text(empty, "f.prom", T)) == {"stopped"}
    assert evidence.sources[0].what == "Prometheus text of kafka_exporter"


def test_a_lag_a_little_below_0_is_none() -> None:
    text = KAFKA_EXPORTER.replace("{moving}", "100").replace("{members}", "2")
    assert read_text(text.replace("{lag}", "-3"), "f.prom").offsets[1].lag == 0
    assert codes(read_text(text.replace("{lag}", "-30000"), "f.prom")) == {"ahead_of_broker"}


def test_kafka_lag_exporter_shows_who_has_a_partition() -> None:
    labels = (
        'cluster_name="c",group="g",topic="t",partition="0",member_host="/10.0.0.1",consumer_id="{id}",client_id="c"'
    )
    text = (
        f"kafka_consumergroup_group_offset{{{labels}}} 95.0\nkafka_consumergroup_group_lag{{{labels}}} 5.0\n"
        f"kafka_consumergroup_group_lag_seconds{{{labels}}} NaN\n"
        'kafka_partition_latest_offset{cluster_name="c",topic="t",partition="0"} 101.0\n'
        'kafka_partition_earliest_offset{cluster_name="c",topic="t",partition="0"} 97.0\n'
    )
    (state,) = read_text(text.replace("{id}", "c-1"), "f.prom").offsets
    assert (state.client, state.broker_offset, state.consumer_offset) == ("c-1", 100, 95)
    assert codes(read_text(text.replace("{id}", "c-1"), "f.prom")) == {"retention_overtook"}
    assert "stopped" in codes(read_text(text.replace("{id}", ""), "f.prom"))


KMINION = """kminion_kafka_consumer_group_info{group_id="g",protocol="range",protocol_type="consumer",state="{state}",coordinator_id="1"} 1
kminion_kafka_consumer_group_members{group_id="g"} 3
kminion_kafka_consumer_group_empty_members{group_id="g"} {idle}
kminion_kafka_topic_partition_high_water_mark{topic_name="t",partition_id="0"} 100
kminion_kafka_consumer_group_topic_partition_lag{group_id="g",topic_name="t",partition_id="0"} {lag}
kminion_kafka_consumer_group_topic_lag{group_id="g",topic_name="t"} {lag}
"""  # noqa: E501


def test_kminion() -> None:
    evidence = twice(KMINION, state="Stable Stable", idle="0 0", lag="0 0")
    assert [(each.queue, each.consumer_offset) for each in evidence.offsets] == [(0, 100)] * 2
    assert judged_healthy(evidence)
    assert not diagnose(evidence)
    assert codes(twice(KMINION, state="Stable PreparingRebalance", idle="0 0", lag="9 9")) == {"rebalancing"}
    assert codes(twice(KMINION, state="Stable Stable", idle="1 1", lag="0 0")) == {"idle_members"}
    topics = KMINION.replace("_partition_lag{", "_lag_left_out{")  # its granularity may be topics
    (state, _) = twice(topics, state="Stable Stable", idle="0 0", lag="9 9").offsets
    assert (state.queue, state.lag) == (ALL_QUEUES, 9)


@pytest.mark.parametrize(
    "name",
    [
        "kafka_consumer_fetch_manager_records_lag",  # Micrometer
        "kafka_consumer_consumer_fetch_manager_metrics_records_lag",  # the JMX exporter without rules
    ],
)
def test_the_lag_that_a_client_tells_of_itself(name: str) -> None:
    evidence = twice(name + '{client_id="c-1",topic="t",partition="3",} {lag}', lag="2000.0 9000.0")
    assert [(each.client, each.queue, each.lag, each.consumer_offset) for each in evidence.offsets] == [
        ("c-1", 3, 2000, None), ("c-1", 3, 9000, None),
    ]  # fmt: skip
    assert codes(evidence) == {"lag_grows"}
    assert not judged_healthy(read_text(f'{name}{{client_id="c",topic="t",partition="3"}} 17', "f.prom"))


ROCKETMQ = """rocketmq_group_diff{group="billing",topic="orders",countOfOnlineConsumers="{clients}",msgModel="0"} {diff}
rocketmq_consumer_offset{cluster="c",broker="broker-a",topic="orders",group="billing"} {a}
rocketmq_consumer_offset{cluster="c",broker="broker-b",topic="orders",group="billing"} {b}
"""


def test_rocketmq_exporter_sums_up_the_queues_of_a_broker() -> None:
    evidence = twice(ROCKETMQ, clients="2 2", diff="90000 91000", a="100 400", b="500 800")
    assert [(each.broker, each.queue, each.lag, each.label) for each in evidence.offsets] == [
        ("", ALL_QUEUES, 90000, "orders"), ("", ALL_QUEUES, 91000, "orders"),
    ]  # fmt: skip
    assert codes(evidence) == {"slow"}
    assert codes(twice(ROCKETMQ, clients="0 0", diff="90000 90000", a="1 1", b="5 5")) == {"stopped"}
    ends = "".join(
        f'rocketmq_producer_offset{{cluster="c",broker="broker-{name}",topic="orders"}} {{{name}_end}}\n'
        for name in "ab"
    )
    stuck = twice(
        ROCKETMQ + ends, clients="2 2", diff="0 0", a="100 100", b="500 800", a_end="900 1200", b_end="500 800"
    )
    assert codes(stuck) == {"one_queue_stuck"}
    assert "orders/broker-a: " in diagnose(stuck)[0].evidence[1]
    five = (
        'rocketmq_consumer_lag_messages{cluster="c",topic="orders",consumer_group="g",is_retry="false",'
        'is_system="false"} {lag}\n'
    )
    assert codes(twice(five, lag="2000 9000")) == {"lag_grows"}


def test_the_query_api_of_prometheus() -> None:
    series = [
        {"metric": {"__name__": name, "consumergroup": "g", "topic": "t", "partition": "0"},
         "values": [[T / 1000, first], [LATER / 1000, last]]}
        for name, first, last in (("kafka_consumergroup_lag", "9000", "9600"),
                                  ("kafka_consumergroup_current_offset", "41000", "41000"))
    ]  # fmt: skip
    answer = {"status": "success", "data": {"resultType": "matrix", "result": series}}
    evidence = read_text(json.dumps(answer), "f.json", 5)
    assert [(each.time, each.lag) for each in evidence.offsets] == [(T, 9000), (LATER, 9600)]
    assert codes(evidence) == {"stalled"}
    with pytest.raises(InvalidSourceError, match="query API"):
        read_text(json.dumps(answer).replace("metric", "labels"), "f.json")


def test_prometheus_text_of_something_else_says_what_to_bring() -> None:
    evidence = read_text("# TYPE jvm_threads_current gauge\njvm_threads_current 12\n", "f.prom")
    assert not evidence.count
    assert "kafka_exporter" in to_bring(evidence)[0]
    stamped = 'kafka_consumergroup_lag{consumergroup="a\\"b",partition="2",topic="t"} 7 1593511201000\n'
    (state,) = read_text(stamped, "f.prom", 5).offsets
    assert (state.group, state.time, state.lag, state.dated) == ('a"b', T, 7, True)


STACK = """"ConsumeMessageThread_billing_1" Id=44{numbers} WAITING on java.util.concurrent.CountDownLatch$Sync@6c0b7
    at sun.misc.Unsafe.park(Native Method)
    -  waiting on java.util.concurrent.CountDownLatch$Sync@6c0b7
    at java.util.concurrent.locks.LockSupport.park(LockSupport.java:175)
    at java.util.concurrent.CountDownLatch.await(CountDownLatch.java:231)
    at shop.Listener.consumeMessage(Listener.java:{line})
    at org.apache.rocketmq.client.impl.consumer.ConsumeMessageConcurrentlyService$ConsumeRequest.run(C.java:417)

    Number of locked synchronizers = 1
    - java.util.concurrent.ThreadPoolExecutor$Worker@4f2410ac

"""
TABLE = """[arthas@7120]$ thread --state WAITING
Threads Total: 36, NEW: 0, RUNNABLE: 11, BLOCKED: 0, WAITING: 16, TIMED_WAITING: 9, TERMINATED: 0
ID    NAME                           GROUP          PRIORITY  STATE    %CPU    DELTA_TIME TIME   INTERRUPTED DAEMON
44    ConsumeMessageThread_billing_1 main           5         WAITING  0.0     0.000      0:0.012 false      false
"""


@pytest.mark.parametrize("numbers", ["", " cpuUsage=0.0%", " cpuUsage=0.1% deltaTime=0ms time=12ms"])
def test_arthas_thread_is_a_dump_a_prompt(numbers: str) -> None:
    one = STACK.replace("{numbers}", numbers).replace("{line}", "33")
    evidence = read_text("".join(f"[arthas@7120]$ thread -n 3\n{one}" for _ in range(3)), "f.txt", T)
    assert [(each.process, len(each.threads)) for each in evidence.dumps] == [("7120", 1)] * 3
    (thread,) = evidence.dumps[0].threads
    assert (thread.ident, thread.state, thread.cpu) == ("44", "WAITING", 12.0 if "time=" in numbers else None)
    assert thread.holds == ("java.util.concurrent.ThreadPoolExecutor$Worker@4f2410ac",)
    (finding,) = diagnose(evidence)
    assert (finding.code, finding.evidence[0]) == ("stuck_thread", "at shop.Listener.consumeMessage(Listener.java:33)")
    assert codes(read_text(one * 3, "f.txt", T)) == {"stuck_thread"}  # pasted without the prompts
    moving = [STACK.replace("{numbers}", numbers).replace("{line}", str(line)) for line in range(3)]
    assert not codes(read_text("".join(moving), "f.txt", T))


def test_arthas_table_of_threads_has_no_stacks() -> None:
    evidence = read_text(TABLE, "f.txt", T)
    assert not evidence.count
    assert "thread -n 20" in to_bring(evidence)[0]


def test_a_broker_s_log_without_a_line_of_a_group_is_named() -> None:
    line = "2020-07-19 10:45:46 INFO BrokerControllerScheduledThread1 - dispatch behind commit log 0 bytes\n"
    evidence = read_text(line, "broker.log")
    assert evidence.sources[0].what == "RocketMQ's broker.log"
    assert "consumerProgress" in to_bring(evidence)[0]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('rocketmq_group_diff{group="billing",topic="orders",countOfOnlineConsumers="0"} 7', "orders: lag 7"),
        ('kafka_consumergroup_lag{consumergroup="billing",partition="1",topic="orders"} 7\n'
         'kafka_consumergroup_members{consumergroup="billing"} 0', "orders/1: lag 7"),
    ],
)  # fmt: skip
def test_what_was_seen_once_and_without_offsets_says_its_lag_alone(text: str, line: str) -> None:
    (finding,) = flat(diagnose(read_text(text + "\n", "f.prom", T)))
    assert [str(said) for said in finding.evidence if "lag" in str(said) and line[:6] in str(said)] == [line]
