"""One script, both brokers: what differs, whether the real one is sure of it, and the shortest script that differs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.conformance.activemq_scenarios import Replay, play
from tests.differential.over_wire import WireReplay
from tests.differential.real import ANSWERS, ORDER, RealBroker

Script = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """case: the script with the real broker's answers. ours: what pyengine shows where it differs."""

    case: Script
    ours: list[Any]

    def __str__(self) -> str:
        lines = [f"policy {self.case['policy']}, {self.case.get('dest', 'queue')}"]
        lines += [f"  {each}" for each in self.case.get("virtual", ())]
        lines += [f"  {number}: {step}" for number, step in enumerate(self.case["steps"])]
        lines += [f"  final: {self.case['final']}", "pyengine:", *(f"  {each}" for each in self.ours)]
        return "\n".join(lines)


def questions(case: Script) -> Script:
    """A case without its answers."""
    steps = [{key: value for key, value in step.items() if key not in (*ANSWERS, ORDER)} for step in case["steps"]]
    return {
        key: case[key] for key in ("dest", "destName", "quiet", "policy", "entries", "store", "virtual") if key in case
    } | {"steps": steps}


def differences(case: Script) -> list[Any]:
    """What pyengine shows otherwise than the real broker: (number of the step, what), and the end; in this process, or
    if that is the same, over OpenWire."""
    found = differences_of(case, Replay)
    if found or _sets_prefetch(case):
        return found
    return differences_of(case, WireReplay)


def _sets_prefetch(case: Script) -> bool:
    """Whether a policy has a prefetch: the script's client, in the broker's process, goes by it, one of the network
    does not, as with the real broker."""
    policies = (case["policy"], *case.get("entries", ()))
    return any(
        key in policy for policy in policies for key in ("queuePrefetch", "topicPrefetch", "durableTopicPrefetch")
    )


def differences_of(case: Script, kind: type[Replay]) -> list[Any]:
    """The same of clients that reach the broker in one way."""
    try:
        shown, final = play({"release": "newest"} | case, kind)
    except Exception as error:  # a defect of ours is a difference too, and is shrunk like one
        return [f"{type(error).__name__}: {error}"]
    found: list[Any] = [
        (number, ours)
        for number, (step, ours) in enumerate(zip(case["steps"], map(_comparable(case), shown), strict=True))
        if {key: step[key] for key in ANSWERS if key in step} != ours
    ]
    keys = final.keys() | case["final"].keys()
    if str(case["policy"].get("messageGroupMapFactoryType")).startswith("bucket"):
        keys -= {"groupOwners"}  # the real one still shows groups of consumers that left; the rule has forgotten them
    end = {key: final.get(key) for key in keys if final.get(key) != case["final"].get(key)}
    return [*found, *([end] if end else [])]


def _comparable(case: Script) -> Callable[[Script], Script]:
    """Leave out what is not compared: slow marks of queue consumers, which the recorded answers have no word of."""

    def strip(step: Script) -> Script:
        kept = [entry for entry in step.get("other", ()) if "slow" not in entry or case.get("dest") == "topic"]
        rest = {key: value for key, value in step.items() if key != "other"}
        if "destName" in case and "dispatched" in rest:
            # Each queue has a thread of its own: what one consumer gets has an order, what several get has none.
            rest["dispatched"] = sorted(rest["dispatched"], key=lambda entry: entry["to"])
        # A listener of ours is called once the change of the broker is over, after what the broker tells; that a
        # message has expired is told before or after where it went. Listeners have a thread for each session.
        # Those who are sent away together go by their hash codes.
        kept.sort(
            key=lambda entry: ("onMessage" in entry, "expired" in entry, entry.get("by", ""), entry.get("removed", ""))
        )
        return rest | {"other": kept} if kept else rest

    return strip


def ask(real: RealBroker, script: Script) -> Script:
    """A case: the script with the real broker's answers."""
    case = real.play(script)
    return case | {"steps": [*map(_comparable(case), case["steps"])]}


def listed(found: Difference) -> bool:
    """True if one of six causes that docs/differences.md has explains the difference. The real broker's answers show
    three: a browser took an expired message off that was paged in before; a listener was called again inside its
    session's rollback; a consumer of several queues got one of the copies of a message. The others: the two begin to
    differ where a consumer of several queues gets messages of two, in a queue that was made when consumers of several
    queues were there, or where ours hands a consumer that is closing one message more.
    """
    if found.ours and (
        _copies(found.case, found.ours[0])
        or _several_queues(found.case, found.ours[0])
        or _served_while_leaving(found.case, found.ours[0])
    ):
        return True
    paged_in: set[int] = set()
    sent: set[int] = set()
    paging = False
    for step in found.case["steps"]:
        told = step.get("other", ())
        paging |= step["op"] == "consumer"
        if step["op"] == "send":
            sent.add(step["n"])
        if paging:
            paged_in |= sent
        if step["op"] == "browse" and any(entry.get("expired") in paged_in for entry in told):
            return True
        called = sum("onMessage" in entry and entry.get("by") == step.get("name") for entry in told)
        if step["op"] == "rollback" and called:
            return True
    return False


def _wide(steps: list[Script]) -> set[str]:
    """The names of the consumers of several queues."""
    return {step["name"] for step in steps if step["op"] == "consumer" and set("*>,") & set(step.get("dest", ""))}


def _copies(case: Script, first: Any) -> bool:
    """True if a consumer of several queues had been given a message that went to several: from which, nobody sees."""
    steps = case["steps"][: first[0] + 1] if isinstance(first, tuple) else case["steps"]
    wide = _wide(steps)
    copied = {step["n"] for step in steps if step["op"] == "send" and "," in step.get("to", "")}
    return any(entry["to"] in wide and entry["n"] in copied for step in steps for entry in step.get("dispatched", ()))


def _served_while_leaving(case: Script, first: Any) -> bool:
    if not isinstance(first, tuple):
        return False
    number, ours = first
    step = case["steps"][number]
    leaving = {step.get("name"), *step.get("order", ())}
    more = [entry for entry in ours.get("dispatched", ()) if entry not in step.get("dispatched", ())]
    return step["op"].startswith("close") and bool(more) and all(entry["to"] in leaving for entry in more)


def _several_queues(case: Script, first: Any) -> bool:
    if not isinstance(first, tuple):
        return False
    number, ours = first
    steps = case["steps"]
    wide = _wide(steps)
    sent_to = {step["n"]: step["to"] for step in steps if step["op"] == "send" and "to" in step}
    if _made_later(steps[: number + 1], wide, steps[number].get("to")):
        return True
    given: dict[str, set[str]] = {}
    for entry in (*steps[number].get("dispatched", ()), *ours.get("dispatched", ())):
        given.setdefault(entry["to"], set()).add(sent_to.get(entry["n"], ""))
    return any(len(given.get(name, ())) > 1 for name in wide)


def _made_later(steps: list[Script], wide: set[str], queue: str | None) -> bool:
    """True if two or more of the ``wide`` consumers were there when the first message made the queue."""
    there: set[str] = set()
    for step in steps:
        if queue is None or step.get("dest") == queue:
            return False
        if step.get("to") == queue:
            return len(there) > 1
        if step["op"] == "consumer" and step["name"] in wide:
            there.add(step["name"])
    return False


def compare(real: RealBroker, script: Script) -> Difference | None:
    """None if both agree at least once in three times: the real broker may answer differently from run to run. Where
    queues share a consumer it is chance which of them comes first, so that it is asked more often."""
    for _ in range(20 if _wide(script["steps"]) else 3):
        case = ask(real, script)
        ours = differences(case)
        if not ours:
            return None
    return Difference(case, ours)


def shrunk(real: RealBroker, found: Difference) -> Difference:
    """Leave out steps, keys and policy keys as long as the two still differ."""
    changed = True
    while changed:
        changed = False
        for smaller in _smaller(questions(found.case)):
            better = compare(real, smaller)
            if better is not None and not listed(better):
                found, changed = better, True
                break
    return found


def _smaller(script: Script) -> list[Script]:
    steps = script["steps"]
    found = []
    for length in (len(steps) // 2, len(steps) // 4, 3, 2, 1):
        if 0 < length < len(steps):
            found += [
                script | {"steps": kept}
                for start in range(len(steps) - length, -1, -1)
                if _sound(kept := steps[:start] + steps[start + length :])
            ]
    found += [script | {"policy": {k: v for k, v in script["policy"].items() if k != key}}
              for key in script["policy"] if key != "maxPageSize"]  # fmt: skip
    for number, step in enumerate(steps):
        for key in step.keys() - {
            "op",
            "name",
            "n",
            "conn",
            "ack",
            "timeout",
            "redelivery",
            "persistent",
            "clientId",
            "durable",
            "ms",
            "sender",
            "session",
        }:
            smaller = {name: value for name, value in step.items() if name != key}
            found.append(script | {"steps": [*steps[:number], smaller, *steps[number + 1 :]]})
    return found


def _sound(steps: list[Script]) -> bool:
    """True if every step is about a consumer or connection that is there."""
    alive: dict[str, str] = {}
    sessions: dict[str, str] = {}
    got: set[tuple[str, int]] = set()
    durable: dict[str, tuple[str, str]] = {}
    stopped: set[str] = set()
    pulling = {step["name"] for step in steps if step["op"] == "consumer" and step.get("prefetch") == 0}
    for step in steps:
        if step["op"] == "consumer":
            durable = {name: key for name, key in durable.items() if name in alive}
            if "durable" in step:
                if (step["conn"], step["durable"]) in durable.values():
                    return False
                durable[step["name"]] = step["conn"], step["durable"]
            alive[step["name"]] = step["conn"]
            sessions[step["name"]] = step.get("session", f"of {step['name']}")
        elif "name" in step and step["name"] not in alive:
            return False
        elif step["op"] in ("stop", "start"):
            (stopped.add if step["op"] == "stop" else stopped.discard)(alive[step["name"]])
        elif step["op"] == "recv" and step["name"] in pulling and alive[step["name"]] in stopped:
            return False
        elif step["op"] == "close":
            del alive[step["name"]]
        elif step["op"] == "closeSession":
            mates = {name for name, session in sessions.items() if session == sessions[step["name"]]}
            alive = {name: conn for name, conn in alive.items() if name not in mates}
        elif step["op"] == "restart":
            alive.clear()
        elif step["op"] in ("kill", "closeConnection"):
            if step["conn"] not in alive.values():
                return False
            alive = {name: conn for name, conn in alive.items() if conn != step["conn"]}
        elif step["op"] == "ack" and step["n"] > 0 and (step["name"], step["n"]) in got:
            return False
    return True
