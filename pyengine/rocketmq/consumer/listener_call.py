"""Calling a listener: functions, coroutine functions, answers of the wrong kind, and how an exception is described."""

from __future__ import annotations

import inspect
import math
import threading
import traceback
from collections.abc import Callable, Coroutine
from enum import Enum
from typing import TYPE_CHECKING, Any

from pyengine.clock import Clock, ManualClock, Timer
from pyengine.errors import IllegalStateError
from pyengine.rocketmq.consumer.client import call_later

if TYPE_CHECKING:
    import asyncio

    from pyengine.rocketmq.consumer.manual_loop import ManualLoop


class Waiting:
    """A listener that has not answered: under a manual clock, a coroutine that waits for a time to come.

    result: its status then, or it raises. rest: what follows from that, for the caller of the listener. wake: has
    ``rest`` run; called when the coroutine is done.
    """

    def __init__(self, result: Callable[[], Any]) -> None:
        self.result = result
        self.rest: Callable[[], Any] = result
        self.wake: Callable[[], object] = bool


class ListenerCall:
    """Calls one listener. Coroutines run on one event loop with a thread of its own, name ``thread_name``.

    Under a manual clock that loop runs on the calling thread instead, by the clock's time: a call of a coroutine that
    waits for a time to come answers Waiting.
    """

    def __init__(self, clock: Clock, listener: Callable[..., Any], kind: type[Enum], thread_name: str) -> None:
        self._manual = clock if isinstance(clock, ManualClock) else None
        self._timer: Timer | None = None
        self._listener = listener
        self._kind = kind
        self._thread_name = thread_name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._manual_loop: ManualLoop | None = None
        self._closed = False

    def __call__(self, *arguments: Any) -> Any:
        """The listener's status or None, or Waiting. Raises what the listener raises, TypeError for another answer."""
        answer = self._listener(*arguments)
        if isinstance(answer, self._kind):
            return answer
        if inspect.iscoroutine(answer):
            answer = self._finish(answer)
        return answer if isinstance(answer, Waiting) else self._checked(answer)

    def _checked(self, answer: Any) -> Any:
        if answer is not None and not isinstance(answer, self._kind):
            raise TypeError(f"the listener answered {answer!r}; a {self._kind.__name__} or None is needed")
        return answer

    def close(self) -> None:
        """Stop the event loop, if there is one; coroutines that still run are cancelled."""
        with self._lock:
            self._closed = True
            loop, self._loop = self._loop, None
            manual, self._manual_loop = self._manual_loop, None
        if manual is not None:
            import asyncio

            if self._timer is not None:
                self._timer.cancel()
            for task in asyncio.all_tasks(manual):
                task.cancel()
            if not manual.is_running():
                manual.run_forever()  # what still waits may clean up
                manual.close()
        elif loop is not None:
            loop.call_soon_threadsafe(self._stop, loop)

    @staticmethod
    def _stop(loop: asyncio.AbstractEventLoop) -> None:
        """On the loop's thread: what still runs is cancelled and may clean up, then the loop ends."""
        import asyncio

        running = asyncio.gather(*asyncio.all_tasks(loop), return_exceptions=True)
        running.add_done_callback(lambda _: loop.stop())
        running.cancel()

    def _finish(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        import asyncio  # it takes time to import

        with self._lock:
            if self._closed:
                coroutine.close()
                raise IllegalStateError("the consumer is shut down, its coroutine was not begun")
            if self._manual is not None and self._manual_loop is None:
                from pyengine.rocketmq.consumer.manual_loop import ManualLoop

                self._manual_loop = ManualLoop(self._manual)
            elif self._manual is None and self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._run, args=(self._loop,), name=self._thread_name, daemon=True).start()
            loop, manual = self._loop, self._manual_loop
        if manual is not None:
            return self._begin(manual, coroutine)
        assert loop is not None
        answer, ended = asyncio.run_coroutine_threadsafe(_held(coroutine), loop).result()
        if ended is not None:
            raise ended
        return answer

    def _begin(self, loop: ManualLoop, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine until it is done, or waits for a time of the manual clock."""
        task = loop.create_task(_held(coroutine))

        def result() -> Any:
            answer, ended = task.result()
            if ended is not None:
                raise ended
            return self._checked(answer)

        try:
            self._drive(loop)
        except BaseException:  # the user's Ctrl-C
            task.cancel()
            raise
        if task.done():
            return result()
        waiting = Waiting(result)
        task.add_done_callback(lambda _: waiting.wake())
        return waiting

    def _drive(self, loop: ManualLoop) -> None:
        """Run what can be run now, and come back when the loop's next timer is due."""
        if loop.is_running() or loop.is_closed():  # one of its coroutines moves the clock: it goes on by itself
            return
        if self._timer is not None:
            self._timer.cancel()
        try:
            loop.run_forever()
        finally:
            if loop.due is not None and not self._closed:
                due = math.ceil(loop.due * 1000 - 0.5)
                self._timer = call_later(loop.clock, loop.clock.now() + max(1, due), lambda: self._drive(loop))

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        import asyncio

        asyncio.set_event_loop(loop)
        loop.run_forever()
        loop.close()


async def _held(coroutine: Coroutine[Any, Any, Any]) -> tuple[Any, BaseException | None]:
    """What a coroutine answers, or what it raised that would end its event loop."""
    try:
        return await coroutine, None
    except (SystemExit, KeyboardInterrupt) as error:
        return None, error


def users_interrupt(error: BaseException) -> KeyboardInterrupt | None:
    """The user's own interrupt: one in the main thread, which listeners run on under a manual clock."""
    if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
        return error
    return None


def describe(error: BaseException) -> str:
    """An exception and where it came from, on one line."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return text
    return f"{text}, {frames[-1].name}({frames[-1].filename}:{frames[-1].lineno})"


def listed(messages: list[Any]) -> str:
    """Messages as Java prints a list of them."""
    return f"[{', '.join(map(str, messages))}]"
