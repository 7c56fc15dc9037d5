"""Spark's streaming progress: the JSON of StreamingQueryProgress, one document, a list, or one a line (logs too)."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from pyengine.backlog.diagnosis.evidence.model import Evidence, Remark, StreamProgress
from pyengine.backlog.diagnosis.evidence.numbers import number_or_none, object_of, whole, whole_or_none
from pyengine.backlog.findings import Said, say
from pyengine.errors import json_problem

MARKS = ('"batchId"', '"numInputRows"')


def recognises(text: str) -> bool:
    """True if it holds a progress report."""
    return all(mark in text for mark in MARKS)


def read(text: str, file: str, modified: int | None) -> Evidence:
    """Every report in the text, wherever a ``{`` starts one."""
    found = Evidence()
    decoder = json.JSONDecoder()
    position = text.find("{")
    while position >= 0:
        try:
            document, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            found.remarks.append(_remark(file, text, position, say("not JSON: {error}", error=json_problem(error))))
            end = text.find("\n", position)
            if end < 0:
                break
        else:
            if all(mark.strip('"') in document for mark in MARKS):
                try:
                    found.streams.append(_progress(document, file, modified))
                except ValueError as error:
                    why = say("not a progress report: {error}", error=str(error))
                    found.remarks.append(_remark(file, text, position, why))
        position = text.find("{", end)
    return found


def _remark(file: str, text: str, position: int, why: Said) -> Remark:
    return Remark(file, text.count("\n", 0, position) + 1, text[position : position + 80], why)


def _progress(document: dict[str, Any], file: str, modified: int | None) -> StreamProgress:
    when = modified
    if isinstance(stamp := document.get("timestamp"), str):
        when = int(datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp() * 1000)
    return StreamProgress(
        file,
        when,
        str(document.get("name") or document.get("id") or ""),
        whole("batchId", document["batchId"]),
        whole("numInputRows", document["numInputRows"]),
        number_or_none("inputRowsPerSecond", document.get("inputRowsPerSecond")),
        number_or_none("processedRowsPerSecond", document.get("processedRowsPerSecond")),
        whole_or_none(
            "triggerExecution", object_of("durationMs", document.get("durationMs") or {}).get("triggerExecution")
        ),
        _behind(document.get("sources")),
    )


def _behind(sources: object) -> int | None:
    """Offsets behind the newest: Spark's own metric if it is there, else latestOffset - endOffset."""
    total, known = 0, False
    for each in sources if isinstance(sources, list) else ():
        source = object_of("sources", each)
        reported = object_of("metrics", source.get("metrics") or {}).get("maxOffsetsBehindLatest")
        if reported is not None:
            total, known = total + whole("maxOffsetsBehindLatest", str(reported).removesuffix(".0")), True
            continue
        newest, done = _partitions(source.get("latestOffset")), _partitions(source.get("endOffset"))
        if newest and done:
            total, known = total + sum(newest[key] - done.get(key, 0) for key in newest), True
    return total if known else None


def _partitions(offset: object) -> dict[tuple[str, str], int]:
    if not isinstance(offset, dict):
        return {}
    return {
        (topic, partition): value
        for topic, partitions in offset.items()
        if isinstance(partitions, dict)
        for partition, value in partitions.items()
        if isinstance(value, int)
    }
