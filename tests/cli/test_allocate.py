"""``pyengine allocate`` in a process of its own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pyengine.cli import allocate
from pyengine.errors import ConfigurationError
from tests.cli.test_cli import pyengine


def test_one_strategy_shows_who_gets_what_and_what_moves(tmp_path: Path) -> None:
    topics = tmp_path / "topics.json"
    topics.write_text('{"orders": {"broker-a": 4, "broker-b": 4}}')
    done = pyengine("allocate", topics, "--clients", "c1,c2,c3", "--leave", "c3")
    assert done.returncode == 0, done.stderr
    assert [line.split()[1:4:2] for line in done.stdout.splitlines() if "AVG" in line] == [
        ["AVG", "now"],
        ["AVG", "then"],
    ]
    assert "orders broker-b 3: c3 -> c2" in done.stdout


def test_long_and_odd_names_are_shown_whole(tmp_path: Path) -> None:
    topics = tmp_path / "topics.json"
    topics.write_text('{"orders": 1}')
    client = "2001:db8:85a3::8a2e:370:7334@1234567#123456789012345[/b]" * 2
    done = pyengine("allocate", topics, "--clients", client, "--join", "0")
    assert done.returncode == 0, done.stderr
    cells = (line.split("│")[1].strip() for line in done.stdout.splitlines() if line.startswith("│"))
    assert client in "".join(cells)
    assert f"orders broker-a 0: {client} -> 0\n" in done.stdout


def test_json_has_every_strategy_whole(tmp_path: Path) -> None:
    topics, clients = tmp_path / "topics.json", tmp_path / "clients.txt"
    topics.write_text('{"orders": 8}')
    clients.write_text("c1\nc2\nc3\n")
    arguments = ("--strategy", "AVG", "--strategy", "CONSISTENT_HASH", "--join", "c4", "--json")
    done = pyengine("allocate", topics, "--clients", clients, *arguments)
    average, ring = json.loads(done.stdout)
    assert average["clients"]["c1"] == [["orders", "broker-a", i] for i in range(3)]
    assert average["skew"] == {"fewest": 2, "most": 3, "mean": 8 / 3, "ratio": 1.125, "idle": 0, "orphans": 0}
    assert ring["after"]["moved"] == len(ring["after"]["moves"])
    assert {move["after"] for move in ring["after"]["moves"]} <= {"c4"}


def test_rooms_are_read_in_names(tmp_path: Path) -> None:
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"T": {"IDC1-a": 10, "IDC2-a": 5, "IDC3-a": 5}}))
    clients = ["IDC1-a", "IDC1-b", "IDC2-a"]
    options = allocate.Options((), (), "-", 10, ("IDC3-a",), ())
    for name in ("MACHINE_ROOM_NEARBY", "MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE"):
        (answer,) = allocate.ask(topics, clients, [name], options)
        (document,) = allocate.as_dict([answer])
        homes = {client: [broker for _, broker, _ in queues] for client, queues in document["clients"].items()}
        at_home = {"IDC1-a": 5, "IDC1-b": 5, "IDC2-a": 5}
        assert {client: brokers.count(client[:5] + "a") for client, brokers in homes.items()} == at_home
        assert [brokers.count("IDC3-a") for brokers in homes.values()] == [2, 2, 1]
        assert {(move["queue"][1], move["after"]) for move in document["after"]["moves"]} == {("IDC3-a", "IDC3-a")}
    with pytest.raises(ConfigurationError, match="--room-mark=: is empty"):
        allocate.ask(topics, clients, ["MACHINE_ROOM_NEARBY"], replace(options, room_mark=""))


def test_mistakes_are_one_sentence(tmp_path: Path) -> None:
    topics = tmp_path / "topics.json"
    topics.write_text('{"orders": 8}')
    many, far = tmp_path / "many.json", tmp_path / "far.json"
    many.write_text('{"orders": 99999999999}')
    far.write_text('[["orders", "a", 2147483648]]')
    empty = tmp_path / "empty.json"
    empty.write_text("\n")
    latin = tmp_path / "latin.json"
    latin.write_bytes(b'{"caf\xe9": 4}')
    for arguments, words in (
        (
            (tmp_path / "none.json", "--clients", "c1"),
            "none.json: cannot be read: No such file or directory; give the path of a JSON file of topics",
        ),
        ((tmp_path, "--clients", "c1"), "cannot be read: Is a directory; give the path"),
        ((latin, "--clients", "c1"), "latin.json: is not UTF-8 (byte 5); save it as UTF-8"),
        ((topics, "--clients", ","), "--clients=: names no client; give ids with commas, or a file with one a line"),
        (
            (topics, "--clients", "c1", "--strategy", "AVERAGE"),
            "there is no allocation strategy 'AVERAGE'; did you mean 'AVG'?",
        ),
        (
            (topics, "--clients", "c1", "--strategy", "MACHINE_ROOM_NEARBY"),
            "--room-mark=-: ends no room in 'c1'; begin",
        ),
        ((topics, "--clients", "c1", "--strategy", "avg"), "no allocation strategy 'avg'; did you mean 'AVG'?"),
        (
            (topics, "--clients", "c1", "--strategy", "CONFIG"),
            "known: AVG, AVG_BY_CIRCLE, CONSISTENT_HASH, MACHINE_ROOM, MACHINE_ROOM_NEARBY",
        ),
        ((topics, "--clients", "c1", "--strategy", "MACHINE_ROOM"), "--rooms=: names no room; MACHINE_ROOM shares"),
        ((topics, "--clients", "c1,c2", "--leave", "c3"), "c3 is not in the plan"),
        ((topics, "--clients", "c1,c2", "--leave", "c1,c2"), "--leave=c1,c2: leaves no client; let one stay"),
        ((topics, "--clients", tmp_path / "clients"), "clients: cannot be read: No such file or directory"),
        ((topics, "--clients", "client.txt"), "client.txt: cannot be read: No such file or directory"),
        ((topics, "--clients", tmp_path), "cannot be read: Is a directory"),
        ((empty, "--clients", "c1"), "empty.json: is empty; accepted:"),
        ((many, "--clients", "c1"), "lists 99999999999 queues, more than 1000000"),
        ((far, "--clients", "c1"), "item 0 is ['orders', 'a', 2147483648], no message queue"),
    ):
        done = pyengine("allocate", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert words in done.stderr


def test_queues_of_nobody_are_told_of_each_plan_and_found() -> None:
    rooms = '{"T": {"hz@a": 4, "sh@a": 3}}'
    strategies = ("--strategy", "MACHINE_ROOM", "--strategy", "AVG", "--rooms", "hz")
    done = pyengine("allocate", "-", "--clients", "c1,c2", "--join", "c1", *strategies, stdin=rooms)
    assert done.returncode == 1, done.stderr
    assert [line for line in done.stdout.splitlines() if "to nobody" in line] == [
        "MACHINE_ROOM, now: 3 queues belong to nobody",
        "MACHINE_ROOM, then: 4 queues belong to nobody; there more than once: c1",
        "AVG, then: 2 queues belong to nobody; there more than once: c1",
    ]
    done = pyengine("allocate", "-", "--clients", "c1,c2", "--json", stdin=rooms)
    assert (done.returncode, json.loads(done.stdout)[0]["skew"]["orphans"]) == (0, 0)


def test_clients_are_printed_as_they_are_named(tmp_path: Path) -> None:
    topics, clients = tmp_path / "topics.json", tmp_path / "clients.txt"
    topics.write_bytes(b'\xef\xbb\xbf{"orders": 8}')
    clients.write_bytes(b"\xef\xbb\xbfc1\r\n[red]c2[/b]\r\n")
    done = pyengine("allocate", topics, "--clients", clients)
    assert [line.split()[1] for line in done.stdout.splitlines() if line.endswith("4                 │")] == [
        "[red]c2[/b]",
        "c1",
    ]
    long = "c" * 5000
    done = pyengine("allocate", topics, "--clients", long, "--json")
    assert list(json.loads(done.stdout)[0]["clients"]) == [long]
