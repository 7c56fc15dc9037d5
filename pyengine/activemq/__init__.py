"""ActiveMQ in this process: the broker, the JMS client in front of it, and the core's queues, groups and redelivery."""

from pyengine._engine.activemq.client.redelivery_policy import RedeliveryPolicy
from pyengine._engine.activemq.client.session_commands import AcknowledgeMode
from pyengine._engine.activemq.commands.message_ack import AckKind
from pyengine._engine.activemq.queue.group_map import GroupMap
from pyengine._engine.activemq.queue.hold_reasons import HoldReason, Verdict
from pyengine._engine.activemq.queue.queue import Delivery, Queue
from pyengine._engine.closed_enums import close
from pyengine._engine.serialization.codec import SharedValues
from pyengine.activemq.broker.broker import Broker
from pyengine.activemq.client.browser import QueueBrowser
from pyengine.activemq.client.connection import Connection
from pyengine.activemq.client.connection_factory import ConnectionFactory
from pyengine.activemq.client.consumer import Closing, MessageConsumer, TopicSubscriber
from pyengine.activemq.client.producer import NON_PERSISTENT, PERSISTENT, MessageProducer
from pyengine.activemq.client.session import Session
from pyengine.activemq.moved import register
from pyengine.activemq.options import ConnectionOptions, PrefetchPolicy, UnknownOptions

close(AckKind, AcknowledgeMode, HoldReason, Verdict)
register()

SESSION_TRANSACTED = AcknowledgeMode.SESSION_TRANSACTED
AUTO_ACKNOWLEDGE = AcknowledgeMode.AUTO_ACKNOWLEDGE
CLIENT_ACKNOWLEDGE = AcknowledgeMode.CLIENT_ACKNOWLEDGE
DUPS_OK_ACKNOWLEDGE = AcknowledgeMode.DUPS_OK_ACKNOWLEDGE
INDIVIDUAL_ACKNOWLEDGE = AcknowledgeMode.INDIVIDUAL_ACKNOWLEDGE

__all__ = [
    "AUTO_ACKNOWLEDGE",
    "CLIENT_ACKNOWLEDGE",
    "DUPS_OK_ACKNOWLEDGE",
    "INDIVIDUAL_ACKNOWLEDGE",
    "NON_PERSISTENT",
    "PERSISTENT",
    "SESSION_TRANSACTED",
    "AckKind",
    "AcknowledgeMode",
    "Broker",
    "Closing",
    "Connection",
    "ConnectionFactory",
    "ConnectionOptions",
    "Delivery",
    "GroupMap",
    "HoldReason",
    "MessageConsumer",
    "MessageProducer",
    "PrefetchPolicy",
    "Queue",
    "QueueBrowser",
    "RedeliveryPolicy",
    "Session",
    "SharedValues",
    "TopicSubscriber",
    "UnknownOptions",
    "Verdict",
]
