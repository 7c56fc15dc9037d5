"""Files as the real tools write them, and what is done with files that are something else."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from pyengine.backlog.diagnosis.diagnose import diagnose, to_bring
from pyengine.backlog.diagnosis.evidence import read_files, read_text
from pyengine.backlog.diagnosis.evidence.model import Evidence
from pyengine.errors import InvalidSourceError

DATA = Path(__file__).parents[1] / "data"

DSTAT = (
    f"{'Name':<50}  {'Queue Size':>10}  {'Producer #':>10}  {'Consumer #':>10}  {'Enqueue #':>10}  {'Dequeue #':>10}  "
    f"{'Forward #':>10}  {'Memory %':>10}  {'Inflight #':>10}\n"
    f"{'orders.eu':<50}  {1200:>10}  {3:>10}  {2:>10}  {90000:>10}  {88800:>10}  {0:>10}  {4:>10}  {100:>10}\n"
)
PROGRESS = (
    f"{'#Topic':<64}  {'#Broker Name':<32}  {'#QID':<4}  {'#Broker Offset':<20}  {'#Consumer Offset':<20}  "
    f"{'#Client IP':<20} {'#Diff':<20} {'#Inflight':<20} #LastTime\n"
    f"{'%RETRY%g':<64}  {'broker-a':<32}  {0:<4}  {5:<20}  {5:<20}  {'N/A':<20} {0:<20} {0:<20} N/A\n"
    f"{'Orders':<64}  {'broker-a':<32}  {1:<4}  {900:<20}  {850:<20}  {'10.0.0.7':<20} {50:<20} {3:<20} "
    "2026-11-20 10:00:00\n\nConsume TPS: 3.50\nConsume Diff Total: 50\nConsume Inflight Total: 3\n"
)
GROUPS = (
    f"{'#Group':<64}  {'#Count':<6}  {'#Version':<24} {'#Type':<5}  {'#Model':<14}  {'#TPS':<7}  #Diff Total\n"
    f"{'live':<64}  {2:<6}  {'V5_3_3':<24} {'PUSH':<5}  {'CLUSTERING':<14}  {12:<7}  40\n"
    f"{'gone':<64}  {0:<6}  {'OFFLINE':<24} {'':<5}  {'':<14}  {0:<7}  7\n"
    f"{'pulls':<64}  {1:<6}  {'V5_3_3':<24} {'PULL':<5}  {'':<14}  {3:<7}  9\n"
)
KAFKA = """
Consumer group 'billing' has no active members.

GROUP    TOPIC   PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID  HOST  CLIENT-ID
billing  orders  0          100             250             150  -            -     -
billing  orders  1          -               30              -    -            -     -
"""
SPARK = {
    "id": "1", "name": "q", "timestamp": "2026-11-20T10:00:00.000Z", "batchId": 7, "numInputRows": 5,
    "inputRowsPerSecond": 5.0, "processedRowsPerSecond": 4.0, "durationMs": {"triggerExecution": 900},
    "sources": [{"latestOffset": {"t": {"0": 100, "1": 50}}, "endOffset": {"t": {"0": 90, "1": 50}}}],
}  # fmt: skip
LOG = (
    "2026-11-20 10:00:00.123 WARN  [77] [PullMessageService] [RocketmqClient#pullMessage:1] - the cached message count "
    "exceeds the threshold 1000, so do flow control, minOffset=50, maxOffset=1051, count=1001, size=3 MiB, "
    "pullRequest=PullRequest [consumerGroup=g, messageQueue=MessageQueue [topic=Orders, brokerName=broker-a, "
    "queueId=0], nextOffset=1052], flowControlTimes=1\n"
    "2026-11-20 10:00:01.123 INFO  [77] [Rebalance] - something else\n"
    "2026-11-20 10:00:09.123 WARN  - so do flow control in words of another version\n"
)


def test_jolokia_gives_the_broker_s_own_numbers() -> None:
    evidence = read_files([DATA / "jolokia-1.json"])
    orders = next(each for each in evidence.destinations if each.name == "orders")
    assert (orders.queue_size, orders.in_flight_count, orders.consumer_count, orders.max_page_size) == (
        400,
        200,
        2,
        200,
    )
    assert orders.broker == "localhost"
    grouped = next(each for each in evidence.destinations if each.name == "grouped")
    owners = dict(grouped.message_groups)
    owner = next(each for each in evidence.subscriptions if each.client_id == "owner")
    assert owners["g0"] == owners["g2"] == owner.consumer_id
    exclusive = next(each for each in evidence.subscriptions if each.client_id == "dead")
    assert exclusive.selector == "region = 'EU'"
    assert not evidence.remarks


@pytest.mark.parametrize(
    ("name", "sizes", "dequeued", "consumers", "codes"),
    [
        ("orders.eu", (1200, 1800), (5, 5), 2, ["consumer_stopped"]),
        ("orders.eu", (1200, 1200), (5, 5), 2, ["consumer_stopped"]),
        ("orders.eu", (0, 600), (5, 5), 2, []),  # it may all have come in the last moment
        ("orders.eu", (1200, 1800), (5, 605), 2, ["slow"]),
        ("orders.eu", (1200, 1800), (5, 5), 0, ["no_consumer"]),
        ("ActiveMQ.DLQ", (1200, 1200), (5, 5), 1, []),
    ],
)
def test_a_listing_of_queues_twice_shows_consumers_that_take_nothing(
    name: str, sizes: tuple[int, int], dequeued: tuple[int, int], consumers: int, codes: list[str]
) -> None:
    titles = "Name  Queue Size  Producer #  Consumer #  Enqueue #  Dequeue #\n"
    looks = [
        f"2024-06-01 10:0{at}:00\n{titles}{name}  {size}  1  {consumers}  {size + gone}  {gone}\n"
        for at, (size, gone) in enumerate(zip(sizes, dequeued, strict=True))
    ]
    found = diagnose(read_text("".join(looks), "dstat.txt"))
    assert [each.code for each in found if each.code != "dead_letters"] == codes


def test_tables_are_read_by_their_header() -> None:
    queue = read_text(DSTAT, "dstat.txt", 5).destinations[0]
    assert (queue.name, queue.queue_size, queue.consumer_count, queue.in_flight_count, queue.time) == (
        "orders.eu", 1200, 2, 100, 5,
    )  # fmt: skip
    retry, orders = read_text(PROGRESS, "progress.txt").offsets
    assert (retry.topic, retry.client, retry.last_time, retry.group) == ("%RETRY%g", "", 0, "g")
    assert (orders.lag, orders.queue, orders.client, orders.inflight, orders.group) == (50, 1, "10.0.0.7", 3, "g")
    assert orders.last_time is not None
    assert orders.last_time > 0
    # Before its retry topic is there, and of a group that pulls by itself, the table names no group.
    table = "\n".join(line for line in PROGRESS.splitlines() if "%RETRY%" not in line)
    unnamed = read_text(table, "progress.txt")
    assert [each.group for each in unnamed.offsets] == [""]
    assert [each.why for each in unnamed.remarks] == ["names no group; keep the command with its -g GROUP in the file"]
    named = read_text(f"$ mqadmin consumerProgress -n a:9876 -g g -s true\n{table}", "progress.txt")
    assert ([each.group for each in named.offsets], named.remarks) == (["g"], [])
    live, gone, pulls = read_text(GROUPS, "groups.txt").groups
    assert (live.group, live.clients, live.diff_total, live.tps) == ("live", 2, 40, 12)
    assert (gone.group, gone.clients, gone.diff_total) == ("gone", 0, 7)
    assert (pulls.group, pulls.clients, pulls.diff_total, pulls.tps) == ("pulls", 1, 9, 3)
    stray = read_text(f"{GROUPS}1 2\nsee 1 2 3\n", "groups.txt")
    assert (len(stray.groups), [remark.line for remark in stray.remarks]) == (3, [5, 6])
    odd = read_text(DSTAT.replace("orders.eu", "or ders") + DSTAT.splitlines()[1].replace("orders.eu", "a  b "), "d")
    assert [(each.name, each.queue_size, each.in_flight_count) for each in odd.destinations] == [
        ("or ders", 1200, 100), ("a  b", 1200, 100),
    ]  # fmt: skip
    first, never = read_text(KAFKA, "kafka.txt").offsets
    assert (first.group, first.topic, first.queue, first.lag, first.client) == ("billing", "orders", 0, 150, "")
    assert never.consumer_offset is None
    assert never.lag is None


def test_names_in_kafka_s_table_may_have_blanks() -> None:
    """As kafka-consumer-groups of 2.8, 3.9 and 4.1 print them: each column begins where its title does, but for what
    stands behind a host that is longer than its column; numbers and hosts tell what else is moved."""
    table = """
Warning: Consumer group 'slow group' is rebalancing.

GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID                                     HOST            CLIENT-ID
slow group      payments        0          0               100             100             client one-b2ce77b3-2382-4c0b-952e-ca79e39d508f /127.0.0.1      client one
slow group      payments        1          -               478             -               client one-b2ce77b3-2382-4c0b-952e-ca79e39d508f /0:0:0:0:0:0:0:1 client one

Warning: Consumer group 'other' is rebalancing.
slow group      payments        2          0               100             100             -               -               -
"""  # noqa: E501
    evidence = read_text(table, "kafka.txt")
    client = "client one-b2ce77b3-2382-4c0b-952e-ca79e39d508f"
    assert [(each.group, each.queue, each.consumer_offset, each.client) for each in evidence.offsets] == [
        ("slow group", 0, 0, client), ("slow group", 1, None, client), ("slow group", 2, 0, ""),
    ]  # fmt: skip
    assert evidence.remarks == []


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-23 00:18:14.953 INFO  [12795] [main] [o.a.r.c.i.f.MQClientInstance#?:?] - the client factory start OK",
        "2026-11-23 00:18:15.692 INFO  [12795] [main] [RocketmqRemoting#?:?] - createChannel: begin to connect",
        "2019-11-25 10:20:30,123 WARN RocketmqClient - get Topic [T] RouteInfoFromNameServer is not exist value",
    ],
)
def test_a_clients_log_without_flow_control_is_one_all_the_same(line: str) -> None:
    read = read_text(f"{line}\n\tat org.apache.rocketmq.client.Some.where(Some.java:1)\n", "rocketmq_client.log")
    assert (read.flow_controls, read.remarks) == ([], [])


def test_a_line_that_does_not_fit_is_told_not_dropped() -> None:
    evidence = read_text(DSTAT + "half a line 12\n" + DSTAT.splitlines()[1].replace("1200", "many") + "\n", "d.txt")
    assert [(remark.line, remark.why) for remark in evidence.remarks] == [
        (3, "does not fit the table above it"),
        (4, "a number was expected"),
    ]
    assert len(evidence.destinations) == 1
    log = read_text(LOG, "client.log")
    assert [(remark.line, remark.why) for remark in log.remarks] == [(3, "a flow-control line of unknown form")]
    torn = read_text(LOG.splitlines()[0].replace("2026-11-20", "2026-13-20") + "\n" + LOG, "client.log")
    assert [remark.line for remark in torn.remarks] == [1, 4]
    assert len(torn.flow_controls) == 1
    assert [(state.cause, state.threshold, state.min_offset, state.label) for state in log.flow_controls] == [
        ("count", 1000, 50, "Orders/broker-a/0")
    ]


def test_a_running_info_is_read_whole() -> None:
    evidence = read_files([DATA / "consumer-status.txt"])
    (client,) = evidence.clients
    assert client.group == "orders_group"
    assert client.subscriptions == (("Orders", "TagA || TagB"),)
    assert [queue.label for queue in client.queues] == ["Orders/broker-a/0", "Orders/broker-a/1"]
    assert (client.queues[0].min_offset, client.queues[0].max_offset, client.queues[0].count) == (5000, 7100, 1)
    assert (client.rates[0].consume_rt, client.rates[0].failed_in_hour) == (250.5, 12)
    thread = next(each for each in evidence.dumps[0].threads if each.name.startswith("ConsumeMessageThread"))
    assert thread.frames[:2] == (
        "java.lang.Thread.sleep(Native Method)",
        "listener.Orders.lambda$main$0(Orders.java:8)",
    )
    assert not evidence.remarks
    comma = read_text((DATA / "consumer-status.txt").read_text().replace("250.50", "250,50"), "comma.txt")
    assert comma.clients[0].rates == client.rates


def test_consumer_status_of_a_group_says_what_the_tool_says() -> None:
    mixed, stuck = read_files([DATA / "clients-mixed.txt"]), read_files([DATA / "clients-stuck.txt"])
    (check,) = mixed.checks
    assert (check.clients, check.time) == (["192.0.2.2@mixed-1", "192.0.2.2@mixed-2"], 1795291656272)
    assert check.different.startswith("WARN: Different subscription")
    (check,) = stuck.checks
    assert [(each.client_id, each.label) for each in check.problems][::3] == [
        ("192.0.2.2@stuck-1", "Bills/broker-a/0"), ("192.0.2.2@stuck-2", "Bills/broker-a/3"),
    ]  # fmt: skip
    assert not mixed.remarks + stuck.remarks
    text = (DATA / "clients-billing.txt").read_text()
    (check,) = read_text(f"$ mqadmin consumerStatus -g billing -n localhost:9876\n{text}", "status.txt").checks
    assert (check.group, len(check.clients), check.different, check.problems) == ("billing", 2, "", [])
    (remark,) = read_text(f"{text}\nanother word\n", "status.txt").remarks
    assert (remark.text, remark.why) == ("another word", "does not fit the table above it")
    # The running infos themselves say more: the tool's words are not told twice.
    both = read_files([DATA / "clients-billing.txt", DATA / "billing-1.txt"])
    assert not both.remarks
    assert diagnose(both) == []


def test_thread_dumps_of_both_tools() -> None:
    evidence = read_files([DATA / "jstack-1.txt", DATA / "py-spy-1.txt"])
    java, python = evidence.dumps
    blocked = next(each for each in java.threads if each.name == "ConsumeMessageThread_orders_group_2")
    assert (blocked.state, blocked.waiting_for) == ("BLOCKED", "<0x000000069ec41450> (a java.lang.Object)")
    assert java.time is not None
    assert python.threads[1].frames[:2] == ("call_tax_service (app.py:6)", "handle (app.py:8)")
    assert java.process == "0x00007f66a80f42b0"
    assert not read_text(f"12345:\n{(DATA / 'jstack-1.txt').read_text()}", "jcmd.txt").remarks
    twice = read_text((DATA / "jstack-1.txt").read_text() + (DATA / "jstack-2.txt").read_text(), "both.txt")
    assert len(twice.dumps) == 2
    assert twice.dumps[0].threads == java.threads


def test_spark_progress_in_lines_of_a_log() -> None:
    text = f"INFO MicroBatchExecution: Streaming query made progress: {json.dumps(SPARK, indent=2)}\nINFO next {{odd\n"
    evidence = read_text(text, "driver.log")
    (stream,) = evidence.streams
    assert (stream.query, stream.batch, stream.behind, stream.trigger_ms) == ("q", 7, 10, 900)
    assert len(evidence.remarks) == 1
    (remark,) = read_text("\n" + json.dumps(SPARK | {"timestamp": "soon"}), "driver.log").remarks
    assert (remark.line, remark.text[:8]) == (2, '{"id": "')
    assert str(remark.why) == "not a progress report: Invalid isoformat string: 'soon'"


def test_rocketmq_s_own_files() -> None:
    broker = read_text(
        '{"dataVersion":{"counter":1},"offsetTable":{"Orders@g":{0:12,1:15},"%RETRY%g@g":{0:3}}}', "c.json"
    )
    assert [(each.topic, each.group, each.queue, each.consumer_offset, each.lag) for each in broker.offsets] == [
        ("Orders", "g", 0, 12, None),
        ("Orders", "g", 1, 15, None),
        ("%RETRY%g", "g", 0, 3, None),
    ]
    local = '{"offsetTable":{{"brokerName":"broker-a","queueId":1,"topic":"Orders"}:42}}'
    (state,) = read_text(local, "c/g/offsets.json").offsets
    assert (state.group, state.label, state.consumer_offset) == ("g", "Orders/broker-a/1", 42)
    stats = local.replace(":42", ':{"brokerOffset":50,"consumerOffset":42,"pullOffset":45,"lastTimestamp":7}')
    (state,) = read_text(stats, "stats.json").offsets
    assert (state.lag, state.inflight, state.last_time) == (8, 3, 7)
    topics = '{"topicConfigTable":{"Orders":{"readQueueNums":4,"writeQueueNums":8,"perm":6},"odd":{}}}'
    evidence = read_text(topics, "topics.json")
    assert [(each.topic, each.read_queues, each.write_queues) for each in evidence.topics] == [("Orders", 4, 8)]
    assert evidence.remarks[0].text == "topic odd"
    groups = '{"subscriptionGroupTable":{"g":{"groupName":"g","consumeEnable":false,"retryMaxTimes":3}}}'
    (group,) = read_text(groups, "subscriptionGroup.json").group_settings
    assert (group.group, group.consume_enable, group.retry_max_times) == ("g", False, 3)
    with pytest.raises(InvalidSourceError, match=r"cut\.json: no fastjson at line 1"):
        read_text('{"offsetTable":{"Orders@g":{0:12,', "cut.json")


KINDS = {
    "dstat": DSTAT,
    "progress": PROGRESS,
    "groups": GROUPS,
    "kafka": KAFKA,
    "log": LOG,
    "jolokia": (DATA / "jolokia-1.json").read_text(),
    "status": (DATA / "consumer-status.txt").read_text(),
    "clients": (DATA / "clients-stuck.txt").read_text(),
    "jstack": (DATA / "jstack-1.txt").read_text(),
    "py-spy": (DATA / "py-spy-1.txt").read_text(),
    "spark": json.dumps(SPARK),
    "offsets": '{"offsetTable":{"Orders@g":{0:850,1:10}}}',
    "local": '{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"Orders"}:850}}',
    "topics": '{"topicConfigTable":{"Orders":{"perm":6,"readQueueNums":4,"writeQueueNums":4}}}',
    "groups.json": '{"subscriptionGroupTable":{"g":{"consumeEnable":true,"retryMaxTimes":16,"retryQueueNums":1}}}',
}
ODD = ("null", "-1", "1e999", '"x"', "[]", "{}", "NaN", "99999999999999999999", "9000000000000000000", "1.5", "")


@pytest.mark.parametrize("kind", KINDS)
def test_cut_files_and_odd_values_are_read_or_refused_with_a_word(kind: str) -> None:
    """Whatever was done to a file: evidence with remarks, or InvalidSourceError; never another exception."""
    rng = random.Random(6)
    text = KINDS[kind]
    values = [match.span() for match in re.finditer(r"(?<=[:=\s])(-?\d+|true|false|\"[^\"\n]*\"|\{\}|\[\])", text)]
    refused = 0
    for _ in range(60):
        start, end = rng.choice(values)
        odd = text[:start] + rng.choice(ODD) + text[end:]
        lines = text.splitlines(keepends=True)
        lines.insert(rng.randrange(len(lines)), lines.pop(rng.randrange(len(lines))))
        for each in (text[: rng.randrange(len(text))], odd, "".join(lines)):
            try:
                diagnose(read_text(each, "broken", 1))
            except InvalidSourceError:
                refused += 1
    assert refused < 180


def test_a_folder_is_read_with_what_it_has_that_is_known(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("buy milk")
    (tmp_path / "picture").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidSourceError, match="holds no file that is known here"):
        read_files([tmp_path])
    (tmp_path / "queues.txt").write_text(DSTAT)
    evidence = read_files([tmp_path])
    assert [each.name for each in evidence.destinations] == ["orders.eu"]
    assert [(each.text, str(each.why)) for each in evidence.remarks] == [
        ("notes.txt", "holds nothing that is known here"), ("picture", "is not text in UTF-16 (byte 2)"),
    ]  # fmt: skip


def test_a_backup_beside_its_file_is_no_later_sight(tmp_path: Path) -> None:
    """A copy of a broker's folder has the times of the copying, and its backups behind their files."""
    text = '{"offsetTable":{"orders@billing":{0:%s}}}'
    file, backup = tmp_path / "consumerOffset.json", tmp_path / "consumerOffset.json.bak"
    file.write_text(text % 150)
    backup.write_text(text % 100)
    for paths in ([tmp_path], [file, backup], [backup, file]):
        evidence = read_files(paths)
        assert [each.consumer_offset for each in evidence.offsets] == [150]
        assert diagnose(evidence) == []
    assert [each.consumer_offset for each in read_files([backup]).offsets] == [100]
    file.write_text("{")
    assert [each.consumer_offset for each in read_files([tmp_path]).offsets] == [100]
    file.unlink()
    assert [each.consumer_offset for each in read_files([tmp_path]).offsets] == [100]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"dataVersion":{"counter":2},"offsetTable":{1:2,18:2}}', "delayOffset.json"),
        ('{\n\t"filterDataByTopic":{}\n}', "consumerFilter.json"),
        ('{\n\t"table":{}\n}', "consumerOrderInfo.json"),
        ('{"dataVersion":{"counter":0},"transactionCount":{}}', "transactionMetrics"),
    ],
)
def test_the_other_files_of_a_brokers_config_folder_tell_nothing(text: str, name: str) -> None:
    evidence = read_text(text, f"store/config/{name}")
    assert evidence == Evidence(sources=evidence.sources)
    (hint,) = to_bring(evidence)
    assert hint.startswith(f"store/config/{name} is a file of the broker's config folder, which has no backlog")


def test_files_that_are_nothing_known(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("buy milk")
    with pytest.raises(
        InvalidSourceError, match=r"holds nothing that is known here; read are: activemq\.xml; Jolokia JSON"
    ):
        read_files([tmp_path / "notes.txt"])
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidSourceError, match="not text in UTF-16"):
        read_files([tmp_path / "binary"])
    with pytest.raises(InvalidSourceError, match="cannot be read: No such file"):
        read_files([tmp_path / "missing"])
    (tmp_path / "cut.json").write_text((DATA / "jolokia-1.json").read_text()[:-200] + '"mbean" "value" "status"')
    with pytest.raises(InvalidSourceError, match="looks like Jolokia JSON but cannot be read"):
        read_files([tmp_path / "cut.json"])
    refused = '{"request": {"mbean": "org.apache.activemq:x=y"}, "value": null, "status": 403, "error": "forbidden"}'
    (remark,) = read_text(refused, "refused.json").remarks
    assert remark.why == "the agent answered 403: forbidden"
    (remark,) = read_text('{"request": {"mbean": "x"}, "value": {}, "status": 200, "mbean": 1}', "other.json").remarks
    assert remark.why == "not a bean of ActiveMQ with its attributes"
    broker = '{"request": {"mbean": "org.apache.activemq:type=Broker"}, "value": {"BrokerName": "b"}, "status": 200}'
    (remark,) = read_text(broker, "broker.json").remarks
    assert remark.why.startswith("no destination and no subscription in it")
    deep = '{"mbean": "value", "status": ' + "[" * 100_000
    with pytest.raises(InvalidSourceError, match="nested too deep"):
        read_text(deep, "deep.json")
    (remark,) = read_text('{"batchId": 1, "numInputRows": ' + "[" * 100_000, "deep.json").remarks
    assert str(remark.why) == "not JSON: nested too deep"
