"""What diagnose finds in the real tools' tables is equal to the truth of each cluster, no more and no less."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from random import Random

import pytest

from pyengine.backlog.diagnosis.diagnose import diagnose
from pyengine.backlog.diagnosis.evidence import Evidence, read_text
from tests.backlog.tools import drawing_kafka, drawing_rocketmq, rendered
from tests.backlog.tools.clusters import Case, Group
from tests.backlog.tools.drawing_kafka import MEMBERS, SHARE
from tests.backlog.tools.dressing import DRESSES
from tests.backlog.tools.pasting import WAYS, Paste, pasted
from tests.backlog.tools.recorded import Printed, Recording, recordings

DRAWING = {"rocketmq": drawing_rocketmq, "kafka": drawing_kafka}
RELEASES = [(product, release) for product, drawing in DRAWING.items() for release in drawing.RELEASES]
CLUSTERS = 500
PAIRS = 60
DRESSED = 4


def like(recording: Recording, printed: Printed) -> str | None:
    """Our text for what a tool printed, in the order and of the moment that it happened to have; None: it has none."""
    cluster, release, text = recording.case.cluster, recording.case.cluster.release, printed.text
    group = cluster.groups[0]
    words = printed.command.split()
    match words[0], words[1]:
        case "mqadmin", "consumerProgress" if "-g" in words:
            shown = "-s" in words or drawing_rocketmq.shows_clients_always(release)
            return rendered.consumer_progress(
                group, printed.moment, release, brokers=len(cluster.brokers), with_clients=shown
            )
        case "mqadmin", "consumerProgress":
            names = [line.split()[0] for line in text.splitlines()[1:]]
            return rendered.progress_of_all(cluster, printed.moment, order=names)
        case "mqadmin", "brokerConsumeStats":
            broker = next(each for each in cluster.brokers if cluster.address_of(each) == words[3])
            return rendered.broker_consume_stats(cluster, printed.moment, broker)
        case "mqadmin", "statsAll":
            places = {each: text.find(f"\n{each} ") for each in cluster.topics}
            topics = sorted(places, key=lambda each: places[each] if places[each] > 0 else text.find(f"\n{each[:32]}"))
            return rendered.stats_all(cluster, printed.moment, order=topics)
        case "mqadmin", "consumerConnection" if group.moments[printed.moment].clients:
            clients = sorted(group.moments[printed.moment].clients, key=lambda each: text.index(f" {each.address} "))
            topics = [topic for topic, _ in group.moments[printed.moment].clients[-1].subscriptions]
            subscribed = text[text.index("Below is") :]
            return rendered.consumer_connection(
                group,
                printed.moment,
                release,
                order=[each.address for each in clients],
                topics=sorted(topics, key=subscribed.index),
            )
        case "mqadmin", "consumerStatus":
            files = re.findall(r"(\d{13})/(\S+)", text)
            spans = [int(each) for each in re.findall(r", (\d+)ms$", text, re.MULTILINE)]
            return rendered.consumer_status(
                group,
                release,
                moment=printed.moment,
                now=int(files[0][0]),
                order=[name for _, name in files],
                idle=spans,
            )
        case "kafka-consumer-groups.sh", _ if "--state" in words:
            return rendered.note(release) + rendered.state(group, printed.moment, release)
        case "kafka-consumer-groups.sh", _ if "--all-groups" in words:
            begins = {each.name: re.search(rf"^{re.escape(each.name)} ", text, re.MULTILINE) for each in cluster.groups}
            groups = sorted(cluster.groups, key=lambda each: found.start() if (found := begins[each.name]) else 0)
            return rendered.note(release) + "".join(_offsets(each, printed, release) for each in groups)
        case "kafka-consumer-groups.sh", _ if "--members" not in words:
            return rendered.note(release) + _offsets(group, printed, release)
    return None


def _offsets(group: Group, printed: Printed, release: str) -> str:
    """The table of a group, its rows in the order of the printed one."""
    begin = rf"^(?:{re.escape(group.name)},? +)?(\S+?),? +(\d+)(?:,|  ) *(?=[\du-])"
    topics = {each.topic for each in group.moments[0].queues}
    rows = [(topic, int(number)) for topic, number in re.findall(begin, printed.text, re.MULTILINE) if topic in topics]
    members = [each.id for each in group.moments[printed.moment].clients if each.id in printed.text]
    return rendered.offsets(group, printed.moment, release, order=rows, idle=sorted(members, key=printed.text.index))


def causes(files: Iterable[Paste]) -> frozenset[str]:
    evidence = Evidence()
    for file in files:
        # As opening a file does.
        evidence.add(read_text(file.text.replace("\r\n", "\n"), file.name, file.modified))
    return frozenset(finding.code for finding in diagnose(evidence))


def difference(case: Case, way: str, files: Iterable[Paste], truth: frozenset[str]) -> Iterator[str]:
    found = causes(files)
    if found != truth:
        cluster = case.cluster
        yield (f"{cluster.product} {cluster.release} {cluster.number} {case.kind} ({case.shown}; {way}): "
               f"{sorted(found)} for {sorted(truth)}")  # fmt: skip


def drawn(number: int) -> Case:
    """Products, releases and rules in turn; every other cluster is healthy."""
    product = list(DRAWING)[number // 2 % len(DRAWING)]
    releases = list(DRAWING[product].RELEASES)
    turn = number // (2 * len(DRAWING))
    for extra in range(100):
        place = 2 * (turn + CLUSTERS * extra) + number % 2
        case: Case = DRAWING[product].case(place, releases[turn % len(releases)])
        if case.shown != MEMBERS:  # of which we have no renderer
            return case
    raise AssertionError(f"{product} draws nothing but {MEMBERS}")


@pytest.mark.parametrize(("product", "release"), RELEASES)
def test_our_text_is_the_tools_byte_for_byte(product: str, release: str) -> None:
    compared = set()
    for recording in recordings(product, release):
        for printed in recording.printed:
            ours = like(recording, printed)
            if ours is not None:
                assert ours == printed.text, printed.command
                compared.add(recording.case.cluster.number)
    assert len(compared) == 20


@pytest.mark.parametrize(("product", "release"), RELEASES)
def test_causes_of_what_the_tools_printed(product: str, release: str) -> None:
    wrong: list[str] = []
    for recording in recordings(product, release):
        case = recording.case
        if case.shown != SHARE or case.cluster.number % 2 == 0:  # of the others nobody can tell what is wrong
            texts = [(each.moment, f"$ {each.command}\n{each.text}") for each in recording.printed if each.shown]
            way = WAYS[(case.cluster.number + RELEASES.index((product, release))) % len(WAYS)]
            wrong += difference(case, way, *pasted(case, texts, way, Random(case.cluster.number)))
    assert "\n".join(wrong) == ""


def test_causes_of_500_clusters() -> None:
    wrong: list[str] = []
    kinds, healthy = set(), 0
    for number in range(CLUSTERS):
        case = drawn(number)
        kinds.add((case.cluster.product, case.kind))
        healthy += number % 2 == 0
        way = WAYS[number // (2 * len(DRAWING)) % len(WAYS)]
        wrong += difference(case, way, *pasted(case, rendered.texts(case), way, Random(number)))
    assert "\n".join(wrong) == ""
    assert healthy == CLUSTERS // 2
    rules = {
        (product, rule.__name__)
        for product, drawing in DRAWING.items()
        for shown in drawing.RULES.values()
        for half in shown
        for rule in half
    }
    assert rules <= kinds


def test_causes_of_two_clusters_in_one_heap() -> None:
    wrong: list[str] = []
    for number in range(PAIRS):
        random = Random(number)
        one, other = drawn(random.randrange(CLUSTERS)), drawn(random.randrange(CLUSTERS))
        while _names(one) & _names(other):
            other = drawn(random.randrange(CLUSTERS))
        files, truth = [], frozenset[str]()
        for place, case in enumerate((one, other)):
            more, seen = pasted(case, rendered.texts(case), WAYS[0], random)
            files += [Paste(f"{place}{each.name}", each.text, each.modified) for each in more]
            truth |= seen
        random.shuffle(files)
        wrong += [f"with {one.kind}: {each}" for each in difference(other, "two clusters", files, truth)]
    assert "\n".join(wrong) == ""


TABLES = (drawing_rocketmq.PROGRESS, drawing_rocketmq.WITHOUT_CLIENTS, drawing_kafka.OFFSETS)


@pytest.mark.parametrize("dress", DRESSES)
def test_causes_whatever_was_done_to_the_text(dress: str) -> None:
    random = Random(dress)
    wrong: list[str] = []
    for _ in range(DRESSED):
        case = drawn(random.randrange(CLUSTERS))
        while dress in ("no titles", "sort") and (case.shown not in TABLES or _of_old_kafka(case)):
            case = drawn(random.randrange(CLUSTERS))
        files, truth = pasted(case, rendered.texts(case), WAYS[0], random)
        dressed = [Paste(each.name, _opened(DRESSES[dress](each.text, each.modified)), each.modified) for each in files]
        wrong += difference(case, dress, dressed, truth)
    assert "\n".join(wrong) == ""


def _of_old_kafka(case: Case) -> bool:
    """Its rows are no longer told without titles, and those that say "-" throughout."""
    return case.cluster.product == "kafka" and case.cluster.release.startswith("0.")


def _opened(text: str) -> str:
    """As opening a file does."""
    return re.sub("\x1b\\[[0-9;]*[A-Za-z]", "", text)


def _names(case: Case) -> set[str]:
    """Groups and topics: what two clusters must not have in common to be told apart."""
    return {each.name for each in case.cluster.groups} | set(case.cluster.topics)
