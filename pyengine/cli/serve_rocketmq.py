"""``pyengine serve rocketmq``: an embedded cluster for clients of any language."""

from __future__ import annotations

import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path

from pyengine.cli import manual_clock
from pyengine.cli.outlet import tell
from pyengine.clock import ManualClock
from pyengine.errors import ConfigurationError
from pyengine.rocketmq.broker.broker import Broker
from pyengine.rocketmq.remoting.tls import server_ssl_context
from pyengine.rocketmq.server.accounts import read_accounts


def serve(
    listen: str,
    data: Path | None,
    by_hand: bool,
    allow_anonymous: bool,
    levels: str,
    certificate: tuple[Path | None, Path | None, Path | None],
    enforced: bool,
    accounts: Path | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM. Prints ``name server HOST:PORT`` and, for each broker, ``broker HOST:PORT``.

    by_hand: time stands still, and standard input moves it (manual_clock). certificate: of TLS, with its key and the
    certificates of clients. enforced: nothing but TLS. accounts: a plain_acl.yml. Raises what Broker raises.
    """
    cert, key, trusted = certificate
    if (cert is None) != (key is None) or (cert is None and (trusted is not None or enforced)):
        raise ConfigurationError("--tls-cert, --tls-key", f"{cert}, {key}", "TLS needs both", "give two PEM files")
    context = None if cert is None or key is None else server_ssl_context(cert, key, trusted)
    known = None if accounts is None else read_accounts(accounts)
    for left_out in known.left_out if known is not None else ():
        tell(f"left out: {left_out}")
    # It begins now: clients compare the broker's times with their own.
    clock = ManualClock(time.time_ns() // 1_000_000) if by_hand else None
    done = threading.Event()
    with Broker(
        data,
        listen=listen,
        clock=clock,
        accounts=() if known is None else known.credentials,
        allow_anonymous=allow_anonymous,
        message_delay_level=levels,
        ssl_context=context,
        tls_mode="enforcing" if enforced else "permissive",
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
            threading.Thread(target=_read_commands, args=(broker, clock), name="commands", daemon=True).start()
            broker.serve()


def _read_commands(broker: Broker, clock: ManualClock) -> None:
    """Do what standard input says, on the thread that owns the clock; at its end the time stands still for good."""
    for line in sys.stdin:
        if line.strip():
            broker.call(partial(_answer, clock, line))


def _answer(clock: ManualClock, line: str) -> None:
    print(manual_clock.answer(clock, line), flush=True)
