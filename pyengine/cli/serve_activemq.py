"""``pyengine serve activemq``: a broker for the clients of other processes, until it gets a signal to end."""

from __future__ import annotations

import gc
import json
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import EllipsisType
from typing import TextIO

from pyengine.activemq.broker.broker import Broker
from pyengine.cli import manual_clock
from pyengine.cli.outlet import tell
from pyengine.clock import ManualClock
from pyengine.errors import ConfigurationError

DEFAULT = "stomp://127.0.0.1:61613"


class Ended(BaseException):
    """The process got a signal to end."""


def users_of(texts: Iterable[str]) -> dict[str, str]:
    """``NAME:PASSWORD`` each. Raises ConfigurationError."""
    found = {}
    for text in texts:
        name, colon, password = text.partition(":")
        if not (name and colon):
            raise ConfigurationError("--user", name or "''", "no password", "write NAME:PASSWORD")
        found[name] = password
    return found


def serve(
    configuration: Path | None,
    listen: list[str],
    data: Path | None,
    *,
    users: Mapping[str, str] | None,
    allow_anonymous: bool,
    by_hand: bool,
) -> None:
    """Serve until SIGTERM, Ctrl-C or, with a clock that standard input moves by hand, its end."""
    clock = ManualClock() if by_hand else None
    create: Callable[[], Broker]
    if configuration is None:

        def create() -> Broker:
            return Broker(
                data,
                transport_connectors=listen or [DEFAULT],
                users=users,
                allow_anonymous=allow_anonymous,
                clock=clock,
            )

    else:
        directory: Path | EllipsisType = ... if data is None else data

        def create() -> Broker:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # they are printed below, one a line
                return Broker.from_xml(
                    configuration,
                    directory=directory,
                    transport_connectors=listen or None,
                    users=users,
                    allow_anonymous=allow_anonymous,
                    clock=clock,
                )

    previous = {each: signal.signal(each, _end) for each in (signal.SIGTERM,)}
    try:
        with create() as broker:
            for part in broker.left_out:
                tell(f"left out: {part}")
            if not broker.transport_connectors:
                hint = f"say --listen {DEFAULT}"
                raise ConfigurationError("transportConnectors", str(configuration), "has none to listen on", hint)
            gc.freeze()  # a full collection looks through all modules otherwise, which takes longer than most messages
            for connector in broker.transport_connectors:
                print(f"listening on {connector.url}", flush=True)
            if clock is None:
                threading.Event().wait()
            else:
                follow(broker, clock, sys.stdin)
    except Ended:
        pass
    finally:
        gc.unfreeze()
        for number, handler in previous.items():
            signal.signal(number, handler)


def _end(*unused: object) -> None:
    raise Ended


def follow(broker: Broker, clock: ManualClock, commands: TextIO) -> None:
    """Answer each line of standard input; ``held QUEUE`` with a JSON list of the messages that wait there and why."""

    def held(queue: str) -> str:
        found = broker.held(queue)
        return json.dumps(
            [{"message": each.message_id, "reason": each.reason.name, "blocked_by": each.blocked_by} for each in found]
        )

    for line in commands:
        print(manual_clock.answer(clock, line, {"held": held}), flush=True)
