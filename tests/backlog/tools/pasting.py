"""How people hand over what the tools printed: several files or one, dated or not, with prompts and with noise."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

from tests.backlog.tools.clusters import START, Case
from tests.backlog.tools.drawing_rocketmq import (
    CONNECTED,
    STATS,
    STATUS,
    TOGETHER,
    WITHOUT_CLIENTS,
    shows_clients_always,
    shows_no_clients,
)

DAY = 86_400_000
WAYS = ("a file for each look", "one file with dates", "dated files that were copied", "prompts and noise",
        "carriage returns", "indented", "no command", "one look", "one file with clocks")  # fmt: skip
# What can be told from one look: who is there, and offsets that cannot be.
SEEN_AT_ONCE = frozenset(
    {"stopped", "ahead_of_broker", "retention_overtook", "unassigned_queue", "rebalancing", "different_subscriptions",
     "duplicate_client_id", "blocked_listener", "idle_members", "not_subscribed"}
)  # fmt: skip
NOISE = (
    "OpenJDK 64-Bit Server VM warning: ignoring option PermSize=128m; support was removed in 8.0\n"
    "OpenJDK 64-Bit Server VM warning: ignoring option MaxPermSize=128m; support was removed in 8.0\n"
    "RocketMQLog:WARN No appenders could be found for logger (io.netty.util.internal.PlatformDependent0).\n"
    "RocketMQLog:WARN Please initialize the logger system properly.\n"
)
NOISE_OF_KAFKA = (
    "OpenJDK 64-Bit Server VM warning: If the number of processors is expected to increase from one, then you should "
    "configure the number of parallel GC threads appropriately using -XX:ParallelGCThreads=N\n"
)


@dataclass(frozen=True, slots=True)
class Paste:
    """A file: its name, its text, its time (ms). truth of the case: what can be told from these files together."""

    name: str
    text: str
    modified: int


def pasted(case: Case, texts: list[tuple[int, str]], way: str, random: Random) -> tuple[list[Paste], frozenset[str]]:
    """The files, and the causes that can be told from them. texts: the moment, and the command with its output."""
    moments = case.cluster.groups[0].moments
    times = [each.time for each in moments]
    kafka = case.cluster.product == "kafka"
    truth = case.truth
    if way == "no command" and not _names_itself(case):
        way = "a file for each look"
    if way == "one file with dates":
        whole = "".join(f"$ date\n{_date(times[moment], random)}\n{_closed(text)}\n" for moment, text in texts)
        return [Paste("looks.txt", whole, START + DAY)], truth
    if way == "one file with clocks":
        clocks = [datetime.fromtimestamp(times[moment] / 1000, UTC).strftime("%H:%M:%S") for moment, _ in texts]
        whole = "".join(f"{at}\n{_closed(text)}\n" for at, (_, text) in zip(clocks, texts, strict=True))
        return [Paste("looks.txt", whole, START + DAY)], truth
    if way == "dated files that were copied":
        names = "ba"  # whatever their names say of the order
        return [
            Paste(f"{names[moment]}{number}.txt", f"{_date(times[moment], random)}\n{text}", START + DAY)
            for number, (moment, text) in enumerate(texts)
        ], truth
    if way == "one look" and case.shown != STATS:
        last = max(moment for moment, _ in texts)
        texts = [(moment, text) for moment, text in texts if moment == last]
        truth &= SEEN_AT_ONCE
    found = []
    for number, (moment, text) in enumerate(texts):
        command, _, output = text.partition("\n")
        if way == "prompts and noise":
            address = random.choice(("10.1.1.5:9876", "127.0.0.1:9876", "namesrv1:9876;namesrv2:9876"))
            command = command.removeprefix("$ ")
            if kafka:
                line = f"[kafka@kb1 kafka]$ bin/{command} --bootstrap-server kb1:9092\n{NOISE_OF_KAFKA}"
            else:
                line = f"[root@mq-1 bin]# sh mqadmin{command.removeprefix('mqadmin')} -n {address}\n{NOISE}"
            text = line + _closed(output) + random.choice(("", "[root@mq-1 bin]# \n"))
        elif way == "no command":
            text = output
        elif way == "indented":
            text = "".join(f"    {line}\n" if line else "\n" for line in text.splitlines())
        elif way == "carriage returns":
            text = "".join(f"{line.rstrip()}\r\n" for line in text.splitlines())
        found.append(Paste(f"{'ab'[moment]}{number}.txt", text, times[moment]))
    return found, truth


def _names_itself(case: Case) -> bool:
    """Whether the tables say without their commands what they are of, and whether clients were asked for.

    Kafka before 2.0 has no column for the group. In releases of mqadmin from 4.3 to 4.9.2 a table without clients looks
    like one of clients that were not asked for.
    """
    release = case.cluster.release
    if case.cluster.product == "kafka":
        return not release.startswith(("0.", "1."))
    clients_at_a_glance = any(each.owner for each in case.cluster.groups[0].moments[1].queues)
    always = shows_clients_always(release) or shows_no_clients(release) or _since_4_9(release)
    return case.shown not in (STATUS, TOGETHER, CONNECTED) and (
        always or case.shown == STATS or (clients_at_a_glance and case.shown != WITHOUT_CLIENTS)
    )


def _since_4_9(release: str) -> bool:
    """The column of clients is there only if they were asked for."""
    return release.startswith(("4.9.", "5."))


def _closed(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"


def _date(ms: int, random: Random) -> str:
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    form = random.choice(("%a %b %e %H:%M:%S UTC %Y", "%Y-%m-%d %H:%M:%S UTC", "%Y-%m-%dT%H:%M:%SZ"))
    return moment.strftime(form)
