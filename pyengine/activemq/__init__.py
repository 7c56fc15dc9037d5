"""ActiveMQ's dispatch rules: queues, message groups, redelivery."""

from pyengine._engine.groups import GroupMap
from pyengine._engine.queue import AckKind, Delivery, Queue
from pyengine._engine.reasons import HoldReason, Verdict
from pyengine._engine.redelivery import RedeliveryPolicy
from pyengine.activemq.broker import Broker

__all__ = ["AckKind", "Broker", "Delivery", "GroupMap", "HoldReason", "Queue", "RedeliveryPolicy", "Verdict"]
