"""Thread dumps of real clients: which of their threads is stuck, at which line of the user's, and which only waits.

The files are what Java 8, 17 and 25 wrote of listeners that stand in drivers, locks and pools, cut down to a few;
three sights of one moment's stacks are what a stuck process shows.
"""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path

import pytest

from pyengine import activemq
from pyengine.backlog.diagnosis.diagnose import diagnose
from pyengine.backlog.diagnosis.evidence import Evidence, ThreadDump, ThreadState, read_files, read_text
from pyengine.backlog.diagnosis.watch import take_dump
from pyengine.backlog.findings import Finding, Severity
from pyengine.errors import InvalidSourceError

DATA = Path(__file__).parents[1] / "data"
SECOND = re.compile(r"(?<=:)\d\d(?=$|\.\d+Z)", re.MULTILINE)


def three(file: str) -> list[Finding]:
    """What is found in three dumps, some seconds apart, with the stacks of this one."""
    text = (DATA / file).read_text("utf-8")
    found = Evidence()
    for number in range(3):
        found.add(read_text(SECOND.sub(f"{10 + number}", text, count=1), f"{number}-{file}"))
    assert not found.remarks
    assert len(found.dumps) == 3
    return diagnose(found)


def stuck(findings: list[Finding]) -> dict[str, str]:
    """Thread -> line and cause."""
    return {
        finding.where.removeprefix("thread "): f"{finding.evidence[0]}, {finding.evidence[1].split(' (')[0]}"
        for finding in findings
    }


def test_a_listener_in_a_driver_is_named_with_the_user_s_own_line() -> None:
    found = stuck(three("jstack-listeners.txt"))
    assert {name.removeprefix("ConsumeMessageThread_")[:-2]: said for name, said in found.items()} == {
        "mariadb": "at Stuck.lambda$main$2(Stuck.java:13), cause: database",
        "jedis": "at Stuck.lambda$main$5(Stuck.java:16), cause: database",
        "hikari": "at Stuck.lambda$main$7(Stuck.java:18), cause: connection pool",
        "hc5": "at Stuck.lambda$main$9(Stuck.java:19), cause: network",
        "jdkhttp": "at Stuck.lambda$main$11(Stuck.java:21), cause: network",
        "udp": "at Stuck.lambda$main$16(Stuck.java:26), cause: network",
        "monitor": "at Stuck.lambda$main$18(Stuck.java:28), cause: lock",
        "sync": "at Stuck.lambda$main$28(Stuck.java:37), cause: lock",
        "procread": "at Stuck.lambda$main$36(Stuck.java:45), cause: wait",
        "dead1": "at Stuck.held(Stuck.java:8), cause: lock",
        "dead2": "at Stuck.held(Stuck.java:8), cause: lock",
        "same": "at Stuck.lambda$main$47(Stuck.java:53), cause: sleep",
    }


def test_java_8_names_its_own_classes_of_the_network() -> None:
    found = stuck(three("jstack-java8.txt"))
    names = " ".join(found)
    for call in ("accept", "channel", "connect0", "connect1", "connect2", "nioaccept", "timed", "write"):
        assert f"ConsumeMessageThread_{call}_1" in names
    assert {said.split(", ")[1] for said in found.values()} == {"cause: network"}


def test_who_holds_a_lock_is_named() -> None:
    blocked = (finding for finding in three("jstack-listeners.txt") if "BLOCKED" in finding.evidence[1])
    assert {finding.where.split("_")[1]: finding.evidence[-1] for finding in blocked} == {
        "monitor": "held by thread holder at Stuck.lambda$main$17(Stuck.java:27)",
        "dead1": "held by thread ConsumeMessageThread_dead2_1 at Stuck.held(Stuck.java:8)",
        "dead2": "held by thread ConsumeMessageThread_dead1_1 at Stuck.held(Stuck.java:8)",
    }


def test_threads_of_one_name_are_several() -> None:
    one, other = (ThreadState("ActiveMQ Session Task-1", "RUNNABLE", (f"shop.{name}.on(A.java:1)",), ident=name)
                  for name in ("First", "Second"))  # fmt: skip
    busy = [ThreadState("ActiveMQ Session Task-1", "RUNNABLE", (f"shop.B.b(B.java:{n})",), ident="3") for n in range(3)]
    dumps = [ThreadDump("f", n * 1000, "jstack", "p", (busy[n], one, other)) for n in range(3)]
    assert [finding.evidence[0] for finding in diagnose(Evidence(dumps=dumps))] == [
        "at shop.First.on(A.java:1)",
        "at shop.Second.on(A.java:1)",
    ]
    # A new thread may have the name and the place of one that ended.
    again = [ThreadDump("f", n * 1000, "jstack", "p", (ThreadState(one.name, one.state, one.frames, ident=str(n)),))
             for n in range(3)]  # fmt: skip
    assert diagnose(Evidence(dumps=again)) == []


def test_a_listener_is_told_by_its_callers_whatever_its_thread_is_called() -> None:
    names = {name for finding in three("jstack-sessions.txt") for name in re.split(r"[,:] (?=\w)", finding.where)}
    said = " ".join(names)
    assert {"jms-orders", "orders-consumer-1", "ActiveMQ Session Task-1", "ActiveMQ Session"} <= {
        name.removeprefix("thread ") for name in names
    }
    assert "tcp:///127.0.0.1:36849@59362" in said  # a session without threads: its listener runs on the transport's
    assert "tcp:///127.0.0.1:36849@59320" not in said  # a transport that reads


def test_a_listener_that_worked_between_two_dumps_is_slow_and_not_stuck() -> None:
    """A real ActiveMQ client: what its listeners do is in their names. Who waits once does not run."""
    found = {finding.where.removeprefix("thread orders-consumer-"): finding
             for finding in diagnose(read_files([DATA / f"working-{n}.txt" for n in (1, 2, 3)]))}  # fmt: skip
    assert {name: finding.code for name, finding in found.items()} == {
        "sleeps": "slow_call",
        "polls": "slow_call",
        "asks-slow": "slow_call",
        "sleeps-for-ever": "stuck_thread",
        "asks-for-ever": "stuck_thread",
        "dead-1": "stuck_thread",
        "dead-2": "stuck_thread",
        "computes": "stuck_thread",
    }
    assert found["sleeps"].severity is Severity.WARNING
    assert found["sleeps"].evidence[-1] == "it worked in between: processor time 2.48 -> 3.35 ms"
    assert found["asks-for-ever"].evidence[-1] == "it did nothing in between: processor time 0.50 ms in all of them"
    assert found["dead-1"].evidence[-1].startswith("held by thread orders-consumer-dead-2 at ")


@pytest.mark.parametrize(
    ("ran", "code", "dumps"),
    [
        ((1.0, 1.0, 1.0), "stuck_thread", 3),
        ((1.0, 1.0, 1.1), "slow_call", 3),
        ((1.0, 1.5, 1.5, 1.5), "stuck_thread", 3),  # it came to its end
        ((1.0, 1.0, 1.5, 1.5), "slow_call", 4),
        ((None, None, None), "slow_call", 3),  # Java 8 does not say it
    ],
)
def test_since_when_a_thread_sleeps(ran: tuple[float | None, ...], code: str, dumps: int) -> None:
    frames = ("java.lang.Thread.sleep(Native Method)", "shop.Orders.on(Orders.java:3)")
    threads = [ThreadState("ConsumeMessageThread_g_1", "TIMED_WAITING", frames, cpu=cpu) for cpu in ran]
    looks = [ThreadDump("f", n * 1000, "jstack", "p", (each,)) for n, each in enumerate(threads)]
    (found,) = diagnose(Evidence(dumps=looks))
    assert found.code == code
    assert f"in {dumps} dumps over {dumps - 1} s" in found.evidence[2]


@pytest.mark.parametrize(("ran", "cause"), [(0.0, "wait"), (900.0, "code")])
def test_what_a_thread_of_this_process_does_outside_python_is_told_by_its_time(ran: float, cause: str) -> None:
    threads = [ThreadState("ConsumeMessageThread_g_1", "active", ("on (app.py:3)",), cpu=5 + n * ran) for n in range(3)]
    looks = [ThreadDump("f", n * 1000, "python", "", (each,)) for n, each in enumerate(threads)]
    (found,) = diagnose(Evidence(dumps=looks))
    assert (found.code, found.evidence[1]) == ("stuck_thread", f"cause: {cause} (on (app.py:3)), state active")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux tells how long a thread has run")
def test_a_dump_of_this_process_says_how_long_its_threads_have_run() -> None:
    begun, over = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: (begun.set(), over.wait(20)))
    thread.start()
    assert begun.wait(20)
    (seen,) = (each for each in take_dump(0).threads if each.ident == str(thread.ident))
    over.set()
    thread.join(20)
    assert seen.cpu is not None
    assert 0 < seen.cpu < 20_000


def test_a_client_with_nothing_to_do_is_not_stuck() -> None:
    assert three("jstack-idle-rocketmq.txt") == []


def test_a_worker_that_takes_from_its_queue_waits_and_a_listener_that_does_stands() -> None:
    frames = (
        "jdk.internal.misc.Unsafe.park(Native Method)",
        "java.util.concurrent.LinkedBlockingQueue.take(LinkedBlockingQueue.java:435)",
        "shop.Worker.run(Worker.java:9)",
        "java.lang.Thread.run(Thread.java:840)",
    )
    for name, count in (("order-worker-1", 0), ("ConsumeMessageThread_g_1", 1)):
        dumps = [ThreadDump("f", n, "jstack", "p", (ThreadState(name, "WAITING", frames),)) for n in range(3)]
        assert len(diagnose(Evidence(dumps=dumps))) == count


def test_a_thread_of_this_process_that_receives_is_not_stuck() -> None:
    with activemq.Broker() as broker, activemq.ConnectionFactory(broker=broker).create_connection() as connection:
        consumer = connection.create_session().create_consumer("orders")

        def consume() -> None:
            while consumer.receive() is not None:
                pass

        thread = threading.Thread(target=consume, name="orders-consumer-1")
        thread.start()
        dumps: list[ThreadDump] = []
        while len(dumps) < 3:
            dump = take_dump(len(dumps) * 1000)
            if any(frame.startswith("receive (") for each in dump.threads for frame in each.frames):
                dumps.append(dump)
        assert diagnose(Evidence(dumps=dumps)) == []
        consumer.close()
        thread.join(20)


def test_a_listener_that_receives_from_another_queue_stands() -> None:
    waits = ("java.lang.Object.wait(Native Method)", "org.apache.activemq.ActiveMQMessageConsumer.receive(A.java:1)")
    calls = ("org.apache.activemq.ActiveMQMessageConsumer.dispatch(A.java:2)", "java.lang.Thread.run(Thread.java:840)")
    for frames, count in (
        ((*waits, "shop.Orders.onMessage(Orders.java:5)", *calls), 1),
        ((*waits, "shop.Loop.run(Loop.java:5)", "java.lang.Thread.run(Thread.java:840)"), 0),
    ):
        thread = ThreadState("ActiveMQ Session Task-1", "WAITING", frames)
        dumps = [ThreadDump("f", n, "jstack", "p", (thread,)) for n in range(3)]
        assert len(diagnose(Evidence(dumps=dumps))) == count


@pytest.mark.parametrize(
    ("frames", "line", "cause"),
    [
        (("SocketIO.readinto (socket.py:706)", "Connection._read_bytes (pymysql/connections.py:828)",
          "save (shop/orders.py:12)"), "save (shop/orders.py:12)", "database"),
        (("SocketBuffer._read_from_socket (redis/_parsers/socket.py:64)", "handle (app.py:3)"), "handle (app.py:3)",
         "database"),
        (("SyncStream.read (httpcore/_backends/sync.py:128)", "get (httpx/_api.py:195)", "handle (app.py:3)"),
         "handle (app.py:3)", "network"),
        (("AbstractHTTPHandler.do_open (urllib/request.py:1352)", "handle (test.py:3)"), "handle (test.py:3)", "code"),
        (("redistribute (shop/redistribution.py:5)", "handle (queue/app.py:3)"),
         "redistribute (shop/redistribution.py:5)", "code"),
        (("shop.Redistribution.move(A.java:7)",), "shop.Redistribution.move(A.java:7)", "code"),
        (("com.acme.Repo$$SpringCGLIB$$0.find(<generated>)", "com.acme.Orders.on(Orders.java:3)"),
         "com.acme.Orders.on(Orders.java:3)", "code"),
    ],
)  # fmt: skip
def test_libraries_are_nobody_s_own_code(frames: tuple[str, ...], line: str, cause: str) -> None:
    thread = ThreadState("ConsumeMessageThread_g_1", "active", frames)
    (found,) = diagnose(Evidence(dumps=[ThreadDump("f", n, "py-spy", "p", (thread,)) for n in range(3)]))
    assert found.evidence[0] == f"at {line}"
    assert found.evidence[1].startswith(f"cause: {cause} ")


@pytest.mark.parametrize("file", ["thread-file.txt", "thread-file.json"])
def test_virtual_threads_stand_in_thread_files(file: str) -> None:
    found = three(file)
    assert stuck(found)["ConsumeMessageThread_jdkhttp_1"] == "at Stuck.lambda$main$11(Stuck.java:21), cause: network"
    assert stuck(found)["ConsumeMessageThread_virtual_1"].endswith("cause: sleep")
    assert stuck(found)["ConsumeMessageThread_virtual_2"].endswith("cause: code")
    (held,) = (finding for finding in found if finding.where == "thread ConsumeMessageThread_monitor_1")
    assert held.evidence[-1] == "held by thread holder at Stuck.lambda$main$20(Stuck.java:28)"


def test_a_mounted_virtual_thread_is_not_its_carrier() -> None:
    (found,) = three("jstack-mounted.txt")
    assert found.evidence[1] == "cause: code (Stuck.lambda$main$54(Stuck.java:60)), state RUNNABLE"


def test_a_thread_file_of_java_21_has_no_states() -> None:
    text = '77\n2026-11-22T15:38:10.5Z\n21.0.5+11-LTS\n\n#30 "orders-1" virtual\n      java.base/java.lang.Thread.sleep'
    (dump,) = read_text(f"{text}(Thread.java:507)\n      shop.Orders.on(Orders.java:3)\n", "d.txt").dumps
    (thread,) = dump.threads
    assert (dump.process, thread.key, thread.state) == ("77", ("orders-1", "30"), "")
    assert thread.frames == ("java.lang.Thread.sleep(Thread.java:507)", "shop.Orders.on(Orders.java:3)")


def test_a_thread_file_that_is_none() -> None:
    with pytest.raises(InvalidSourceError, match="cannot be read: not the fields of a thread dump: KeyError"):
        read_text('{"threadDump": {}}', "d.json")
    with pytest.raises(InvalidSourceError, match="cannot be read"):
        read_text('{"threadDump": {', "d.json")


WAITS = (
    "jdk.internal.misc.Unsafe.park(java.base@17/Native Method)",
    "java.util.concurrent.locks.LockSupport.parkNanos(LockSupport.java:252)",
)
CALL = (
    "java.net.SocketInputStream.socketRead0(Native Method)",
    "com.mysql.cj.protocol.ReadAheadInputStream.fill(R.java:107)",
)
LISTENS = "org.apache.rocketmq.client.impl.consumer.ConsumeMessageConcurrentlyService$ConsumeRequest.run(C.java:417)"
# The frame in which a thread waits for a connection, as the pools' own releases have it.
POOLS = {
    "HikariCP": "com.zaxxer.hikari.util.ConcurrentBag.borrow(ConcurrentBag.java:151)",
    "Druid": "com.alibaba.druid.pool.DruidDataSource.pollLast(DruidDataSource.java:2004)",
    "DBCP": "org.apache.commons.dbcp2.PoolingDataSource.getConnection(PoolingDataSource.java:134)",
    "c3p0": "com.mchange.v2.resourcepool.BasicResourcePool.awaitAvailable(BasicResourcePool.java:1503)",
    "Tomcat JDBC": "org.apache.tomcat.jdbc.pool.ConnectionPool.borrowConnection(ConnectionPool.java:699)",
    "Jedis": "redis.clients.jedis.util.Pool.getResource(Pool.java:50)",
    "commons-pool": "org.apache.commons.pool2.impl.GenericObjectPool.borrowObject(GenericObjectPool.java:435)",
    "Lettuce": "org.springframework.data.redis.connection.lettuce.LettucePoolingConnectionProvider.getConnection(L.java)",  # noqa: E501
    "HttpClient": "org.apache.http.pool.AbstractConnPool.getPoolEntryBlocking(AbstractConnPool.java:379)",
    "HttpClient, 5": "org.apache.hc.core5.pool.StrictConnPool.lease(StrictConnPool.java:180)",
    "MongoDB": "com.mongodb.internal.connection.ConcurrentPool.get(ConcurrentPool.java:137)",
    "SQLAlchemy": "_do_get (sqlalchemy/pool/impl.py:145)",
}


def waiting(frame: str, number: int, line: int = 55) -> ThreadState:
    if frame.startswith("_"):
        frames = (
            "wait (threading.py:331)",
            "get (sqlalchemy/util/queue.py:185)",
            frame,
            f"insert (shop/dao.py:{line})",
        )
    else:
        frames = (
            *WAITS,
            frame,
            f"shop.Dao.insert(Dao.java:{line})",
            "shop.Listener.consumeMessage(L.java:33)",
            LISTENS,
        )
    return ThreadState(f"ConsumeMessageThread_g_{number}", "WAITING", frames, ident=str(number))


def thrice(*threads: ThreadState) -> list[Finding]:
    return diagnose(Evidence(dumps=[ThreadDump("f", n * 10_000, "jstack", "p", threads) for n in range(3)]))


@pytest.mark.parametrize("pool", POOLS)
def test_who_waits_for_a_pool_of_connections_does_not_wait_for_the_database(pool: str) -> None:
    # They stand at two lines of the program, and wait for one thing.
    (finding,) = thrice(*(waiting(POOLS[pool], number, 55 + number % 2) for number in range(20)))
    assert finding.code == "stuck_thread"
    assert str(finding.where).startswith("20 threads: ")
    assert f"cause: connection pool ({POOLS[pool]})" in finding.evidence[2]
    assert "consumeThreadMin" in finding.advice
    assert "statement timeout" not in finding.advice


def test_those_who_have_the_connections_are_why_others_wait_for_the_pool() -> None:
    proxy = "com.zaxxer.hikari.pool.ProxyPreparedStatement.executeQuery(ProxyPreparedStatement.java:52)"
    frames = (*CALL, proxy, "shop.Dao.find(Dao.java:9)", LISTENS)
    busy = [ThreadState(f"ConsumeMessageThread_g_{n}", "RUNNABLE", frames, ident=str(n)) for n in range(10, 13)]
    (finding,) = thrice(waiting(POOLS["HikariCP"], 1), waiting(POOLS["HikariCP"], 2), *busy)
    assert "cause: database" in finding.evidence[1]
    assert "2 more threads wait for a connection of its pool (HikariCP)" in finding.evidence
    other = [
        ThreadState("ConsumeMessageThread_g_9", "RUNNABLE", (*CALL, "shop.Dao.find(Dao.java:9)", LISTENS), ident="9")
    ]
    assert len(thrice(waiting(POOLS["HikariCP"], 1), *other)) == 2  # its connection is not of that pool


def test_a_thread_that_makes_a_connection_of_a_pool_waits_for_the_network_or_the_database() -> None:
    frames = (
        *CALL,
        "com.alibaba.druid.pool.DruidDataSource.getConnectionInternal(D.java:1460)",
        "shop.Dao.a(Dao.java:5)",
        LISTENS,
    )
    (finding,) = thrice(ThreadState("ConsumeMessageThread_g_1", "RUNNABLE", frames, ident="1"))
    assert "cause: database" in finding.evidence[1]
