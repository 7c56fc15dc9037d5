"""Queues that outlive a batch: the state of a stream, shard by shard, from bytes to bytes.

What a shard carries is the core's snapshot of each of its queues and the rows of the messages that are still there. The
answer to a message depends on what came before it in its queue and on the consumers that joined and left before it, not
on how the messages were cut into batches.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyengine._engine.batches import carried, offer_runs, settle_runs
from pyengine._engine.queue import Queue
from pyengine._engine.varint import SharedValues, seal, unseal
from pyengine.activemq.assignments import (
    ASSIGNMENT_SCHEMA,
    DESTINATION,
    KEPT_SCHEMA,
    kept_of,
    persistent,
    whole_numbers,
)
from pyengine.activemq.dispatch import (
    REASON_WORDS,
    SELECTOR_REASONS,
    Answers,
    Membership,
    Shape,
    group_codes,
    matches_of,
    member_of,
)
from pyengine.errors import SnapshotError
from pyengine.topology import Topology

STREAM_SCHEMA = ASSIGNMENT_SCHEMA.append(pa.field("attempt", pa.int32()))
EVENTS = ("join", "leave", "lose")
MAGIC, VERSION = b"PYES", 2
_KEY, _ATTEMPTS, _ERROR = "__key", "__attempts", "__error"
_WASTE = 1024  # shared values of a shard that may have lost their use before all its queues are written anew
_SEQUENCE_BITS = 40  # of a key; the queue's place in the task stands above


@dataclass
class _Carried:
    """A queue in use. members: id at the core -> place in the topology."""

    core: Queue
    members: dict[int, int]
    shape: Membership


@dataclass
class _Shard:
    """roster: places of the consumers that are there, in the order in which they joined. queues: numbers in Carry.

    shared: group names and selectors that the bytes of its queues refer to; used: how many when all were written anew.
    """

    roster: list[int]
    queues: list[int] = field(default_factory=list)
    shared: SharedValues = field(default_factory=SharedValues)
    used: int = 0


class Carry:
    """The queues of some shards while one batch goes through them.

    topology: its consumers are there from the start, except those named in ``late``, which wait for a "join". columns:
    the schema of the messages (``columns_read``); it must be the same for every batch of a stream.
    """

    def __init__(self, topology: Topology, columns: pa.Schema, late: Iterable[str] = ()) -> None:
        self.topology = topology
        self.columns = columns
        self._late = frozenset(late)
        self._places = {consumer.name: place for place, consumer in enumerate(topology.consumers)}
        self._shards: dict[int, _Shard] = {}
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._blobs: list[bytes | None] = []
        self._stored_members: list[dict[int, int]] = []
        self._open: dict[int, _Carried] = {}
        self._memberships: dict[tuple[Any, ...], Membership] = {}
        self._templates: dict[tuple[Any, ...], tuple[bytes, Shape]] = {}
        self._kept = pa.table(
            {
                _KEY: pa.array([], pa.int64()),
                _ATTEMPTS: pa.array([], pa.int32()),
                _ERROR: pa.array([], pa.bool_()),
                **{name: pa.array([], columns.field(name).type) for name in columns.names if name != DESTINATION},
            }
        )
        self._out: list[pa.Table] = []
        self.fingerprint = hashlib.sha256(
            json.dumps([topology.to_text(), sorted(self._late), str(columns)]).encode()
        ).hexdigest()

    # Bytes

    def load(self, shard: int, data: bytes | None) -> None:
        """Take a shard in; None: it has no state yet. Raises SnapshotError, also for another topology's state."""
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
            told = json.loads(queues.schema.metadata[b"pyengine"])
            shared = SharedValues.restore(queues.schema.metadata[b"shared"])
        except (pa.ArrowException, ValueError, KeyError, TypeError) as error:
            raise SnapshotError("a shard's state is no Arrow stream of queues and messages") from error
        if told["fingerprint"] != self.fingerprint:
            raise SnapshotError(
                "the state is of another topology, other late consumers or other columns: start a new state folder"
            )
        if told["shard"] != shard:
            raise SnapshotError(f"the state of shard {told['shard']} lies where that of shard {shard} should")
        first = len(self._names)
        found = _Shard(list(told["roster"]), list(range(first, first + queues.num_rows)), shared, told["used"])
        members = [{int(id): place for id, place in each} for each in told["members"]]
        self._shards[shard] = found
        names = queues.column("name").to_pylist()
        self._names += names
        self._numbers.update(zip(names, found.queues, strict=True))
        self._blobs += queues.column("queue").to_pylist()
        self._stored_members += [members[code] for code in queues.column("members").to_pylist()]
        keys = kept.column(_KEY).to_numpy() + (first << _SEQUENCE_BITS)
        self._kept = pa.concat_tables([self._kept, kept.set_column(0, _KEY, pa.array(keys))])

    def save(self, shard: int) -> bytes:
        """The shard as it is now."""
        it = self._shards[shard]
        codes: dict[tuple[tuple[int, int], ...], int] = {}
        blobs, members = [], []
        anew = len(it.shared) > 2 * it.used + _WASTE
        if anew:
            for number in it.queues:
                self._opened(number, it)
        shared = it.shared
        if anew or all(number in self._open for number in it.queues):
            shared, anew = SharedValues(), True
        for number in it.queues:
            queue = self._open.get(number)
            blobs.append(self._blobs[number] if queue is None else queue.core.snapshot(shared=shared))
            here = self._stored_members[number] if queue is None else queue.members
            members.append(codes.setdefault(tuple(here.items()), len(codes)))
        told = {
            "fingerprint": self.fingerprint,
            "shard": shard,
            "roster": it.roster,
            "members": [list(each) for each in codes],
            "used": len(shared) if anew else it.used,
        }
        queues = pa.table(
            {
                "name": pa.array([self._names[number] for number in it.queues], pa.string()),
                "members": pa.array(members, pa.int32()),
                "queue": pa.array(blobs, pa.binary()),
            }
        ).replace_schema_metadata({"pyengine": json.dumps(told), "shared": shared.snapshot()})
        keys = self._kept.column(_KEY).to_numpy()
        mine = np.full(len(self._names) + 1, -1)
        mine[it.queues] = np.arange(len(it.queues))
        owner = mine[keys >> _SEQUENCE_BITS]
        rows = self._kept.filter(pa.array(owner >= 0))
        inside = (keys & ((1 << _SEQUENCE_BITS) - 1)) + (owner << _SEQUENCE_BITS)
        rows = rows.set_column(0, _KEY, pa.array(inside[owner >= 0]))
        sink = pa.BufferOutputStream()
        for table in (queues, rows.combine_chunks()):
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
        keys = self._kept.column(_KEY).to_numpy()
        matching = np.ones(len(keys), bool)
        if consumer.selector and len(keys):
            batch = self._kept.combine_chunks().to_batches()[0]
            answers = Answers(batch)
            answers.announce(consumer.selector, [(0, len(keys))])
            truth = answers.of(consumer.selector)
            matching = truth == 1
            errors = self._kept.column(_ERROR).to_numpy() | (truth == -2)
            self._kept = self._kept.set_column(2, _ERROR, pa.array(errors))
        if consumer.no_local and consumer.connection and "__connection" in self._kept.column_names:
            own = pc.fill_null(pc.equal(self._kept.column("__connection"), consumer.connection), False)
            matching &= ~own.to_numpy()
        chosen = keys[matching]
        for number, queue in queues:
            low, high = np.searchsorted(chosen, [number << _SEQUENCE_BITS, (number + 1) << _SEQUENCE_BITS])
            sequences = (chosen[low:high] & ((1 << _SEQUENCE_BITS) - 1)).tolist()
            policy = self.topology.policy_of(self._names[number])
            member = member_of(self.topology, policy, place, 1 + max(queue.members, default=-1))
            id = queue.core.add_consumer(**member, matching=sequences)
            queue.members[id] = place
            queue.shape = self._membership(queue.core, queue.members)

    def _leave(self, place: int, queues: list[tuple[int, _Carried]], lost: bool, now: int) -> None:
        for number, queue in queues:
            id = next(id for id, each in queue.members.items() if each == place)
            before = queue.core.statistics["dispatched"]
            given = [each for each in queue.core.close(id, lost=lost, now=now) if each.message is not None]
            sequences = [queue.core.sequence_of(each.message) for each in given if each.message is not None]
            consumers = [each.consumer for each in given]
            self._tell_delivered(
                [queue],
                np.zeros(len(given), np.int64),
                self._keys(np.full(len(given), number), np.array(sequences, np.int64)),
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
            self._tell_delivered(cores, runs, self._keys(numbers[runs], sequences), consumers, deliveries)
            self._forget([number for number, _ in queues])

    # Messages

    def feed(self, batch: pa.RecordBatch, shards: np.ndarray[Any, Any]) -> None:
        """Messages in the order in which they were sent, and the shard of each; each shard was loaded before."""
        if not batch.num_rows:
            return
        encoded = batch.column(DESTINATION)
        if not pa.types.is_dictionary(encoded.type):
            encoded = encoded.dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        names = encoded.dictionary.to_pylist()
        firsts = np.full(len(names), -1)
        firsts[codes[::-1]] = np.arange(batch.num_rows - 1, -1, -1)
        numbers = np.full(len(names), -1, np.int64)
        for code in np.flatnonzero(firsts >= 0).tolist():
            numbers[code] = self._number(names[code], int(shards[firsts[code]]))
        of_row = numbers[codes]
        order = np.argsort(of_row, kind="stable")
        if (order != np.arange(len(order))).any():
            batch, of_row = batch.take(pa.array(order)), of_row[order]
        starts = np.concatenate([[0], np.flatnonzero(of_row[1:] != of_row[:-1]) + 1])
        here = of_row[starts]
        bounds = [*starts.tolist(), batch.num_rows]
        queues = [self._open[number] for number in here.tolist()]
        matches, errors = matches_of(batch, queues, bounds)
        if matches is None:
            matches = np.ones(batch.num_rows, np.uint64)
        groups, group_names = group_codes(batch)
        arrived = np.array([queue.core.statistics["enqueues"] for queue in queues])
        runs, rows, consumers, deliveries, _ = offer_runs(
            [queue.core for queue in queues],
            np.array(bounds),
            np.zeros(len(queues), np.uint8),
            [queue.shape.prompt for queue in queues],
            groups=groups,
            group_names=group_names,
            group_sequences=whole_numbers(batch, "JMSXGroupSeq", 0),
            priorities=whole_numbers(batch, "JMSPriority", 4),
            expirations=whole_numbers(batch, "JMSExpiration", 0),
            persistent=persistent(batch),
            arrivals=whole_numbers(batch, "JMSTimestamp", 0),
            matches=matches,
        )
        run_of_row = np.repeat(np.arange(len(queues)), np.diff(bounds))
        sequences = arrived[run_of_row] + np.arange(batch.num_rows) - starts[run_of_row]
        arriving = pa.table(
            {
                _KEY: pa.array(self._keys(of_row, sequences)),
                _ATTEMPTS: pa.array(np.zeros(batch.num_rows, np.int32)),
                _ERROR: pa.array(errors),
                **{name: batch.column(name) for name in self.columns.names if name != DESTINATION},
            }
        )
        self._kept = pa.concat_tables([self._kept, arriving])
        self._sort()
        self._tell_delivered(
            queues, runs, self._keys(here[runs], rows - starts[runs] + arrived[runs]), consumers, deliveries
        )
        self._forget(here.tolist())

    def _sort(self) -> None:
        keys = self._kept.column(_KEY).to_numpy()
        if (keys[1:] < keys[:-1]).any():
            self._kept = self._kept.take(pa.array(np.argsort(keys, kind="stable")))

    @staticmethod
    def _keys(numbers: np.ndarray[Any, Any], sequences: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        keys: np.ndarray[Any, Any] = (numbers.astype(np.int64) << _SEQUENCE_BITS) + sequences
        return keys

    def _number(self, name: str, shard: int) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._names)
            self._names.append(name)
            self._blobs.append(None)
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
                queue = _Carried(Queue.restore(data), dict(enumerate(shape.consumers)), shape)
            self._open[number] = queue
        return queue

    def _membership(self, core: Queue, members: dict[int, int]) -> Membership:
        key = tuple((id, place, core.predicate_of(id)) for id, place in members.items())
        found = self._memberships.get(key)
        if found is None:
            found = self._memberships[key] = Membership(self.topology, core, members)
        return found

    # What is told

    def _tell_delivered(
        self,
        queues: Sequence[_Carried],
        runs: np.ndarray[Any, Any],
        keys: np.ndarray[Any, Any],
        consumers: np.ndarray[Any, Any],
        deliveries: np.ndarray[Any, Any],
    ) -> None:
        if not len(keys):
            return
        at = np.searchsorted(self._kept.column(_KEY).to_numpy(), keys)
        attempts = self._kept.column(_ATTEMPTS).to_numpy().copy()
        # A message goes to one consumer after another only when the first one left, and that is another call.
        attempts[at] += 1
        self._kept = self._kept.set_column(1, _ATTEMPTS, pa.array(attempts))
        self._out.append(
            self._lines(
                at, self._consumers(queues, runs, consumers), delivery=pa.array(deliveries), attempts=attempts[at]
            )
        )

    def _consumers(
        self, queues: Sequence[_Carried], runs: np.ndarray[Any, Any], consumers: np.ndarray[Any, Any]
    ) -> pa.Array:
        """Names of consumers by their ids at the core of each run; -1 is none."""
        width = 1 + max((max(queue.members, default=-1) for queue in queues), default=-1)
        tables: dict[tuple[tuple[int, int], ...], int] = {}
        of_queue = np.array([tables.setdefault(tuple(queue.members.items()), len(tables)) for queue in queues])
        places = np.full((len(tables), width + 1), -1)
        for members, table in tables.items():
            for number, place in members:
                places[table, number] = place
        found = places[of_queue[runs], consumers]
        if not self.topology.consumers:
            return pa.nulls(len(found), pa.string())
        names = pa.array([consumer.name for consumer in self.topology.consumers], pa.string())
        return names.take(pa.array(found, mask=found < 0))

    def _lines(
        self,
        at: np.ndarray[Any, Any],
        consumers: Any = None,
        *,
        delivery: Any = None,
        reasons: Any = None,
        blocked_by: Any = None,
        attempts: np.ndarray[Any, Any] | None = None,
    ) -> pa.Table:
        rows = self._kept.take(pa.array(at)).combine_chunks()
        keys = rows.column(_KEY).to_numpy()
        made: dict[str, Any] = {
            "destination": pa.array(self._names, pa.string()).take(pa.array(keys >> _SEQUENCE_BITS)),
            "consumer": consumers,
            "delivery": delivery,
            "reason": reasons,
            "blocked_by": blocked_by,
            "attempt": rows.column(_ATTEMPTS).to_numpy() if attempts is None else pa.array(attempts),
        }
        kept = (
            kept_of(rows.to_batches()[0], rows.column(_ERROR).to_numpy(zero_copy_only=False))
            if rows.num_rows
            else pa.RecordBatch.from_pylist([], KEPT_SCHEMA)
        )
        columns = [
            (pa.nulls(len(at), wanted.type) if made[wanted.name] is None else pa.array(made[wanted.name]))
            if wanted.name in made
            else kept.column(wanted.name)
            for wanted in STREAM_SCHEMA
        ]
        return pa.Table.from_arrays(
            [column.cast(kind.type) for column, kind in zip(columns, STREAM_SCHEMA, strict=True)], schema=STREAM_SCHEMA
        )

    def _forget(self, numbers: list[int]) -> None:
        """Drop the rows of these queues that are not there any more; what expired before it was delivered is told."""
        numbers = sorted(numbers)
        runs, sequences, _ = carried([self._open[number].core for number in numbers])
        alive = self._keys(np.array(numbers)[runs], sequences)
        keys = self._kept.column(_KEY).to_numpy()
        asked = np.zeros(len(self._names) + 1, bool)
        asked[numbers] = True
        gone = asked[keys >> _SEQUENCE_BITS]
        at = np.searchsorted(keys, alive)
        gone[at] = False
        untold = np.flatnonzero(gone & (self._kept.column(_ATTEMPTS).to_numpy() == 0))
        if len(untold):
            self._out.append(self._lines(untold, reasons=pa.array(["expired"] * len(untold))))
        self._kept = self._kept.filter(pa.array(~gone)).combine_chunks()
        for number in numbers:
            self._open[number].core.take_removed()
            self._open[number].core.take_slow()

    def take(self) -> pa.Table:
        """What was delivered, or had expired, since the last call: STREAM_SCHEMA, each queue in order of delivery."""
        told, self._out = self._out, []
        return pa.concat_tables(told) if told else STREAM_SCHEMA.empty_table()

    def held(self, shards: Iterable[int]) -> pa.Table:
        """Everything that waits in these shards, and why, by queue and arrival."""
        keys, reasons, consumers, runs = [], [], [], []
        queues: list[_Carried] = []
        for shard in shards:
            for number in self._shards[shard].queues:
                queue = self._opened(number, self._shards[shard])
                sequences, why, about = queue.core.held()
                keys.append(self._keys(np.full(len(sequences), number), sequences))
                reasons.append(why)
                consumers.append(about)
                runs.append(np.full(len(sequences), len(queues)))
                queues.append(queue)
        if not queues:
            return STREAM_SCHEMA.empty_table()
        key = np.concatenate(keys)
        at = np.searchsorted(self._kept.column(_KEY).to_numpy(), key)
        why = np.concatenate(reasons)
        errors = self._kept.column(_ERROR).to_numpy()[at]
        words = np.where(np.isin(why, SELECTOR_REASONS) & errors, len(REASON_WORDS) - 2, why)
        return self._lines(
            at,
            reasons=REASON_WORDS.take(pa.array(words.astype(np.int64))),
            blocked_by=self._consumers(queues, np.concatenate(runs), np.concatenate(consumers)),
        )

    @property
    def shards(self) -> frozenset[int]:
        """The shards that were loaded."""
        return frozenset(self._shards)
