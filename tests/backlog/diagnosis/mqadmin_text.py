"""mqadmin's tables as its releases print them, by the format strings of their commands' classes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

RELEASES = ("3.2.6", "4.0.0", "4.2.0", "4.3.0", "4.8.0", "4.9.1", "4.9.3", "5.0.0", "5.1.0", "5.3.3")
DAY = "2020-06-30"


class Queue(NamedTuple):
    """One message queue as a group sees it. last: the store time shown; empty: none is known."""

    broker_offset: int
    consumer_offset: int
    client: str = "10.0.0.4"
    topic: str = "orders"
    last: str = f"{DAY} 10:00:00"
    broker: str = "broker-a"


def numbered(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def width(release: str) -> int:
    """At how many characters topics and groups are cut."""
    return 64 if numbered(release) >= (4, 9, 3) else 32


def shows_clients(release: str, asked: bool) -> bool:
    """Whether the column of clients is there and says something."""
    number = numbered(release)
    return (4, 1) <= number < (4, 3) or (number >= (4, 3) and asked)


def progress(
    release: str, queues: Iterable[Queue], tps: float = 212.45, group: str = "billing", *, asked: bool = True,
    command: bool = True,
) -> str:  # fmt: skip
    """consumerProgress of one group. asked: with -s true."""
    number, wide = numbered(release), width(release)
    column = (4, 1) <= number < (4, 9) or (number >= (4, 9) and asked)
    said = shows_clients(release, asked)
    nobody = "NA" if number < (4, 3) else "N/A"
    flag = " -s true" if asked and number >= (4, 3) else ""
    lines = [f"$ sh mqadmin consumerProgress -n 10.1.1.5:9876 -g {group}{flag}"] if command else []
    titles = [
        f"{'#Topic':<{wide}}  {'#Broker Name':<32}  {'#QID':<4}  {'#Broker Offset':<20}  {'#Consumer Offset':<20}  "
    ]
    if number < (4,):
        titles.append("#Diff")
    else:
        titles.append(f"{'#Client IP':<20} {'#Diff':<20}" if column else f"{'#Diff':<20}")
        titles.append(f" {'#Inflight':<20}#LastTime" if number >= (5, 1) else "  #LastTime")
    lines.append("".join(titles))
    total = 0
    numbers: dict[tuple[str, str], int] = {}
    for queue in queues:
        diff = queue.broker_offset - queue.consumer_offset
        total += diff
        place = numbers.get((queue.topic, queue.broker), 0)
        numbers[queue.topic, queue.broker] = place + 1
        client = queue.client if said and queue.client else nobody
        last = queue.last or ("N/A" if number >= (4, 3) else "1970-01-01 08:00:00")
        cells = [
            f"{queue.topic[:wide]:<{wide}}  {queue.broker[:32]:<32}  {place:<4}  {queue.broker_offset:<20}  "
            f"{queue.consumer_offset:<20}  "
        ]
        if number < (4,):
            cells.append(f"{diff}")
        else:
            cells.append(f"{client:<20} {diff:<20}" if column else f"{diff:<20}")
            cells.append(f" {0:<20} {last}" if number >= (5, 1) else f"  {last}")
        lines.append("".join(cells))
    rate = f"{tps:.0f}" if number < (4,) else f"{tps}" if number < (4, 4) else f"{tps:.2f}"
    lines += ["", f"Consume TPS: {rate}"]
    if number >= (5, 1):
        lines += [f"Consume Diff Total: {total}", "Consume Inflight Total: 0"]
    else:
        lines.append(f"Diff Total: {total}")
    return "\n".join(lines) + "\n"


def broker_consume_stats(release: str, rows: Iterable[tuple[str, Queue]]) -> str:
    """brokerConsumeStats: queues of several groups."""
    wide = width(release)
    lines = [
        "$ mqadmin brokerConsumeStats -b 10.1.1.5:10911",
        f"{'#Topic':<{wide}}  {'#Group':<{wide}}  {'#Broker Name':<32}  {'#QID':<4}  {'#Broker Offset':<20}  "
        f"{'#Consumer Offset':<20}  {'#Diff':<20}  #LastTime",
    ]
    total = 0
    for group, queue in rows:
        diff = queue.broker_offset - queue.consumer_offset
        total += diff
        lines.append(
            f"{queue.topic[:wide]:<{wide}}  {group:<{wide}}  {queue.broker:<32}  {0:<4}  {queue.broker_offset:<20}  "
            f"{queue.consumer_offset:<20}  {diff:<20}  {queue.last}"
        )
    return "\n".join([*lines, "", f"Diff Total: {total}", ""])


def consumer_status(release: str, clients: Iterable[str], *, same: bool = True) -> str:
    """consumerStatus of a group, without -i."""
    headed = numbered(release) >= (4, 9, 4)
    version = "V" + release.replace(".", "_")
    lines = ["$ mqadmin consumerStatus -g billing"]
    if headed:
        lines.append(f"{'#Index':<10} {'#ClientId':<40} {'#Version':<20} #ConsumerRunningInfoFile")
    for number, client in enumerate(clients, 1):
        index = f"{number:<10} " if headed else f"{number:03}  "
        lines.append(f"{index}{client:<40} {version:<20} 1571623210123/{client}")
    if same:
        lines += ["", "", "Same subscription in the same group of consumer", "", "Rebalance OK"]
    else:
        lines += ["", "", "WARN: Different subscription in the same group of consumer!!!"]
    return "\n".join(lines)


def consumer_connection(release: str, clients: Iterable[tuple[str, str]], model: str = "CLUSTERING") -> str:
    """consumerConnection: client ids and addresses."""
    headed = numbered(release) >= (4, 9, 3)
    version = "V" + release.replace(".", "_")
    lines = ["$ mqadmin consumerConnection -g billing"]
    if headed:
        lines.append(f"{'#ClientId':<36} {'#ClientAddr':<22} {'#Language':<10} #Version")
    for number, (client, address) in enumerate(clients, 1):
        row = f"{client:<36} {address:<22} {'JAVA':<10} {version}"
        lines.append(row if headed else f"{number:03}  {client:<32} {address:<22} {'JAVA':<8} {version}")
    if headed:
        lines += ["", "Below is subscription:", f"{'#Topic':<20} #SubExpression", f"{'orders':<20} *", ""]
    else:
        lines += ["", f"Below is subscription:001  Topic: {'orders':<40} SubExpression: *"]
    return "\n".join([*lines, "ConsumeType: CONSUME_PASSIVELY", f"MessageModel: {model}",
                      "ConsumeFromWhere: CONSUME_FROM_LAST_OFFSET", ""])  # fmt: skip


def topic_status(release: str, ranges: Iterable[tuple[int, int]], topic: str = "orders") -> str:
    """topicStatus: oldest and next offsets of a broker's queues."""
    lines = [
        f"$ mqadmin topicStatus -n localhost:9876 -t {topic}",
        f"{'#Broker Name':<32}  {'#QID':<4}  {'#Min Offset':<20}  {'#Max Offset':<20}    #Last Updated",
    ]
    for number, (oldest, newest) in enumerate(ranges):
        updated = f"{DAY} 10:00:11,123" if newest else ""
        lines.append(f"{'broker-a':<32}  {number:<4}  {oldest:<20}  {newest:<20}    {updated}")
    if numbered(release) >= (5, 3, 3):
        lines += ["", "Topic Put TPS: 0.0"]
    return "\n".join([*lines, ""])


def stats_all(release: str, rows: Iterable[tuple[str, str, int, float, float]]) -> str:
    """statsAll: topic, group (empty: nobody), accumulation, rates in and out."""
    wide = 64 if numbered(release) >= (4, 9, 4) else 32
    lines = [
        f"{'#Topic':<{wide}}  {'#Consumer Group':<{wide}} {'#Accumulation':>12} {'#InTPS':>11} {'#OutTPS':>11} "
        f"{'#InMsg24Hour':>14} {'#OutMsg24Hour':>14}"
    ]
    for topic, group, waiting, came, went in rows:
        out, all_out = (f"{went:.2f}", f"{went * 86400:.0f}") if group else ("", "NO_CONSUMER")
        lines.append(
            f"{topic[:wide]:<{wide}}  {group[:wide]:<{wide}} {waiting:>12} {came:>11.2f} {out:>11} "
            f"{came * 86400:>14.0f} {all_out:>14}"
        )
    return "\n".join([*lines, ""])


def cluster_list(release: str) -> str:
    """clusterList of one broker."""
    version = "V" + release.replace(".", "_")
    if numbered(release) >= (5,):
        return (
            f"{'#Cluster Name':<22}  {'#Broker Name':<22}  {'#BID':<4}  {'#Addr':<22} {'#Version':<16}  "
            f"{'#InTPS(LOAD)':>16}  {'#OutTPS(LOAD)':>16}  {'#Timer(Progress)':<22}  {'#PCWait(ms)':<11}  "
            f"{'#Hour':<12}  {'#SPACE':<8}  {'#ACTIVATED':<10}\n"
            f"{'DefaultCluster':<22}  {'broker-a':<22}  {'0':<4}  {'10.1.1.5:10911':<22} {version:<16}  "
            f"{'    20.00(0,0ms)':>16}  {'    20.00(0,0ms)':>16}  {'0-0(0.0w, 0.0, 0.0)':<22}  {'0':>11}  "
            f"{'12.50':<12}  {'0.3700':<8}  {'true':>10}\n"
        )
    return (
        f"{'#Cluster Name':<16}  {'#Broker Name':<22}  {'#BID':<4}  {'#Addr':<22} {'#Version':<16} "
        f"{'#InTPS(LOAD)':>19} {'#OutTPS(LOAD)':>19} {'#PCWait(ms)':>10} {'#Hour':>5} {'#SPACE':>6}\n"
        f"{'DefaultCluster':<16}  {'broker-a':<22}  {'0':<4}  {'10.1.1.5:10911':<22} {version:<16} "
        f"{'    20.00(0,0ms)':>19} {'    20.00(0,0ms)':>19} {'0':>10} {'12.50':>5} {'0.3700':>6}\n"
    )


def later(text: str) -> str:
    """The table with its store times a minute later."""
    return re.sub(r"10:00:00$", "10:01:00", text, flags=re.MULTILINE)
