"""RocketMQ: an embedded cluster, its push consumer, which client owns which queue, which offset is safe to commit."""

from pyengine._engine.closed_enums import close
from pyengine._engine.java.hashing import hash_code, tags_code
from pyengine._engine.moved import import_by_earlier_names
from pyengine._engine.rocketmq.broker.consume_lag import LastConsume
from pyengine._engine.rocketmq.client.consume_timestamp import parse_consume_timestamp
from pyengine._engine.rocketmq.client.offset_table import ControllableOffset
from pyengine._engine.rocketmq.client.process_queue import FlowControl, ProcessQueue
from pyengine._engine.rocketmq.client.pull_gate import pull_sys_flag
from pyengine.errors import (
    AllocationError,
    IllegalStateError,
    MQBrokerError,
    MQClientError,
    OffsetNotFoundError,
    RemotingError,
    RemotingTimeoutError,
)
from pyengine.rocketmq.broker.broker import Broker
from pyengine.rocketmq.consumer.consume_stats import ConsumeStats, OffsetWrapper, consume_stats
from pyengine.rocketmq.consumer.consume_status import ConsumeStatus
from pyengine.rocketmq.consumer.listener import (
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    MessageListenerConcurrently,
    MessageListenerOrderly,
    MessageQueueListener,
)
from pyengine.rocketmq.consumer.lite_pull_consumer import DefaultLitePullConsumer
from pyengine.rocketmq.consumer.local_offset_store import LocalFileOffsetStore
from pyengine.rocketmq.consumer.offset_store import OffsetStore, ReadOffsetType, RemoteBrokerOffsetStore
from pyengine.rocketmq.consumer.parameters import ClientConfig, ConsumerParameters
from pyengine.rocketmq.consumer.push_consumer import DefaultMQPushConsumer
from pyengine.rocketmq.consumer.record_worker import RecordWorker, TopicPartition
from pyengine.rocketmq.consumer.running_info import ConsumerRunningInfo
from pyengine.rocketmq.message import Message, MessageExt, dlq_topic, retry_topic
from pyengine.rocketmq.moved import MODULES
from pyengine.rocketmq.remoting.acl import SessionCredentials
from pyengine.rocketmq.remoting.cluster import Cluster
from pyengine.rocketmq.remoting.cluster_admin import (
    BrokerState,
    ClientConnection,
    ClusterAdmin,
    ConsumerConnections,
    GroupProgress,
    QueueState,
)
from pyengine.rocketmq.remoting.mq_client_api import (
    ConsumeFromWhere,
    MessageModel,
    MQClientAPI,
    PullMessageRequest,
    PullResult,
    PullStatus,
    SendResult,
    SendStatus,
    SubscriptionData,
)
from pyengine.rocketmq.remoting.producer import Producer
from pyengine.rocketmq.remoting.replies import create_reply_message
from pyengine.rocketmq.remoting.sending import SendOptions
from pyengine.rocketmq.remoting.tls import client_ssl_context
from pyengine.rocketmq.remoting.transaction_producer import (
    LocalTransactionState,
    TransactionMQProducer,
    TransactionSendResult,
)
from pyengine.rocketmq.subscription import MessageSelector, build_subscription, sql, tag
from pyengine.rocketmq.tables.allocation import (
    AllocateMachineRoomNearby,
    AllocateMessageQueueAveragely,
    AllocateMessageQueueAveragelyByCircle,
    AllocateMessageQueueByConfig,
    AllocateMessageQueueByMachineRoom,
    AllocateMessageQueueConsistentHash,
    MachineRoomResolver,
    MessageQueue,
    allocate,
    allocate_all,
    sort_client_ids,
    sort_queues,
)
from pyengine.rocketmq.tables.plan import AllocationPlan, Load, Move, Skew, allocate_topics, compare_strategies

close(FlowControl, LastConsume)
import_by_earlier_names(__name__, MODULES)

__all__ = [
    "AllocateMachineRoomNearby",
    "AllocateMessageQueueAveragely",
    "AllocateMessageQueueAveragelyByCircle",
    "AllocateMessageQueueByConfig",
    "AllocateMessageQueueByMachineRoom",
    "AllocateMessageQueueConsistentHash",
    "AllocationError",
    "AllocationPlan",
    "Broker",
    "BrokerState",
    "ClientConfig",
    "ClientConnection",
    "Cluster",
    "ClusterAdmin",
    "ConsumeConcurrentlyContext",
    "ConsumeConcurrentlyStatus",
    "ConsumeFromWhere",
    "ConsumeOrderlyContext",
    "ConsumeOrderlyStatus",
    "ConsumeStats",
    "ConsumeStatus",
    "ConsumerConnections",
    "ConsumerParameters",
    "ConsumerRunningInfo",
    "ControllableOffset",
    "DefaultLitePullConsumer",
    "DefaultMQPushConsumer",
    "FlowControl",
    "GroupProgress",
    "IllegalStateError",
    "LastConsume",
    "Load",
    "LocalFileOffsetStore",
    "LocalTransactionState",
    "MQBrokerError",
    "MQClientAPI",
    "MQClientError",
    "MachineRoomResolver",
    "Message",
    "MessageExt",
    "MessageListenerConcurrently",
    "MessageListenerOrderly",
    "MessageModel",
    "MessageQueue",
    "MessageQueueListener",
    "MessageSelector",
    "Move",
    "OffsetNotFoundError",
    "OffsetStore",
    "OffsetWrapper",
    "ProcessQueue",
    "Producer",
    "PullMessageRequest",
    "PullResult",
    "PullStatus",
    "QueueState",
    "ReadOffsetType",
    "RecordWorker",
    "RemoteBrokerOffsetStore",
    "RemotingError",
    "RemotingTimeoutError",
    "SendOptions",
    "SendResult",
    "SendStatus",
    "SessionCredentials",
    "Skew",
    "SubscriptionData",
    "TopicPartition",
    "TransactionMQProducer",
    "TransactionSendResult",
    "allocate",
    "allocate_all",
    "allocate_topics",
    "build_subscription",
    "client_ssl_context",
    "compare_strategies",
    "consume_stats",
    "create_reply_message",
    "dlq_topic",
    "hash_code",
    "parse_consume_timestamp",
    "pull_sys_flag",
    "retry_topic",
    "sort_client_ids",
    "sort_queues",
    "sql",
    "tag",
    "tags_code",
]
