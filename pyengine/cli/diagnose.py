"""``pyengine diagnose``: files in, findings out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from rich.console import Console
from rich.progress import track

from pyengine.backlog.diagnosis.diagnose import diagnose, judged_healthy, names_cut, seen_too_seldom, to_bring
from pyengine.backlog.diagnosis.evidence import Evidence, Source, read_what_can_be
from pyengine.backlog.diagnosis.rules.series import clock
from pyengine.backlog.findings import Finding, Language, Said, say
from pyengine.cli.findings import show_finding
from pyengine.cli.outlet import tell
from pyengine.cli.tables import show_line
from pyengine.errors import InvalidSourceError
from pyengine.visible import one_line


class Answer(NamedTuple):
    """What was read, what follows from it, and which files could not be read."""

    evidence: Evidence
    found: list[Finding]
    refused: list[InvalidSourceError]

    @property
    def says_nothing(self) -> bool:
        """No file could be read: there is no answer to print, and none to write a page of."""
        return bool(self.refused) and not self.evidence.count and not self.evidence.sources

    @property
    def exit_code(self) -> int:
        """2 if a file, or all that is in the files, was not understood; 1 for warnings and errors; 0 if something was
        judged and found healthy, else 2: what was read does not tell yet."""
        if self.refused or (self.evidence.remarks and not self.evidence.count):
            return 2
        if any(finding.severity for finding in self.found):
            return 1
        return 0 if judged_healthy(self.evidence) else 2


def ask(
    files: Sequence[str],
    encoding: str = "",
    properties: Mapping[str, str] | None = None,
    live: Evidence | None = None,
) -> Answer:
    """What the files say, and what is there already, what follows from it, and which of them cannot be read."""
    evidence, refused = read_what_can_be(files, encoding, properties)
    if live is not None:
        evidence.add(live)
    return Answer(evidence, diagnose(evidence), refused)


def look(namesrv: str, group: str, every: int, language: Language = "en") -> Evidence:
    """Two looks at a group of a live cluster, ``every`` ms apart. Raises what ClusterAdmin raises."""
    from pyengine.backlog.diagnosis.evidence import live
    from pyengine.rocketmq.remoting.cluster_admin import ClusterAdmin

    found = Evidence()
    console = Console(stderr=True)
    words = say("asking the cluster twice").in_language(language)
    with ClusterAdmin(namesrv) as admin:
        for number in track(range(2), words, console=console, transient=True, disable=not console.is_terminal):
            if number:
                time.sleep(every / 1000)
            found.add(live.of_cluster(admin, group, f"{namesrv}, look {number + 1}"))
    return found


def as_dict(
    evidence: Evidence, found: Sequence[Finding], refused: Sequence[InvalidSourceError] = ()
) -> dict[str, object]:
    """The JSON document."""
    return {
        "states": evidence.count,
        "findings": [finding.as_dict() for finding in found],
        "seen_too_seldom": [str(said) for said in seen_too_seldom(evidence)],
        "to_bring": [str(said) for said in to_bring(evidence)],
        "names_cut": [str(said) for said in names_cut(evidence)],
        "judged_healthy": judged_healthy(evidence) and not any(finding.severity for finding in found),
        "read": [
            {"file": each.file, "what": str(each.what), "times": [clock(time) for time in each.times]}
            | ({"product": each.product} if each.product else {})
            for each in sources(evidence)
        ],
        "not_understood": [
            {"file": remark.file, "line": remark.line, "text": remark.text, "why": remark.why}
            for remark in evidence.remarks
        ],
        "not_read": [{"file": error.source, "why": error.problem} for error in refused],
    }


def sources(evidence: Evidence) -> list[Source]:
    """What was read, once a file and kind, with all the moments that it speaks of."""
    found: dict[tuple[str, str], Source] = {}
    for each in evidence.sources:
        before = found.get((each.file, each.what))
        found[each.file, each.what] = each if before is None else replace(
            before,
            times=tuple(sorted({*before.times, *each.times})),
            product=", ".join(dict.fromkeys(filter(None, (before.product, each.product)))),
        )  # fmt: skip
    return list(found.values())


def hints(evidence: Evidence) -> list[Said]:
    """What should be looked at again, what to bring, and what a tool hid."""
    return [*seen_too_seldom(evidence), *to_bring(evidence), *names_cut(evidence)]


def read_from(evidence: Evidence) -> list[Said]:
    """A line for each file and kind that was read."""
    return [what_was_read(each) for each in sources(evidence)]


def what_was_read(source: Source) -> Said:
    """A line of the list of what was read."""
    times = [clock(time) for time in source.times]
    shown = " ... ".join((times[0], times[-1])) if len(times) > 1 else (times[0] if times else "")
    if source.product and shown:
        return say("read: {file}: {what}, {time}, {product}", file=source.file, what=source.what, time=shown,
                   product=source.product)  # fmt: skip
    if shown:
        return say("read: {file}: {what}, {time}", file=source.file, what=source.what, time=shown)
    if source.product:
        return say("read: {file}: {what}, {product}", file=source.file, what=source.what, product=source.product)
    return say("read: {file}: {what}", file=source.file, what=source.what)


def show(evidence: Evidence, found: Sequence[Finding], console: Console, language: Language = "en") -> None:
    """One paragraph a finding, the worst first; then what was not understood."""
    for finding in found:
        show_finding(finding, console, language)
    if not found:
        healthy = judged_healthy(evidence)
        nothing = (
            say("nothing found in {count:,state that was|states that were} read", count=evidence.count)
            if healthy
            else say("no answer yet: what was read does not tell whether anything is wrong")
        )
        show_line(nothing.in_language(language), console)
    for said in (*hints(evidence), *read_from(evidence)):
        show_line(one_line(said.in_language(language)), console)
    for remark in evidence.remarks[:20]:
        place = f"{remark.file}:{remark.line}" if remark.line else remark.file
        text = one_line(remark.text[:120])
        said = say("not understood: {place}: {text}: {why}", place=place, text=text, why=remark.why)
        tell(said.in_language(language))
    if len(evidence.remarks) > 20:
        said = say("not understood: {more:more place|more places}", more=len(evidence.remarks) - 20)
        tell(said.in_language(language))
