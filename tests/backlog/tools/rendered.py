"""The text that the tools print of a cluster, written by us: as fast as it is wanted, and in any number.

It stands for the real tools only because :mod:`tests.backlog.tools.test_tools` compares it with what each release
really printed of twenty clusters, byte for byte. What a real tool leaves to chance (the order in which a hash table
gives its entries, the moment of the call) is an argument.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal

from tests.backlog.tools.clusters import QUIET, Case, Client, Cluster, Group, Moment, Queue
from tests.backlog.tools.drawing_kafka import ALL, STATE, shows_owners_alone
from tests.backlog.tools.drawing_rocketmq import (
    BROKER,
    CONNECTED,
    LIST,
    PROGRESS,
    RELEASES,
    STATS,
    STATUS,
    TOGETHER,
    shows_clients_always,
)

REBALANCING = ("PreparingRebalance", "CompletingRebalance", "AwaitingSync")
COORDINATOR = "127.0.0.11:9092"


def _number(release: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", release))


def _clock(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def consumer_progress(group: Group, moment: int, release: str, *, brokers: int, with_clients: bool) -> str:
    """``mqadmin consumerProgress -g GROUP``, with ``-s true`` if with_clients."""
    version = _number(release)
    width = 64 if version >= (4, 9, 3) else 32
    now = group.moments[moment]
    clients_shown = with_clients or (4, 1) <= version < (4, 9, 3)
    timed = version >= (3, 5)
    inflight = version >= (5, 1)
    head = [
        f"{'#Topic':<{width}}  {'#Broker Name':<32}  {'#QID':<4}  {'#Broker Offset':<20}  {'#Consumer Offset':<20}  "
    ]
    if clients_shown:
        head.append(f"{'#Client IP':<20} ")
    if timed:
        head.append(f"{'#Diff':<20}")
        head.append(f" {'#Inflight':<20}#LastTime\n" if inflight else "  #LastTime\n")
    else:
        head.append("#Diff\n")
    lines = ["".join(head)]
    owners = {client.id: client.id.split("@")[0] for client in now.clients}
    # A client that is asked last overwrites what another said of the same queue; pop clients have none.
    for queue in sorted(now.queues, key=lambda each: (each.topic, each.broker, each.number)):
        assert queue.committed is not None
        line = (
            f"{queue.topic[:width]:<{width}}  {queue.broker[:32]:<32}  {queue.number:<4}  {queue.newest:<20}  "
            f"{queue.committed:<20}  "
        )
        if clients_shown:
            shown = owners.get(queue.owner, "") if with_clients and group.kind != "pop" else ""
            line += f"{shown or ('NA' if shows_clients_always(release) else 'N/A'):<20} "
        if not timed:
            lines.append(f"{line}{queue.newest - queue.committed}\n")
            continue
        line += f"{queue.newest - queue.committed:<20}"
        line += f" {queue.pulled - queue.committed:<20} " if inflight else "  "
        last = "N/A" if queue.consumed_at == 0 and version >= (4, 3) else _clock(queue.consumed_at)
        lines.append(f"{line}{last}\n")
    tps = sum(now.tps / brokers for _ in range(brokers))
    total = sum(each.newest - (each.committed or 0) for each in now.queues)
    if not timed:
        tps = _by_broker(now.tps, brokers)
    lines.append(f"\nConsume TPS: {tps if version < (4, 4) else _two_places(tps)}\n")
    lines.append(f"Consume Diff Total: {total}\nConsume Inflight Total: 0\n" if inflight else f"Diff Total: {total}\n")
    return "".join(lines)


def _by_broker(tps: float, brokers: int) -> int:
    """In 3.2 each broker's share is a whole number."""
    return sum(int(tps / brokers) for _ in range(brokers))


def _whole_tps(moment: Moment, cluster: Cluster) -> int:
    return int(moment.tps) if _number(cluster.release) >= (3, 5) else _by_broker(moment.tps, len(cluster.brokers))


def progress_of_all(cluster: Cluster, moment: int, *, order: Sequence[str] = ()) -> str:
    """``mqadmin consumerProgress``. order: of the groups, by their names as they are printed."""
    width = 64 if _number(cluster.release) >= (4, 9, 3) else 32
    lines = [f"{'#Group':<{width}}  {'#Count':<6}  {'#Version':<24} #Type  {'#Model':<14}  {'#TPS':<7}  #Diff Total\n"]
    groups = sorted(cluster.groups, key=lambda each: order.index(each.name[:width]) if order else 0)
    for group in groups:
        now = group.moments[moment]
        online = bool(now.clients)
        total = sum(each.newest - (each.committed or 0) for each in now.queues)
        version = RELEASES[cluster.release][1] if online else "OFFLINE"
        kind, model = ("PUSH", "CLUSTERING") if online else ("", "")
        lines.append(
            f"{group.name[:width]:<{width}}  {len(now.clients):<6}  {version:<24} {kind:<5}  {model:<14}  "
            f"{_whole_tps(now, cluster):<7}  {total}\n"
        )
    return "".join(lines)


def consumer_status(
    group: Group, release: str, *, now: int, moment: int = 0, order: Sequence[str] = (), idle: Sequence[int] = ()
) -> str:
    """``mqadmin consumerStatus -g GROUP``.

    now: ms, of the call. order: the clients' ids. idle: ms, of each complaint.
    """
    clients = list(group.moments[moment].clients)
    if order:
        clients = [clients.pop(next(i for i, each in enumerate(clients) if each.id == name)) for name in order]
    with_head = _number(release) >= (4, 9, 3)
    lines = []
    if with_head:
        lines.append(f"{'#Index':<10} {'#ClientId':<40} {'#Version':<20} #ConsumerRunningInfoFile\n")
    for number, client in enumerate(clients, 1):
        index = f"{number:<10} " if with_head else f"{number:03}  "
        lines.append(f"{index}{client.id:<40} {client.version_name:<20} {now}/{client.id}\n")
    different = len({client.subscriptions for client in clients}) > 1
    gap = "\n" if _number(release) < (3, 5) else ""
    if different:
        return "".join([*lines, f"\n\nWARN: Different subscription in the same group of consumer!!!{gap}"])
    lines.append(f"\n\nSame subscription in the same group of consumer\n{gap}\nRebalance OK\n")
    spans = iter(idle)
    for client in sorted({each.id: each for each in clients}.values(), key=lambda each: each.id):
        for held in sorted(client.held, key=lambda each: (each.topic, each.broker, each.number)):
            if held.idle > QUIET and held.cached > 0:
                lines.append(
                    f"{client.id} MessageQueue [topic={held.topic}, brokerName={held.broker}, queueId={held.number}] "
                    f"can't consume for a while, maybe blocked, {next(spans, held.idle)}ms\n"
                )
    return "".join(lines)


def broker_consume_stats(cluster: Cluster, moment: int, broker: str) -> str:
    """``mqadmin brokerConsumeStats -b ADDRESS``.

    It leaves out queues of which nothing was consumed, and offsets that are ahead of the broker's.
    """
    width = 64 if _number(cluster.release) >= (4, 9, 3) else 32
    lines = [
        f"{'#Topic':<{width}}  {'#Group':<{width}}  {'#Broker Name':<32}  {'#QID':<4}  {'#Broker Offset':<20}  "
        f"{'#Consumer Offset':<20}  {'#Diff':<20}  #LastTime\n"
    ]
    total = 0
    for group in cluster.groups:
        queues = [each for each in group.moments[moment].queues if each.broker == broker]
        total += sum(each.newest - (each.committed or 0) for each in queues)
        for topic in dict.fromkeys(each.topic for each in queues):
            for queue in sorted((each for each in queues if each.topic == topic), key=lambda each: each.number):
                lag = queue.newest - (queue.committed or 0)
                if lag >= 0 and queue.consumed_at > 0:
                    lines.append(
                        f"{topic[:width]:<{width}}  {group.name:<{width}}  {broker[:32]:<32}  {queue.number:<4}  "
                        f"{queue.newest:<20}  {queue.committed:<20}  {lag:<20}  {_clock(queue.consumed_at)}\n"
                    )
    return "".join([*lines, f"\nDiff Total: {total}\n"])


def stats_all(cluster: Cluster, moment: int, *, order: Sequence[str] = ()) -> str:
    """``mqadmin statsAll``: of each topic (order: theirs) and group that consumes it; rates are those of a minute."""
    width = 64 if _number(cluster.release) >= (4, 9, 3) else 32
    counted = _number(cluster.release) >= (3, 5)
    backlog = f" {'#Accumulation':>12}" if counted else ""
    lines = [
        f"{'#Topic':<{width}}  {'#Consumer Group':<{width}}{backlog} {'#InTPS':>11} {'#OutTPS':>11} "
        f"{'#InMsg24Hour':>14} {'#OutMsg24Hour':>14}\n"
    ]
    count = len(cluster.brokers)
    for topic in order or cluster.topics:
        if topic.startswith("%RETRY%"):
            continue
        coming = max(group.put_rate(topic, moment) for group in cluster.groups) / count
        for group in cluster.groups:
            queues = [each for each in group.moments[moment].queues if each.topic == topic]
            if queues:
                asked = len({each.broker for each in queues})  # brokers that have the topic
                gone = group.moments[moment].tps / count
                waiting = max(0, sum(each.newest - (each.committed or 0) for each in queues))
                put = _two_places(sum(coming for _ in range(asked)))
                got = _two_places(sum(gone for _ in range(asked)))
                backlog = f" {waiting:>12}" if counted else ""
                lines.append(
                    f"{topic[:width]:<{width}}  {group.name[:width]:<{width}}{backlog} {put:>11} {got:>11} "
                    f"{_in_a_day(coming) * asked:>14} {_in_a_day(gone) * asked:>14}\n"
                )
    return "".join(lines)


def _in_a_day(rate: float) -> int:
    """The day's sum, or the minute's if the day has none."""
    return int(rate * 86_400) or int(rate * 60)


def _two_places(number: float) -> Decimal:
    """As Java's %.2f: it rounds the shortest text of a number half up, Python its exact value half to even."""
    return Decimal(repr(number)).quantize(Decimal("0.01"), ROUND_HALF_UP)


def consumer_connection(
    group: Group, moment: int, release: str, *, order: Sequence[str] = (), topics: Sequence[str] = ()
) -> str:
    """``mqadmin consumerConnection -g GROUP``. order: addresses of the clients; topics: of the subscriptions."""
    clients = sorted(group.moments[moment].clients, key=lambda each: order.index(each.address) if order else 0)
    subscriptions = dict(group.moments[moment].clients[-1].subscriptions)
    if _number(release) >= (4, 9, 3):
        lines = [f"{'#ClientId':<36} {'#ClientAddr':<22} {'#Language':<10} #Version\n"]
        lines += [f"{each.id:<36} {each.address:<22} {each.language:<10} {each.version_name}\n" for each in clients]
        lines.append(f"\nBelow is subscription:\n{'#Topic':<20} #SubExpression\n")
        lines += [f"{topic:<20} {subscriptions[topic]}\n" for topic in topics or subscriptions]
        lines.append("\n")
    else:
        lines = [
            f"{number:03}  {each.id:<32} {each.address:<22} {each.language:<8} {each.version_name}\n"
            for number, each in enumerate(clients, 1)
        ]
        older = _number(release) < (3, 5)
        lines.append("\nBelow is subscription:\n" if older else "\nBelow is subscription:")
        lines += [
            f"{number:03}  Topic: {topic:<40} SubExpression: {subscriptions[topic]}\n"
            for number, topic in enumerate(topics or subscriptions, 1)
        ]
        lines.append("\n" if older else "")
    lines.append(
        "ConsumeType: CONSUME_PASSIVELY\nMessageModel: CLUSTERING\nConsumeFromWhere: CONSUME_FROM_LAST_OFFSET\n"
    )
    return "".join(lines)


def _not_online(group: Group, release: str) -> str:
    """What it prints of a group without clients: the first lines of a stack trace."""
    if release.startswith("3."):
        return (
            "com.alibaba.rocketmq.client.exception.MQBrokerException: CODE: 206  DESC: the consumer group"
            f"[{group.name}] not online\n"
            "For more information, please visit the url, https://github.com/alibaba/RocketMQ/issues/64\n"
            "\tat com.alibaba.rocketmq.client.impl.MQClientAPIImpl.getConsumerConnectionList(MQClientAPIImpl.java:1)\n"
        )
    return (
        "org.apache.rocketmq.tools.command.SubCommandException: ConsumerConnectionSubCommand command failed\n"
        "\tat org.apache.rocketmq.tools.command.MQAdminStartup.main(MQAdminStartup.java:77)\n"
        "Caused by: org.apache.rocketmq.client.exception.MQBrokerException: CODE: 206  DESC: the consumer group"
        f"[{group.name}] not online\n"
    )


def _said(name: str, moment: Moment, release: str) -> str:
    """What the tool of Kafka says of a group before its table, on standard error."""
    newer = _number(release) >= (2,)
    if moment.state == "Empty":
        text = f"Consumer group '{name}' has no active members.\n"
    elif moment.state in REBALANCING:
        text = f"Warning: Consumer group '{name}' is rebalancing.\n"
    else:
        return ""
    return f"\n{text}" if newer else text


def note(release: str) -> str:
    """What it says of old consumers, on standard error."""
    if release.startswith(("0.10.2.", "0.11.")):
        return (
            "Note: This will only show information about consumers that use the Java consumer API "
            "(non-ZooKeeper-based consumers).\n\n"
        )
    return (
        "Note: This will not show information about old Zookeeper-based consumers.\n"
        if release.startswith("1.")
        else ""
    )


def _rows(group: Group, moment: int, order: Sequence[tuple[str, int]]) -> list[tuple[Queue | None, Client | None]]:
    """Partitions with their members, and members without partitions, in the order in which the tool gives them."""
    now = group.moments[moment]
    by_id = {client.id: client for client in now.clients} if now.state not in REBALANCING else {}
    shown: list[tuple[Queue | None, Client | None]] = [
        (queue, by_id.get(queue.owner)) for queue in now.queues if queue.committed is not None or queue.owner in by_id
    ]
    if order:
        shown.sort(key=lambda row: order.index((row[0].topic, row[0].number)) if row[0] else 0)
    return shown


def offsets(
    group: Group, moment: int, release: str, *, order: Sequence[tuple[str, int]] = (), idle: Sequence[str] = ()
) -> str:
    """``kafka-consumer-groups --describe --group GROUP``. order: of partitions; idle: ids of members without any."""
    version = _number(release)
    now = group.moments[moment]
    rows = _rows(group, moment, order)
    if shows_owners_alone(release):
        return _of_owners(group, rows, release)
    if version < (1,):  # later releases leave members without partitions out
        without = [each for each in now.clients if not any(each is client for _, client in rows)]
        without.sort(key=lambda each: idle.index(each.id) if each.id in idle else -1)
        owned = sum(client is not None for _, client in rows)
        rows[owned:owned] = [(None, each) for each in without]
    cells = []
    for queue, client in rows:
        lag = None if queue is None or queue.committed is None else queue.newest - queue.committed
        whole = [
            group.name,
            queue and queue.topic,
            None if queue is None else queue.number,
            None if queue is None else queue.committed,
            None if queue is None else queue.newest,
            lag,
            client and client.id,
            client and client.address,
            client and client.name,
        ]
        cells.append(["-" if each is None else str(each) for each in whole])
    titles = [
        "GROUP",
        "TOPIC",
        "PARTITION",
        "CURRENT-OFFSET",
        "LOG-END-OFFSET",
        "LAG",
        "CONSUMER-ID",
        "HOST",
        "CLIENT-ID",
    ]
    widths = [max(15, *(len(line[column]) for line in cells)) for column in range(9)]
    if version < (1,):
        form = "{1:<30} {2:<10} {3:<15} {4:<15} {5:<10} {6:<50}{7:<30} {8}"
    else:
        form = f"{{1:<{widths[1]}}} {{2:<10}} {{3:<15}} {{4:<15}} {{5:<15}} {{6:<{widths[6]}}} {{7:<{widths[7]}}} {{8}}"
        if version >= (2,):
            form = f"{{0:<{widths[0]}}} {form}"
    table = "\n".join(form.format(*line) for line in (titles, *cells))
    # Release 3.9 ends no line: it begins each one.
    return f"{_said(group.name, now, release)}\n{table}" + ("" if (3, 8) <= version < (4,) else "\n")


def _of_owners(group: Group, rows: Sequence[tuple[Queue | None, Client | None]], release: str) -> str:
    """The table before 0.10.2: of the partitions that members have, each with its OWNER."""
    titles = ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "OWNER"]
    lines = [titles]
    for queue, client in rows:
        if queue is not None and client is not None:
            known = queue.committed is not None
            numbers = [queue.committed if known else "unknown", queue.newest, queue.lag if known else "unknown"]
            lines.append(
                [group.name, queue.topic, str(queue.number), *map(str, numbers), f"{client.name}_{client.address}"]
            )
    if release.startswith("0.9."):
        lines[0] = [title.replace("-OFFSET", " OFFSET").replace("LOG-END", "LOG END") for title in titles]
        return "".join(", ".join(line) + "\n" for line in lines)
    widths = (30, 30, 10, 15, 15, 15)
    return "".join(
        " ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=False)) + f" {line[-1]}\n"
        for line in lines
    )


def state(group: Group, moment: int, release: str) -> str:
    """``kafka-consumer-groups --describe --group GROUP --state``."""
    version = _number(release)
    now = group.moments[moment]
    strategy = "range" if now.clients and now.state == "Stable" else ""
    if group.kind == "consumer":
        strategy = "uniform"
    if version >= (4,):
        wide = max(15, len(group.name))
        coordinator = f"{COORDINATOR}  (1)"
        form = f"{{:<{wide}}} {{:<{max(25, len(coordinator))}}} {{:<20}} {{:<20}} {{}}"
        strategy = strategy or "-"
    else:
        coordinator = f"{COORDINATOR}  (1)" if version >= (3, 7) else f"{COORDINATOR} (1)"
        form = f"{{:<{max(25, len(coordinator))}}} {{:<25}} {{:<20}} {{:<15}} {{}}"
    titles = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    values = [group.name, coordinator, strategy, now.state, str(len(now.clients))]
    if version < (2,):
        form = "{1:<25} {2:<25} {3:<20} {4}"
    return f"{_said(group.name, now, release)}\n{form.format(*titles)}\n{form.format(*values)}\n"


def texts(case: Case) -> list[tuple[int, str]]:
    """What people hand over of a case: the moment, and the command with what it prints."""
    cluster, release = case.cluster, case.cluster.release
    group = cluster.groups[0]
    found = []
    for moment in range(2):
        if cluster.product == "kafka":
            found += [(moment, text) for text in _of_kafka(case, moment)]
        elif case.shown == STATUS:
            if moment == 0:
                text = consumer_status(group, release, now=group.moments[0].time)
                found.append((moment, f"$ mqadmin consumerStatus -g {group.name}\n{text}"))
        elif case.shown == STATS:
            if moment:
                found.append((moment, f"$ mqadmin statsAll\n{stats_all(cluster, moment)}"))
        elif case.shown == BROKER:
            for broker in cluster.brokers:
                command = f"$ mqadmin brokerConsumeStats -b {cluster.address_of(broker)}"
                found.append((moment, f"{command}\n{broker_consume_stats(cluster, moment, broker)}"))
        elif case.shown == LIST:
            found.append((moment, f"$ mqadmin consumerProgress\n{progress_of_all(cluster, moment)}"))
        else:
            shown = case.shown in (PROGRESS, TOGETHER)
            more = " -s true" if shown and not shows_clients_always(release) else ""
            text = consumer_progress(group, moment, release, brokers=len(cluster.brokers), with_clients=shown)
            found.append((moment, f"$ mqadmin consumerProgress -g {group.name}{more}\n{text}"))
            if case.shown == CONNECTED and moment:
                online = bool(group.moments[moment].clients)
                text = consumer_connection(group, moment, release) if online else _not_online(group, release)
                found.append((moment, f"$ mqadmin consumerConnection -g {group.name}\n{text}"))
            if case.shown == TOGETHER and moment:
                text = consumer_status(group, release, now=group.moments[moment].time, moment=moment)
                found.append((moment, f"$ mqadmin consumerStatus -g {group.name}\n{text}"))
    return found


def _of_kafka(case: Case, moment: int) -> list[str]:
    release, group = case.cluster.release, case.cluster.groups[0]
    command = f"$ kafka-consumer-groups.sh --describe --group {group.name}"
    if case.shown == ALL:
        tables = "".join(offsets(each, moment, release) for each in case.cluster.groups)
        return [f"$ kafka-consumer-groups.sh --describe --all-groups\n{note(release)}{tables}"]
    found = [f"{command}\n{note(release)}{offsets(group, moment, release)}"]
    if case.shown == STATE:
        found.append(f"{command} --state\n{note(release)}{state(group, moment, release)}")
    return found
