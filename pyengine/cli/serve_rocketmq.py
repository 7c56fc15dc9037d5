"""``pyengine serve rocketmq``: an embedded cluster for clients of any language."""

from __future__ import annotations

import signal
import sys
import threading
import time
from pathlib import Path

from pyengine.clock import ManualClock
from pyengine.rocketmq.broker.broker import Broker


def serve(listen: str, data: Path | None, manual_clock: bool, allow_anonymous: bool, levels: str) -> None:
    """Serve until SIGINT or SIGTERM. Prints ``name server HOST:PORT`` and, for each broker, ``broker HOST:PORT``.

    manual_clock: time stands still but for the lines ``advance MS`` on standard input, each answered ``now MS`` when
    all that fell due is done. Raises what Broker raises.
    """
    # It begins now: clients compare the broker's times with their own.
    clock = ManualClock(time.time_ns() // 1_000_000) if manual_clock else None
    done = threading.Event()
    with Broker(
        data, listen=listen, clock=clock, allow_anonymous=allow_anonymous, message_delay_level=levels
    ) as broker:

        def stop(*signalled: object) -> None:
            done.set()
            if clock is not None:
                broker.stop_serving()

        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, stop)
        print(f"name server {broker.name_server_address}")
        for address in broker.broker_addresses:
            print(f"broker {address}")
        sys.stdout.flush()
        if clock is None:
            done.wait()
        else:
            threading.Thread(target=_read_steps, args=(broker, clock), name="steps", daemon=True).start()
            broker.serve()


def _read_steps(broker: Broker, clock: ManualClock) -> None:
    """Move the time as standard input says; at its end the time stands still for good."""
    for line in sys.stdin:
        words = line.split()
        if len(words) == 2 and words[0] == "advance" and words[1].isascii() and words[1].isdecimal():
            broker.call(lambda milliseconds=int(words[1]): _advance(clock, milliseconds))  # type: ignore[misc]
        elif words:
            print(f"not understood: {line.strip()[:100]!r}; say: advance MS", file=sys.stderr)


def _advance(clock: ManualClock, milliseconds: int) -> None:
    clock.advance(milliseconds)
    print(f"now {clock.now()}", flush=True)
