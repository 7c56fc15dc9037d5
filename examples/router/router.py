"""A router: which of 50,000 rules, that others change meanwhile, want an event.

    python examples/router/router.py rules.toml < events.jsonl   # a line for each event: the rules that want it
    python examples/router/router.py --rules 50000               # the same with rules and events made up, measured

pyengine is all it needs; where pyarrow is installed, a table of events is measured too.

rules.toml has lines such as ``alice = "region = 'EU' AND price > 100"``. The file is read again when it changed: what
is new, different or gone is changed, the rest stays as it is; a rule that cannot be read is named and the file refused.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import sys
import threading
import time
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyengine

REGIONS = [f"region-{number}" for number in range(50)]
KINDS = ["order", "refund", "quote", "visit"]


class Router:
    """The rules, by name. Threads may ask while others change them."""

    def __init__(self, rules: Mapping[str, str]) -> None:
        self._rules = dict(rules)
        self._wanted = pyengine.Subscriptions(self._rules)
        self._changing = threading.Lock()

    def wants(self, event: Mapping[str, Any]) -> list[str]:
        """The names of the rules that an event meets, in the order in which they were added."""
        return self._wanted.match(event)

    def wants_batch(self, events: Any) -> tuple[Any, list[str]]:
        """For a table of events: those that row r meets are ``names[offsets[r]:offsets[r + 1]]``."""
        return self._wanted.match_batch(events)

    def change(self, rules: Mapping[str, str]) -> int:
        """Make these the rules. Returns how many were added, replaced or removed; all or none are."""
        with self._changing:
            changed = {name: text for name, text in rules.items() if self._rules.get(name) != text}
            pyengine.Subscriptions(changed)  # raises for the first that cannot be read, with its name
            gone = self._rules.keys() - rules.keys()
            for name in gone:
                self._wanted.remove(name)
            for name, text in changed.items():
                if name in self._rules:
                    self._wanted.replace(name, text)
                else:
                    self._wanted.add(name, text)
            self._rules = dict(rules)
            return len(changed) + len(gone)

    def replace(self, name: str, text: str) -> None:
        """Change one rule; the events that are asked meanwhile meet the former or the new one."""
        with self._changing:
            self._wanted.replace(name, text)
            self._rules[name] = text


def made_up_rules(count: int, chance: random.Random) -> dict[str, str]:
    """Rules as people write them: equalities, ranges, lists, beginnings of a text."""
    texts = []
    for number in range(count):
        region, price = chance.choice(REGIONS), chance.randrange(1000)
        texts.append(
            (
                f"customer = 'c-{number}'",
                f"region = '{region}' AND price > {900 + price // 10}",
                f"region = '{region}' AND price BETWEEN {price} AND {price + 2}",
                f"kind = 'order' AND customer IN ('c-{number}', 'c-{number + 1}')",
                f"kind = '{chance.choice(KINDS)}' AND sku LIKE 'sku-{number}-%'",
            )[number % 5]
        )
    return {f"rule-{number}": text for number, text in enumerate(texts)}


def made_up_events(count: int, rules: int, chance: random.Random) -> list[dict[str, Any]]:
    """Events that these rules are about."""
    return [
        {
            "region": chance.choice(REGIONS),
            "kind": chance.choice(KINDS),
            "price": chance.randrange(1000),
            "customer": f"c-{chance.randrange(rules)}",
            "sku": f"sku-{chance.randrange(rules)}-blue",
        }
        for _ in range(count)
    ]


def measure(count: int) -> None:
    """Time a message through all rules, beside a loop over the selectors, while another thread changes rules."""
    chance = random.Random(7)
    rules, events = made_up_rules(count, chance), made_up_events(10_000, count, chance)
    began = time.perf_counter()
    router = Router(rules)
    print(f"{count:,} rules are ready after {time.perf_counter() - began:.1f} s")

    selectors = {name: pyengine.Selector(text) for name, text in rules.items()}
    began = time.thread_time()
    looped = [[name for name, selector in selectors.items() if selector.matches(event)] for event in events[:20]]
    loop = (time.thread_time() - began) / 20
    assert [router.wants(event) for event in events[:20]] == looped

    began = time.thread_time()
    matches = sum(len(router.wants(event)) for event in events)
    alone = (time.thread_time() - began) / len(events)
    print(f"one event: {1e6 * alone:.1f} us, {matches / len(events):.1f} rules want it")
    print(f"a loop over the selectors: {1e6 * loop:,.0f} us, {loop / alone:,.0f} times as long; the answers are equal")

    if importlib.util.find_spec("pyarrow") is None:
        print("a table of events in Arrow: not measured without pyarrow (pip install pyarrow)")
    else:
        import pyarrow

        table = pyarrow.table({name: [event[name] for event in events] for name in events[0]})
        began = time.thread_time()
        offsets, _ = router.wants_batch(table)
        batch = (time.thread_time() - began) / len(events)
        assert offsets[-1] == matches
        print(f"a table of {len(events):,} events in Arrow: {1e6 * batch:.1f} us each")

    changes: list[float] = []
    over = threading.Event()

    def change() -> None:
        for number in range(1000):
            began = time.thread_time()
            router.replace(f"rule-{chance.randrange(count)}", f"customer = 'late-{number}'")
            changes.append(time.thread_time() - began)
        over.set()

    changing = threading.Thread(target=change)
    changing.start()
    asked = 0
    while not over.is_set():
        router.wants(events[asked % len(events)])
        asked += 1
    changing.join()
    changes.sort()
    print(f"1,000 rules changed while {asked:,} events were asked: {1e6 * changes[500]:.0f} us each (median)")


def serve(path: Path, lines: Iterable[str]) -> None:
    """Answer each line of JSON; look at the file before each."""
    stamp = path.stat().st_mtime_ns
    router = Router(tomllib.loads(path.read_text("utf-8")))
    for line in lines:
        if path.stat().st_mtime_ns != stamp:
            stamp = path.stat().st_mtime_ns
            try:
                router.change(tomllib.loads(path.read_text("utf-8")))
            except (pyengine.PyengineError, tomllib.TOMLDecodeError) as error:
                print(f"{path} is not used: {error}", file=sys.stderr)
        print(*router.wants(json.loads(line)), flush=True)


def main() -> None:
    """Serve a file of rules, or measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, nargs="?", help='rules as TOML: name = "selector"')
    parser.add_argument("--rules", type=int, default=50_000, help="how many to make up where no file is given")
    given = parser.parse_args()
    if given.file is None:
        measure(given.rules)
    else:
        serve(given.file, sys.stdin)


if __name__ == "__main__":
    main()
