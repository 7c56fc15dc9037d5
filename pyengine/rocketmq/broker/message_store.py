"""The messages of one named broker: its log, and where in it the message of each offset of each queue lies."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from pyengine._engine.java.hashing import tags_code
from pyengine._engine.rocketmq.broker import commit_log_record as record
from pyengine._engine.rocketmq.broker.consume_queue import ConsumeQueue
from pyengine._engine.rocketmq.broker.delay_levels import DelayLevels
from pyengine._engine.rocketmq.broker.long_polling import PullHold
from pyengine._engine.rocketmq.commands.origin import Origin, OriginFields
from pyengine._engine.rocketmq.commands.stored_message import STORE_HOST_V6
from pyengine.clock import Clock, Timer, Worker
from pyengine.errors import InvalidSourceError, MQBrokerError, PyengineError
from pyengine.rocketmq import message as names
from pyengine.rocketmq.broker.commit_log import CommitLog, Frame
from pyengine.rocketmq.message import Message, MessageExt
from pyengine.rocketmq.remoting.mq_client_api import CLIENT, SERVICE_NOT_AVAILABLE
from pyengine.rocketmq.remoting.stored_message import host_bytes

CLIENT_HOST = host_bytes(CLIENT)
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"  # whose queues are the delay levels
LOG_FLUSH_INTERVAL = 500  # ms


def origin_of(message: MessageExt) -> Origin:
    """Of a message that is stored again."""
    return Origin(
        message.born_timestamp, host_bytes(message.born_host), message.reconsume_times, message.flag,
        message.sys_flag & ~STORE_HOST_V6,
    )  # fmt: skip


class MessageStore:
    """RocketMQ's DefaultMessageStore. Every method is called with the broker's lock held.

    Making one reads the log. Raises InvalidSourceError if what it says does not fit, naming ``folder``.
    levels: by which delayed messages come. store_host: eight bytes, or twenty, of which message ids are made.
    arriving: called with each message that is stored later, with its topic, queue id, tags code and properties
    (MessageArrivingListener) that is delayed, or of whose queue there are pulls in :attr:`holds`.
    """

    def __init__(
        self,
        log: CommitLog,
        folder: str,
        clock: Clock,
        levels: DelayLevels,
        store_host: bytes,
        arriving: Callable[[str, int, int, Mapping[str, str]], None],
    ) -> None:
        self.log = log
        self.consume_queues: dict[tuple[str, int], ConsumeQueue] = {}
        # Level -> offset behind its last message that was delivered. Also of levels that the log has and this broker
        # has not; their messages wait for one that has them.
        self.delivered: defaultdict[int, int] = defaultdict(int)
        # Topics whose messages never expire: the service that put them there deletes them.
        self.kept_aside: set[str] = set()
        self._folder = folder
        self._clock = clock
        self._levels = levels
        self._store_host = store_host
        self._arriving = arriving
        self.holds: Mapping[tuple[str, int], PullHold] = {}
        self._flush_worker: Worker | None = None
        self._flush_timer: Timer | None = None
        for frame in log.frames():
            self._dispatch(frame)
        self._dispatched = log.end  # what lies before it in the log is in the queues

    def now(self) -> int:
        """The broker's time, ms."""
        return self._clock.now()

    def start(self, worker: Worker) -> None:
        """Bring the log to the disk from now on, on ``worker``, half a second after its first message that is not
        there (flushIntervalCommitLog)."""
        self._flush_worker = worker

    def stop(self) -> None:
        """Bring it there no more by itself."""
        if self._flush_timer is not None:
            self._flush_timer.cancel()

    def consume_queue(self, topic: str, queue_id: int) -> ConsumeQueue:
        """The index of a queue, empty where nothing was stored in it yet."""
        found = self.consume_queues.get((topic, queue_id))
        return ConsumeQueue() if found is None else found

    def put_message(
        self,
        topic: str,
        queue_id: int,
        body: bytes | None,
        properties: dict[str, str],
        origin: OriginFields,
        now: int | None = None,
    ) -> tuple[int, int]:
        """Store a message. Returns its position in the log and its offset in the queue. now: the time, if it is known.

        Raises InvalidMessageError for one that has no stored form, MQBrokerError, code 14, if the log cannot be
        written.
        """
        log, place = self.log, (topic, queue_id)
        if self._dispatched < log.end:
            self._dispatch_rest()
        queue = self.consume_queues.get(place)
        if queue is None:
            queue = self.consume_queues[place] = ConsumeQueue()
        if now is None:
            now = self._clock.now()
        position, offset = log.end, queue.max_offset
        frame = record.encode_message(
            topic, body, properties, (position, queue_id, offset), origin, (now, self._store_host)
        )
        # Behind the frame, which refuses tags that are not a string.
        tags = properties.get(names.PROPERTY_TAGS)
        code = 0 if tags is None and topic != SCHEDULE_TOPIC else self._code(topic, queue_id, now, tags_code(tags))
        try:
            log.append(frame)
        except OSError as error:
            raise self._unwritten(error) from error
        delivers = origin[5]
        size = len(frame) - (record.HEADER_SIZE if delivers is None else record.HEADER_SIZE + record.DELIVERS_SIZE)
        queue.append(position, size, code, now)
        if delivers is not None:
            self._take_for_delivered(*delivers)
        self._dispatched = log.end
        if self._flush_worker is not None:
            self._sync_later()
        if topic == SCHEDULE_TOPIC or self.holds.get(place):
            self._arriving(topic, queue_id, code, properties)
        return position, offset

    def stored_at(self, position: int) -> bytes | None:
        """The stored message at a position of the log, None if there is none."""
        try:
            return record.payload(self.log.read(position))
        except (PyengineError, ValueError):
            return None

    def put_messages(
        self,
        topic: str,
        queue_id: int,
        messages: Sequence[Message],
        origin: Origin,
    ) -> tuple[list[int], int]:
        """Store several messages of one queue, which is not that of a delay level: as put_message does one after the
        other. Returns their positions, and the offset of the first.
        """
        self._dispatch_rest()
        place = (topic, queue_id)
        queue = self.consume_queues.get(place)
        if queue is None:
            queue = self.consume_queues[place] = ConsumeQueue()
        now, first = self._clock.now(), queue.max_offset
        positions, frames, sizes, codes = record.encode_messages(
            topic, messages, (self.log.end, queue_id, first), origin, (now, self._store_host)
        )
        try:
            self.log.extend(frames)
        except OSError as error:
            raise self._unwritten(error) from error
        finally:
            end = self.log.end
            queue.extend(positions[: bisect_left(positions, end)], sizes, codes, now)
            self._dispatched = end
        if self._flush_worker is not None:
            self._sync_later()
        if self.holds.get(place):
            for code, each in zip(codes, messages, strict=True):
                self._arriving(topic, queue_id, code, each.properties)
        return positions, first

    def delete_below(self, topic: str, queue_id: int, offset: int) -> int:
        """Forget a queue's messages below an offset, for good. Returns how many.

        Raises MQBrokerError, code 14, if that cannot be written to the log.
        """
        self._dispatch_rest()
        queue = self.consume_queue(topic, queue_id)
        below = min(offset, queue.max_offset)
        if below <= queue.min_offset:
            return 0
        gone = self._delete_below(topic, queue_id, below)
        self._sync_later()
        return gone

    def delete_expired(self, before: int) -> int | None:
        """Forget messages stored before ``before`` (ms) and delete their files. Returns how many messages, None
        if the disk did not confirm it.

        Raises MQBrokerError, code 14, if that cannot be written to the log.
        """
        self._dispatch_rest()
        gone, needed, below = 0, self.log.end, {}
        for (topic, queue_id), queue in self.consume_queues.items():
            kept = queue.expired_end(before)
            if topic == SCHEDULE_TOPIC:
                kept = min(kept, self.delivered[queue_id + 1])
            elif topic in self.kept_aside:
                kept = queue.min_offset
            below[topic, queue_id] = max(kept, queue.min_offset)
        if all(queue.min_offset == below[place] for place, queue in self.consume_queues.items()):
            return 0
        # The places of empty queues are only known from frames, so they are written again behind the files that may be
        # deleted.
        for (topic, queue_id), kept in below.items():
            gone += self._delete_below(topic, queue_id, kept)
        for level, offset in sorted(self.delivered.items()):
            if offset:
                self._append(record.encode_deletion(SCHEDULE_TOPIC, level - 1, offset))
        self._dispatched = self.log.end
        for queue in self.consume_queues.values():
            if len(queue):
                needed = min(needed, queue.position(queue.min_offset))
        if not self.log.sync():
            return None
        self.log.delete_before(needed)
        return gone

    def _delete_below(self, topic: str, queue_id: int, offset: int) -> int:
        queue, said = self.consume_queue(topic, queue_id), self.log.end
        places = range(queue.min_offset, min(offset, queue.max_offset)) if self.log.forgets else range(0)
        positions = [queue.position(place) for place in places]
        self._append(record.encode_deletion(topic, queue_id, offset))
        gone = queue.delete_below(offset)
        self._dispatched = self.log.end
        self.log.forget([*positions, said])
        return gone

    def _append(self, frame: bytes) -> None:
        """Put a frame at the log's end. Raises MQBrokerError, code 14, if it cannot be written."""
        try:
            self.log.append(frame)
        except OSError as error:
            raise self._unwritten(error) from error

    @staticmethod
    def _unwritten(error: OSError) -> MQBrokerError:
        return MQBrokerError(
            SERVICE_NOT_AVAILABLE, f"service not available now: the broker's log cannot be written ({error})"
        )

    def _code(self, topic: str, queue_id: int, store_time: int, code: int) -> int:
        """The index entry's code of a message: the hash code of its tags, or its delivery time, ms."""
        return self._levels.deliver_time(queue_id + 1, store_time) if topic == SCHEDULE_TOPIC else code

    def _take_for_delivered(self, level: int, offset: int) -> None:
        self.delivered[level] = max(self.delivered[level], offset + 1)

    def _dispatch(self, frame: Frame) -> None:
        """Put what a frame of the log says into its queue's index. Raises InvalidSourceError if it does not fit."""
        kind, position, size, topic, queue_id, offset, store_time, code, delivers = frame
        queue = self.consume_queues.setdefault((topic, queue_id), ConsumeQueue())
        if kind == record.RecordKind.DELETED:
            if offset >= queue.max_offset:
                self.consume_queues[topic, queue_id] = ConsumeQueue(min_offset=offset)
            else:
                queue.delete_below(offset)
            return
        if offset != queue.max_offset:
            if len(queue) or offset < queue.max_offset:
                problem = f"{topic} {queue_id}: offset {offset} follows {queue.max_offset - 1}"
                raise InvalidSourceError(self._folder, problem)
            queue = self.consume_queues[topic, queue_id] = ConsumeQueue(min_offset=offset)
        stored = size - record.HEADER_SIZE - (0 if delivers is None else record.DELIVERS_SIZE)
        queue.append(position, stored, self._code(topic, queue_id, store_time, code), store_time)
        if delivers is not None:
            self._take_for_delivered(*delivers)

    def _dispatch_rest(self) -> None:
        """Take up the frame whose writer was interrupted, as by Ctrl-C, before its message was in an index.

        Without it the next message would get the same offset, and the folder could not be opened again.
        """
        while self._dispatched < self.log.end:
            data = self.log.read(self._dispatched)
            for frame in record.scan(data, self._dispatched)[0]:
                kind, _, _, topic, queue_id, offset, store_time, code, delivers = frame
                if kind == record.RecordKind.DELETED or offset >= self.consume_queue(topic, queue_id).max_offset:
                    self._dispatch(frame)
                elif delivers is not None:
                    self._take_for_delivered(*delivers)
                if kind != record.RecordKind.DELETED:
                    properties = record.decode_message(data)[2]
                    self._arriving(topic, queue_id, self._code(topic, queue_id, store_time, code), properties)
            self._dispatched += len(data)

    def _sync_later(self) -> None:
        worker = self._flush_worker
        if worker is not None and (self._flush_timer is None or not self._flush_timer.pending):
            self._flush_timer = self._clock.call_at(
                self._clock.now() + LOG_FLUSH_INTERVAL, lambda: worker.submit(self.log.sync)
            )
