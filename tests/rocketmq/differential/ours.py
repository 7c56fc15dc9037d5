"""pyengine plays a trace: for each operation [result, state], as java/RealClasses.java answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from pyengine import rocketmq
from pyengine.errors import MQClientError, NullArgumentError, OffsetNotFoundError
from tests.rocketmq.differential.ours_consumer import Consumer
from tests.rocketmq.differential.ours_texts import LocalOffsets, Sql, Texts
from tests.rocketmq.differential.traces import Operation, Trace

NOW = 2_000_000_000_000
BODIES: dict[int, bytes] = {}


class Player(Protocol):
    """Plays the operations of one trace."""

    def play(self, operation: Operation) -> Any: ...
    def state(self) -> Any: ...


@dataclass(slots=True)
class Record:
    """A message: offset, body, properties; its number in the trace."""

    number: int
    queue_offset: int
    body: bytes | None
    properties: dict[str, str] = field(default_factory=dict)


class Queue:
    """The process queue."""

    def __init__(self) -> None:
        self.queue = rocketmq.ProcessQueue()
        self.known: list[Record] = []

    def messages(self, rows: list[list[Any]]) -> list[Record]:
        made = []
        for offset, size, *ahead in rows:
            body = None if size is None else BODIES.setdefault(size, bytes(size))
            self.known.append(Record(len(self.known), offset, body))
            if ahead:
                self.known[-1].properties["MAX_OFFSET"] = ahead[0]
            made.append(self.known[-1])
        return made

    def play(self, operation: Operation) -> Any:
        queue, name = self.queue, operation[0]
        queue.last_consume_timestamp = 0
        if name == "put":
            return queue.put_messages(self.messages(operation[1]))
        if name == "remove":
            return queue.remove_messages(self.messages(operation[1]), now=NOW)
        if name == "take":
            return [message.number for message in queue.take_messages(operation[1], now=NOW)]
        if name == "again":
            return queue.make_message_to_consume_again(self.messages(operation[1]))
        if name == "contains":
            return queue.contains_message(None if operation[1] is None else self.messages(operation[1])[0])
        if name == "expire":
            return self.expire(*operation[1:])
        if name == "set":
            if operation[1] == "tries":
                queue.try_unlock_times += 1
            else:
                setattr(queue, operation[1], bool(operation[2]))
            return None
        if name == "lock_expired":
            return queue.is_lock_expired(operation[1])
        if name == "pull_expired":
            return queue.is_pull_expired(operation[1])
        if name == "info":
            return [value for name, value in queue.info().items() if name != "lastConsumeTimestamp"]
        return getattr(queue, name)()

    def expire(self, starts: list[list[Any]], minutes: int, fails: list[int]) -> list[int]:
        for number, age in starts:
            if number < len(self.known):
                self.known[number].properties["CONSUME_START_TIME"] = age if isinstance(age, str) else str(NOW - age)
        sent = []
        for _ in range(min(len(self.queue.cached_offsets), 16)):
            message = self.queue.expired(NOW, minutes)
            if message is None:
                break
            sent.append(message.number)
            if message.queue_offset not in fails:
                self.queue.remove_messages([message], now=NOW)
        return sent

    def state(self) -> Any:
        queue = self.queue
        queue._check()
        return [
            queue.message_count,
            queue.message_size,
            queue.queue_offset_max,
            queue.consuming,
            queue.accumulated,
            queue.max_span,
            queue.has_temp_message,
            queue.last_consume_timestamp != 0,
            queue.cached_offsets,
            queue.taken_offsets,
        ]


class _Room:
    """The room is what stands before the first dash."""

    def broker_deploy_in(self, queue: rocketmq.MessageQueue) -> str:
        return self.consumer_deploy_in(queue.broker_name)

    def consumer_deploy_in(self, client_id: str) -> str:
        return client_id[: max(0, client_id.find("-"))]


class _Queue(rocketmq.MessageQueue):
    """A queue that knows its place in the list that was given."""

    place: int


def _queues(rows: list[list[Any]] | None, *, configured: bool = False) -> Any:
    if rows is None:
        return None
    made = [_Queue(*row) for row in rows]
    for i, queue in enumerate(made):
        queue.place = -1 - i if configured else i
    return made


class Allocation:
    """The allocation strategies."""

    def strategy(self, name: str, config: dict[str, Any], configured: Any) -> Any:
        if name == "MACHINE_ROOM":
            return rocketmq.AllocateMessageQueueByMachineRoom(config["rooms"] and frozenset(config["rooms"]))
        if name == "CONFIG":
            return rocketmq.AllocateMessageQueueByConfig(configured and tuple(configured))
        if name == "CONSISTENT_HASH":
            return rocketmq.AllocateMessageQueueConsistentHash(config["nodes"])
        if name == "MACHINE_ROOM_NEARBY":
            inner: Any = config["inner"] and self.strategy(config["inner"], config, configured)
            return rocketmq.AllocateMachineRoomNearby(inner, _Room())
        return {
            "AVG": rocketmq.AllocateMessageQueueAveragely,
            "AVG_BY_CIRCLE": rocketmq.AllocateMessageQueueAveragelyByCircle,
        }[name]()

    def play(self, operation: Operation) -> Any:
        name, config, client, rows, clients = operation
        strategy = self.strategy(name, config, _queues(config["queues"], configured=True))
        return [queue.place for queue in rocketmq.allocate(strategy, "G", client, _queues(rows), clients)]

    def state(self) -> Any:
        return None


class Offsets:
    """The offset store; itself the brokers that it asks."""

    def __init__(self) -> None:
        self.stored: dict[int, int] = {}
        self.down: set[int] = set()
        self.calls: list[list[Any]] = []
        brokers: Any = self
        self.store = rocketmq.RemoteBrokerOffsetStore(brokers, "G")

    def _reach(self, queue: rocketmq.MessageQueue) -> int:
        if queue.queue_id in self.down:
            raise MQClientError(f"The broker[{queue.broker_name}] not exist")
        return queue.queue_id

    def query_consumer_offset(self, group: str, queue: rocketmq.MessageQueue, timeout: int) -> int:
        number = self._reach(queue)
        self.calls.append(["query", number])
        if number not in self.stored:
            raise OffsetNotFoundError(0, "")
        return self.stored[number]

    def update_consumer_offset(self, group: str, queue: rocketmq.MessageQueue, offset: int, timeout: int) -> None:
        number = self._reach(queue)
        self.calls.append(["update", number, offset])
        self.stored[number] = offset

    def play(self, operation: Operation) -> Any:
        self.calls.clear()
        name, target, *rest = operation
        if name == "stored":
            self.stored.pop(target, None)
            if rest[0] is not None:
                self.stored[target] = rest[0]
            return None
        if name == "down":
            self.down ^= {target}
            return None
        if name == "persist_all":
            return self.store.persist_all(None if target is None else {self._queue(number) for number in target})
        queue: Any = None if target is None else self._queue(target)
        if name == "update":
            return self.store.update_offset(queue, rest[0], increase_only=rest[1])
        if name == "freeze":
            return self.store.update_and_freeze_offset(queue, rest[0])
        if name == "read":
            return self.store.read_offset(queue, rocketmq.ReadOffsetType[rest[0]])
        return {"persist": self.store.persist, "remove": self.store.remove_offset}[name](queue)

    def _queue(self, number: int) -> rocketmq.MessageQueue:
        return rocketmq.MessageQueue("T", str(number), number)

    def state(self) -> Any:
        table = sorted([queue.queue_id, offset] for queue, offset in self.store.offsets().items())
        return [table, sorted(map(list, self.stored.items())), sorted(self.calls, key=lambda call: call[1])]


class Offset:
    """One controllable offset."""

    def __init__(self) -> None:
        self.offset = rocketmq.ControllableOffset()

    def play(self, operation: Operation) -> Any:
        if operation[0] == "freeze":
            return self.offset.update_and_freeze(operation[1])
        return self.offset.update(operation[1], increase_only=operation[2])

    def state(self) -> Any:
        return self.offset.value


PLAYERS: dict[str, type[Player]] = {
    "process_queue": Queue,
    "allocate": Allocation,
    "offset_store": Offsets,
    "offset": Offset,
    "consumer": Consumer,
    "sql": Sql,
    "texts": Texts,
    "local_offsets": LocalOffsets,
}


def play(trace: Trace) -> list[Any]:
    """[result, state] of every operation; the result of a failure names the real exception's class and text.

    Where our text is our own (the process queue's, a null argument's) it is None.
    """
    player = PLAYERS[trace["kind"]]()
    answers = []
    for operation in trace["ops"]:
        result: Any
        try:
            result = player.play(operation)
        except rocketmq.AllocationError as error:
            result = {"class": error.java_class, "text": error._words()}
        except rocketmq.IllegalStateError:
            result = {"class": "java.util.NoSuchElementException", "text": None}
        except MQClientError:
            result = {"class": "org.apache.rocketmq.client.exception.MQClientException", "text": None}
        except IndexError:
            result = {"class": "java.lang.IndexOutOfBoundsException", "text": None}
        except NullArgumentError:
            result = {"class": "java.lang.NullPointerException", "text": None}
        except ValueError:
            number = operation[0] in ("put", "expire")
            result = {"class": f"java.lang.{'NumberFormat' if number else 'IllegalArgument'}Exception", "text": None}
        answers.append([result, player.state()])
    return answers
