"""One named broker: its topics, its log and its consumer groups. The core makes the decisions."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pyengine._engine.rocketmq.broker.consumer_groups import ConsumerGroups
from pyengine._engine.rocketmq.broker.consumer_offsets import ConsumerOffsets
from pyengine._engine.rocketmq.broker.queue_locks import RebalanceLocks
from pyengine._engine.rocketmq.commands.stored_message import (
    decode_stored,
    parse_message_id,
)
from pyengine.clock import Clock
from pyengine.errors import (
    InvalidSourceError,
    MQBrokerError,
    ProtocolError,
    PyengineError,
)
from pyengine.rocketmq.broker.broker_files import BrokerFiles
from pyengine.rocketmq.broker.commit_log import CommitLog, FileLog, MemoryLog
from pyengine.rocketmq.broker.filter import Filter, filter_of
from pyengine.rocketmq.broker.group_offsets import GroupOffsets
from pyengine.rocketmq.broker.kept_offsets import KeptOffsets
from pyengine.rocketmq.broker.key_index import FoundByKey, KeyIndex
from pyengine.rocketmq.broker.message_store import SCHEDULE_TOPIC, MessageStore
from pyengine.rocketmq.broker.node_options import NodeOptions
from pyengine.rocketmq.broker.node_state import NodeState
from pyengine.rocketmq.broker.pulls import FramesCallback, PulledFrames, Pulls
from pyengine.rocketmq.broker.send_message_processor import SendMessageProcessor
from pyengine.rocketmq.broker.timers import DONE_TOPIC, TIMER_TOPIC
from pyengine.rocketmq.broker.topic_config import TopicConfig
from pyengine.rocketmq.broker.topic_table import TopicTable
from pyengine.rocketmq.broker.transactions import HALF_TOPIC, OP_TOPIC
from pyengine.rocketmq.message import MessageExt
from pyengine.rocketmq.remoting.mq_client_api import (
    PULL_STATUS,
    SERVICE_NOT_AVAILABLE,
    HeartbeatData,
    MessageModel,
    PullCallback,
    PullMessageRequest,
    PullResult,
)
from pyengine.rocketmq.remoting.stored_message import host_bytes, message_ext, message_of, received
from pyengine.rocketmq.tables.allocation import MessageQueue

KEPT_ASIDE = {SCHEDULE_TOPIC, HALF_TOPIC, OP_TOPIC, TIMER_TOPIC, DONE_TOPIC}  # topics of the store's own


def open_node(
    nodes: dict[str, BrokerNode], name: str, clock: Clock, options: NodeOptions, directory: Path | None
) -> None:
    """Put into ``nodes`` a broker in memory, or one that goes on with its folder in ``directory``; start() has it work.

    It is in there when its folder is held, also where Ctrl-C comes.
    """
    if directory is None:
        nodes[name] = BrokerNode(name, clock, options, MemoryLog())
        return
    files = BrokerFiles(directory, name)
    try:
        commit_log = FileLog(
            files.log_folder,
            segment_bytes=options.segment_bytes,
            every_flush=options.flush_disk_type == "SYNC_FLUSH",
        )
        try:
            nodes[name] = BrokerNode(name, clock, options, commit_log, files)
        except BaseException:
            commit_log.close()
            raise
    except OSError as error:
        files.close()
        problem = f"cannot be opened: {error.strerror or error}"
        raise InvalidSourceError(
            str(error.filename or files.log_folder), problem, "name a folder to write to"
        ) from error
    except BaseException:
        files.close()
        raise


def _unconfirmed() -> MQBrokerError:
    """What a deletion ends with that the disk did not confirm."""
    return MQBrokerError(SERVICE_NOT_AVAILABLE, "the deletion is written, but the disk did not confirm it; see the log")


class BrokerNode:
    """A broker of a cluster. files: its folder; None keeps it in memory.

    Every method is safe from any thread; answers to pulls come from the node's own worker.
    """

    def __init__(
        self,
        name: str,
        clock: Clock,
        options: NodeOptions,
        commit_log: CommitLog,
        files: BrokerFiles | None = None,
    ) -> None:
        self.name = name
        self.clock = clock
        self.lock = threading.RLock()
        self.groups = ConsumerGroups()
        self.locks = RebalanceLocks()
        self.heartbeats: dict[str, HeartbeatData] = {}  # group -> the last of a member
        self._levels = options.levels
        self.max_message_size = options.max_message_size
        host = host_bytes(options.address)
        folder = "" if files is None else str(files.folder)
        self.store = MessageStore(commit_log, folder, clock, options.levels, host, self._arriving)
        self._keys = KeyIndex(self.store)
        self.topic_table = TopicTable(name, files, {SCHEDULE_TOPIC: len(options.levels)})
        self._offsets = GroupOffsets(self.topic_table)
        self._state = NodeState(name, files)
        self.sender = SendMessageProcessor(
            name, clock, self.lock, options, self.store, self.topic_table, self.locks, self._state
        )
        self._files = files
        self._kept: KeptOffsets | None = None
        if files is not None:
            self.topic_table.recover(self.store.consume_queues, KEPT_ASIDE)
            self._kept = KeptOffsets(files, self.offsets, clock, self.lock)
        self._pulls = Pulls(name, clock, self.lock, self.store, self.groups, self._offsets, self._admit)
        self.store.holds = self._pulls.holds
        self._files_worker = self._pulls.worker if files is None else clock.worker(f"FlushRealTimeService_{name}")

    def start(self) -> None:
        """Deliver what is delayed, and keep the files, from now on."""
        self.sender.start()
        if self._kept is not None:
            self.store.start(self._files_worker)
            self._kept.start(self._files_worker)

    @property
    def topics(self) -> dict[str, int]:
        """How many queues each topic has here."""
        return self.topic_table.queues

    @property
    def delay_levels(self) -> int:
        """How many delay levels it has."""
        return len(self._levels)

    @property
    def offsets(self) -> ConsumerOffsets:
        """The committed offsets."""
        return self._offsets.committed

    # Topics and queues

    def _admit(self, topic: str, queue_id: int) -> None:
        """Raise MQClientError once the broker is closed, MQBrokerError for a queue that the topic does not have."""
        self._state.check_open()
        self.topic_table.check_queue(topic, queue_id)

    def create_topic(self, topic: str, queues: int) -> None:
        """Make a topic, or give it more queues; fewer are refused."""
        with self.lock:
            self._state.check_open()
            self.topic_table.create(topic, queues)

    def topic_config(self, topic: str) -> TopicConfig | None:
        """How a topic lies here, None if it does not."""
        with self.lock:
            return self.topic_table.config(topic)

    def update_topic(self, topic: str, config: TopicConfig) -> None:
        """Make a topic, or let it lie otherwise (updateAndCreateTopic). Messages of queues that it has no more stay."""
        with self.lock:
            self._state.check_open()
            self.topic_table.update(topic, config)

    def kept_groups(self) -> dict[str, Any]:
        """What subscriptionGroup.json says, empty without a folder."""
        return {} if self._files is None else self._files.read_groups()

    def keep_groups(self, wrapper: dict[str, Any]) -> None:
        """Replace subscriptionGroup.json, if the node keeps files."""
        with self.lock:
            if self._files is not None and self._files.are_ours and not self._state.closed:
                self._files.write_groups(wrapper)

    def delete_topic(self, topic: str) -> None:
        """Forget a topic and its messages (deleteTopic)."""
        with self.lock:
            self._state.check_open()
            for queue_id in range(self.topics.get(topic, 0)):
                self.store.delete_below(topic, queue_id, self.max_offset(topic, queue_id))
            self.topic_table.delete(topic)

    def min_offset(self, topic: str, queue_id: int) -> int:
        with self.lock:
            return self.store.consume_queue(topic, queue_id).min_offset

    def max_offset(self, topic: str, queue_id: int) -> int:
        with self.lock:
            return self.store.consume_queue(topic, queue_id).max_offset

    def search_offset(self, topic: str, queue_id: int, timestamp: int) -> int:
        with self.lock:
            return self.store.consume_queue(topic, queue_id).search(timestamp)

    def message(self, topic: str, queue_id: int, offset: int) -> MessageExt | None:
        """A copy of the message at an offset, None if there is none."""
        with self.lock:
            self.topic_table.check_queue(topic, queue_id)
            queue = self.store.consume_queue(topic, queue_id)
            if not queue.min_offset <= offset < queue.max_offset:
                return None
            return received(self._decode(queue.position(offset)))

    def query_message(self, topic: str, key: str, most: int, begin: int, end: int) -> FoundByKey:
        """The newest messages of a topic that have a key; begin, end: ms."""
        with self.lock:
            self._state.check_open()
            return self._keys.query(topic, key, most, begin, end)

    def stored_at(self, position: int) -> bytes | None:
        """The stored message at a position of the log, None if there is none."""
        with self.lock:
            return self.store.stored_at(position)

    def stored_by_id(self, offset_msg_id: str) -> bytes | None:
        """The stored message that has this id of a broker, None if there is none."""
        try:
            return self.stored_at(parse_message_id(offset_msg_id)[1])
        except ProtocolError:
            return None

    # Arrivals

    def _arriving(self, topic: str, queue_id: int, code: int, properties: Mapping[str, str]) -> None:
        """A message was stored: have it delivered when it is due, or wake the pulls that wait for it."""
        if topic == SCHEDULE_TOPIC:
            self.sender.delayed.schedule(queue_id + 1)
            return
        self._pulls.arrived(topic, queue_id, code, properties)

    # Pulls

    def pull(self, request: PullMessageRequest, callback: PullCallback) -> None:
        """Answer a pull through ``callback``, on the node's worker. Raises MQClientError once the broker is closed."""

        def answered(found: PulledFrames | PyengineError) -> None:
            answer: PullResult | PyengineError
            try:
                answer = found if isinstance(found, PyengineError) else self._pull_result(found)
            except ProtocolError as error:
                answer = error
            callback(answer)

        self.pull_frames(request, answered)

    def pull_frames(self, request: PullMessageRequest, callback: FramesCallback) -> None:
        """Answer a pull with stored messages, on the node's worker. Raises MQClientError once the broker is closed."""
        self._state.check_open()
        self._pulls.pull(request, callback)

    def _pull_result(self, found: PulledFrames) -> PullResult:
        """What a client of this process gets, with messages of its own."""
        messages = tuple(received(message_ext(decode_stored(each, 0)[0], self.name)) for each in found.frames)
        return PullResult(
            PULL_STATUS[found.code], found.next_begin_offset, found.min_offset, found.max_offset, messages
        )

    def _decode(self, position: int) -> MessageExt:
        """A copy of the message at a position of the log."""
        return message_of(self.store.log.read(position), self.name)

    # Groups, offsets and locks

    def heartbeat(self, heartbeat: HeartbeatData) -> list[str]:
        """A member is alive. Returns the client ids to notify of a change."""
        subscriptions: list[tuple[str, int, Filter | PyengineError]] = []
        for subscription in heartbeat.subscriptions:
            wanted: Filter | PyengineError
            try:
                wanted = filter_of(subscription)
            except PyengineError as error:
                wanted = error
            subscriptions.append((subscription.topic, subscription.sub_version, wanted))
        with self.lock:
            self._state.check_open()
            self.sender.create_retry_topic(heartbeat.group)
            self.heartbeats[heartbeat.group] = heartbeat
            return self.groups.heartbeat(
                heartbeat.group, heartbeat.client_id, subscriptions, self.clock.now(),
                broadcasting=heartbeat.message_model is MessageModel.BROADCASTING,
            )  # fmt: skip

    def leave(self, client_id: str, group: str) -> list[str]:
        """A member is gone. Returns the client ids to notify."""
        with self.lock:
            notified = self.groups.leave(group, client_id)
            if group not in self.groups:
                self.heartbeats.pop(group, None)
            return notified

    def has_member(self, client_id: str) -> bool:
        """True if the client is in some group."""
        with self.lock:
            return bool(self.groups.is_member(client_id))

    def expire_members(self) -> None:
        """Members that stopped sending heartbeats are gone; the others learn of it when they rebalance."""
        with self.lock:
            self.groups.expire(self.clock.now())
            for group in [group for group in self.heartbeats if group not in self.groups]:
                del self.heartbeats[group]

    def commit_offset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Store a group's offset. Raises MQBrokerError for an unknown topic."""
        with self.lock:
            self._state.check_open()
            self._offsets.commit(group, topic, queue_id, offset)

    def reset_offset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Set a group's offset, also of members that consume: their next pull brings them there (assignResetOffset)."""
        with self.lock:
            self._state.check_open()
            self._offsets.reset(group, topic, queue_id, offset)

    def query_offset(self, group: str, topic: str, queue_id: int) -> int:
        """A group's offset, or where a group without one begins. Raises OffsetNotFoundError."""
        with self.lock:
            return self._offsets.query(group, topic, queue_id, self.store.consume_queue(topic, queue_id))

    def pulled(self, group: str, queue: MessageQueue) -> int:
        """Where the last pull of a group ended, -1 without one."""
        return self.pulled_at(group, queue.topic, queue.queue_id)

    def pulled_at(self, group: str, topic: str, queue_id: int) -> int:
        """The same."""
        return self._pulls.ended_at(group, topic, queue_id)

    def topics_of(self, group: str, topics: Iterable[str]) -> list[str]:
        """Those of ``topics``, or of all that a group has committed offsets of, that it has not given up since."""
        with self.lock:
            if not topics:
                keys = (key.rpartition("@") for key in self.offsets.dump())
                topics = [topic for topic, _, owner in keys if owner == group]
            return [topic for topic in topics if self.groups.wants(group, topic)]

    def persist_offsets(self) -> None:
        """Write consumerOffset.json now, if the node keeps files and an offset was committed since."""
        if self._kept is not None:
            self._kept.persist()

    def lock_queues(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> set[MessageQueue]:
        with self.lock:
            self._state.check_open()
            return self.locks.lock(group, client_id, queues, self.clock.now())

    def unlock_queues(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> None:
        with self.lock:
            self.locks.unlock(group, client_id, queues)

    # Deleting

    def delete_below(self, topic: str, queue_id: int, offset: int) -> int:
        """Forget a queue's messages below an offset, for good. Returns how many.

        Raises MQBrokerError, code 14, if that cannot be written to the log.
        """
        with self.lock:
            self._state.check_open()
            self.topic_table.check_queue(topic, queue_id)
            gone = self.store.delete_below(topic, queue_id, offset)
            end = self.store.log.end
        if gone and not self.store.log.flush(end):
            raise _unconfirmed()
        return gone

    def delete_expired(self, before: int) -> int:
        """Forget messages stored before ``before`` (ms) and delete their files. Returns how many messages.

        Raises MQBrokerError, code 14, if that cannot be written to the log.
        """
        with self.lock:
            self._state.check_open()
            gone = self.store.delete_expired(before)
        if gone is None:
            raise _unconfirmed()
        return gone

    def close(self) -> None:
        """Answer what waits with an error and stop."""
        with self.lock:
            self._state.closed = True
            if self._files is not None and not self._files.are_ours:
                return  # the threads, the files and their lock are the other process's
            self.sender.close()
            if self._kept is not None:
                self._kept.stop()
            self.store.stop()
            self._pulls.close()
        self._pulls.worker.close()
        if self._files_worker is not self._pulls.worker:
            self._files_worker.close()
        if self._kept is not None:
            self._kept.close()
        with self.lock:
            self.store.log.close()
            if self._files is not None:
                self._files.close()
