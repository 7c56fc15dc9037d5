"""The embedded cluster under a clock that the test moves."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyengine import rocketmq
from pyengine._engine.rocketmq.broker.delay_levels import DelayLevels
from pyengine.clock import ManualClock
from pyengine.errors import (
    ConfigurationError,
    InvalidMessageError,
    MQBrokerError,
    MQClientError,
    OffsetNotFoundError,
    PyengineError,
)
from pyengine.rocketmq import MessageQueue
from pyengine.rocketmq.remoting.mq_client_api import (
    FLAG_COMMIT_OFFSET,
    FLAG_SUSPEND,
    ClientEvents,
    ConsumeFromWhere,
    HeartbeatData,
    MessageModel,
    PullMessageRequest,
    PullResult,
    PullStatus,
    SubscriptionData,
)

Q0 = MessageQueue("T", "broker-a", 0)
ALL = PullMessageRequest("c1", "G", Q0, 0, sub_expression="*")


class Cluster:
    """A cluster of one broker, a producer, and pulls that remember their answers."""

    def __init__(self, **options: object) -> None:
        self.clock = ManualClock(now=1_700_000_000_000)
        self.broker = rocketmq.Broker(clock=self.clock, **options)  # type: ignore[arg-type]
        self.producer = rocketmq.Producer(self.broker)
        self.broker.create_topic("T", 1)
        self.events: list[tuple[str, str]] = []

    def send(self, *bodies: bytes, **options: object) -> list[int]:
        return [self.producer.send("T", body, queue=Q0, **options).queue_offset for body in bodies]  # type: ignore[call-overload]

    def ask(self, request: PullMessageRequest) -> list[PullResult | PyengineError]:
        """The answers that a pull has had; grows when a waiting pull is answered."""
        answers: list[PullResult | PyengineError] = []
        self.broker.pull_message(request, answers.append)
        self.clock.settle()
        return answers

    def pull(self, request: PullMessageRequest) -> PullResult:
        (answer,) = self.ask(replace(request, sys_flag=request.sys_flag & ~FLAG_SUSPEND))
        assert isinstance(answer, PullResult), answer
        return answer

    def bodies(self, topic: str) -> list[bytes | None]:
        return [message.body for message in self.broker.messages(topic)]

    def join(
        self,
        client_id: str,
        group: str = "G",
        *subscriptions: SubscriptionData,
        model: MessageModel = MessageModel.CLUSTERING,
    ) -> None:
        self.broker.register_client(client_id, ClientEvents(lambda group: self.events.append((client_id, group))))
        self.broker.send_heartbeat(
            HeartbeatData(
                client_id,
                group,
                model,
                ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
                subscriptions or (SubscriptionData("T", "*"),),
            )
        )


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_messages_come_back_as_they_were_sent(cluster: Cluster) -> None:
    sent = cluster.producer.send("T", b"hello", tags="TagA", keys="k1", properties={"region": "hangzhou"}, queue=Q0)
    (message,) = cluster.pull(ALL).messages
    assert (message.topic, message.body, message.tags, message.keys) == ("T", b"hello", "TagA", "k1")
    assert message.properties["region"] == "hangzhou"
    assert (message.queue_offset, message.queue_id, message.broker_name) == (0, 0, "broker-a")
    assert message.msg_id == sent.msg_id == message.properties["UNIQ_KEY"]
    assert message.store_timestamp == message.born_timestamp == cluster.clock.now()
    assert sent.offset_msg_id == "7F00000100002A9F0000000000000000"
    assert message.store_size == 91 + len("hello") + len("T") + sum(
        len(k) + len(v) + 2 for k, v in message.properties.items()
    )


def test_a_pull_tells_where_to_go_on(cluster: Cluster) -> None:
    assert cluster.pull(ALL).status is PullStatus.NO_NEW_MSG
    assert cluster.pull(replace(ALL, queue_offset=5)) == PullResult(PullStatus.OFFSET_ILLEGAL, 0, 0, 0)
    cluster.send(*[b"x"] * 40)
    found = cluster.pull(replace(ALL, max_nums=100))
    assert (found.status, len(found.messages), found.next_begin_offset, found.max_offset) == (
        PullStatus.FOUND,
        32,
        32,
        40,
    )
    assert cluster.pull(replace(ALL, queue_offset=38)).next_begin_offset == 40
    assert cluster.pull(replace(ALL, queue_offset=40)).status is PullStatus.NO_NEW_MSG
    assert cluster.pull(replace(ALL, queue_offset=41)) == PullResult(PullStatus.OFFSET_ILLEGAL, 40, 0, 40)


def test_an_answer_holds_at_most_256_kib_but_always_one_message(cluster: Cluster) -> None:
    cluster.send(b"x" * 300_000, b"y" * 200_000, b"z" * 200_000)
    assert [m.queue_offset for m in cluster.pull(ALL).messages] == [0]
    assert [m.queue_offset for m in cluster.pull(replace(ALL, queue_offset=1)).messages] == [1]


def test_tags_are_compared_by_their_hash_at_the_broker(cluster: Cluster) -> None:
    for tag in ("Aa", "BB", "C", None):
        cluster.send(b"x", tags=tag)
    wants_aa = replace(ALL, sub_expression="Aa")
    assert [m.tags for m in cluster.pull(wants_aa).messages] == ["Aa", "BB"]
    nothing = cluster.pull(replace(ALL, sub_expression="D || E"))
    assert (nothing.status, nothing.next_begin_offset) == (PullStatus.NO_MATCHED_MSG, 4)


def test_sql_filters_at_the_broker_and_what_cannot_be_evaluated_does_not_match(cluster: Cluster) -> None:
    for price in ("5", "15", "cheap"):
        cluster.send(price.encode(), properties={"price": price})
    sql = replace(ALL, sub_expression="price > 10", expression_type="SQL92")
    assert [m.body for m in cluster.pull(sql).messages] == [b"15"]
    senseless = replace(sql, sub_expression="price >")
    assert len(cluster.pull(senseless).messages) == 3, (
        "an expression that comes with the pull and is none filters nothing"
    )
    (refused,) = cluster.ask(replace(sql, sub_expression=""))
    assert isinstance(refused, MQBrokerError)
    assert refused.code == 23


def test_a_filtering_pull_gives_up_after_800_messages(cluster: Cluster) -> None:
    cluster.send(*[b"x"] * 1000, tags="A")
    first = cluster.pull(replace(ALL, sub_expression="B"))
    assert (first.status, first.next_begin_offset) == (PullStatus.NO_MATCHED_MSG, 800)
    assert cluster.pull(replace(ALL, sub_expression="B", queue_offset=800)).next_begin_offset == 1000


def test_a_pull_waits_for_a_message(cluster: Cluster) -> None:
    answers = cluster.ask(ALL)
    cluster.clock.advance(14_000)
    assert answers == []
    cluster.send(b"at last")
    (answer,) = answers
    assert isinstance(answer, PullResult)
    assert [m.body for m in answer.messages] == [b"at last"]


def test_a_waiting_pull_is_answered_after_fifteen_seconds(cluster: Cluster) -> None:
    cluster.clock.advance(3_000)
    answers = cluster.ask(ALL)
    cluster.clock.advance(16_999)  # looked at every 5 s from the broker's start: at 5, 10, 15 and 20 s
    assert answers == []
    cluster.clock.advance(1)
    assert answers == [PullResult(PullStatus.NO_NEW_MSG, 0, 0, 0)]


def test_a_message_that_a_waiting_pull_does_not_want_moves_it_on_at_the_next_look(cluster: Cluster) -> None:
    answers = cluster.ask(replace(ALL, sub_expression="A"))
    cluster.send(b"x", tags="B")
    assert answers == []
    cluster.clock.advance(5_000)
    assert answers == [PullResult(PullStatus.NO_MATCHED_MSG, 1, 0, 1)]


def test_a_group_without_an_offset_starts_a_young_queue_at_zero(cluster: Cluster) -> None:
    with pytest.raises(OffsetNotFoundError) as unknown:
        cluster.broker.query_consumer_offset("G", Q0)
    assert unknown.value.code == 22
    cluster.send(b"1", b"2", b"3")
    assert cluster.broker.query_consumer_offset("G", Q0) == 0
    cluster.broker.delete_below(Q0, 1)
    with pytest.raises(OffsetNotFoundError):
        cluster.broker.query_consumer_offset("G", Q0)
    cluster.broker.update_consumer_offset("G", Q0, 2)
    assert cluster.broker.query_consumer_offset("G", Q0) == 2
    cluster.broker.update_consumer_offset("G", Q0, 1)
    assert cluster.broker.query_consumer_offset("G", Q0) == 1


def test_a_pull_carries_the_commit_once(cluster: Cluster) -> None:
    cluster.send(b"1", b"2")
    cluster.pull(replace(ALL, commit_offset=1))
    assert cluster.broker.consumer_offsets("G", "T") == {}
    cluster.ask(replace(ALL, queue_offset=2, sys_flag=FLAG_COMMIT_OFFSET | FLAG_SUSPEND, commit_offset=1))
    assert cluster.broker.consumer_offsets("G", "T") == {Q0: 1}
    cluster.broker.update_consumer_offset("G", Q0, 2)
    cluster.send(b"wakes the pull")
    assert cluster.broker.consumer_offsets("G", "T") == {Q0: 2}


def test_deleted_offsets_are_illegal_and_the_answer_names_the_smallest(cluster: Cluster) -> None:
    cluster.send(*[b"x"] * 5)
    assert cluster.broker.delete_below(Q0, 3) == 3
    assert cluster.pull(replace(ALL, queue_offset=1)) == PullResult(PullStatus.OFFSET_ILLEGAL, 3, 3, 5)
    assert cluster.broker.delete_below(Q0, 99) == 2
    assert (cluster.broker.min_offset(Q0), cluster.broker.max_offset(Q0)) == (5, 5)
    assert cluster.pull(replace(ALL, queue_offset=5)).status is PullStatus.NO_NEW_MSG


def test_search_by_time_is_a_lower_bound(cluster: Cluster) -> None:
    start = cluster.clock.now()
    for _ in range(3):
        cluster.send(b"a", b"b")
        cluster.clock.advance(1000)
    found = [cluster.broker.search_offset(Q0, start + ms) for ms in (-5, 0, 1, 1000, 1001, 2000, 2001)]
    assert found == [0, 0, 2, 2, 4, 4, 6]


def test_a_delayed_message_arrives_when_its_level_says(cluster: Cluster) -> None:
    cluster.send(b"later", delay_time_level=3)
    cluster.send(b"sooner", delay_time_level=1)
    cluster.clock.advance(999)
    assert cluster.bodies("T") == []
    cluster.clock.advance(1)
    assert cluster.bodies("T") == [b"sooner"]
    cluster.clock.advance(9_000)
    assert cluster.bodies("T") == [b"sooner", b"later"]
    message = cluster.broker.message(Q0, 1)
    assert message is not None
    assert message.delay_time_level == 3  # it stays, as in the real broker, and counts if it is sent on
    assert message.properties["REAL_TOPIC"] == "T"
    assert message.store_timestamp - message.born_timestamp == 10_000


@pytest.mark.parametrize(
    ("levels", "delays"),
    [  # as ScheduleMessageService.parseDelayLevel reads them
        ("1s 5m 2h ", (1000, 300_000, 7_200_000)),
        ("+1s -2m", (1000, -120_000)),
        ("٣s 0d", (3000, 0)),
        ("21474836484d", (1855425872217600000,)),
        ("121474836484d", (-7951318201491951616,)),
    ],
)
def test_delay_levels_are_read_as_the_real_broker_reads_them(levels: str, delays: tuple[int, ...]) -> None:
    read = DelayLevels(levels)
    assert [read.deliver_time(level, 0) for level in range(1, len(read) + 1)] == list(delays)


@pytest.mark.parametrize("there", [True, False])
def test_what_is_given_back_makes_the_retry_topic_wherever_it_goes(cluster: Cluster, there: bool) -> None:
    cluster.send(b"x")
    message = cluster.broker.message(Q0, 0)
    assert message is not None
    if there:
        cluster.broker.consumer_send_message_back("G", message, -1, 16)
        assert cluster.bodies("%DLQ%G") == [b"x"]
    else:
        message.commit_log_offset = 7
        with pytest.raises(MQBrokerError, match="look message by offset failed, 7"):
            cluster.broker.consumer_send_message_back("G", message, 0, 16)
    assert cluster.broker.topics()["%RETRY%G"] == 1


def test_a_failed_message_is_retried_by_delay_level_and_ends_as_a_dead_letter(cluster: Cluster) -> None:
    cluster.join("c1")
    cluster.send(b"x", tags="A")
    (message,) = cluster.pull(ALL).messages
    retry = MessageQueue("%RETRY%G", "broker-a", 0)
    delays = []
    for times in range(16):
        cluster.broker.consumer_send_message_back("G", message, 0, 16)
        before = cluster.clock.now()
        while cluster.broker.max_offset(retry) == times:
            cluster.clock.advance(1000)
        delays.append((cluster.clock.now() - before) // 1000)
        found = cluster.broker.message(retry, times)
        assert found is not None
        message = found
        assert message.reconsume_times == times + 1
    assert delays == [10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200]
    assert (message.tags, message.properties["RETRY_TOPIC"]) == ("A", "T")
    assert message.properties["ORIGIN_MESSAGE_ID"] == cluster.broker.nodes["broker-a"].sender.offset_msg_id(0)
    cluster.broker.consumer_send_message_back("G", message, 0, 16)
    (dead,) = cluster.broker.messages("%DLQ%G")
    assert (dead.body, dead.reconsume_times, dead.properties["RETRY_TOPIC"]) == (b"x", 17, "T")


def test_a_consumer_chooses_the_level_or_the_dead_letters(cluster: Cluster) -> None:
    cluster.send(b"x")
    (message,) = cluster.pull(ALL).messages
    cluster.broker.consumer_send_message_back("G", message, 2, 16)
    cluster.clock.advance(5000)
    assert cluster.bodies("%RETRY%G") == [b"x"]
    cluster.broker.consumer_send_message_back("G", message, -1, 16)
    assert cluster.bodies("%DLQ%G") == [b"x"]
    message.commit_log_offset = 3
    with pytest.raises(MQBrokerError, match="look message by offset failed, 3"):
        cluster.broker.consumer_send_message_back("G", message, 0, 16)


def test_what_brokers_write_themselves_takes_no_message_and_no_topic(cluster: Cluster) -> None:
    for name in ("SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "OFFSET_MOVED_EVENT"):
        with pytest.raises(MQBrokerError, match=rf"CODE: 16  DESC: Sending message to topic\[{name}\] is forbidden"):
            cluster.broker.send_message("P", rocketmq.Message(name, b"x"), MessageQueue(name, "broker-a", 0))
        with pytest.raises(MQClientError, match=rf"The topic\[{name}\] is conflict with system topic"):
            cluster.broker.create_topic(name)
    cluster.send(b"late", delay_time_level=1)
    cluster.clock.advance(1000)
    assert cluster.bodies("T") == [b"late"]


@pytest.mark.parametrize(
    ("properties", "code", "text"),
    [
        ({"TIMER_DELAY_MS": "5000"}, 1, "accurate timer message is not enabled, timerWheelEnable is false"),
        ({"TIMER_DELIVER_MS": "x"}, 1, "accurate timer"),
        ({"TIMER_DELAY_SEC": "5", "DELAY": "-1"}, 1, "accurate timer"),
        ({"TRAN_MSG": "True"}, 16, "sending transaction message is forbidden"),
        ({"TRAN_MSG": "true", "DELAY": "3"}, 16, "sending transaction message is forbidden"),
        ({"INNER_NUM": "2"}, 13, "msg body length limit 4194304B, msg properties length limit 32KB"),
    ],
)
def test_what_the_brokers_cannot_do_with_a_message_is_refused(
    cluster: Cluster, properties: dict[str, str], code: int, text: str
) -> None:
    with pytest.raises(MQBrokerError, match=text) as refused:
        cluster.send(b"x", properties=properties)
    assert refused.value.code == code
    assert cluster.bodies("T") == []


def test_a_delay_level_counts_before_a_timer_and_a_retry_before_a_transaction(cluster: Cluster) -> None:
    cluster.send(b"level", properties={"TIMER_DELAY_MS": "500000", "DELAY": "1"})
    cluster.send(b"over", properties={"TIMER_DELAY_MS": "5", "TIMER_OUT_MS": "5"})
    cluster.send(b"none", properties={"TRAN_MSG": "false"})
    again = {"TRAN_MSG": "true", "DELAY": "3", "RECONSUME_TIME": "1"}
    cluster.broker.send_message("inner", rocketmq.Message("%RETRY%G", b"again", properties=again))
    cluster.clock.advance(10_000)
    assert cluster.bodies("T") == [b"over", b"none", b"level"]
    assert "TIMER_DELAY_MS" not in cluster.broker.messages("T")[2].properties
    assert cluster.bodies("%RETRY%G") == [b"again"]


def test_the_brokers_take_bodies_up_to_their_own_limit(cluster: Cluster) -> None:
    cluster.producer.max_message_size = 1 << 30
    cluster.send(bytes(4 << 20))
    with pytest.raises(MQBrokerError, match=r"CODE: 13  DESC: the message is illegal.* msg body length limit 4194304B"):
        cluster.send(bytes((4 << 20) + 1))
    with rocketmq.Broker(clock=cluster.clock, max_message_size=3) as narrow:
        with pytest.raises(MQBrokerError, match="length limit 3B"):
            rocketmq.Producer(narrow).send("T", b"four")
        rocketmq.Producer(narrow).send("T", b"abc")


def test_a_message_goes_to_no_queue_of_another_topic(cluster: Cluster) -> None:
    cluster.broker.create_topic("Other", 1)
    with pytest.raises(MQClientError, match="message's topic not equal mq's topic"):
        cluster.producer.send("T", b"x", queue=MessageQueue("Other", "broker-a", 0))
    assert cluster.bodies("T") == cluster.bodies("Other") == []


def test_a_queue_id_below_0_leaves_the_choice_to_the_broker(cluster: Cluster) -> None:
    cluster.broker.create_topic("Wide", 4)
    sent = [cluster.producer.send("Wide", b"x", queue=MessageQueue("Wide", "broker-a", -1)) for _ in range(40)]
    assert {result.queue.queue_id for result in sent} == {0, 1, 2, 3}


def test_a_delay_level_stays_as_it_was_written_unless_there_is_no_such_level(cluster: Cluster) -> None:
    for text in ("+1", "007", "+99", "-0"):
        cluster.send(b"x", properties={"DELAY": text})
    waiting = [cluster.broker.message(MessageQueue("SCHEDULE_TOPIC_XXXX", "broker-a", i), 0) for i in (0, 6, 17)]
    assert [message and message.properties["DELAY"] for message in waiting] == ["+1", "007", "18"]
    assert cluster.broker.messages("T")[0].properties["DELAY"] == "-0"


def test_a_pull_that_waits_counts_as_pulled(cluster: Cluster) -> None:
    cluster.send(b"x", b"y")
    assert cluster.ask(replace(ALL, queue_offset=2, sys_flag=FLAG_SUSPEND)) == []
    assert cluster.broker.pull_offsets("G", "T") == {Q0: 2}


def test_ordered_groups_send_retries_straight_to_the_dead_letters(cluster: Cluster) -> None:
    message = rocketmq.Message("%RETRY%G", b"x", properties={"RECONSUME_TIME": "3", "MAX_RECONSUME_TIMES": "5"})
    message.delay_time_level = 1
    cluster.broker.lock_batch_mq("G", "c1", [Q0])
    cluster.broker.send_message("inner", message)
    assert cluster.bodies("%DLQ%G") == [b"x"]
    cluster.clock.advance(60_001)
    cluster.broker.send_message("inner", message)
    cluster.clock.advance(1000)
    assert [m.reconsume_times for m in cluster.broker.messages("%RETRY%G")] == [3]


def test_queue_locks_belong_to_one_client_for_sixty_seconds(cluster: Cluster) -> None:
    other = MessageQueue("T", "broker-a", 1)
    broker = cluster.broker
    assert broker.lock_batch_mq("G", "c1", [Q0, other]) == {Q0, other}
    assert broker.lock_batch_mq("G", "c2", [Q0]) == set()
    assert broker.lock_batch_mq("H", "c2", [Q0]) == {Q0}
    cluster.clock.advance(40_000)
    assert broker.lock_batch_mq("G", "c1", [Q0]) == {Q0}
    cluster.clock.advance(20_001)
    assert broker.lock_batch_mq("G", "c2", [Q0, other]) == {other}
    broker.unlock_batch_mq("G", "c2", [Q0])
    assert broker.lock_batch_mq("G", "c2", [Q0]) == set()
    broker.unlock_batch_mq("G", "c1", [Q0])
    assert broker.lock_batch_mq("G", "c2", [Q0]) == {Q0}


def test_members_are_told_who_comes_and_goes(cluster: Cluster) -> None:
    with pytest.raises(MQBrokerError, match="no consumer for this group"):
        cluster.broker.get_consumer_id_list("T", "G")
    cluster.join("c1")
    cluster.join("c2")
    assert cluster.broker.get_consumer_id_list("T", "G") == ["c1", "c2"]
    assert cluster.events == [("c1", "G"), ("c1", "G"), ("c2", "G")]
    cluster.events.clear()
    cluster.join("c2")
    assert cluster.events == []
    cluster.join("c2", "G", SubscriptionData("T", "*"), SubscriptionData("U", "*"))
    assert cluster.events == [("c1", "G"), ("c2", "G")]
    cluster.events.clear()
    cluster.broker.unregister_client("c1", "G")
    assert cluster.events == [("c2", "G")]
    cluster.broker.unregister_client("c1", "G")  # the real broker does not ask whether it was there
    assert cluster.events == [("c2", "G"), ("c2", "G")]
    assert "%RETRY%G" in cluster.broker.topics()


def test_members_of_a_broadcasting_group_are_told_nothing(cluster: Cluster) -> None:
    cluster.join("c1", model=MessageModel.BROADCASTING)
    cluster.join("c2", model=MessageModel.BROADCASTING)
    cluster.broker.unregister_client("c1", "G")
    assert cluster.events == []
    cluster.join("c3", model=MessageModel.CLUSTERING)  # the last heartbeat's model is the group's
    assert cluster.events == [("c2", "G"), ("c3", "G")]
    assert cluster.broker.get_consumer_id_list("T", "G") == ["c2", "c3"]


def test_a_silent_member_is_gone_after_two_minutes_and_nobody_is_told(cluster: Cluster) -> None:
    cluster.join("c1")
    cluster.clock.advance(60_000)
    cluster.join("c2")
    cluster.events.clear()
    cluster.clock.advance(60_000)
    assert cluster.broker.get_consumer_id_list("T", "G") == ["c1", "c2"]
    cluster.clock.advance(10_000)
    assert cluster.broker.get_consumer_id_list("T", "G") == ["c2"]
    assert cluster.events == []


def test_without_an_expression_the_last_heartbeat_counts(cluster: Cluster) -> None:
    cluster.send(b"x", tags="A")
    unsaid = replace(ALL, sub_expression=None)
    (refused,) = cluster.ask(unsaid)
    assert isinstance(refused, MQBrokerError)
    assert refused.code == 24
    cluster.join("c1", "G", SubscriptionData("T", "B", frozenset({"B"}), frozenset({66}), sub_version=7))
    assert cluster.pull(replace(unsaid, sub_version=7)).status is PullStatus.NO_MATCHED_MSG
    (refused,) = cluster.ask(replace(unsaid, sub_version=8))
    assert isinstance(refused, MQBrokerError)
    assert refused.code == 25


def test_several_brokers_share_a_topic_machine_rooms_too() -> None:
    clock = ManualClock()
    with rocketmq.Broker(names=["room1@a", "room2@b"], clock=clock) as broker:
        broker.create_topic("T", 2)
        queues = [("T", "room1@a", 0), ("T", "room1@a", 1), ("T", "room2@b", 0), ("T", "room2@b", 1)]
        assert broker.topic_subscribe_info("T") == queues
        producer = rocketmq.Producer(broker)
        assert [producer.send("T", b"x").queue for _ in range(5)] == [*queues, queues[0]]
        by_key = lambda queues, message, key: queues[key % len(queues)]  # noqa: E731
        assert {producer.send("T", b"x", selector=by_key, arg=7).queue for _ in range(3)} == {queues[3]}
        with pytest.raises(MQClientError, match="not exist"):
            broker.max_offset(MessageQueue("T", "room3@c", 0))
        nowhere = MessageQueue("T", "room1@a", 9)
        assert (broker.min_offset(nowhere), broker.max_offset(nowhere), broker.search_offset(nowhere, 0)) == (0, 0, 0)
        with pytest.raises(OffsetNotFoundError):
            broker.query_consumer_offset("G", nowhere)
        with pytest.raises(MQBrokerError, match="Topic Nope not exist!"):
            broker.update_consumer_offset("G", MessageQueue("Nope", "room1@a", 0), 1)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 1.5, "3", None, float("nan")])
def test_offsets_and_times_are_whole_numbers_of_64_bits(cluster: Cluster, number: Any) -> None:
    cluster.send(b"x")
    broker = cluster.broker
    calls: list[Callable[[], object]] = [
        lambda: broker.update_consumer_offset("G", Q0, number),
        lambda: broker.delete_below(Q0, number),
        lambda: broker.message(Q0, number),
        lambda: broker.search_offset(Q0, number),
        lambda: broker.max_offset(Q0._replace(queue_id=number)),
        lambda: broker.lock_batch_mq("G", "c1", [Q0._replace(queue_id=number)]),
        lambda: broker.create_topic("U", number),
    ]
    for call in calls:
        with pytest.raises(ConfigurationError, match="a whole number of"):
            call()
    assert broker.consumer_offsets("G", "T") == {}
    assert broker.max_offset(Q0) == 1


@pytest.mark.parametrize("name", ["queue_offset", "max_nums", "commit_offset", "suspend_timeout"])
def test_a_pull_whose_numbers_are_none_is_refused_at_once(cluster: Cluster, name: str) -> None:
    for number in (2**63, "3", None):
        with pytest.raises(ConfigurationError, match=f"{name}=.*a whole number of"):
            cluster.broker.pull_message(replace(ALL, **{name: number}), print)  # type: ignore[arg-type]


@pytest.mark.parametrize("hours", [-1, float("nan"), float("inf"), 2**63, "3"])
def test_messages_are_deleted_after_a_number_of_hours(cluster: Cluster, hours: Any) -> None:
    cluster.send(b"x")
    with pytest.raises(ConfigurationError, match="hours"):
        cluster.broker.delete_expired(hours)
    assert cluster.broker.min_offset(Q0) == 0


@pytest.mark.parametrize("queue", [5, None, "x", ("T", "broker-a", 0)])
def test_a_queue_is_a_message_queue(cluster: Cluster, queue: Any) -> None:
    broker = cluster.broker
    for ask in (broker.max_offset, broker.min_offset, lambda queue: broker.query_consumer_offset("G", queue)):
        with pytest.raises(MQClientError, match="is not a MessageQueue; give one of broker"):
            ask(queue)


@pytest.mark.parametrize("given", [None, 5, b"G", ["G"]])
def test_groups_clients_and_topics_are_texts(cluster: Cluster, given: Any) -> None:
    broker = cluster.broker
    asked: list[tuple[str, Callable[[], object]]] = [
        ("topic", lambda: broker.create_topic(given)),
        ("topic", lambda: broker.messages(given)),
        ("topic", lambda: broker.topic_subscribe_info(given)),
        ("topic", lambda: broker.get_consumer_id_list(given, "G")),
        ("group", lambda: broker.get_consumer_id_list("T", given)),
        ("group", lambda: broker.consumer_offsets(given, "T")),
        ("group", lambda: broker.pull_offsets(given, "T")),
        ("group", lambda: broker.topics_of(given)),
        ("topics", lambda: broker.topics_of("G", "orders")),
        ("topic", lambda: rocketmq.consume_stats(broker, "G", given)),
        ("group", lambda: broker.query_consumer_offset(given, Q0)),
        ("group", lambda: broker.update_consumer_offset(given, Q0, 1)),
        ("group", lambda: broker.lock_batch_mq(given, "c", [Q0])),
        ("client_id", lambda: broker.lock_batch_mq("G", given, [Q0])),
        ("group", lambda: broker.unlock_batch_mq(given, "c", [Q0])),
        ("client_id", lambda: broker.unlock_batch_mq("G", given, [Q0])),
        ("group", lambda: rocketmq.Producer(broker, given)),
        ("broker", lambda: rocketmq.Producer(given)),
        ("max_message_size", lambda: rocketmq.Producer(broker, max_message_size="4")),  # type: ignore[arg-type]
        ("message", lambda: broker.send_message("P", given)),
        ("message", lambda: broker.consumer_send_message_back("G", given, 0, 16)),
        ("message", lambda: cluster.producer.send(given)),
        ("selector", lambda: cluster.producer.send("T", b"x", selector=given or "x")),
        ("request", lambda: broker.pull_message(given, print)),
        ("heartbeat", lambda: broker.send_heartbeat(given)),
        ("client_id", lambda: broker.unregister_client(given, "G")),
        ("group", lambda: broker.unregister_client("c", given)),
        ("queues", lambda: broker.lock_batch_mq("G", "c", 5)),  # type: ignore[arg-type]
        ("topic", lambda: rocketmq.DefaultMQPushConsumer("G", broker=broker).unsubscribe(given)),
    ]
    for name, ask in asked:
        with pytest.raises(ConfigurationError, match=f"^{name}="):
            ask()
    with pytest.raises(ConfigurationError, match=r"^brokers='broker-a': "):
        broker.create_topic("U", brokers="broker-a")


def test_a_message_is_looked_at_when_it_is_sent(cluster: Cluster) -> None:
    changes: list[tuple[str, Any]] = [("topic", 5), ("body", "x"), ("flag", 1.5), ("properties", {"TAGS": 5})]
    for name, value in [*changes, ("properties", {"DELAY": 3}), ("properties", {"a": 5})]:
        message = rocketmq.Message("T", b"x")
        setattr(message, name, value)
        with pytest.raises(InvalidMessageError):
            cluster.producer.send(message)
    assert cluster.bodies("T") == []


def test_what_cannot_be_is_refused() -> None:
    for option, value in (("segment_bytes", "x"), ("segment_bytes", 0), ("default_queues", None), ("seed", "x")):
        with pytest.raises(ConfigurationError, match=option):
            rocketmq.Broker(**{option: value})  # type: ignore[arg-type]
    for option, value in (("clock", 5), ("directory", 5), ("message_delay_level", None), ("names", 5)):
        with pytest.raises(ConfigurationError, match=f"^{option}={value}: "):
            rocketmq.Broker(**{option: value})  # type: ignore[arg-type]
    with pytest.raises(InvalidMessageError, match="no mapping"):
        rocketmq.Message("T", b"x", properties="abc")  # type: ignore[arg-type]
    for field, value in (
        ("topic", 5), ("tags", b"A"), ("keys", ["k"]), ("flag", "1"), ("flag", None), ("flag", 2**31), ("flag", ~2**31),
    ):  # fmt: skip
        with pytest.raises(InvalidMessageError, match=f"^{field} = "):
            rocketmq.Message(**{"topic": "T", "body": b"x", field: value})  # type: ignore[arg-type]
    for lowest_and_highest in (-(2**31), 2**31 - 1):
        assert rocketmq.Message("T", b"x", flag=lowest_and_highest).flag == lowest_and_highest
    with pytest.raises(ConfigurationError, match="names"):
        rocketmq.Broker(names=["a", "a"])
    with pytest.raises(ConfigurationError, match=r"names='abc': .*give a list of texts"):
        rocketmq.Broker(names="abc")
    for levels in ("1s 5x", "", "  ", "1s  5s", "s", f"{2**63}s", "\U0001d7dfs", "1_0s"):
        with pytest.raises(ConfigurationError, match="messageDelayLevel"):
            rocketmq.Broker(message_delay_level=levels)
    with rocketmq.Broker(clock=ManualClock(), auto_create_topics=False) as broker:
        producer = rocketmq.Producer(broker)
        with pytest.raises(MQClientError, match="No route info of this topic: T"):
            producer.send("T", b"x")
        broker.create_topic("U", 1)
        for where in ({"queue": 0}, {"selector": lambda queues, message, arg: 0}):
            with pytest.raises(MQClientError, match="0 is not a MessageQueue; give one of broker"):
                producer.send("U", b"x", **where)  # type: ignore[call-overload]
        broker.create_topic("T", 2)
        for queues in (0, 1_000_001, 2**31 - 1):
            with pytest.raises(ConfigurationError, match="1 to 1000000 queues"):
                broker.create_topic("T", queues)
        with pytest.raises(ConfigurationError, match="never shrinks"):
            broker.create_topic("T", 1)
        for topic, body, text in (
            (" ", b"x", "The specified topic is blank"),
            ("a b", b"x", "illegal characters"),
            ("x" * 128, b"x", "longer than topic max length 127"),
            ("T", b"", "the message body length is zero"),
        ):
            with pytest.raises(MQClientError, match=text):
                producer.send(topic, body)
            if body:
                with pytest.raises(MQClientError, match=text):
                    broker.create_topic(topic, 1)
        for group, text in (
            ("", "the specified group is blank"),
            ("a.b", r"the specified group\[a.b\] contains illegal characters, allowing only"),
            ("g" * 121, "is longer than group max length: 120"),
        ):
            with pytest.raises(MQClientError, match=text):
                rocketmq.Producer(broker, group)
        assert rocketmq.Producer(broker, "DEFAULT_CONSUMER").group == "DEFAULT_CONSUMER"
        with pytest.raises(InvalidMessageError, match=r"body = 'x' \(str\): not bytes; encode a text"):
            producer.send("T", "x")  # type: ignore[call-overload]


@pytest.mark.parametrize("name", ["DELAY", "RECONSUME_TIME", "MAX_RECONSUME_TIMES"])
@pytest.mark.parametrize("text", ["x", "1.5", " 3", "99999999999", "--3"])
def test_a_property_that_is_read_as_a_number_and_is_none_is_refused(name: str, text: str) -> None:
    broker = rocketmq.Broker(clock=ManualClock())
    broker.create_topic("T", 1)
    topic = "T" if name == "DELAY" else "%RETRY%G"
    with pytest.raises(InvalidMessageError, match=rf"{name} = '{text}' \(str\): no whole number of 32 bits"):
        rocketmq.Producer(broker).send(rocketmq.Message(topic, b"x", properties={name: text}))
    assert rocketmq.Message("T", properties={"DELAY": "+3"}).delay_time_level == 3


def test_threads_send_and_wait_under_the_systems_clock() -> None:
    with rocketmq.Broker() as broker:
        broker.create_topic("T", 1)
        got: list[int] = []
        done = threading.Event()

        def receive(answer: PullResult | PyengineError) -> None:
            assert isinstance(answer, PullResult), answer
            got.extend(message.queue_offset for message in answer.messages)
            if len(got) >= 200:
                done.set()
            else:
                broker.pull_message(replace(ALL, queue_offset=answer.next_begin_offset), receive)

        broker.pull_message(ALL, receive)
        producer = rocketmq.Producer(broker)
        senders = [
            threading.Thread(target=lambda: [producer.send("T", b"x", queue=Q0) for _ in range(50)]) for _ in range(4)
        ]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        assert done.wait(120)
        assert got == list(range(200))


FAQ = "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."


def test_remarks_are_the_real_brokers() -> None:
    broker = rocketmq.Broker(clock=ManualClock(), auto_create_topics=False)
    broker.create_topic("T", 2)
    for request, remark in (
        (request_of("U", 0), f"CODE: 17  DESC: topic[U] not exist, apply first please! \n{FAQ}"),
        (
            request_of("T", 2),
            "CODE: 29  DESC: queueId[2] is illegal, topic:[T] topicConfig.readQueueNums:[2] consumer:[/127.0.0.1:0]",
        ),
        (request_of("T", 0), f"CODE: 24  DESC: the consumer's group info not exist\n{FAQ}"),
    ):
        answers: list[object] = []
        broker.pull_message(request, answers.append)
        broker.settle()
        assert [str(answer) for answer in answers] == [remark]
    for queue, remark in (
        (MessageQueue("U", "broker-a", 0), f"CODE: 17  DESC: topic[U] not exist, apply first please!\n{FAQ}"),
        (
            MessageQueue("T", "broker-a", 2),
            "CODE: 29  DESC: request queueId[2] is illegal, TopicConfig [topicName=T, readQueueNums=2, "
            "writeQueueNums=2, perm=RW-, "
            "topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false, attributes={}] Producer: 127.0.0.1:0",
        ),
    ):
        with pytest.raises(MQBrokerError) as refused:
            rocketmq.Producer(broker).send(rocketmq.Message(queue.topic, b"x"), queue=queue)
        assert str(refused.value) == remark
    with pytest.raises(MQBrokerError, match=r"CODE: 1  DESC: no consumer for this group, G$"):
        broker.get_consumer_id_list("T", "G")


def request_of(topic: str, queue_id: int) -> PullMessageRequest:
    return PullMessageRequest("c", "G", MessageQueue(topic, "broker-a", queue_id), 0, sys_flag=0)


def test_a_message_for_a_queue_of_a_new_topic_makes_the_topic_on_that_broker() -> None:
    broker = rocketmq.Broker(names=["a", "b"], clock=ManualClock())
    producer = rocketmq.Producer(broker)
    with pytest.raises(MQBrokerError, match=r"CODE: 29  DESC: request queueId\[4\] is illegal"):
        producer.send(rocketmq.Message("T", b"x"), queue=MessageQueue("T", "b", 4))
    assert producer.send(rocketmq.Message("T", b"x"), queue=MessageQueue("T", "b", 3)).queue_offset == 0
    assert broker.topic_subscribe_info("T") == [MessageQueue("T", "b", i) for i in range(4)]
    assert producer.send(rocketmq.Message("%RETRY%G", b"x"), queue=MessageQueue("%RETRY%G", "a", 3)).queue_offset == 0
    with pytest.raises(MQClientError, match="contains illegal characters"):
        broker.send_message("P", rocketmq.Message("T T", b"x"), MessageQueue("T T", "b", 0))


@pytest.mark.parametrize("strange", [5, b"T", ["T"], ("T", "broker-a", 0)])
def test_what_is_no_topic_client_subscription_or_group_is_named(strange: Any) -> None:
    broker: Any = rocketmq.Broker(clock=ManualClock())
    consumer = rocketmq.DefaultMQPushConsumer("G", broker=broker)
    for option, ask in (
        ("topic", lambda: broker.make_topic(strange)),
        ("client_id", lambda: broker.register_client(strange, ClientEvents())),
        ("events", lambda: broker.register_client("c", strange)),
        ("subscription", lambda: broker.check_client("G", "c", strange)),
        ("consumer_group", lambda: consumer.check_config(strange)),
    ):
        with pytest.raises(ConfigurationError) as refused:
            ask()
        assert (refused.value.option, refused.value.value) == (option, repr(strange))


def test_what_cannot_be_given_back_is_named(cluster: Cluster) -> None:
    cluster.producer.send("T", b"x", queue=MessageQueue("T", "broker-a", 0))
    message = cluster.broker.message(MessageQueue("T", "broker-a", 0), 0)
    usual = {"group": "G", "message": message, "delay_level": 0, "max_reconsume_times": 16}
    for option, strange in (
        ("group", 5), ("message", 5), ("delay_level", None), ("delay_level", 2**31), ("max_reconsume_times", "16"),
    ):  # fmt: skip
        given: dict[str, Any] = {**usual, option: strange}
        with pytest.raises(ConfigurationError) as refused:
            cluster.broker.consumer_send_message_back(**given)
        assert refused.value.option == option


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("strange", ["x", ["T"], ("T", "broker-a", 0), 5])
def test_what_is_no_queue_of_an_offset_store_is_named(tmp_path: Path, local: bool, strange: Any) -> None:
    store: Any = rocketmq.RemoteBrokerOffsetStore(rocketmq.Broker(clock=ManualClock()), "G")
    if local:
        store = rocketmq.LocalFileOffsetStore("c", "G", directory=tmp_path)
    for option, ask in (
        ("queue", lambda: store.update_offset(strange, 5)),
        ("queue", lambda: store.update_and_freeze_offset(strange, 5)),
        ("queue", lambda: store.read_offset(strange, rocketmq.ReadOffsetType.READ_FROM_STORE)),
        ("queue", lambda: store.persist(strange)),
        ("queue", lambda: store.remove_offset(strange)),
        ("queue", lambda: store.persist_all([strange])),
        ("queues", lambda: store.persist_all(5)),
    ):
        with pytest.raises(ConfigurationError) as refused:
            ask()
        assert refused.value.option == option
    assert store.offsets() == {}
