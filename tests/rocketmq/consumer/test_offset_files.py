"""RocketMQ's offset files: what fastjson 1.2.83 printed, ours against it, and what a crash or an editor leaves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyengine._engine.wire import fastjson
from pyengine.errors import ConfigurationError, InvalidSourceError, MQClientError
from pyengine.rocketmq import LocalFileOffsetStore, MessageQueue, ReadOffsetType
from pyengine.rocketmq.broker.broker_files import read_topics
from pyengine.rocketmq.broker.offset_files import (
    DataVersion,
    consumer_offset_text,
    local_offset_text,
    read_consumer_offsets,
    read_local_offsets,
    read_or_backup,
    replace_file,
)

# Printed by ConsumerOffsetManager.encode(true) and OffsetSerializeWrapper.toJson(true) of RocketMQ 5.3.3.
CONSUMER_OFFSETS = (
    '{\n\t"dataVersion":{\n\t\t"counter":0,\n\t\t"stateVersion":0,\n\t\t"timestamp":1795246400622\n\t},\n'
    '\t"groupTopicMap":{\n\t\t"GroupTest":["%RETRY%GroupTest","TopicTest"]\n\t},\n'
    '\t"offsetTable":{\n\t\t"%RETRY%GroupTest@GroupTest":{0:3\n\t\t},\n'
    '\t\t"TopicTest@GroupTest":{0:5280,1:5312\n\t\t}\n\t}\n}'
)
NO_CONSUMER_OFFSETS = (
    '{\n\t"dataVersion":{\n\t\t"counter":0,\n\t\t"stateVersion":0,\n\t\t"timestamp":1795246400639\n\t},\n'
    '\t"groupTopicMap":{},\n\t"offsetTable":{}\n}'
)
LOCAL_OFFSETS = (
    '{\n\t"offsetTable":{{\n\t\t\t"brokerName":"room@broker-b",\n\t\t\t"queueId":0,\n\t\t\t"topic":"T"\n'
    '\t\t}:9223372036854775807,{\n\t\t\t"brokerName":"broker-a",\n\t\t\t"queueId":1,\n'
    '\t\t\t"topic":"TopicTest"\n\t\t}:42\n\t}\n}'
)
TABLE = {"TopicTest@GroupTest": {0: 5280, 1: 5312}, "%RETRY%GroupTest@GroupTest": {0: 3}}
QUEUES = {MessageQueue("TopicTest", "broker-a", 1): 42, MessageQueue("T", "room@broker-b", 0): 2**63 - 1}


def test_what_the_real_broker_prints_is_read_and_printed() -> None:
    version = DataVersion(timestamp=1795246400622)
    assert read_consumer_offsets(CONSUMER_OFFSETS) == (TABLE, version)
    assert consumer_offset_text(TABLE, version) == CONSUMER_OFFSETS
    assert consumer_offset_text({}, DataVersion(timestamp=1795246400639)) == NO_CONSUMER_OFFSETS
    assert read_consumer_offsets(re.sub(r"\s", "", CONSUMER_OFFSETS)) == (TABLE, version)


def test_what_the_real_client_prints_is_read_and_printed() -> None:
    assert read_local_offsets(LOCAL_OFFSETS) == QUEUES
    assert local_offset_text(QUEUES) == LOCAL_OFFSETS
    assert local_offset_text({}) == '{\n\t"offsetTable":{}\n}'


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(st.dictionaries(st.tuples(names, names), st.dictionaries(st.integers(0, 2**31 - 1), st.integers(-1, 2**63 - 1))))
def test_consumer_offsets_come_back(table: dict[tuple[str, str], dict[int, int]]) -> None:
    keyed = {"@".join(key): queues for key, queues in table.items()}
    version = DataVersion(1, 2, 3)
    assert read_consumer_offsets(consumer_offset_text(keyed, version)) == (keyed, version)


@given(st.dictionaries(st.builds(MessageQueue, names, names, st.integers(0, 2**31 - 1)), st.integers(-1, 2**63 - 1)))
def test_local_offsets_come_back(table: dict[MessageQueue, int]) -> None:
    assert read_local_offsets(local_offset_text(table)) == table


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1, column 1: the document ends within a value"),
        ('{"offsetTable":{"T@G":{0:1,:2}}}', "column 28: a value is missing"),
        ('{"offsetTable":{"T@G":{0:1}', "column 28: ',' or '}' is missing"),
        ('{"offsetTable":\n{"T@G":{0 1}}}', "line 2, column 11: ':' is missing"),
        ('{"a":"x', "column 6: a text does not end"),
        ("{} {}", "text behind the document"),
        ('{"offsetTable":[1]}', "offsetTable is [1], not an object"),
        ('{"offsetTable":{"T@G":{0:"--5"}}}', "offset of T@G 0 = '--5' is no whole number"),
        ('{"offsetTable":{"T@G":{0:"' + "9" * 5000 + '"}}}', "offset of T@G 0 = '999"),
        ('{"offsetTable":{"T@G":{0:' + "9" * 5000 + "}}}", "column 26: a number without bounds"),
        ('{"offsetTable":{"T@G":{0:1e99999999999999999999}}}', "column 26: a number without bounds"),
        ('{"offsetTable":{"T@G":{0:1e101}}}', "offset of T@G 0 = 1E+101 is no whole number"),
        ('{"offsetTable":{"T@G":{2147483648:1}}}', "queue id of T@G = 2147483648 is no whole number"),
        ('{"offsetTable":{"T@G":{x:1}}}', "queue id of T@G = 'x'"),
        ("[" * 200, "nested deeper than 100"),
        ("{[1]:2}", "a key is a text, a whole number or an object of texts and numbers"),
    ],
)
def test_what_cannot_be_read_says_where(text: str, words: str) -> None:
    with pytest.raises(InvalidSourceError) as raised:
        read_consumer_offsets(text)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("queues", "read"),
    [
        ('{0:"+5",1:"1,000",2:true,3:false}', {0: 5, 1: 1000, 2: 1, 3: 0}),
        ("{0:1.5,1:-1.5,2:1e-3,3:1e3}", {0: 1, 1: -1, 2: 0, 3: 1000}),
        ("{0:99999999999999999999999.0,1:1e99}", {0: 200376420520689663, 1: 0}),
        ('{"1.0":5,"1,0":6,"+2":7}', {1: 5, 10: 6, 2: 7}),
        ("{0:1,}", {0: 1}),
        ("{,0:1}", None),
        ("{0:1,,}", None),
        ("{0:1,,1:2}", None),
        ('{"1.5":5}', None),
        ('{0:"1.0"}', None),
        ('{0:" 5"}', None),
        ("{0:null}", None),
        ("null", None),
    ],
)
def test_what_an_editor_leaves_is_read_as_the_real_broker_reads_it(queues: str, read: dict[int, int] | None) -> None:
    text = f'{{"offsetTable":{{"T@G":{queues}}}}}'
    if read is None:
        with pytest.raises(InvalidSourceError):
            read_consumer_offsets(text)
    else:
        assert read_consumer_offsets(text)[0] == {"T@G": read}


def test_members_are_read_in_every_spelling_that_the_real_broker_reads() -> None:
    text = '{"data_version":{"Counter":7},"OFFSET-TABLE":{"T@G":{0:5}}}'
    assert read_consumer_offsets(text) == ({"T@G": {0: 5}}, DataVersion(7))
    assert read_local_offsets('{OffsetTable:{{"Topic":"T","broker_name":0,"queueID":1}:4}}') == {
        MessageQueue("T", "0", 1): 4
    }
    assert read_topics('{"TopicConfigTable":{"T":{"read_queue_nums":3}}}', "topics.json") == {"T": 3}


def test_what_a_power_failure_leaves_behind_a_document_is_blank() -> None:
    assert read_consumer_offsets(CONSUMER_OFFSETS + "\0" * 4096)[0] == TABLE
    assert read_local_offsets("\0" + LOCAL_OFFSETS + "\x1a\x7f") == QUEUES
    with pytest.raises(InvalidSourceError, match="column 26: a value is missing"):
        read_consumer_offsets('{"offsetTable":{"T@G":{0:٣}}}')


@pytest.mark.parametrize(
    "text", ['{5:{"T@G":{0:5}}}', '{"dataVersion":{1:2},"offsetTable":{}}', '{{"a":1}:2,"offsetTable":{"T@G":{0:5}}}']
)
def test_a_member_without_a_name_is_refused_as_by_the_real_broker(text: str) -> None:
    with pytest.raises(InvalidSourceError, match="is not a name of a member; put it in quotes, or remove it"):
        read_consumer_offsets(text)
    with pytest.raises(InvalidSourceError, match="not a name of a member"):
        read_topics('{"topicConfigTable":{7:{"readQueueNums":3}}}', "topics.json")
    with pytest.raises(InvalidSourceError, match="not a name of a member"):
        read_local_offsets('{"offsetTable":{{"topic":"T",7:"b","queueId":1}:4}}')


def test_a_number_that_cannot_be_read_lets_the_backup_count(tmp_path: Path) -> None:
    (tmp_path / "consumerOffset.json").write_text('{"offsetTable":{"T@G":{0:"--5"}}}')
    (tmp_path / "consumerOffset.json.bak").write_text(CONSUMER_OFFSETS)
    assert (read_or_backup(tmp_path / "consumerOffset.json", read_consumer_offsets) or ({}, None))[0] == TABLE


def test_fastjson_reads_what_people_leave() -> None:
    text = "\ufeff{ // by hand\n'a\\'\\n\"': 5L, /* old */ b: [1, 2.50D,],, {x:'y', z:{}}: 1,}"
    assert fastjson.loads(text) == {"a'\n\"": 5, "b": [1, 2.5], (("x", "y"),): 1}


def test_fastjson_reads_what_json_is() -> None:
    text = '{"a": [1, -2.5, 1e3, true, false, null, "\\u00e9\\n\u20ac"], b: {}, -1: 2, {"y":1,"x":"z"}: 3}'
    assert fastjson.loads(text) == {
        "a": [1, -2.5, 1000.0, True, False, None, "é\n€"],
        "b": {},
        -1: 2,
        (("x", "z"), ("y", 1)): 3,
    }


def test_a_file_is_replaced_as_a_whole_and_the_old_one_kept(tmp_path: Path) -> None:
    path = tmp_path / "config" / "consumerOffset.json"
    for number in range(3):
        replace_file(path, str(number))
    assert (path.read_text(), path.with_name("consumerOffset.json.bak").read_text()) == ("2", "1")
    assert sorted(file.name for file in path.parent.iterdir()) == ["consumerOffset.json", "consumerOffset.json.bak"]


@pytest.mark.parametrize("damage", [None, "", '{"offsetTable":{"T@'])
def test_the_backup_counts_where_the_file_is_missing_empty_or_torn(
    tmp_path: Path, damage: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "consumerOffset.json"
    assert read_or_backup(path, read_consumer_offsets) is None
    replace_file(path, CONSUMER_OFFSETS)
    replace_file(path, NO_CONSUMER_OFFSETS)
    path.unlink()
    if damage is not None:
        path.write_text(damage)
    found = read_or_backup(path, read_consumer_offsets)
    assert found is not None
    assert found[0] == TABLE
    path.with_name(path.name + ".bak").write_text("{")
    if damage is not None:
        words = r"consumerOffset\.json\.bak: no fastjson at .*; correct it, or move it away to start without it"
        with pytest.raises(InvalidSourceError, match=words):
            read_or_backup(path, read_consumer_offsets)
        path.with_name(path.name + ".bak").write_bytes(b"\xff")
        with pytest.raises(InvalidSourceError, match=r"cannot be read: 'utf-8' .*; correct it, or move it away"):
            read_or_backup(path, read_consumer_offsets)
    path.with_name(path.name + ".bak").unlink()
    assert read_or_backup(path, read_consumer_offsets) is None
    assert ("has no backup: starting without what it says" in caplog.text) == bool(damage)


class TestLocalStore:
    """LocalFileOffsetStore, spec rocketmq 5.3."""

    Q, R, S = (MessageQueue("T", "broker-a", i) for i in range(3))
    MEMORY, STORE = ReadOffsetType.READ_FROM_MEMORY, ReadOffsetType.READ_FROM_STORE

    def store(self, tmp_path: Path) -> LocalFileOffsetStore:
        return LocalFileOffsetStore("10.0.0.1@DEFAULT", "G", directory=tmp_path)

    def test_offsets_live_in_a_file_of_client_and_group(self, tmp_path: Path) -> None:
        store = self.store(tmp_path)
        store.load()
        store.update_offset(self.Q, 5)
        store.update_offset(self.R, 7)
        store.persist_all([self.Q])
        path = tmp_path / "10.0.0.1@DEFAULT" / "G" / "offsets.json"
        assert read_local_offsets(path.read_text()) == {self.Q: 5}
        again = self.store(tmp_path)
        again.load()
        assert again.offsets() == {self.Q: 5}
        assert again.read_offset(self.R, ReadOffsetType.MEMORY_FIRST_THEN_STORE) == -1

    def test_writing_keeps_the_entries_of_others(self, tmp_path: Path) -> None:
        store, other = self.store(tmp_path), self.store(tmp_path)
        store.update_offset(self.Q, 5)
        store.persist(self.Q)
        other.update_offset(self.R, 7)
        other.persist_all({self.R, self.S})
        assert store.read_offset(self.R, self.MEMORY) == -1
        assert store.read_offset(self.R, self.STORE) == 7
        assert store.read_offset(self.R, self.MEMORY) == 7
        assert store.read_offset(self.Q, self.STORE) == 5
        assert store.offsets() == {self.Q: 5, self.R: 7}

    def test_memory_counts_first_and_the_file_where_it_is_asked(self, tmp_path: Path) -> None:
        store, other = self.store(tmp_path), self.store(tmp_path)
        store.update_offset(self.Q, 5)
        other.update_offset(self.Q, 9)
        other.persist(self.Q)
        assert store.read_offset(self.Q, ReadOffsetType.MEMORY_FIRST_THEN_STORE) == 5
        assert store.read_offset(self.Q, self.STORE) == 9
        assert store.read_offset(self.Q, self.MEMORY) == 9

    def test_frozen_and_removed_offsets(self, tmp_path: Path) -> None:
        store = self.store(tmp_path)
        store.update_offset(self.Q, 5)
        store.update_offset(self.Q, 3, increase_only=True)
        assert store.read_offset(self.Q, self.MEMORY) == 5
        store.update_and_freeze_offset(self.Q, 2)
        store.update_offset(self.Q, 9)
        assert store.read_offset(self.Q, self.MEMORY) == 2
        store.persist_all([self.Q])
        store.remove_offset(self.Q)
        assert store.read_offset(self.Q, self.MEMORY) == -1
        assert store.read_offset(self.Q, self.STORE) == 2

    def test_nothing_asked_is_nothing_done(self, tmp_path: Path) -> None:
        store = self.store(tmp_path)
        store.update_offset(None, 1)
        store.persist_all([])
        store.persist_all(None)
        store.persist(None)
        store.persist(self.Q)
        store.remove_offset(None)
        assert store.read_offset(None, self.STORE) == -1
        assert not store.path.exists()

    def test_damaged_files_are_said_at_load_and_read_as_none(self, tmp_path: Path) -> None:
        store = self.store(tmp_path)
        store.update_offset(self.Q, 5)
        store.persist(self.Q)
        store.persist(self.Q)
        store.path.write_text("{")
        assert self.store(tmp_path).read_offset(self.Q, self.STORE) == 5
        store.path.with_name("offsets.json.bak").write_text("{")
        with pytest.raises(MQClientError, match="readLocalOffset Exception, maybe fastjson version too low"):
            self.store(tmp_path).load()
        assert self.store(tmp_path).read_offset(self.Q, self.STORE) == -1
        store.persist(self.Q)
        assert store.path.read_text() == "{", "what cannot be read is not overwritten"


def test_an_offset_of_more_than_64_bits_is_refused(tmp_path: Path) -> None:
    store = LocalFileOffsetStore("client", "G", directory=tmp_path)
    for offset in (2**63, "3", None):
        with pytest.raises(ConfigurationError, match=r"offset=.*a whole number of 64 bits"):
            store.update_offset(MessageQueue("T", "broker-a", 0), offset)  # type: ignore[arg-type]
    assert store.offsets() == {}
