"""Calling a listener: functions, coroutine functions, answers of the wrong kind, and how an exception is described."""

from __future__ import annotations

import asyncio
import inspect
import threading
import traceback
from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any

from pyengine.clock import Clock, ManualClock
from pyengine.errors import IllegalStateError


class ListenerCall:
    """Calls one listener. Coroutines run on one event loop with a thread of its own, name ``thread_name``.

    Under a manual clock that loop runs on the calling thread instead, until the coroutine is done.
    """

    def __init__(self, clock: Clock, listener: Callable[..., Any], kind: type[Enum], thread_name: str) -> None:
        self._manual = isinstance(clock, ManualClock)
        self._listener = listener
        self._kind = kind
        self._thread_name = thread_name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    def __call__(self, *arguments: Any) -> Any:
        """The listener's status or None. Raises what the listener raises, TypeError for any other answer."""
        answer = self._listener(*arguments)
        if isinstance(answer, self._kind):
            return answer
        if inspect.iscoroutine(answer):
            answer = self._finish(answer)
        if answer is not None and not isinstance(answer, self._kind):
            raise TypeError(f"the listener answered {answer!r}; a {self._kind.__name__} or None is needed")
        return answer

    def close(self) -> None:
        """Stop the event loop, if there is one; coroutines that still run are cancelled."""
        with self._lock:
            self._closed = True
            loop, self._loop = self._loop, None
        if loop is not None and self._manual:
            loop.close()
        elif loop is not None:
            loop.call_soon_threadsafe(self._stop, loop)

    @staticmethod
    def _stop(loop: asyncio.AbstractEventLoop) -> None:
        """On the loop's thread: what still runs is cancelled and may clean up, then the loop ends."""
        running = asyncio.gather(*asyncio.all_tasks(loop), return_exceptions=True)
        running.add_done_callback(lambda _: loop.stop())
        running.cancel()

    def _finish(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        with self._lock:
            if self._closed:
                coroutine.close()
                raise IllegalStateError("the consumer is shut down, its coroutine was not begun")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                if not self._manual:
                    threading.Thread(target=self._run, args=(self._loop,), name=self._thread_name, daemon=True).start()
            loop = self._loop
        if self._manual:
            answer, ended = loop.run_until_complete(_held(coroutine))
        else:
            answer, ended = asyncio.run_coroutine_threadsafe(_held(coroutine), loop).result()
        if ended is not None:
            raise ended
        return answer

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
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
