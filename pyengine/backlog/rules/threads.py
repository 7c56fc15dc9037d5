"""Rules for thread dumps of one process: which consumer threads stood at one line in dump after dump.

A thread that waits for work also stands still: it is told by where it stands (a pool's queue, a listener's own wait),
not by its state, because a thread in a socket read is RUNNABLE to the JVM and does nothing all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pyengine.backlog.evidence import Evidence, ThreadDump, ThreadState
from pyengine.backlog.findings import Finding, Severity, say
from pyengine.backlog.rules.series import by_time, seconds, span

CONSUMERS = re.compile(
    r"ConsumeMessageThread|ActiveMQ Session Task|ActiveMQ Connection Executor|MessageListenerContainer|"
    r"DefaultMessageListener|KafkaListener|-C-\d+$|[Cc]onsumer|[Ll]istener|[Ww]orker"
)
# Frames of a thread with nothing to do. Python pools keep their frame below the work: only the innermost count.
IDLE = re.compile(
    r"ThreadPoolExecutor\.getTask|ForkJoinPool\.awaitWork|DelayedWorkQueue\.take|SynchronousQueue|"
    r"MessageDispatchChannel\.dequeue|ActiveMQMessageConsumer\.(?:receive|dequeue)|"
    r"DedicatedTaskRunner\.runTask|RebalanceService|PullMessageService|"
    r"ServiceThread\.waitForRunning|KafkaConsumer\.poll"
)
IDLE_PYTHON = re.compile(
    r"_worker \((?:.*/)?concurrent/futures/thread\.py|get \(.*queue\.py|"
    r"select \(.*selectors\.py|_run_once \(.*asyncio|_run \(.*pyengine/clock\.py"
)
NETWORK = re.compile(
    r"SocketInputStream|socketRead|SocketDispatcher\.read|NioSocketImpl|Net\.poll|SSLSocket|HttpURLConnection|"
    r"java\.net\.http|okhttp|apache\.http|EPoll|recv(?:_into)? \(|readinto \(.*socket\.py|ssl\.py|urllib3|requests/|"
    r"httpx|http/client\.py|create_connection \(socket"
)
DATABASE = re.compile(
    r"\bjdbc\b|java\.sql|com\.mysql|org\.postgresql|oracle\.|sqlserver|hikari|mongodb|psycopg|pymysql|sqlite3|"
    r"sqlalchemy|lettuce|jedis|redis",
    re.IGNORECASE,
)
SLEEP = re.compile(r"Thread\.sleep|TimeUnit\.sleep|^sleep \(|\bsleep \(")
LOCK = re.compile(
    r"Object\.wait|Unsafe\.park|LockSupport\.park|ReentrantLock|AbstractQueuedSynchronizer|Semaphore|CountDownLatch|"
    r"(?:wait|acquire|__enter__) \(threading\.py"
)
PLATFORM = re.compile(
    r"^(?:java\.|javax\.|jdk\.|sun\.|com\.sun\.|org\.apache\.(?:rocketmq|activemq|kafka|http)|org\.springframework|"
    r"okhttp3|com\.mysql|org\.postgresql|oracle\.|com\.zaxxer|io\.netty)|"
    r"\((?:threading|socket|ssl|queue|selectors|http/|urllib3|requests/|httpx|concurrent/)"
)
ENOUGH = 3


@dataclass(frozen=True, slots=True)
class Standing:
    """A thread whose stack did not change. line: the innermost frame that is the user's own code."""

    name: str
    state: str
    frames: tuple[str, ...]
    waiting_for: str
    dumps: int
    period: float

    @property
    def line(self) -> str:
        return next((frame for frame in self.frames if not PLATFORM.search(frame)), self.frames[0])

    @property
    def cause(self) -> str:
        """What holds it: by the innermost frames first, since a database is reached over the network."""
        stack = "\n".join(self.frames)
        if self.state == "BLOCKED":
            return "lock"
        if DATABASE.search(stack):
            return "database"
        if any(NETWORK.search(frame) for frame in self.frames[:12]):
            return "network"
        if any(SLEEP.search(frame) for frame in self.frames[:3]):
            return "sleep"
        if any(LOCK.search(frame) for frame in self.frames[:4]):
            return "lock"
        return "wait" if self.state == "idle" else "code"


def is_consumer(thread: ThreadState, consumers: re.Pattern[str] | None = CONSUMERS) -> bool:
    """A thread that gives messages to a listener and is at work. consumers: names; None: the dump has no others."""
    if consumers is None:
        return True
    return bool(consumers.search(thread.name)) and not (
        any(IDLE.search(frame) for frame in thread.frames[:12])
        or any(IDLE_PYTHON.search(frame) for frame in thread.frames[:2])
    )


def standing(dumps: list[ThreadDump], consumers: re.Pattern[str] | None) -> Iterator[Standing]:
    """Consumer threads with one and the same stack in all of the dumps."""
    last = dumps[-1]
    for thread in last.threads:
        if not is_consumer(thread, consumers):
            continue
        before = [next((t for t in dump.threads if t.name == thread.name), None) for dump in dumps[:-1]]
        if all(each is not None and each.frames == thread.frames for each in before):
            yield Standing(
                thread.name, thread.state, thread.frames, thread.waiting_for, len(dumps), seconds(dumps[0], last)
            )


ADVICE = {
    "network": say(
        "A call waits for an answer that does not come. Give it a connect and a read timeout "
        "shorter than the time a message may take."
    ),
    "database": say("It waits for the database. Set a statement timeout; look there for the lock or the slow query."),
    "lock": say("It waits for a lock or for another thread. The dump says which (`waiting for`): find who holds it."),
    "sleep": say(
        "The listener itself sleeps. Let the broker redeliver with a delay instead of sleeping in the consumer."
    ),
    "wait": say(
        "It waits in a call outside Python (network, file, lock): the line says which. Give that call a timeout."
    ),
    "code": say(
        "It computes at one line. If that is a loop, bound it; if it is work, give it fewer messages a thread."
    ),
}
CAUSES = {
    "network": say("network"),
    "database": say("database"),
    "lock": say("lock"),
    "sleep": say("sleep"),
    "wait": say("wait"),
    "code": say("code"),
}


def stuck(dumps: list[ThreadDump], consumers: re.Pattern[str] | None = CONSUMERS) -> Iterator[Finding]:
    """stuck_thread: a consumer thread at work stood at the same line in every dump (three at least)."""
    places: dict[tuple[str, ...], list[Standing]] = {}
    for each in standing(dumps, consumers):
        places.setdefault(each.frames, []).append(each)
    for same in places.values():
        first = same[0]
        names = ", ".join(each.name for each in same[:3])
        more = say("{names} and {more} more", names=names, more=len(same) - 3) if len(same) > 3 else names
        held = (say("waiting for {what}", what=first.waiting_for),) if first.waiting_for else ()
        yield Finding(
            "stuck_thread",
            Severity.ERROR,
            say("thread {names}", names=names)
            if len(same) == 1
            else say("{count} threads: {names}", count=len(same), names=more),
            (
                say("at {line}", line=first.line),
                say(
                    "cause: {cause} ({frame}), state {state}",
                    cause=CAUSES[first.cause],
                    frame=first.frames[0],
                    state=first.state,
                ),
                say("the same stack in {dumps} dumps over {span}", dumps=first.dumps, span=span(first.period))
                if first.period
                else say("the same stack in {dumps} dumps", dumps=first.dumps),
                *held,
            ),
            ADVICE[first.cause],
        )


def findings(evidence: Evidence) -> Iterator[Finding]:
    """Dumps of one process are compared, each moment once: a copy of a dump is no second look."""
    for dumps in by_time(evidence.dumps, lambda dump: (dump.tool, dump.process)).values():
        looks: list[ThreadDump] = []
        for dump in dumps:
            # jstack itself writes the moment; a file's own time says nothing of copies.
            if dump.tool != "jstack" or dump.time is None or not looks or looks[-1].time != dump.time:
                looks.append(dump)
        if len(looks) >= ENOUGH:
            yield from stuck(looks)
