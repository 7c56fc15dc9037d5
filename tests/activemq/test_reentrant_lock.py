"""The lock of the live runtime beside threading.RLock."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from threading import Condition, RLock, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyengine.activemq._runtime.reentrant_lock import ReentrantLock
from tests.activemq.held import held

ROUNDS = 3000


@given(st.lists(st.sampled_from(["take", "try", "give", "save", "restore"])), st.booleans())
def test_it_answers_as_the_standard_one(steps: list[str], away: bool) -> None:
    def play(lock: ReentrantLock | RLock) -> Iterator[object]:
        saved = None
        for step in steps:
            if step == "take":
                yield away or lock.acquire()
            elif step == "try":
                yield lock.acquire(blocking=False)
            elif step == "save" and lock._is_owned():
                saved = lock._release_save()
            elif step == "restore" and saved is not None and not lock._is_owned():
                lock._acquire_restore(saved)
                saved = None
            elif step == "give":
                try:
                    lock.release()
                except RuntimeError as error:
                    yield str(error)
            yield lock._is_owned()
            if sys.version_info >= (3, 14):  # Condition asks for it from here on
                yield lock.locked()

    ours, standard = ReentrantLock(), RLock()
    if away:
        with held(ours), held(standard):
            assert list(play(ours)) == list(play(standard))
    else:
        assert list(play(ours)) == list(play(standard))


def test_it_says_whether_any_thread_has_it() -> None:
    lock = ReentrantLock()
    assert not lock.locked()
    with lock, lock:
        assert lock.locked()
    assert not lock.locked()
    with held(lock):
        assert lock.locked()


def test_one_thread_at_a_time_has_it() -> None:
    lock, inside, seen, tries = ReentrantLock(), [0], [0], [0]

    def work(tries_only: bool) -> None:
        for _ in range(ROUNDS):
            if tries_only:
                if not lock.acquire(blocking=False):
                    tries[0] += 1
                    continue
                lock.release()
            with lock, lock:
                inside[0] += 1
                assert inside[0] == 1
                sum(range(20))
                inside[0] -= 1
                seen[0] += 1

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        workers = [Thread(target=work, args=(number == 0,)) for number in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(interval)
    assert seen[0] >= 3 * ROUNDS
    assert lock.depth == 0
    assert lock.acquire(blocking=False)


def test_a_condition_waits_without_it_however_often_it_was_taken() -> None:
    lock = ReentrantLock()
    changed, ready = Condition(lock), [False]

    def change() -> None:
        with lock:
            ready[0] = True
            changed.notify_all()

    with lock, lock:
        other = Thread(target=change)
        other.start()
        assert changed.wait_for(lambda: ready[0], 30)
        assert lock.depth == 2
    other.join()
    assert lock.depth == 0


def test_another_thread_cannot_release_it() -> None:
    lock = ReentrantLock()
    with held(lock):
        with pytest.raises(RuntimeError, match="un-acquired"):
            lock.release()
        assert not lock.acquire(blocking=False)
    with pytest.raises(RuntimeError, match="un-acquired"):
        lock.release()


def test_ctrl_c_is_heard_when_it_is_taken() -> None:
    code = """if True:
        import threading, time
        from pyengine.activemq._runtime.reentrant_lock import ReentrantLock
        lock, taken = ReentrantLock(), threading.Event()
        def hold():
            with lock:
                taken.set()
                time.sleep(1)
        threading.Thread(target=hold).start()
        taken.wait(30)
        try:
            print("waits", flush=True)
            lock.acquire()
            time.sleep(30)
        except KeyboardInterrupt:
            print(lock.depth, lock.acquire(blocking=False))
    """
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        time.sleep(0.2)  # it is at the gate by then
        os.kill(process.pid, signal.SIGINT)
        assert process.stdout.read() == "1 True\n"
