"""Rules for thread dumps of one process: which consumer threads stood at one line in dump after dump.

A thread that waits does not run. If its processor time has grown although its stack is the same, it has come back to
the line: it is slow, or in a loop that waits, and not stuck. One that is blocked at a monitor is woken now and then.

A thread that waits for work also stands still: it is recognised by where it stands (a pool's queue, a listener's own
wait), not by its state, because a thread in a socket read is RUNNABLE to the JVM and does nothing all the same.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from pyengine.backlog.diagnosis.evidence import Evidence, ThreadDump, ThreadState
from pyengine.backlog.diagnosis.evidence.stacks import address
from pyengine.backlog.diagnosis.rules.series import by_time, seconds, span
from pyengine.backlog.findings import Finding, Severity, say
from pyengine.dataclass import dataclass

# Names of threads that give messages to listeners and do nothing else.
OWN = re.compile(
    r"ConsumeMessageThread|ActiveMQ Session|ActiveMQ Connection Executor|MessageListenerContainer|"
    r"DefaultMessageListener|KafkaListener|-C-\d+$"
)
CONSUMERS = re.compile(OWN.pattern + r"|[Cc]onsumer|[Ll]istener|[Ww]orker")
# Frames under which a listener is called, on a thread of any name: a pool of the user's, a transport's own thread.
LISTENER = re.compile(
    r"ActiveMQMessageConsumer\.dispatch\(|ActiveMQSession\.run\(|\$ConsumeRequest\.run\(|MessageListenerContainer[.$]"
)
# Frames of a thread with nothing to do, unless code of the user's stands further in. Python pools keep their frame
# below the work: only the innermost count.
IDLE = re.compile(
    r"ThreadPoolExecutor\.getTask|ForkJoinPool\.awaitWork|DelayedWorkQueue\.take|MessageDispatchChannel\.dequeue|"
    r"MessageConsumer\.(?:receive|dequeue)|DedicatedTaskRunner\.runTask|RebalanceService|PullMessageService|"
    r"ServiceThread\.waitForRunning|LitePullConsumer\.poll|KafkaConsumer\.poll|"
    r"\breceive\w* \(pyengine/activemq/|\bpoll \((?:kafka|pika)/|\bdrain_events \("
)
IDLE_PYTHON = re.compile(
    r"_worker \((?:.*/)?concurrent/futures/thread\.py|get \(.*queue\.py|"
    r"select \(.*selectors\.py|_run_once \(.*asyncio|_run \(.*pyengine/clock\.py"
)
# The user's own loop over a queue. In a listener it is not idle: the thread that should fill the queue does not.
TAKES = re.compile(r"(?:Queue|Deque)\.(?:take|poll)\w*\(")
NETWORK = re.compile(
    r"Socket(?:In|Out)putStream|socketRead|SocketDispatcher|SocketChannelImpl|NioSocketImpl|PlainSocketImpl|"
    r"nio\.ch\.Net\.|SSLSocket|HttpURLConnection|"
    r"java\.net\.http|jdk\.internal\.net\.http|okhttp|apache\.(?:http|hc\.)|EPoll|DatagramChannel|DatagramSocket|"
    r"AddressImpl\.lookup|"
    r"recv(?:_into)? \(|readinto \(.*socket\.py|ssl\.py|urllib3|requests/|httpx|httpcore|http/client\.py|"
    r"create_connection \(socket|getaddrinfo \(socket"
)
DATABASE = re.compile(
    r"\bjdbc\b|java\.sql|com\.mysql|org\.postgresql|\boracle\.|sqlserver|hikari|mongodb|psycopg|\bpg8000|pymysql|"
    r"sqlite3|sqlalchemy|lettuce|\bjedis\b|\bredis\b|\bredisson\b",
    re.IGNORECASE,
)
# Pools of connections: name, the mark in the frames of a thread that has one, and the frame of a thread that waits for
# one.
POOLS = tuple((name, package, re.compile(mark)) for name, package, mark in (
    ("HikariCP", "zaxxer.hikari", r"hikari\.util\.ConcurrentBag\.borrow|hikari\.pool\.HikariPool\.getConnection"),
    ("Druid", "alibaba.druid", r"druid\.pool\.DruidDataSource\.(?:takeLast|pollLast|getConnection(?:Internal|Direct))"),
    ("c3p0", "com.mchange", r"resourcepool\.BasicResourcePool\.(?:awaitAvailable|prelimCheckoutResource)"),
    ("Tomcat JDBC", "tomcat.jdbc", r"tomcat\.jdbc\.pool\.(?:ConnectionPool\.borrowConnection|\w*BlockingQueue\.poll)"),
    ("Agroal", "io.agroal", r"agroal\.pool\.ConnectionPool\.handlerFromSharedCache"),
    ("BoneCP", "jolbox.bonecp", r"jolbox\.bonecp\.\w*ConnectionStrategy\.getConnection"),
    ("Vibur", "org.vibur", r"vibur\.objectpool\.ConcurrentPool\.(?:take|tryTake)"),
    ("UCP", "oracle.ucp", r"oracle\.ucp\.common\.\w+\.borrowConnection"),
    ("Jedis", "redis.clients", r"redis\.clients\.(?:jedis\.util|util|jedis)\.\w*Pool\w*\.get(?:Resource|Connection)"),
    ("Lettuce", "io.lettuce", r"lettuce\.core\.support\.\w*Pool|LettucePoolingConnectionProvider\.getConnection"),
    ("DBCP", "dbcp", r"(?:commons\.dbcp2?|tomcat\.dbcp\.\w+)\.(?:Pooling|Basic)DataSource\.getConnection"),
    (
        "HttpClient",
        "apache.h",
        r"http\.pool\.AbstractConnPool\.getPoolEntryBlocking|http\.impl\.conn\.\w+\.leaseConnection|"
        r"hc\.(?:core5\.pool|client5\.http\.impl\.io)\.\w+\.(?:get|lease)|"
        r"tsccm\.ConnPoolByRoute\.getEntryBlocking|MultiThreadedHttpConnectionManager\.doGetConnection",
    ),
    ("MongoDB", "com.mongodb", r"mongodb\.internal\.connection\.(?:Concurrent|DefaultConnection)Pool\.(?:get|acquire)"),
    ("commons-pool", "commons.pool", r"commons\.pool2?\.impl\.\w*ObjectPool\.borrowObject"),
    ("SQLAlchemy", "sqlalchemy/", r"_do_get \((?:.*/)?sqlalchemy/pool/"),
    ("psycopg_pool", "psycopg/", r"getconn \((?:.*/)?psycopg_pool/"),
    ("urllib3", "urllib3/", r"_get_conn \((?:.*/)?urllib3/"),
    ("redis-py", "redis/", r"get_connection \((?:.*/)?redis/connection\.py"),
))  # fmt: skip
SLEEP = re.compile(r"Thread\.sleep|TimeUnit\.sleep|^sleep \(|\bsleep \(")
LOCK = re.compile(
    r"Object\.wait|Unsafe\.park|LockSupport\.park|ReentrantLock|AbstractQueuedSynchronizer|Semaphore|CountDownLatch|"
    r"(?:wait|acquire|__enter__) \(threading\.py"
)
LIBRARIES = (  # of Java: packages that are not the user's code
    "java", "javax", "jakarta", "jdk", "sun", "com.sun", "kotlin", "kotlinx", "scala", "groovy", "clojure", "akka",
    "org.apache", "org.springframework", "org.hibernate", "org.jboss", "org.eclipse", "org.slf4j", "org.jooq",
    "org.mybatis", "org.messaginghub", "org.glassfish", "ch.qos.logback", "io.netty", "io.grpc", "io.vertx",
    "io.micrometer", "io.opentelemetry", "io.micronaut", "io.quarkus", "io.reactivex", "reactor", "brave",
    "org.mariadb", "com.mysql", "org.postgresql", "oracle", "com.microsoft", "com.ibm", "org.h2", "org.sqlite",
    "com.zaxxer", "com.mchange", "com.mongodb", "redis.clients", "io.lettuce", "org.redisson", "org.elasticsearch",
    "co.elastic", "com.datastax", "okhttp3", "okio", "retrofit2", "feign", "com.fasterxml", "com.google.common",
    "com.google.gson", "com.google.cloud", "com.google.api", "com.amazonaws", "software.amazon", "com.azure",
    "com.rabbitmq", "com.netflix", "com.alibaba.druid", "com.alibaba.fastjson", "com.alibaba.fastjson2",
    "com.alibaba.nacos", "com.alibaba.csp", "com.baomidou",
)  # fmt: skip
# The same of Python, by the first part of a file's name. People call programs test.py and code.py.
MODULES = (*sorted(sys.stdlib_module_names - {"test", "code"}), *(
    "urllib3", "requests", "httpx", "httpcore", "h11", "h2", "anyio", "aiohttp", "botocore", "boto3", "s3transfer",
    "pymysql", "MySQLdb", "mysql", "mariadb", "psycopg", "psycopg2", "asyncpg", "pg8000", "pymongo", "redis",
    "sqlalchemy", "django/db", "peewee", "oracledb", "pyodbc", "cassandra", "elasticsearch", "elastic_transport",
    "grpc", "kafka", "aiokafka", "stomp", "proton", "pika", "celery", "kombu", "pyspark", "py4j", "pyengine",
))  # fmt: skip
PLATFORM = re.compile(
    rf"^(?:{'|'.join(map(re.escape, LIBRARIES))})\.|\$Proxy\d+\.|\(<generated>\)|"
    rf"\((?:<frozen |.*(?:site|dist)-packages/|(?:{'|'.join(map(re.escape, MODULES))})(?:/|\.py))"
)
ENOUGH = 3


def line_of(frames: tuple[str, ...]) -> str:
    """The innermost frame that is the user's own code, or the innermost of all."""
    return next((frame for frame in frames if not PLATFORM.search(frame)), frames[0])


def pool_of(frames: tuple[str, ...]) -> tuple[str, str] | None:
    """The pool of connections that a thread waits for, and the frame that tells it, or None.

    A thread that makes a connection of the pool waits for the network, not for the pool.
    """
    if not any(LOCK.search(frame) for frame in frames[:4]):
        return None
    user = next((place for place, frame in enumerate(frames) if not PLATFORM.search(frame)), len(frames))
    waits = ((name, frame) for name, _, mark in POOLS for frame in frames[:user] if mark.search(frame))
    return next(waits, None)


@dataclass(frozen=True, slots=True)
class Standing:
    """A thread whose stack did not change. line: the innermost frame that is the user's own code.

    dumps, period: in how many, over how many seconds. cpu: ms that it had run in the first and in the last of them, or
    None. holder: the thread that has what this one waits for, as last seen.
    """

    name: str
    state: str
    frames: tuple[str, ...]
    waiting_for: str
    dumps: int
    period: float
    cpu: tuple[float, float] | None = None
    holder: ThreadState | None = None

    @property
    def line(self) -> str:
        return line_of(self.frames)

    @property
    def pool(self) -> tuple[str, str] | None:
        return pool_of(self.frames)

    @property
    def came_back(self) -> bool:
        """Whether it left the line between the dumps, or may have: nothing else tells one sleep from the next."""
        if self.cpu is None:
            return self.cause == "sleep"
        return self.cause in WAITS and self.cpu[1] > self.cpu[0]

    @property
    def cause(self) -> str:
        """What holds it: by the innermost frames first, since a database is reached over the network."""
        stack = "\n".join(self.frames)
        if self.state == "BLOCKED":
            return "lock"
        if self.pool:
            return "pool"
        if DATABASE.search(stack):
            return "database"
        if any(NETWORK.search(frame) for frame in self.frames[:12]):
            return "network"
        if any(SLEEP.search(frame) for frame in self.frames[:3]):
            return "sleep"
        if any(LOCK.search(frame) for frame in self.frames[:4]):
            return "lock"
        if self.state == "idle" or "Native Method" in self.frames[0]:
            return "wait"
        # A dump by the process itself does not show what a thread does outside Python.
        rests = self.state == "active" and self.cpu is not None and self.cpu[1] - self.cpu[0] < 500 * self.period
        return "wait" if rests else "code"


def is_consumer(thread: ThreadState, consumers: re.Pattern[str] | None = CONSUMERS) -> bool:
    """A thread that gives messages to a listener and is at work. consumers: names; None: the dump has no others."""
    if consumers is None:
        return True
    listener = next((place for place, frame in enumerate(thread.frames) if LISTENER.search(frame)), None)
    listens = consumers is CONSUMERS and listener is not None
    if not listens and not consumers.search(thread.name):
        return False
    user = next((place for place, frame in enumerate(thread.frames) if not PLATFORM.search(frame)), None)
    if listener is not None and user is not None and user < listener:
        return True  # in the listener itself, also where that waits for a message of another queue
    if any(IDLE.search(frame) for frame in thread.frames[:user]):
        return False
    if any(map(IDLE_PYTHON.search, thread.frames[:2])) and pool_of(thread.frames) is None:
        return False
    if listens or consumers is not CONSUMERS or OWN.search(thread.name):
        return True
    # A thread that is only named like one: a logger's or Netty's worker runs no code of the user's.
    return user is not None and not (user and TAKES.search(thread.frames[user - 1]))


def standing(dumps: list[ThreadDump], consumers: re.Pattern[str] | None) -> Iterator[Standing]:
    """Consumer threads with one and the same stack in all of the dumps."""
    last = dumps[-1]
    for thread in last.threads:
        if not is_consumer(thread, consumers):
            continue
        before = [next((t for t in dump.threads if t.key == thread.key), None) for dump in dumps[:-1]]
        if all(each is not None and each.frames == thread.frames for each in before):
            ran = [each.cpu for each in before if each is not None] + [thread.cpu]
            # A thread that worked at first and then no more stands since then.
            still = next(n for n in range(len(ran)) if len(set(ran[n:])) == 1)
            since = still if len(ran) - still >= ENOUGH else 0
            began = ran[since]
            yield Standing(
                thread.name,
                thread.state,
                thread.frames,
                thread.waiting_for,
                len(dumps) - since,
                seconds(dumps[since], last),
                None if began is None or thread.cpu is None else (began, thread.cpu),
                _holder(thread, last),
            )


def _holder(thread: ThreadState, dump: ThreadDump) -> ThreadState | None:
    """The thread that has what another one waits for. A thread in Object.wait() shows as locked what it has given
    up."""
    lock = address(thread.waiting_for)
    holding = (each for each in dump.threads if lock in each.holds and address(each.waiting_for) != lock)
    return next(holding, None) if lock else None


WAITS = ("network", "database", "pool", "sleep", "wait")
SLOW = say(
    "It waits there for each message, or in a loop within one: two snapshots of the broker tell which. Give the call a "
    "shorter timeout, the consumer more threads or a smaller prefetch."
)
SLOW_SLEEP = say(
    "The listener sleeps for each message, or in a loop within one: two snapshots of the broker tell which. Let the "
    "broker redeliver with a delay instead."
)
ADVICE = {
    "network": say(
        "A call waits for an answer that does not come. Give it a connect and a read timeout "
        "shorter than the time a message may take."
    ),
    "database": say("It waits for the database. Set a statement timeout; look there for the lock or the slow query."),
    "pool": say(
        "All connections of the pool are out: it is smaller than the number of consumer threads (consumeThreadMin of "
        "a push consumer, the concurrency of a listener container), or some are taken and not given back. Make the "
        "pool as large as the threads are many, or the threads fewer; the pool's leak detection "
        "(leakDetectionThreshold, removeAbandoned) names who keeps one."
    ),
    "lock": say(
        "It waits for a lock or for another thread. The dump names it (`waiting for`): find the thread that holds it."
    ),
    "sleep": say(
        "The listener itself sleeps. Let the broker redeliver with a delay instead of sleeping in the consumer."
    ),
    "wait": say(
        "It waits in a call outside its language (network, file, lock, sleep): the line shows it. Give that call a "
        "timeout."
    ),
    "code": say(
        "It computes at one line. If that is a loop, bound it; if it is work, give it fewer messages a thread."
    ),
}
CAUSES = {
    "network": say("network"),
    "database": say("database"),
    "pool": say("connection pool"),
    "lock": say("lock"),
    "sleep": say("sleep"),
    "wait": say("wait"),
    "code": say("code"),
}


Places = dict[tuple[tuple[str, ...], bool], list[Standing]]


def _keeper(pool: str, places: Places) -> tuple[tuple[str, ...], bool] | None:
    """Where threads stand that have connections of a pool and wait for an answer: they are why others wait for it."""
    package = next(package for name, package, _ in POOLS if name == pool)
    for key, same in places.items():
        if same[0].cause in ("database", "network") and any(package in frame for frame in same[0].frames):
            return key
    return None


def stuck(dumps: list[ThreadDump], consumers: re.Pattern[str] | None = CONSUMERS) -> Iterator[Finding]:
    """stuck_thread: a consumer thread at work stood at the same line in every dump (three at least).

    Threads that wait for a pool of connections are one finding, at any line, and none if others have
    its connections and stand at a call themselves: those are the cause.

    slow_call: it was at the same waiting call in every dump, and has worked in between, or may have.
    """
    places: Places = {}
    waiting: dict[str, list[Standing]] = {}
    for each in standing(dumps, consumers):
        if each.pool:
            waiting.setdefault(each.pool[0], []).append(each)
        else:
            places.setdefault((each.frames, each.came_back), []).append(each)
    keepers = {pool: key for pool in waiting if (key := _keeper(pool, places)) is not None}
    for pool, same in waiting.items():
        if pool not in keepers:
            places[(pool,), all(each.came_back for each in same)] = same
    for key, same in places.items():
        slow, first = key[1], same[0]
        names = ", ".join(each.name for each in same[:3])
        more = say("{names} and {more} more", names=names, more=len(same) - 3) if len(same) > 3 else names
        held = [say("waiting for {what}", what=first.waiting_for)] if first.waiting_for else []
        if first.holder is not None:
            line = line_of(first.holder.frames)
            held.append(say("held by thread {name} at {line}", name=first.holder.name, line=line))
        held += [
            say("{count:more thread waits|more threads wait} for a connection of its pool ({pool})",
                count=len(waiting[pool]), pool=pool)
            for pool, theirs in keepers.items() if theirs == key
        ]  # fmt: skip
        if first.cause in WAITS and first.cpu is not None:
            ran, until = first.cpu
            held.append(
                say("it worked in between: processor time {ran:.2f} -> {until:.2f} ms", ran=ran, until=until)
                if slow
                else say("it did nothing in between: processor time {ran:.2f} ms in all of them", ran=ran)
            )
        elif slow:
            held.append(say("such dumps do not tell one sleep from the next: jstack of Java 11 or newer does"))
        yield Finding(
            "slow_call" if slow else "stuck_thread",
            Severity.WARNING if slow else Severity.ERROR,
            say("thread {names}", names=names)
            if len(same) == 1
            else say("{count} threads: {names}", count=len(same), names=more),
            (
                *(say("at {line}", line=line) for line in list(dict.fromkeys(each.line for each in same))[:3]),
                say(
                    "cause: {cause} ({frame}), state {state}",
                    cause=CAUSES[first.cause],
                    frame=first.pool[1] if first.pool else first.frames[0],
                    state=first.state,
                ),
                say("the same stack in {dumps} dumps over {span}", dumps=first.dumps, span=span(first.period))
                if first.period
                else say("the same stack in {dumps} dumps", dumps=first.dumps),
                *held,
            ),
            SLOW_SLEEP if slow and first.cause == "sleep" else SLOW if slow else ADVICE[first.cause],
        )


def looks(evidence: Evidence) -> Iterator[list[ThreadDump]]:
    """The dumps of each process, each moment once: a copy of a dump is not a second look."""
    for dumps in by_time(evidence.dumps, lambda dump: (dump.tool, dump.process)).values():
        found: list[ThreadDump] = []
        for dump in dumps:
            # jstack itself writes the moment; a file's own time does not distinguish copies.
            if dump.tool != "jstack" or dump.time is None or not found or found[-1].time != dump.time:
                found.append(dump)
        yield found


def findings(evidence: Evidence) -> Iterator[Finding]:
    """Dumps of one process are compared."""
    for found in looks(evidence):
        if len(found) >= ENOUGH:
            yield from stuck(found)
