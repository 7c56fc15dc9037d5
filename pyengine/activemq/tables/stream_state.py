"""Queues that outlive a batch: the state of a stream, shard by shard, from bytes to bytes.

What a shard carries is the core's snapshot of each of its queues and the rows of the messages that are still there. The
answer to a message depends on what came before it in its queue and on the consumers that joined and left before it, not
on how the messages were cut into batches.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from pyengine._engine.activemq.queue.batches import carried, enqueued, headers_now, offer_runs, settle_runs
from pyengine._engine.activemq.queue.queue import Queue
from pyengine._engine.matching.consumer_filter import reads_changing
from pyengine._engine.serialization.codec import SharedValues, seal, unseal
from pyengine.activemq.tables.assignments import (
    ASSIGNMENT_SCHEMA,
    CODES,
    DESTINATION,
    KEPT_COLUMNS,
    NAMED,
    ROW,
    compiled,
    masked,
)
from pyengine.activemq.tables.assignments import encoded as encoded_schema
from pyengine.activemq.tables.current_headers import truth_now
from pyengine.activemq.tables.dispatch import (
    REASON_WORDS,
    SELECTOR_REASONS,
    Answers,
    group_codes,
    matches_of,
    message_columns,
)
from pyengine.activemq.tables.shapes import Membership, Shape, member_of, numbered
from pyengine.activemq.tables.typed_names import TYPED
from pyengine.activemq.tables.waiting_messages import WaitingMessages, keys_of, numbers_of, sequences_in
from pyengine.dataclass import dataclass
from pyengine.errors import SnapshotError
from pyengine.topology import Consumer, Policy, Topology

STREAM_SCHEMA = ASSIGNMENT_SCHEMA.append(pa.field("attempt", pa.int32()))
CODED_SCHEMA = encoded_schema(STREAM_SCHEMA, (*NAMED, "destination", "group"))
EVENTS = ("join", "leave", "lose")
MAGIC, VERSION = b"PYES", 2
_WASTE = 1024  # shared values of a shard that may have lost their use before all its queues are written again


@dataclass
class _Carried:
    """A queue in use. members: id at the core -> place in the topology."""

    core: Queue
    members: dict[int, int]
    shape: Membership


@dataclass
class _Shard:
    """roster: places of the consumers that are there, in the order in which they joined. queues: numbers in Carry.

    shared: group names and selectors that the bytes of its queues refer to; used: how many when all were last written.
    """

    roster: list[int]
    queues: list[int] = field(default_factory=list)
    shared: SharedValues = field(default_factory=SharedValues)
    used: int = 0


def output_schema_of(columns: pa.Schema) -> pa.Schema:
    """STREAM_SCHEMA for messages with these columns, whose number may be a struct of several."""
    return STREAM_SCHEMA.set(0, pa.field("row", columns.field(ROW).type))


def encoded(messages: Any) -> Any:
    """A batch or table of messages with queues and groups as dictionaries, which are quick to move."""
    for name in (DESTINATION, "JMSXGroupID"):
        place = messages.schema.get_field_index(name)
        if place >= 0 and not pa.types.is_dictionary(messages.schema.field(place).type):
            messages = messages.set_column(place, name, messages.column(place).dictionary_encode())
    return messages


def _same(former: Topology, then: Consumer, now: Topology, consumer: Consumer) -> bool:
    """Whether a consumer of two topologies is subscribed in the same way."""
    alike = replace(then, description="") == replace(consumer, description="")
    return alike and former.prefetch_of(then) == now.prefetch_of(consumer)


def _settings_of(topology: Topology, queue: str) -> Policy:
    """The policy that applies to a queue, without the destination of its entry."""
    return replace(topology.policy_of(queue), destination="")


def _words(reasons: np.ndarray[Any, Any], errors: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Places in REASON_WORDS of reasons to wait. errors: where a selector could not be evaluated."""
    return np.where(np.isin(reasons, SELECTOR_REASONS) & errors, len(REASON_WORDS) - 2, reasons)


def reasons_of(waits: Iterable[Sequence[int]]) -> tuple[tuple[str, int], ...]:
    """How many messages wait for which reason, over the queues of an answer of ``Carry.waits``."""
    sums: dict[str, int] = {}
    for each in waits:
        for code, count in zip(each[::2], each[1::2], strict=True):
            reason = REASON_WORDS[code].as_py()
            sums[reason] = sums.get(reason, 0) + count
    return tuple(sums.items())


class Carry:
    """The queues of some shards while one batch goes through them.

    topology: its consumers are there from the start, except those named in ``late``, which wait for a "join". columns:
    the schema of the messages (``columns_read``); it must be the same for every batch of a stream.
    """

    def __init__(self, topology: Topology, columns: pa.Schema, late: Iterable[str] = ()) -> None:
        self.topology = topology
        self.columns = columns
        self.output_schema = output_schema_of(columns)
        self._late = frozenset(late)
        self._places = {consumer.name: place for place, consumer in enumerate(topology.consumers)}
        self._shards: dict[int, _Shard] = {}
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._blobs: list[bytes | None] = []
        self._stored_waits: list[list[int] | None] = []  # as in ``waits``; None: not counted yet
        self._stored_members: list[dict[int, int]] = []
        self._open: dict[int, _Carried] = {}
        self._memberships: dict[tuple[Any, ...], Membership] = {}
        self._templates: dict[tuple[Any, ...], tuple[bytes, Shape]] = {}
        self._waiting = WaitingMessages(columns)
        self._out: list[pa.Table] = []
        self.fingerprint = hashlib.sha256(
            json.dumps([topology.to_text(), sorted(self._late), str(columns)]).encode()
        ).hexdigest()

    # Bytes

    def load(self, shard: int, data: bytes | None, former: Carry | None = None) -> None:
        """Take a shard in; None: it has no state yet. Raises SnapshotError, also for another topology's state.

        former: of whose topology the state is; its consumers of names that this topology lacks are not in it.
        """
        if data is None:
            self._shards[shard] = _Shard(
                [place for place, consumer in enumerate(self.topology.consumers) if consumer.name not in self._late]
            )
            return
        start, end = unseal(MAGIC, VERSION, data)
        try:
            stream = pa.BufferReader(pa.py_buffer(data).slice(start, end - start))
            queues = pa.ipc.open_stream(stream).read_all()
            kept = pa.ipc.open_stream(stream).read_all()
            header = json.loads(queues.schema.metadata[b"pyengine"])
            shared = SharedValues.restore(queues.schema.metadata[b"shared"])
        except (pa.ArrowException, ValueError, KeyError, TypeError) as error:
            raise SnapshotError("a shard's state is no Arrow stream of queues and messages") from error
        if header["fingerprint"] != (former or self).fingerprint:
            raise SnapshotError(
                "the state is of another topology, other late consumers or other columns: start a new state folder"
            )
        if header["shard"] != shard:
            raise SnapshotError(f"the state of shard {header['shard']} lies where that of shard {shard} should")
        first = len(self._names)
        now_at = self._places_of(former)
        roster = [now_at[place] for place in header["roster"]]
        found = _Shard(roster, list(range(first, first + queues.num_rows)), shared, header["used"])
        members = [{int(id): now_at[place] for id, place in each} for each in header["members"]]
        self._shards[shard] = found
        names = queues.column("name").to_pylist()
        self._names += names
        self._numbers.update(zip(names, found.queues, strict=True))
        self._blobs += queues.column("queue").to_pylist()
        counted = header.get("reasons") == REASON_WORDS.to_pylist()
        self._stored_waits += queues.column("waits").to_pylist() if counted else [None] * queues.num_rows
        self._stored_members += [members[code] for code in queues.column("members").to_pylist()]
        self._waiting.add_shard(kept, first)

    def _places_of(self, former: Carry | None) -> dict[int, int]:
        """Place of a consumer in the former topology -> in this one."""
        if former is None:
            return {place: place for place in range(len(self.topology.consumers))}
        return {place: self._places[name] for name, place in former._places.items() if name in self._places}

    # Another topology

    def lost_in(self, now: Carry, absent: Iterable[str] = ()) -> list[str]:
        """What of the shards that are loaded cannot be kept under another topology, in words; empty: everything can.

        absent: properties that the messages which wait here do not have.
        """
        found: list[str] = []
        was, will = self.columns.field(ROW).type, now.columns.field(ROW).type
        if was != will:
            found.append(f"rows are numbered by {was}, not by {will}")
        names = [self._names[number] for shard in self._shards.values() for number in shard.queues]
        for name in names:
            if _settings_of(self.topology, name) != _settings_of(now.topology, name):
                found.append(f"queue {name}: its policy is another one, and a queue keeps the settings it began with")
        with_backlog = [self._names[number] for number in np.unique(numbers_of(self._waiting.keys)).tolist()]
        kept = self._waiting.table
        given = {*absent, *kept.column_names}
        for name in with_backlog:
            for consumer in now.topology.consumers_of(name):
                read = compiled(consumer.selector).names if consumer.selector else ()
                lacking = [each for each in read if not given & {each, TYPED + each} and not each.startswith("JMS")]
                found += [
                    f"queue {name}: messages wait there whose {each} was not kept, and {consumer.name} reads it"
                    for each in lacking
                ]
        for wanted in now._waiting.table.schema:
            if wanted.name in kept.column_names:
                try:
                    kept.column(wanted.name).cast(wanted.type)
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                    kind = kept.schema.field(wanted.name).type
                    found.append(f"{wanted.name} is {kind} in messages that wait, not {wanted.type}")
        return list(dict.fromkeys(found))

    def migrate(self, now: Carry, at: int = 0) -> None:
        """Hand all shards over to another topology, as a broker would: consumers that are gone or changed leave, what
        they hold goes to the others, then those that are new or changed join. The others keep their groups and turns.

        now: without shards yet. at: ms.
        """
        there = {self.topology.consumers[place].name for shard in self._shards.values() for place in shard.roster}
        former = {consumer.name: consumer for consumer in self.topology.consumers}
        stay = {
            consumer.name
            for consumer in now.topology.consumers
            if consumer.name in former and _same(self.topology, former[consumer.name], now.topology, consumer)
        }
        for name in former:
            if name in there and name not in stay:
                self.event("leave", name, at)
        for shard in self._shards:
            now.load(shard, self.save(shard), self)
        now._out = [*self._out, *now._out]
        for consumer in now.topology.consumers:
            joins = consumer.name in there if consumer.name in former else consumer.name not in now._late
            if joins and consumer.name not in stay:
                now.event("join", consumer.name, at)

    def waits(self, shard: int) -> list[list[int]]:
        """Of each queue of a shard: the places in REASON_WORDS of the reasons why messages wait there, each followed by
        their number."""
        here, errors, keys = self._shards[shard], self._waiting.errors, self._waiting.keys
        full = set(np.unique(numbers_of(keys)).tolist())
        found: list[list[int]] = []
        for number in here.queues:
            stored = self._stored_waits[number]
            if number not in full:
                found.append([])
            elif number not in self._open and stored is not None:
                found.append(stored)
            else:
                sequences, why, _ = self._opened(number, here).core.held()
                at = self._waiting.rows_of(keys_of(np.full(len(sequences), number), sequences))
                codes, counts = np.unique(_words(why, errors[at]), return_counts=True)
                found.append(np.stack([codes, counts], axis=1).reshape(-1).tolist())
        return found

    def save(self, shard: int, waits: list[list[int]] | None = None) -> bytes:
        """The shard as it is now. waits: the answer of ``waits``, if that was asked already."""
        state = self._shards[shard]
        waits = self.waits(shard) if waits is None else waits
        codes: dict[tuple[tuple[int, int], ...], int] = {}
        blobs, members = [], []
        rewrite = len(state.shared) > 2 * state.used + _WASTE
        if rewrite:
            for number in state.queues:
                self._opened(number, state)
        shared = SharedValues() if rewrite else state.shared
        for number in state.queues:
            queue = self._open.get(number)
            blobs.append(self._blobs[number] if queue is None else queue.core.snapshot(shared=shared))
            here = self._stored_members[number] if queue is None else queue.members
            members.append(codes.setdefault(tuple(here.items()), len(codes)))
        header = {
            "fingerprint": self.fingerprint,
            "shard": shard,
            "roster": state.roster,
            "members": [list(each) for each in codes],
            "used": len(shared) if rewrite else state.used,
            "reasons": REASON_WORDS.to_pylist(),
        }
        queues = pa.table(
            {
                "name": pa.array([self._names[number] for number in state.queues], pa.string()),
                "members": pa.array(members, pa.int32()),
                "queue": pa.array(blobs, pa.binary()),
                "waits": pa.array(waits, pa.list_(pa.int64())),
            }
        ).replace_schema_metadata({"pyengine": json.dumps(header), "shared": shared.snapshot()})
        sink = pa.BufferOutputStream()
        for table in (queues, self._waiting.shard(state.queues, len(self._names))):
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
        return seal(MAGIC, VERSION, sink.getvalue().to_pybytes())

    # Events

    def event(self, verb: str, name: str, now: int = 0) -> str:
        """A consumer joins, leaves or is lost with its connection, in every shard; what is wrong with that, or "".

        now: ms. What it leaves behind goes to the others at once.
        """
        place = self._places.get(name)
        if verb not in EVENTS or place is None:
            return f"{verb} {name}: an event is one of {', '.join(EVENTS)} and a consumer of the topology"
        there = {place in shard.roster for shard in self._shards.values()}
        if there == {verb == "join"}:
            return f"{verb} {name}: it is {'' if verb == 'join' else 'not '}there"
        for shard in self._shards.values():
            covered = [
                number for number in shard.queues if place in self.topology.positions_of(self._names[number])
            ]  # fmt: skip
            queues = [(number, self._opened(number, shard)) for number in covered]
            if verb == "join":
                shard.roster.append(place)
                self._join(place, queues)
            else:
                shard.roster.remove(place)
                self._leave(place, queues, verb == "lose", now)
            self._settle(queues, now)
        return ""

    def _join(self, place: int, queues: list[tuple[int, _Carried]]) -> None:
        consumer = self.topology.consumers[place]
        keys = self._waiting.keys
        matching = np.ones(len(keys), bool)
        if consumer.selector and reads_changing(compiled(consumer.selector)) and len(keys):
            matching = self._truth_now(consumer.selector, np.arange(len(keys)), queues) == 1
        elif consumer.selector and len(keys):
            batch = self._waiting.table.combine_chunks().to_batches()[0]
            answers = Answers(batch)
            answers.announce(consumer.selector, [(0, len(keys))])
            truth = answers.of(consumer.selector)
            matching = truth == 1
            self._waiting.note_errors(np.arange(len(keys)), truth)
        own = self._waiting.sent_by(consumer.connection) if consumer.no_local and consumer.connection else None
        if own is not None:
            matching &= ~own
        chosen = keys[matching]
        for number, queue in queues:
            sequences = sequences_in(chosen, number)
            member = member_of(self.topology, place, 1 + max(queue.members, default=-1))
            id = queue.core.add_consumer(**member, matching=sequences)
            queue.members[id] = place
            queue.shape = self._membership(queue.core, queue.members)

    def _truth_now(
        self, selector: str, at: np.ndarray[Any, Any], queues: list[tuple[int, _Carried]], lost: int = 0
    ) -> np.ndarray[Any, Any]:
        """Truth of a selector on these messages of the queues, as they are now. lost: once more redelivered than so."""
        keys = self._waiting.keys[at]
        runs, sequences, _, counters, firsts = headers_now([queue.core for _, queue in queues])
        changed = keys_of(np.array([number for number, _ in queues], np.int64)[runs], sequences)
        order = np.argsort(changed)
        changed, counters, firsts = changed[order], counters[order], firsts[order]
        places = np.minimum(np.searchsorted(changed, keys), max(0, len(changed) - 1))
        found = changed[places] == keys if len(changed) else np.zeros(len(keys), bool)
        redeliveries, group_first = np.zeros(len(keys), np.int64), np.zeros(len(keys), bool)
        redeliveries[found], group_first[found] = counters[places[found]], firsts[places[found]]
        truth = truth_now(selector, self._waiting.table.take(pa.array(at)), redeliveries + lost, group_first)
        self._waiting.note_errors(at, truth)
        return truth

    def _returning(self, number: int, queue: _Carried, id: int, lost: bool) -> dict[int, list[int]] | None:
        """Whether selectors that read changing headers match the messages that a consumer gives back, as
        ``Queue.close`` wants it; None: there is no such selector."""
        asked = [each for each in queue.shape.questions if each[1] and reads_changing(compiled(each[1]))]
        if not asked:
            return None
        _, sequences, holders, _, _ = headers_now([queue.core])
        sequences = sequences[holders == id]
        keys = keys_of(np.full(len(sequences), number), sequences)
        at = self._waiting.rows_of(keys)
        matching: dict[int, list[int]] = {}
        for bit, selector, refused in asked:
            found = self._truth_now(selector, at, [(number, queue)], int(lost)) == 1
            own = self._waiting.sent_by(refused) if refused else None
            if own is not None:
                found &= ~own[at]
            matching[bit] = sequences[found].tolist()
        return matching

    def _leave(self, place: int, queues: list[tuple[int, _Carried]], lost: bool, now: int) -> None:
        for number, queue in queues:
            id = next(id for id, each in queue.members.items() if each == place)
            before = queue.core.statistics["dispatched"]
            returning = self._returning(number, queue, id, lost)
            given = queue.core.close(id, lost=lost, now=now, matching=returning)
            given = [each for each in given if each.message is not None]
            sequences = [queue.core.sequence_of(each.message) for each in given if each.message is not None]
            consumers = [each.consumer for each in given]
            self._output_delivered(
                [queue],
                np.zeros(len(given), np.int64),
                keys_of(np.full(len(given), number), np.array(sequences, np.int64)),
                np.array(consumers, np.int64),
                before + np.arange(len(given)),
            )
            del queue.members[id]
            queue.shape = self._membership(queue.core, queue.members)
            for each in given:
                if queue.shape.prompt is None or each.consumer in queue.shape.prompt:
                    queue.core.acknowledge(each.consumer, each.message)  # type: ignore[arg-type]

    def _settle(self, queues: list[tuple[int, _Carried]], now: int) -> None:
        cores = [queue for _, queue in queues]
        if cores:
            runs, sequences, consumers, deliveries = settle_runs(
                [queue.core for queue in cores], [queue.shape.prompt for queue in cores], now
            )
            numbers = np.array([number for number, _ in queues])
            self._output_delivered(cores, runs, keys_of(numbers[runs], sequences), consumers, deliveries)
            self._forget([number for number, _ in queues])

    # Messages

    def feed(self, batch: pa.RecordBatch, shards: np.ndarray[Any, Any]) -> None:
        """Messages in the order in which they were sent, and the shard of each; each shard was loaded before."""
        if not batch.num_rows:
            return
        batch = encoded(batch)
        names = batch.column(DESTINATION)
        of_row = self._numbers_of(names.dictionary.to_pylist(), names.indices.to_numpy(), shards)
        # A sort of small numbers counts them, a sort of large ones compares.
        order = np.argsort(of_row.astype(np.uint16) if len(self._names) <= 1 << 16 else of_row, kind="stable")
        if (order[1:] != order[:-1] + 1).any():
            batch, of_row = batch.take(pa.array(order)), of_row[order]
        starts = np.concatenate([[0], np.flatnonzero(of_row[1:] != of_row[:-1]) + 1])
        here = of_row[starts]
        bounds = [*starts.tolist(), batch.num_rows]
        queues = [self._open[number] for number in here.tolist()]
        cores = [queue.core for queue in queues]
        matches, errors = matches_of(batch, *numbered([queue.shape for queue in queues]), np.array(bounds))
        if matches is None:
            matches = np.ones(batch.num_rows, np.uint64)
        groups, group_names = group_codes(batch)
        arrived = enqueued(cores)
        runs, rows, consumers, deliveries, _ = offer_runs(
            cores,
            np.array(bounds),
            np.zeros(len(queues), np.uint8),
            [queue.shape.prompt for queue in queues],
            message_columns(batch, groups, group_names, matches),
        )
        first = starts - arrived  # the row that has arrival number 0
        attempts = np.zeros(batch.num_rows, np.int32)
        earlier = rows < starts[runs]
        attempts[rows[~earlier]] = 1
        messages: pa.RecordBatch | pa.Table = batch
        at, attempt = rows, np.ones(len(rows), np.int32)
        if earlier.any():
            keys = keys_of(here[runs], rows - first[runs])
            messages, at, attempt[earlier] = self._with_earlier(batch, rows, earlier, keys[earlier])
        self._output(
            messages,
            at,
            here[runs],
            consumer=self._consumers(queues, runs, consumers),
            delivery=deliveries,
            attempt=attempt,
        )
        # What is still there of the batch, or had expired when its turn came, and of what was there before.
        run, sequences, _ = carried(cores)
        new = sequences >= arrived[run]
        stays = np.zeros(batch.num_rows, bool)
        stays[(sequences + first[run])[new]] = True
        expired = np.flatnonzero((attempts == 0) & ~stays)
        self._output(
            batch,
            expired,
            of_row[expired],
            reason=np.full(len(expired), "expired"),
            attempt=np.zeros(len(expired), np.int32),
        )
        self._retain(here, keys_of(here[run[~new]], sequences[~new]))
        at = np.flatnonzero(stays)
        if len(at):
            keys = keys_of(of_row[at], at - np.repeat(first, np.diff(bounds))[at])
            self._waiting.add(batch.take(pa.array(at)), keys, attempts[at], errors[at])
        for core in cores:
            core.take_removed()
            core.take_slow()

    def _with_earlier(
        self, batch: pa.RecordBatch, rows: np.ndarray[Any, Any], earlier: np.ndarray[Any, Any], keys: Any
    ) -> tuple[pa.Table, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Messages of a batch, and earlier ones by their keys, in one table; where each line finds its own; attempts of
        the earlier ones."""
        at, attempts = self._waiting.count_delivery(keys)
        table = self._waiting.table
        names = [name for name in KEPT_COLUMNS.values() if name in table.column_names]
        kept = table.select(names).take(pa.array(at))
        new = pa.Table.from_batches([batch.select(names).take(pa.array(rows[~earlier]))]).cast(kept.schema)
        place = np.where(earlier, np.cumsum(earlier) - 1 + new.num_rows, np.cumsum(~earlier) - 1)
        return pa.concat_tables([new, kept]).combine_chunks(), place, attempts

    def _numbers_of(
        self, names: list[str], codes: np.ndarray[Any, Any], shards: np.ndarray[Any, Any]
    ) -> np.ndarray[Any, Any]:
        """The number of each row's queue, opened. names: by code."""
        firsts = np.full(len(names), -1)
        firsts[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
        numbers = np.full(len(names), -1, np.int64)
        there = np.flatnonzero(firsts >= 0)
        for code, shard in zip(there.tolist(), shards[firsts[there]].tolist(), strict=True):
            numbers[code] = self._number(names[code], shard)
        found: np.ndarray[Any, Any] = numbers[codes]
        return found

    def _number(self, name: str, shard: int) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._names)
            self._names.append(name)
            self._blobs.append(None)
            self._stored_waits.append(None)
            self._stored_members.append({})
            self._shards[shard].queues.append(number)
        if number not in self._open:
            self._opened(number, self._shards[shard])
        return number

    def _opened(self, number: int, shard: _Shard) -> _Carried:
        queue = self._open.get(number)
        if queue is None:
            blob = self._blobs[number]
            if blob is not None:
                core, members = Queue.restore(blob, shared=shard.shared), dict(self._stored_members[number])
                queue = _Carried(core, members, self._membership(core, members))
            else:
                covering = (self.topology.covering(self._names[number]), tuple(shard.roster))
                if covering not in self._templates:
                    there = set(self.topology.positions_of(self._names[number]))
                    places = tuple(place for place in shard.roster if place in there)
                    shape = Shape(self.topology, self.topology.policy_of(self._names[number]), places)
                    self._templates[covering] = shape.queue().snapshot(), shape
                data, shape = self._templates[covering]
                queue = _Carried(Queue.restore(data, shared=shard.shared), dict(enumerate(shape.consumers)), shape)
            self._open[number] = queue
        return queue

    def _membership(self, core: Queue, members: dict[int, int]) -> Membership:
        key = tuple((id, place, core.predicate_of(id)) for id, place in members.items())
        found = self._memberships.get(key)
        if found is None:
            found = self._memberships[key] = Membership(self.topology, core, members)
        return found

    # Output lines

    def _output_delivered(
        self,
        queues: Sequence[_Carried],
        runs: np.ndarray[Any, Any],
        keys: np.ndarray[Any, Any],
        consumers: np.ndarray[Any, Any],
        deliveries: np.ndarray[Any, Any],
    ) -> None:
        if len(keys):
            at, attempts = self._waiting.count_delivery(keys)
            self._output(
                self._waiting.table,
                at,
                numbers_of(keys),
                consumer=self._consumers(queues, runs, consumers),
                delivery=deliveries,
                attempt=attempts,
            )

    def _consumers(
        self, queues: Sequence[_Carried], runs: np.ndarray[Any, Any], consumers: np.ndarray[Any, Any]
    ) -> pa.Array:
        """Names of consumers by their ids at the core of each run; -1 is none."""
        if not self.topology.consumers:
            return pa.nulls(len(runs), CODES)
        shapes = {id(queue.shape): queue.members for queue in queues}  # queues of one shape have the same members
        tables = {shape: table for table, shape in enumerate(shapes)}
        of_queue = np.array([tables[id(queue.shape)] for queue in queues])
        width = 1 + max((max(members, default=-1) for members in shapes.values()), default=-1)
        places = np.full((len(tables), width + 1), -1)
        for shape, members in shapes.items():
            for number, place in members.items():
                places[tables[shape], number] = place
        found = places[of_queue[runs], consumers]
        names = pa.array([consumer.name for consumer in self.topology.consumers], pa.string())
        return pa.DictionaryArray.from_arrays(masked(found.astype(np.int32), found >= 0), names)

    def _output(
        self, rows: pa.RecordBatch | pa.Table, at: np.ndarray[Any, Any], numbers: np.ndarray[Any, Any], **columns: Any
    ) -> None:
        if len(at):
            self._out.append(self._lines(rows, at, numbers, **columns))

    def _lines(
        self, rows: pa.RecordBatch | pa.Table, at: np.ndarray[Any, Any], numbers: np.ndarray[Any, Any], **given: Any
    ) -> pa.Table:
        """Lines about messages: CODED_SCHEMA. rows: of messages; at: which of them; numbers: of each line's queue."""
        taken = pa.array(at)
        names = pa.array(self._names, pa.string())
        given["destination"] = pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), names)
        columns = []
        schema = CODED_SCHEMA.set(0, self.output_schema.field(0))
        for wanted in schema:
            source = KEPT_COLUMNS.get(wanted.name, "")
            if wanted.name in given:
                column = given[wanted.name]
                columns.append(column if isinstance(column, pa.Array) else pa.array(column).cast(wanted.type))
            elif source in rows.schema.names:
                column = rows.column(source).take(taken)
                if column.type != wanted.type and wanted.type == CODES:
                    column = column.cast(pa.string()).dictionary_encode()
                columns.append(column.cast(wanted.type))
            else:
                columns.append(pa.nulls(len(at), wanted.type))
        return pa.Table.from_arrays(columns, schema=schema)

    def _forget(self, numbers: list[int]) -> None:
        """Drop the rows of these queues that are not there any more; messages that expired before they were delivered
        get a line."""
        cores = [self._open[number].core for number in numbers]
        runs, sequences, _ = carried(cores)
        self._retain(np.array(numbers), keys_of(np.array(numbers)[runs], sequences))
        for core in cores:
            core.take_removed()
            core.take_slow()

    def _retain(self, numbers: np.ndarray[Any, Any], alive: np.ndarray[Any, Any]) -> None:
        """Of these queues only the messages with these keys are there."""
        keys = self._waiting.keys
        asked = np.zeros(len(self._names) + 1, bool)
        asked[numbers] = True
        gone = asked[numbers_of(keys)]
        gone[np.searchsorted(keys, alive)] = False
        if gone.any():
            expired = np.flatnonzero(gone & (self._waiting.attempts == 0))
            self._output(
                self._waiting.table,
                expired,
                numbers_of(keys[expired]),
                reason=np.full(len(expired), "expired"),
                attempt=np.zeros(len(expired), np.int32),
            )
            self._waiting.remove(gone)

    def take(self, *, codes: bool = False) -> pa.Table:
        """What was delivered, or had expired, since the last call, each queue in order of delivery: STREAM_SCHEMA.

        codes: CODED_SCHEMA, which is quicker to make and to write.
        """
        lines, self._out = self._out, []
        table = pa.concat_tables(lines) if lines else CODED_SCHEMA.set(0, self.output_schema.field(0)).empty_table()
        return table if codes else table.cast(self.output_schema)

    def held(self, shards: Iterable[int]) -> pa.Table:
        """Everything that waits in these shards, and why, by queue and arrival."""
        keys, reasons, consumers, runs = [], [], [], []
        queues: list[_Carried] = []
        for shard in shards:
            for number in self._shards[shard].queues:
                queue = self._opened(number, self._shards[shard])
                sequences, why, about = queue.core.held()
                keys.append(keys_of(np.full(len(sequences), number), sequences))
                reasons.append(why)
                consumers.append(about)
                runs.append(np.full(len(sequences), len(queues)))
                queues.append(queue)
        if not queues:
            return self.output_schema.empty_table()
        key = np.concatenate(keys)
        at = self._waiting.rows_of(key)
        why = np.concatenate(reasons)
        words = _words(why, self._waiting.errors[at])
        return self._lines(
            self._waiting.table,
            at,
            numbers_of(key),
            reason=pa.DictionaryArray.from_arrays(pa.array(words.astype(np.int32)), REASON_WORDS),
            blocked_by=self._consumers(queues, np.concatenate(runs), np.concatenate(consumers)),
            attempt=self._waiting.attempts[at],
        ).cast(self.output_schema)

    @property
    def shards(self) -> frozenset[int]:
        """The shards that were loaded."""
        return frozenset(self._shards)
