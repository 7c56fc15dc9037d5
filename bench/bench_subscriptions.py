"""subscriptions: one message against many selectors; the workloads of the published index papers, scaled."""

from __future__ import annotations

import functools
import itertools
import random
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

import pyengine
from bench import jvm, native
from bench.contest import Contest, Side, speed_test
from bench.rule_shapes import SHAPES, bounds, equalities

ACTIVEMQ = "ActiveMQ's loop, warm JVM"
LOOP = "loop over our selectors"
MESSAGES = 200
CARDINALITIES = (5, 20, 100, 1_000, 10_000, 3)
BY_VALUE, IN_NUMPY = "Python dict by value", "numpy, all bounds at once"
ASSERTED = 10  # messages of which a loop over the rules is asked what they match
SHAPED: tuple[tuple[str, int, float | None, str | None], ...] = (  # shape, rules, seconds a message at most, rival
    ("IN of 8", 20_000, 3e-6, BY_VALUE),
    ("IN of 50", 20_000, 10e-6, BY_VALUE),
    ("OR of 8", 20_000, 10e-6, BY_VALUE),
    ("OR of 9", 20_000, 10e-6, BY_VALUE),
    ("OR of 200", 2_000, 10e-6, BY_VALUE),
    ("trees", 1_000, None, None),
    ("trees", 10_000, None, None),
    ("trees", 100_000, None, None),
    ("routing rules", 100_000, 60e-6, None),
    ("LIKE and IN", 100_000, 0.5e-3, None),
    ("narrow ranges", 50_000, 4e-6, IN_NUMPY),
)
LIVE, NEWCOMERS = 100_000, 2_000
JVM_MOST = {"W1": 100_000, "W2": 10_000, "W3": 10_000}  # selectors the JVM is given; its loop takes no less beyond
DICTS = "dicts, one by one"
KNOWN = "answers known already, only put in order"
ORDERED = "pyengine, in the order of addition"
# performance.md: from Python so many times the broker's loop; the core alone in microseconds, and what these are of the
# broker's loop on the machine where both were measured.
TIMES = {"W1": {100: 10, 1_000: 100, 10_000: 400, 100_000: 600}}
CORE = {
    "W1": {1_000: 0.2, 10_000: 1.2, 100_000: 7, 1_000_000: 40},
    "W2": {10_000: 1, 100_000: 6, 1_000_000: 40},
    "W3": {10_000: 3, 100_000: 15, 1_000_000: 100},
}
CORE_TIMES = {"W1": {1_000: 465, 10_000: 758, 100_000: 1_300}}
MANY = {"W1": (100_000, 1_000_000)}  # of so many hundreds match a message, and a good part of the time is their order


def skewed(draw: random.Random, count: int) -> int:
    """A value of a category: the first are the commonest."""
    return min(int(count * draw.random() ** 2), count - 1)


def interval(draw: random.Random, name: str, width: float) -> str:
    low = draw.uniform(0, 1 - width)
    return f"{name} BETWEEN {low * 1000:.3f} AND {(low + width) * 1000:.3f}"


def w1(draw: random.Random) -> str:
    """3 to 5 predicates on 12 attributes: at least one equality, half of them ranges of one or two sides."""
    parts = []
    count = draw.randint(3, 5)
    equalities = max(1, count // 2)
    for index in draw.sample(range(6), equalities):
        parts.append(f"c{index} = 'v{skewed(draw, CARDINALITIES[index])}'")
    for index in draw.sample(range(6), count - equalities):
        kind = draw.random()
        if kind < 0.5:
            parts.append(interval(draw, f"n{index}", draw.uniform(0.02, 0.4)))
        elif kind < 0.75:
            parts.append(f"n{index} > {draw.uniform(0, 1000):.3f}")
        else:
            parts.append(f"n{index} <= {draw.uniform(0, 1000):.3f}")
    draw.shuffle(parts)
    return " AND ".join(parts)


def w1_message(draw: random.Random) -> dict[str, object]:
    message: dict[str, object] = {f"c{i}": f"v{skewed(draw, count)}" for i, count in enumerate(CARDINALITIES)}
    return message | {f"n{i}": round(draw.uniform(0, 1000), 3) for i in range(6)}


def w2(draw: random.Random) -> str:
    """10 ranges of width 0.3 on 20 uniform attributes."""
    return " AND ".join(interval(draw, f"a{index}", 0.3) for index in draw.sample(range(20), 10))


def w2_message(draw: random.Random) -> dict[str, object]:
    return {f"a{i}": round(draw.uniform(0, 1000), 3) for i in range(20)}


def w3(draw: random.Random) -> str:
    """5 predicates on 100 sparse attributes of 100 values, one in five an equality."""
    parts = []
    for index in draw.sample(range(100), 5):
        kind, value = draw.random(), draw.randrange(100)
        parts.append(f"d{index} {'=' if kind < 0.2 else '>=' if kind < 0.6 else '<='} {value}")
    return " AND ".join(parts)


def w3_message(draw: random.Random) -> dict[str, object]:
    return {f"d{index}": draw.randrange(100) for index in draw.sample(range(100), 30)}


WORKLOADS = {"W1": (w1, w1_message), "W2": (w2, w2_message), "W3": (w3, w3_message)}


@functools.cache
def texts(workload: str, count: int) -> list[str]:
    draw = random.Random(20225)
    return [WORKLOADS[workload][0](draw) for _ in range(count)]


@functools.cache
def messages(workload: str) -> list[dict[str, object]]:
    draw = random.Random(20226)
    return [WORKLOADS[workload][1](draw) for _ in range(MESSAGES)]


@functools.lru_cache(maxsize=2)
def index(workload: str, count: int) -> pyengine.Subscriptions:
    return pyengine.Subscriptions(enumerate(texts(workload, count)))


def ours(workload: str, count: int) -> Side:
    subscriptions, given = index(workload, count), messages(workload)

    def call() -> None:
        for message in given:
            subscriptions.match(message)

    return Side(call=call, answer=lambda: [subscriptions.match(message) for message in given], units=len(given))


def loop(workload: str, count: int) -> Side:
    selectors = [pyengine.Selector(text) for text in texts(workload, count)]
    given = messages(workload)
    few = itertools.cycle(given)
    return Side(
        call=lambda: [number for number, selector in enumerate(selectors) if selector.matches(next(few))],
        answer=lambda: [
            [number for number, selector in enumerate(selectors) if selector.matches(message)] for message in given
        ],
        units=1,
    )


def batch_of(workload: str, count: int) -> list[dict[str, object]]:
    """The messages so many times over that to come by the columns takes no part of the time, and that an answer fits
    into 32 MB: larger memory is cleared anew by the system each time."""
    return messages(workload) * (20 if count < LIVE else 5 if count == LIVE else 1)


def in_columns(workload: str, count: int, ordered: bool = True) -> Side:
    """The messages as columns: no dict is read and no list of keys is made."""
    subscriptions, given = index(workload, count), batch_of(workload, count)
    names = sorted({name for message in given for name in message})
    batch = pa.table({name: [message.get(name) for message in given] for name in names})

    def answer() -> list[list[int]]:
        offsets, places = subscriptions.match_places(batch, ordered=ordered)
        found = [part.tolist() for part in np.split(places, offsets[1 : MESSAGES + 1])[:MESSAGES]]
        return found if ordered else [sorted(part) for part in found]

    return Side(call=lambda: subscriptions.match_places(batch, ordered=ordered), answer=answer, units=len(given))


def known(workload: str, count: int) -> Side:
    """The floor of ``in_columns``: nothing is compared, each place of an answer is only brought into its order."""
    given = batch_of(workload, count)
    offsets, places = index(workload, count).match_places(given)
    shuffle, in_order, into = np.random.default_rng(20228), native.loops().in_order, np.empty_like(places)
    mixed = np.concatenate([shuffle.permutation(part) for part in np.split(places, offsets[1:-1])])

    def answer() -> list[list[int]]:
        in_order(offsets, mixed, count, into)
        return [part.tolist() for part in np.split(into, offsets[1 : MESSAGES + 1])[:MESSAGES]]

    return Side(call=lambda: in_order(offsets, mixed, count, into), answer=answer, units=len(given))


def activemq(workload: str, count: int) -> Side:
    return jvm.loop_side(texts(workload, count), messages(workload))


def changed(removed: bool) -> Side:
    """Newcomers added to many that are live, and removed again; the time of the one or of the other."""
    subscriptions = pyengine.Subscriptions(enumerate(texts("W1", LIVE)))
    draw = random.Random(20227)
    newcomers = {-number: pyengine.Selector(w1(draw)) for number in range(1, NEWCOMERS + 1)}

    def clock() -> float:
        start = time.process_time()
        for key, selector in newcomers.items():
            subscriptions.add(key, selector)
        middle = time.process_time()
        for key in newcomers:
            subscriptions.remove(key)
        end = time.process_time()
        return (end - middle if removed else middle - start) / NEWCOMERS

    return Side(call=clock, answer=lambda: len(subscriptions), units=NEWCOMERS, clock=clock)


def in_columns_against(workload: str, count: int, ordered: bool = True) -> Contest:
    sides = {"pyengine": functools.partial(in_columns, workload, count, ordered)}
    if ordered:
        sides[DICTS] = functools.partial(ours, workload, count)
        sides[KNOWN] = functools.partial(known, workload, count)
    else:
        sides[ORDERED] = functools.partial(in_columns, workload, count)
    goals = {}
    order = "" if ordered else " in any order"
    if count in CORE_TIMES.get(workload, {}):
        sides[ACTIVEMQ] = functools.partial(activemq, workload, count)
        goals[ACTIVEMQ] = CORE_TIMES[workload][count]
    return Contest(
        question=f"{workload}: a row of columns against {count:,} subscriptions, places of keys{order}",
        unit="message",
        sides=sides,
        goals=goals,
        at_most=CORE[workload][count] * 1e-6,
    )


@functools.lru_cache(maxsize=1)
def shaped(shape: str, count: int) -> tuple[list[str], list[dict[str, object]], pyengine.Subscriptions]:
    rule, message = SHAPES[shape]
    draw = random.Random(20229)
    rules = [rule(draw) for _ in range(count)]
    return rules, [message(draw) for _ in range(MESSAGES)], pyengine.Subscriptions(enumerate(rules))


def shape_matched(shape: str, count: int) -> Side:
    _, given, subscriptions = shaped(shape, count)
    return Side(
        call=lambda: [subscriptions.match(message) for message in given],
        answer=lambda: [subscriptions.match(message) for message in given[:ASSERTED]],
        units=len(given),
    )


def shape_loop(shape: str, count: int) -> Side:
    rules, given, _ = shaped(shape, count)
    selectors = [pyengine.Selector(rule) for rule in rules]
    few = itertools.cycle(given)

    def matched(message: dict[str, object]) -> list[int]:
        return [number for number, selector in enumerate(selectors) if selector.matches(message)]

    return Side(
        call=lambda: matched(next(few)), answer=lambda: [matched(message) for message in given[:ASSERTED]], units=1
    )


def shape_dict(shape: str, count: int) -> Side:
    """What one writes by hand: the rules under each value that they name."""
    rules, given, _ = shaped(shape, count)
    under: dict[tuple[str, object], list[int]] = {}
    for number, rule in enumerate(rules):
        for pair in dict.fromkeys(equalities(rule)):
            under.setdefault(pair, []).append(number)

    def matched(message: dict[str, object]) -> list[int]:
        found = {number for pair in message.items() for number in under.get(pair, ())}
        return sorted(found)

    return Side(
        call=lambda: [matched(message) for message in given],
        answer=lambda: [matched(message) for message in given[:ASSERTED]],
        units=len(given),
    )


def shape_numpy(shape: str, count: int) -> Side:
    rules, given, _ = shaped(shape, count)
    low, high = np.array([bounds(rule) for rule in rules]).T

    def matched(message: dict[str, object]) -> list[int]:
        price = message["price"]
        return np.flatnonzero((low <= price) & (price <= high)).tolist()

    return Side(
        call=lambda: [matched(message) for message in given],
        answer=lambda: [matched(message) for message in given[:ASSERTED]],
        units=len(given),
    )


def shape_contests() -> Iterator[Contest]:
    """Rules that are listed by the values they name, each through ``match`` of a dict."""
    for shape, count, most, rival in SHAPED:
        sides = {
            "pyengine": functools.partial(shape_matched, shape, count),
            LOOP: functools.partial(shape_loop, shape, count),
        }
        if rival is not None:
            sides[rival] = functools.partial({BY_VALUE: shape_dict, IN_NUMPY: shape_numpy}[rival], shape, count)
        yield Contest(
            question=f"{shape}: a dict against {count:,} rules, list of keys",
            unit="message",
            sides=sides,
            goals={LOOP: 10},
            at_most=most,
        )


def contests() -> Iterator[Contest]:
    yield from shape_contests()
    for workload, count in itertools.product(WORKLOADS, (100, 1_000, 10_000, 100_000, 1_000_000)):
        if count in CORE[workload]:
            yield in_columns_against(workload, count)
        if count in MANY.get(workload, ()):
            yield in_columns_against(workload, count, ordered=False)
        if count > LIVE:  # gigabytes, which whatever is measured next need not lie beside
            index.cache_clear()
            texts.cache_clear()
            continue
        sides = {"pyengine": functools.partial(ours, workload, count), LOOP: functools.partial(loop, workload, count)}
        if count <= JVM_MOST[workload]:
            sides[ACTIVEMQ] = functools.partial(activemq, workload, count)
        yield Contest(
            question=f"{workload}: a dict against {count:,} subscriptions, list of keys",
            unit="message",
            sides=sides,
            goals={ACTIVEMQ: TIMES[workload][count]} if workload in TIMES else {},
        )
    for verb, most in (("added to", 5e-6), ("removed from", 1e-6)):
        yield Contest(
            question=f"W1: a subscription {verb} {LIVE:,} live ones, its selector parsed",
            unit="subscription",
            sides={"pyengine": functools.partial(changed, verb == "removed from")},
            goals={},
            at_most=most,
        )


test_speed = speed_test(contests)
