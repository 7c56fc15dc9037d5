"""The embedded broker: topics and queues, the commit log, offsets, delayed messages, what its files keep."""

from pyengine.rocketmq.broker.broker import Broker

__all__ = ["Broker"]
