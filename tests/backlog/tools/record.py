"""``python -m tests.backlog.tools.record``: asks the real tools of every release anew and keeps what they print.

The tools are the real classes, from the entry point to the wire: servers of ours on loopback answer them with invented
clusters. Needs Java and Maven; takes about ten minutes. ``--product rocketmq`` and ``--release 4.9.7`` ask fewer.
What is kept lies in tests/backlog/data/tools/, a line of JSON for each cluster: the case and what each command printed.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.backlog.tools import drawing_kafka, drawing_rocketmq, wire_kafka
from tests.backlog.tools.clusters import Case
from tests.backlog.tools.real import SHARE_GROUPS, RealTools
from tests.backlog.tools.wire_rocketmq import NAME_SERVER, Servers

DATA = Path(__file__).parents[1] / "data" / "tools"
CLUSTERS = 20


def numbers(releases: Sequence[str], release: str) -> range:
    """Which clusters are drawn for a release: others than for its neighbours, so that all rules have their turn."""
    first = CLUSTERS * list(releases).index(release)
    return range(first, first + CLUSTERS)


def commands(case: Case) -> Iterator[tuple[int, str, list[str]]]:
    """What is asked of mqadmin: the moment, the command as people type it, its arguments."""
    group = case.cluster.groups[0].name
    shown = case.shown
    if shown == drawing_rocketmq.STATUS:
        yield 0, f"mqadmin consumerStatus -g {group}", ["consumerStatus", "-g", group]
        yield 0, f"mqadmin consumerConnection -g {group}", ["consumerConnection", "-g", group]
        return
    if shown == drawing_rocketmq.BROKER:
        for moment in range(2):
            for broker in case.cluster.brokers:
                address = case.cluster.address_of(broker)
                yield moment, f"mqadmin brokerConsumeStats -b {address}", ["brokerConsumeStats", "-b", address]
        return
    if shown == drawing_rocketmq.STATS:
        yield 1, "mqadmin statsAll", ["statsAll"]
        return
    words = ["consumerProgress"]
    if shown != drawing_rocketmq.LIST:
        words += ["-g", group]
        asks = shown not in (drawing_rocketmq.WITHOUT_CLIENTS, drawing_rocketmq.CONNECTED)
        release = case.cluster.release
        automatic = drawing_rocketmq.shows_clients_always(release) or drawing_rocketmq.shows_no_clients(release)
        if asks and not automatic:
            words += ["-s", "true"]
    for moment in range(2):
        yield moment, "mqadmin " + " ".join(words), words
    if shown == drawing_rocketmq.TOGETHER:
        yield 1, f"mqadmin consumerStatus -g {group}", ["consumerStatus", "-g", group]
    if shown == drawing_rocketmq.CONNECTED:
        yield 1, f"mqadmin consumerConnection -g {group}", ["consumerConnection", "-g", group]


def more_commands(case: Case) -> Iterator[tuple[int, str, list[str]]]:
    """What else people paste."""
    cluster = case.cluster
    topic = next(each for each in cluster.topics if not each.startswith("%"))
    words: list[list[str]] = [
        ["topicStatus", "-t", topic],
        ["brokerConsumeStats", "-b", cluster.address_of(cluster.brokers[0])],
        ["statsAll"],
        ["clusterList"],
        ["consumerProgress"],
        ["consumerConnection", "-g", cluster.groups[0].name],
    ]
    for each in words:
        if each[0] == "brokerConsumeStats" and cluster.release.startswith("3.2."):
            continue
        yield 1, "mqadmin " + " ".join(each), each


def rocketmq(release: str, texts: Path | None = None) -> list[dict[str, object]]:
    """Every cluster of a release with what mqadmin printed. texts: a folder for the first ones as plain text."""
    cases = [drawing_rocketmq.case(number, release) for number in numbers(list(drawing_rocketmq.RELEASES), release)]
    tools, servers = RealTools("rocketmq", release), Servers()
    found: list[dict[str, object]] = []
    try:
        for case in cases:
            number = case.cluster.number
            printed = []
            asked = [(True, *each) for each in commands(case)]
            if not found:
                asked += [(False, *each) for each in more_commands(case)]
            for shown, moment, command, words in asked:
                servers.show(case.cluster, moment)
                text = tools.run(tools.mqadmin, *words, "-n", ":".join(map(str, NAME_SERVER)))
                printed.append({"moment": moment, "command": command, "text": text, "shown": shown})
                if texts is not None and len(found) < 6:
                    texts.mkdir(parents=True, exist_ok=True)
                    name = f"{words[0]}-{number}{'ab'[moment]}.txt"
                    (texts / name).write_text(f"$ {command}\n{text}", "utf-8")
            found.append({**case.as_json(), "printed": printed})
    finally:
        tools.close()
        servers.close()
    return found


def kafka_commands(case: Case) -> Iterator[tuple[int, list[str]]]:
    """What is asked of kafka-consumer-groups, or of kafka-share-groups: the moment and the arguments."""
    group, shown = case.cluster.groups[0].name, case.shown
    asked = {
        drawing_kafka.OFFSETS: [["--describe", "--group", group]],
        drawing_kafka.SHARE: [["--describe", "--group", group]],
        drawing_kafka.ALL: [["--describe", "--all-groups"]],
        drawing_kafka.STATE: [["--describe", "--group", group], ["--describe", "--group", group, "--state"]],
        drawing_kafka.MEMBERS: [
            ["--describe", "--group", group],
            ["--describe", "--group", group, "--members", "--verbose"],
        ],
    }[shown]
    for moment in range(2):
        for words in asked:
            yield moment, words
    if shown == drawing_kafka.SHARE:
        for more in ("--state", "--members"):
            yield 1, [*asked[0], more]


def kafka(release: str, texts: Path | None = None) -> list[dict[str, object]]:
    """Every cluster of a release with what its tools printed."""
    tools, servers = RealTools("kafka", release), wire_kafka.Servers()
    found: list[dict[str, object]] = []
    try:
        cases = [drawing_kafka.case(number, release) for number in numbers(drawing_kafka.RELEASES, release)]
        if release.startswith("4."):
            cases += [drawing_kafka.share_case(number, release) for number in range(2)]
        for case in cases:
            number = case.cluster.number
            printed = []
            for moment, words in kafka_commands(case):
                share = case.shown == drawing_kafka.SHARE
                tool = SHARE_GROUPS if share else tools.consumer_groups
                # Until 2.0 the tool must be told that the group is not one of ZooKeeper's.
                more = ["--new-consumer"] if release.startswith("0.") else []
                servers.show(case.cluster, moment)
                text = tools.run(
                    (tool, "main"), "--bootstrap-server", ":".join(map(str, wire_kafka.BROKER)), *more, *words
                )
                command = " ".join(["kafka-share-groups.sh" if share else "kafka-consumer-groups.sh", *words])
                printed.append({"moment": moment, "command": command, "text": text, "shown": True})
                if texts is not None and len(found) < 8:
                    texts.mkdir(parents=True, exist_ok=True)
                    kind = next(
                        (each.strip("-") for each in words if each in ("--state", "--members", "--all-groups")),
                        "offsets",
                    )
                    name = f"{'share-' if share else ''}{kind}-{number}{'ab'[moment]}.txt"
                    (texts / name).write_text(f"$ {command}\n{text}", "utf-8")
            found.append({**case.as_json(), "printed": printed})
    finally:
        tools.close()
        servers.close()
    return found


def write(product: str, release: str, found: list[dict[str, object]]) -> None:
    DATA.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in found)
    (DATA / f"{product}-{release}.jsonl.gz").write_bytes(gzip.compress(lines.encode(), 9, mtime=0))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.backlog.tools.record", description=__doc__)
    parser.add_argument("--product", choices=("rocketmq", "kafka"))
    parser.add_argument("--release")
    parser.add_argument("--texts", type=Path, help="a folder for what was printed, as plain text too")
    chosen = parser.parse_args()
    for product, releases, record in (
        ("rocketmq", drawing_rocketmq.RELEASES, rocketmq),
        ("kafka", drawing_kafka.RELEASES, kafka),
    ):
        for release in releases:
            if chosen.product in (None, product) and chosen.release in (None, release):
                folder = chosen.texts / f"{product}-{release}" if chosen.texts else None
                write(product, release, record(release, folder))
                print(product, release)


if __name__ == "__main__":
    main()
