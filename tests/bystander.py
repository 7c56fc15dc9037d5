"""What tests of servers share that ask whether harm done to a server is noticed by somebody else's connection."""

from __future__ import annotations

import resource
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack

ASKED = 60


def latency(ask: Callable[[], object]) -> float:
    """Median seconds of a question and its answer."""
    spent = []
    for _ in range(ASKED):
        began = time.perf_counter()
        ask()
        spent.append(time.perf_counter() - began)
    return statistics.median(spent)


def resident() -> int:
    """KB of memory of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() // 1024


def processor_times(seconds: float) -> Counter[str]:
    """Seconds of processor time that threads of each name spend while this one sleeps: others' tests may have some."""

    def clock(ident: int) -> float:
        return time.clock_gettime(time.pthread_getcpuclockid(ident))

    threads = [each for each in threading.enumerate() if each is not threading.current_thread() and each.ident]
    before = {each: clock(each.ident or 0) for each in threads}
    time.sleep(seconds)
    spent: Counter[str] = Counter()
    for each in threads:
        if each.is_alive():
            spent[each.name] += clock(each.ident or 0) - before[each]
    return spent


def pairs_of_descriptors(wanted: int, stack: ExitStack) -> int:
    """How many connections with both ends in this process it may open, ``wanted`` at most; the limit is raised until
    the stack ends. Fewer are said."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2 * wanted + 2000)), hard))
    stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
    found = min(wanted, (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 500) // 2)
    if found < wanted:
        print(f"{found} connections of {wanted}: this process may open no more descriptors than {hard}")
    return found


def unnoticed(ask: Callable[[], object], harm: Callable[[ExitStack], object], *, memory: int = 200_000) -> None:
    """Assert that a question is answered as before while harm is done, and that it costs KB of memory below a limit."""
    latency(ask)
    before, kept = latency(ask), resident()
    with ExitStack() as stack:
        harm(stack)
        ask()  # the harm done so far is dealt with
        meanwhile = latency(ask)
        assert resident() - kept < memory
    assert meanwhile < 5 * before + 0.002, f"{before * 1e6:.0f} us before, {meanwhile * 1e6:.0f} us meanwhile"
