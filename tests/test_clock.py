"""Both clocks: timers in order, waiting, workers; the manual one moves only by hand."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import threading
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyengine.clock import Clock, ManualClock, SystemClock, Timer
from pyengine.errors import IllegalStateError


def test_timers_fire_at_their_own_moment_and_in_the_order_given() -> None:
    clock = ManualClock(1000)
    seen: list[tuple[str, int]] = []
    clock.call_at(1020, lambda: seen.append(("b", clock.now())))
    clock.call_at(1010, lambda: seen.append(("a", clock.now())))
    clock.call_at(1020, lambda: seen.append(("c", clock.now())))
    cancelled = clock.call_at(1015, lambda: seen.append(("never", clock.now())))
    cancelled.cancel()
    clock.advance(19)
    assert seen == [("a", 1010)]
    assert clock.now() == 1019
    clock.advance(1)
    assert seen == [("a", 1010), ("b", 1020), ("c", 1020)]
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1)


def test_an_action_that_moves_the_time_is_work_that_takes_it() -> None:
    clock = ManualClock(0)
    clock.call_at(10, lambda: clock.advance(500))
    clock.advance(20)
    assert clock.now() == 510


def test_waiting_moves_a_manual_clock_no_further_than_needed() -> None:
    clock = ManualClock(0)
    arrived: list[int] = []
    clock.call_at(30, lambda: arrived.append(clock.now()))
    condition = threading.Condition()
    with condition:
        assert clock.wait(condition, lambda: bool(arrived), 100)
        assert clock.now() == 30
        assert not clock.wait(condition, lambda: len(arrived) > 1, 100)
        assert clock.now() == 130
        with pytest.raises(IllegalStateError, match="no timer is left"):
            clock.wait(condition, lambda: False)


def test_work_under_a_manual_clock_waits_for_the_caller() -> None:
    clock = ManualClock()
    done: list[int] = []
    worker = clock.worker("w")
    worker.submit(lambda: worker.submit(lambda: done.append(2)))
    worker.submit(lambda: done.append(1))
    assert done == []
    clock.settle()
    assert done == [1, 2]
    worker.close()
    with pytest.raises(IllegalStateError, match="closed"):
        worker.submit(lambda: None)


def test_an_action_that_waits_gives_the_other_workers_their_turn() -> None:
    """As threads do: its own worker has no other, and what those of the others do may wait again."""
    clock = ManualClock(0)
    first, second, third = (clock.worker(name) for name in "abc")
    done: list[str] = []
    condition = threading.Condition()

    def wait(name: str, what: str) -> None:
        with condition:
            assert clock.wait(condition, lambda: what in done, 100)
        done.append(name)

    first.submit(lambda: wait("a", "b"))
    first.submit(lambda: done.append("a again"))
    second.submit(lambda: wait("b", "c"))
    second.submit(lambda: clock.settle())
    third.submit(lambda: clock.call_at(30, lambda: third.submit(lambda: done.append("c"))))
    clock.settle()
    assert (done, clock.now()) == (["c", "b", "a", "a again"], 30)
    first.submit(lambda: wait("a", "a last"))
    first.submit(lambda: done.append("a last"))
    with pytest.raises(AssertionError):
        clock.settle()
    clock.settle()
    assert (done[4:], clock.now()) == (["a last"], 130)


def test_an_action_that_waits_goes_on_as_soon_as_it_may() -> None:
    clock = ManualClock(0)
    done: list[str] = []
    condition = threading.Condition()

    def wait() -> None:
        with condition:
            assert clock.wait(condition, lambda: "b" in done, 100)
        done.append("a")

    clock.worker("a").submit(wait)
    for name in "bc":
        clock.worker(name).submit(partial(done.append, name))
    clock.settle()
    assert done == ["b", "a", "c"]


def test_an_action_that_moves_the_clock_holds_up_the_other_workers_and_no_timer() -> None:
    clock = ManualClock(0)
    first, second = clock.worker("a"), clock.worker("b")
    seen: list[tuple[str, int]] = []

    def note(what: str) -> None:
        seen.append((what, clock.now()))

    def beat() -> None:
        note("timer")
        second.submit(lambda: note("heartbeat"))

    def work() -> None:
        clock.advance(100)
        note("worked")

    clock.call_at(30, beat)
    first.submit(work)
    second.submit(lambda: note("other"))
    clock.settle()
    assert seen == [("timer", 30), ("worked", 100), ("other", 100), ("heartbeat", 100)]


def test_more_actions_wait_than_the_stack_has_room_for() -> None:
    clock = ManualClock(0)
    done: list[int] = []
    condition = threading.Condition()

    def wait(number: int) -> None:
        with condition:
            clock.wait(condition, lambda: len(done) > 500, 10)
        done.append(number)

    for number in range(1000):
        clock.worker(f"w{number}").submit(partial(wait, number))
    clock.settle()
    assert sorted(done) == list(range(1000))


def test_the_system_clock_runs_timers_and_workers_on_threads() -> None:
    clock: Clock = SystemClock("timers")
    names: list[str] = []
    condition = threading.Condition()

    def note() -> None:
        with condition:
            names.append(threading.current_thread().name)
            condition.notify_all()

    worker = clock.worker("w")
    worker.submit(note)
    clock.call_at(clock.now() + 5, note)
    with condition:
        assert clock.wait(condition, lambda: len(names) == 2, 10_000)
        assert not clock.wait(condition, lambda: len(names) == 3, 1)
    assert sorted(names) == ["timers", "w"]
    worker.close()
    clock.close()
    with pytest.raises(IllegalStateError):
        clock.call_at(0, note)


def test_a_manual_clock_moves_in_whole_milliseconds_only() -> None:
    clock = ManualClock()
    for wrong in (1.5, float("nan"), True, "5"):
        with pytest.raises(TypeError, match=r"a whole number of ms, or a timedelta; a second is 1000"):
            clock.advance(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="time does not go back"):
        clock.advance(-1)
    assert clock.now() == ManualClock().now()


@pytest.mark.parametrize("kind", [ManualClock, SystemClock])
def test_cancelled_timers_do_not_pile_up_behind_the_moment_they_were_for(kind: type[Clock]) -> None:
    clock = kind()
    kept = clock.call_at(clock.now() + 3_600_000, list)
    gc.collect()
    before = sum(type(it) is Timer for it in gc.get_objects())
    for _ in range(10_000):
        clock.call_at(clock.now() + 3_600_000, list).cancel()
    assert sum(type(it) is Timer for it in gc.get_objects()) < before + 500
    assert kept.pending
    clock.close()


@given(st.lists(st.tuples(st.integers(0, 1000), st.booleans()), max_size=400))
def test_timers_that_are_left_run_in_order_whatever_was_cancelled(timers: list[tuple[int, bool]]) -> None:
    clock = ManualClock(0)
    came: list[tuple[int, int]] = []
    for number, (when, wanted) in enumerate(timers):
        timer = clock.call_at(when, lambda when=when, number=number: came.append((when, number)))  # type: ignore[misc]
        if not wanted:
            timer.cancel()
    clock.advance(1000)
    assert came == sorted((when, number) for number, (when, wanted) in enumerate(timers) if wanted)


class SetBack(SystemClock):
    """A system clock whose time can be set back, ``back`` ms."""

    back = 0

    def now(self) -> int:
        return super().now() - self.back


@pytest.mark.parametrize("another", [True, False])
def test_timers_come_after_the_systems_time_was_set_back(another: bool) -> None:
    clock, came = SetBack(), threading.Event()
    order: list[str] = []
    clock.call_at(clock.now() + 300, lambda: order.append("first"))
    clock.call_at(clock.now() + 400, lambda: (order.append("second"), came.set()))
    clock.back = 3_600_000
    if another:
        clock.call_at(clock.now() + 3_600_000, lambda: order.append("never"))
    assert came.wait(60)
    assert order == ["first", "second"]
    clock.close()


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="forking is not safe there")
def test_a_forked_process_finds_no_clock_locked() -> None:
    clock = SystemClock()
    going = True

    def busy() -> None:
        while going:
            with clock._lock:
                sum(range(1000))

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                signal.alarm(5)  # ends the process
                clock.call_at(clock.now() + 5, list)
                clock.close()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        going = False
        thread.join()
        clock.close()


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="forking is not safe there")
def test_the_system_clock_goes_on_in_a_forked_process_without_the_timers_of_its_parent() -> None:
    clock = SystemClock()
    reading, writing = os.pipe()
    clock.call_at(clock.now() + 30, lambda: os.write(writing, b"parent's "))
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends the process
        came = threading.Event()
        clock.call_at(clock.now() + 60, lambda: (os.write(writing, b"own "), came.set()))
        came.wait()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    clock.close()
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert sorted(pipe.read().split()) == ["own", "parent's"]


def test_a_shared_manual_clock_is_for_every_thread_and_one_at_a_time() -> None:
    clock, ran = ManualClock(0), []
    turn = clock.share()
    assert clock.share() is turn
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(clock)
    clock.call_at(5, lambda: ran.append(clock.now()))
    clock.call_at(15, lambda: ran.append(clock.now()))
    mover = threading.Thread(target=lambda: clock.advance(10))
    with turn:
        mover.start()
        mover.join(0.05)
        assert mover.is_alive()
        assert ran == []
    mover.join(5)
    assert ran == [5]
    assert clock.now() == 10
    condition = threading.Condition()
    with condition:
        assert not clock.wait(condition, lambda: False, 7)
    assert ran == [5, 15]
    assert clock.now() == 17


def test_waiting_on_a_shared_manual_clock_without_a_timeout_waits_for_other_threads() -> None:
    clock, condition, told = ManualClock(0), threading.Condition(), threading.Event()
    clock.share()
    threading.Timer(0.05, told.set).start()
    with condition:
        assert clock.wait(condition, told.is_set)
    assert clock.now() == 0
