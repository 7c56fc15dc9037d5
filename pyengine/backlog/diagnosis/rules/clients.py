"""Rules for RocketMQ clients: what consumerStatus shows of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pyengine._engine.rocketmq.client.consume_rates import Stuck, stuck_by
from pyengine._engine.rocketmq.client.process_queue import FlowControl, flow_control_of, lock_expired, pull_expired
from pyengine._engine.rocketmq.commands import defaults
from pyengine.backlog.diagnosis.evidence import (
    ClientState,
    Evidence,
    GroupCheck,
    ProcessQueueState,
)
from pyengine.backlog.diagnosis.rules.series import by_time, clock, seconds, span
from pyengine.backlog.findings import Finding, Said, Severity, say

PINNED = 30.0  # seconds between two sights that make a pinned offset a finding
BUSY = 0.8
FAILING = 0.01  # of an hour's messages
CAUSES = {
    "count": ("pullThresholdForQueue", say("more messages are cached than the limit")),
    "size": ("pullThresholdSizeForQueue", say("more MiB are cached than the limit")),
    "span": (
        "consumeConcurrentlyMaxSpan",
        say("the newest cached message is too far ahead of the oldest unfinished one"),
    ),
    "ack": ("popThresholdForQueue", say("more messages wait for their acknowledgement than the limit")),
    "requests": ("pullThresholdForAll", say("more messages wait for poll() than the limit")),
}

# The tool's own verdicts on clients get the same advice.
WHAT_TO_DO = {
    "blocked_listener": say(
        "The listener does not return. `mqadmin consumerStatus -s`, taken several times and "
        "given to `pyengine diagnose`, names the line it stands at."
    ),
    "lock_not_held": say(
        "Another client holds the lock (a listener that does not return keeps it), or the broker "
        "cannot be reached. Nothing is consumed from this queue until the lock is granted."
    ),
    "pull_stopped": say(
        "The pull thread has lost this queue. The next rebalance repairs it; if not, restart the client."
    ),
    "failing_listener": say(
        "Each failure comes back after 10 s, 30 s, 1 min ... up to 16 times, then it goes to "
        "%DLQ%: read the listener's log."
    ),
    "timeout_cleaning": say(
        "A message was at work for longer than consumeTimeout (15 min unless it is set), and the client gave it back: "
        "it comes again while the first call may still run. Give calls inside the listener a timeout of their own."
    ),
    "unlock_failed": say("The new owner waits for it. Find the listener that does not return."),
    "different_subscriptions": say(
        "The broker keeps one subscription for the group, the last heartbeat's: members lose "
        "messages. Make them equal, or use one group for each."
    ),
    "idle_clients": say("More clients than queues: the rest stand by. Add queues to the topic if more should work."),
}
SWITCHED_OFF = say("An administrator switched it off. `mqadmin updateSubGroup -g GROUP -s true` switches it on.")
SAME_ID = say(
    "Both get the same queues and others get none. Set instanceName, or do not share one "
    "host name and process id (containers)."
)
PROBLEMS = {
    Stuck.NOT_CONSUMING: "blocked_listener",
    Stuck.NOT_LOCKED: "lock_not_held",
    Stuck.NOT_UNLOCKED: "unlock_failed",
}


def age(client: ClientState, moment: int) -> float | None:
    """Seconds from a moment to the sight of the client."""
    return None if client.time is None or moment <= 0 else (client.time - moment) / 1000


def stuck(client: ClientState, queue: ProcessQueueState) -> int:
    """The real client's own verdict on the queue, a Stuck; NOT_STUCK if the moment of the sight is not known."""
    if client.time is None:
        return Stuck.NOT_STUCK
    return stuck_by(queue.info, client.time, orderly=client.orderly)


def came_since(client: ClientState, before: ClientState | None, queue: ProcessQueueState) -> bool:
    """What is cached was not the oldest in the sight before: it came to a queue at rest, or others were done since."""
    if before is None or seconds(before, client) <= 0:
        return False
    then = next((each for each in before.queues if each.label == queue.label), None)
    return then is None or not then.count or then.min_offset != queue.min_offset


def blocked(client: ClientState, before: ClientState | None) -> Iterator[Finding]:
    """blocked_listener: messages are cached and none was consumed for a minute (concurrent consumers).

    In one sight a message that has just come to a queue long at rest looks the same: two sights tell.
    """
    for queue in client.queues:
        idle = age(client, queue.last_consume)
        if idle is not None and stuck(client, queue) == Stuck.NOT_CONSUMING and not came_since(client, before, queue):
            yield Finding(
                "blocked_listener",
                Severity.WARNING if before is None else Severity.ERROR,
                say("client {client_id}, queue {label}", client_id=client.client_id, label=queue.label),
                (
                    say(
                        "messages cached: {count}, lastConsumeTimestamp {clock}, {span} ago",
                        count=queue.count,
                        clock=clock(queue.last_consume),
                        span=span(idle),
                    ),
                ),
                WHAT_TO_DO["blocked_listener"],
            )


def lock_not_held(client: ClientState) -> Iterator[Finding]:
    """lock_not_held: an orderly consumer does not hold a queue's lock, or its lock is older than it lives."""
    for queue in client.queues if client.orderly and client.time is not None else ():
        assert client.time is not None
        old = age(client, queue.last_lock)
        expired = old is not None and lock_expired(client.time, queue.last_lock)
        if expired or stuck(client, queue) == Stuck.NOT_LOCKED:
            held = (
                say("locked {locked}", locked=queue.locked)
                if old is None
                else say("locked {locked}, last locked {span} ago", locked=queue.locked, span=span(old))
            )
            yield Finding(
                "lock_not_held",
                Severity.ERROR,
                say("client {client_id}, queue {label}", client_id=client.client_id, label=queue.label),
                (held, say("messages cached: {count}", count=queue.count)),
                WHAT_TO_DO["lock_not_held"],
            )


def unlock_failed(client: ClientState) -> Iterator[Finding]:
    """unlock_failed: a queue given up in a rebalance cannot be unlocked: its listener still runs (in order)."""
    for queue in client.queues:
        if stuck(client, queue) == Stuck.NOT_UNLOCKED:
            yield Finding(
                "unlock_failed",
                Severity.ERROR,
                say("client {client_id}, queue {label}", client_id=client.client_id, label=queue.label),
                (say("dropped, tryUnlockTimes {try_unlock_times}", try_unlock_times=queue.try_unlock_times),),
                WHAT_TO_DO["unlock_failed"],
            )


def pull_stopped(client: ClientState) -> Iterator[Finding]:
    """pull_stopped: no pull for two minutes: the client itself will give the queue up."""
    for queue in client.queues:
        quiet = age(client, queue.last_pull)
        if quiet is not None and pull_expired(client.time or 0, queue.last_pull) and not queue.dropped:
            yield Finding(
                "pull_stopped",
                Severity.ERROR,
                say("client {client_id}, queue {label}", client_id=client.client_id, label=queue.label),
                (say("last pull {span} ago", span=span(quiet)),),
                WHAT_TO_DO["pull_stopped"],
            )


def flow_control_now(client: ClientState) -> Iterator[Finding]:
    """flow_control: a process queue is over one of its three limits at this moment."""
    count = int(client.get("pullThresholdForQueue", str(defaults.PULL_THRESHOLD_FOR_QUEUE)))
    size = int(client.get("pullThresholdSizeForQueue", str(defaults.PULL_THRESHOLD_SIZE_FOR_QUEUE)))
    widest = int(client.get("consumeConcurrentlyMaxSpan", str(defaults.CONSUME_CONCURRENTLY_MAX_SPAN)))
    for queue in client.queues:
        cached_span = queue.max_offset - queue.min_offset
        verdict = flow_control_of(
            queue.count,
            queue.size_mib,
            cached_span,
            pull_threshold_for_queue=count,
            pull_threshold_size_for_queue=size,
            consume_concurrently_max_span=widest,
            orderly=client.orderly,
        )
        shown = {
            FlowControl.COUNT: say("cachedMsgCount {count} > {limit}", count=queue.count, limit=count),
            FlowControl.SIZE: say("cachedMsgSizeInMiB {size} > {limit}", size=queue.size_mib, limit=size),
            FlowControl.SPAN: say("span {span} > {limit}", span=cached_span, limit=widest),
        }
        if verdict != FlowControl.PULL:
            where = say("client {client_id}, queue {label}", client_id=client.client_id, label=queue.label)
            yield flow_control(where, FlowControl(verdict).name.lower(), (shown[FlowControl(verdict)],))


def flow_control(where: Said, cause: str, evidence: tuple[Said, ...]) -> Finding:
    parameter, meaning = CAUSES[cause]
    advice = {
        "span": say(
            "One message is unfinished while thousands behind it are done: find that message, "
            "raising the limit only lengthens what a restart repeats."
        ),
        "ack": say(
            "The listener is slower than the pop: make it faster, add threads or start more clients, which help a POP "
            "group beyond its number of queues; a higher limit only moves the wait."
        ),
        "requests": say(
            "poll() is called too seldom for what is pulled: make what is done between two calls faster; a higher "
            "limit only moves the wait."
        ),
    }.get(
        cause,
        say("The listener is slower than the pull: make it faster or add threads; a higher limit only moves the wait."),
    )
    return Finding(
        "flow_control",
        Severity.WARNING,
        where,
        (say("{parameter}: {meaning}", parameter=parameter, meaning=meaning), *evidence),
        advice,
    )


def slow_listener(client: ClientState) -> Iterator[Finding]:
    """slow_listener: the consume threads are busy most of the time: rate x time a message >= 80 % of the threads."""
    threads = int(client.get("consumeThreadMin", str(defaults.CONSUME_THREADS)))
    for rate in client.rates:
        busy = (rate.ok_tps + rate.failed_tps) * rate.consume_rt / 1000
        if rate.consume_rt > 0 and busy >= BUSY * threads:
            yield Finding(
                "slow_listener",
                Severity.WARNING,
                say("client {client_id}, topic {topic}", client_id=client.client_id, topic=rate.topic),
                (
                    say(
                        "{rate:.1f} messages a second x {consume_rt:.1f} ms = {busy:.1f} busy threads of {threads}",
                        rate=rate.ok_tps + rate.failed_tps,
                        consume_rt=rate.consume_rt,
                        busy=busy,
                        threads=threads,
                    ),
                ),
                say(
                    "Shorten the listener, or raise consumeThreadMin (consumeThreadMax has no effect: the "
                    "pool's queue is unbounded)."
                ),
            )


def failing(client: ClientState) -> Iterator[Finding]:
    """failing_listener: messages fail and go to the retry topic."""
    for rate in client.rates:
        if rate.failed_in_hour > 0:
            hour = rate.ok_tps * 3600 + rate.failed_in_hour
            often = rate.failed_tps > 0 or rate.failed_in_hour >= FAILING * hour
            yield Finding(
                "failing_listener",
                Severity.WARNING if often else Severity.INFO,
                say("client {client_id}, topic {topic}", client_id=client.client_id, topic=rate.topic),
                (
                    say(
                        "ConsumeFailedMsgsInHour {failed_in_hour}, {failed_tps:.2f} a second now",
                        failed_in_hour=rate.failed_in_hour,
                        failed_tps=rate.failed_tps,
                    ),
                ),
                WHAT_TO_DO["failing_listener"],
            )


def timeout_cleaning(client: ClientState, before: ClientState | None) -> Iterator[Finding]:
    """timeout_cleaning: a blocked head waits for the timeout cleaner, which needs one to two times consumeTimeout."""
    minutes = int(client.get("consumeTimeout", str(defaults.CONSUME_TIMEOUT)))
    for queue in () if client.orderly else client.queues:
        idle = age(client, queue.last_consume)
        if queue.count > 0 and idle is not None and idle > minutes * 60 and not came_since(client, before, queue):
            yield Finding(
                "timeout_cleaning",
                Severity.WARNING,
                say("client {client_id}, queue {label}", client_id=client.client_id, label=queue.label),
                (say("nothing consumed for {span}, consumeTimeout {minutes} min", span=span(idle), minutes=minutes),),
                say(
                    "The cleaner runs every {minutes} min and only takes expired messages from the head: a "
                    "stuck message blocks for {minutes} to {twice} min. Give calls inside the listener a "
                    "timeout of their own.",
                    minutes=minutes,
                    twice=2 * minutes,
                ),
            )


def holds_offset(series: list[ClientState]) -> Iterator[Finding]:
    """message_holds_offset: in two sights the same message is the oldest unfinished one while later ones are done."""
    first, last = series[0], series[-1]
    if seconds(first, last) < PINNED:
        return
    before = {queue.label: queue for queue in first.queues}
    for queue in last.queues:
        then = before.get(queue.label)
        if then and queue.count and then.count and _pinned(then, queue):
            yield Finding(
                "message_holds_offset",
                Severity.ERROR,
                say("client {client_id}, queue {label}", client_id=last.client_id, label=queue.label),
                (
                    say(
                        "offset {min_offset} is the oldest unfinished in both sights, {span} apart",
                        min_offset=queue.min_offset,
                        span=span(seconds(first, last)),
                    ),
                    say(
                        "newest cached {then_max_offset} -> {max_offset}, committed {commit_offset}",
                        then_max_offset=then.max_offset,
                        max_offset=queue.max_offset,
                        commit_offset=queue.commit_offset,
                    ),
                ),
                say("The commit cannot pass it: a restart repeats everything since. Find the thread that works on it."),
            )


def _pinned(then: ProcessQueueState, now: ProcessQueueState) -> bool:
    """The oldest stayed while others came or were done: only what is done moves the time of the last one."""
    return now.min_offset == then.min_offset and (
        now.max_offset > then.max_offset or now.last_consume > then.last_consume
    )


def different_subscriptions(clients: list[ClientState]) -> Iterator[Finding]:
    """different_subscriptions: members of one group subscribe to different topics or expressions."""
    kinds: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for client in clients:
        kinds.setdefault(tuple(sorted(client.subscriptions)), []).append(client.client_id)
    if len(kinds) > 1:
        yield Finding(
            "different_subscriptions",
            Severity.ERROR,
            say("group {group}", group=clients[0].group),
            tuple(
                say(
                    "{ids}: {subscriptions}",
                    ids=", ".join(ids[:3]),
                    subscriptions="; ".join(f"{topic} {text}" for topic, text in kind),
                )
                for kind, ids in kinds.items()
            ),
            WHAT_TO_DO["different_subscriptions"],
        )


def duplicate_client_id(clients: list[ClientState]) -> Iterator[Finding]:
    """duplicate_client_id: one client id, two start times: two processes that the broker takes for one."""
    started: dict[str, set[str]] = {}
    for client in clients:
        if begun := client.get("PROP_CONSUMER_START_TIMESTAMP"):
            started.setdefault(client.client_id, set()).add(begun)
    for name, begins in started.items():
        if name and len(begins) > 1:
            yield Finding(
                "duplicate_client_id",
                Severity.ERROR,
                say("group {group}, client {name}", group=clients[0].group, name=name),
                (say("start times {begins}", begins=", ".join(sorted(begins))),),
                SAME_ID,
            )


def more_clients_than_queues(clients: list[ClientState]) -> Iterator[Finding]:
    """idle_clients: clients of a group that own no queue of a topic that the others own."""
    owners: dict[str, set[str]] = {}
    for client in clients:
        for queue in client.queues:
            owners.setdefault(queue.topic, set()).add(client.client_id)
    everybody = {client.client_id for client in clients}
    for topic, names in owners.items():
        idle = everybody - names
        if idle and not topic.startswith("%RETRY%"):
            yield Finding(
                "idle_clients",
                Severity.INFO,
                say("group {group}, topic {topic}", group=clients[0].group, topic=topic),
                (
                    say(
                        "{count_everybody:client|clients}, {count_names:owns|own} queues; idle: {idle}",
                        count_everybody=len(everybody),
                        count_names=len(names),
                        idle=", ".join(sorted(idle)[:5]),
                    ),
                ),
                WHAT_TO_DO["idle_clients"],
            )


def from_check(check: GroupCheck, known: set[str]) -> Iterator[Finding]:
    """The verdicts of consumerStatus on a group, if the running infos of its clients are not there.

    known: clients of which there is a running info.
    """
    twice = [name for name, count in Counter(check.clients).items() if count > 1]
    for name in twice:
        places = [place for each, place in zip(check.clients, check.addresses, strict=False) if each == name]
        yield Finding(
            "duplicate_client_id",
            Severity.ERROR,
            say("group {group}, client {name}", group=check.group or say("(not named)"), name=name),
            (
                say("{tool}: it stands there {count} times", tool=check.tool, count=check.clients.count(name)),
                *([say("addresses: {addresses}", addresses=", ".join(places))] if places else []),
            ),
            SAME_ID,
        )
    if check.different and not known.issuperset(check.clients):
        yield Finding(
            "different_subscriptions",
            Severity.ERROR,
            say("group {group}", group=check.group or say("(not named)")),
            (
                say("consumerStatus: {words}", words=check.different),
                say("clients: {clients}", clients=", ".join(check.clients[:5])),
            ),
            WHAT_TO_DO["different_subscriptions"],
        )
    for problem in check.problems:
        if problem.client_id not in known:
            code = PROBLEMS[problem.cause]
            yield Finding(
                code,
                Severity.ERROR if problem.cause != Stuck.NOT_CONSUMING else Severity.WARNING,
                say("client {client_id}, queue {label}", client_id=problem.client_id, label=problem.label),
                (say("consumerStatus: {words}", words=problem.words),),
                WHAT_TO_DO[code],
            )


CLIENT_RULES = (lock_not_held, unlock_failed, pull_stopped, flow_control_now, slow_listener, failing)
HEAD_RULES = (blocked, timeout_cleaning)
GROUP_RULES = (different_subscriptions, duplicate_client_id, more_clients_than_queues)


def findings(evidence: Evidence) -> Iterator[Finding]:
    """Rules on each client as last seen, on its series and on each group."""
    groups: dict[str, list[ClientState]] = {}
    for series in by_time(
        evidence.clients, lambda c: (c.group, c.client_id, c.get("PROP_CONSUMER_START_TIMESTAMP"))
    ).values():
        last = series[-1]
        groups.setdefault(last.group, []).append(last)
        for rule in CLIENT_RULES:
            yield from rule(last)
        for head_rule in HEAD_RULES:
            yield from head_rule(last, series[-2] if len(series) > 1 else None)
        yield from holds_offset(series)
    for clients in groups.values():
        for group_rule in GROUP_RULES:
            yield from group_rule(clients)
    known = {client.client_id for client in evidence.clients}
    for checks in by_time(evidence.checks, lambda check: (check.group, check.tool)).values():
        yield from from_check(checks[-1], known)
