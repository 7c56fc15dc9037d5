"""What clients and brokers ask of each other, in one process or over TCP."""

from pyengine.rocketmq.remoting.mq_client_api import (
    ClientEvents,
    ConsumeFromWhere,
    HeartbeatData,
    MessageModel,
    MQClientAPI,
    PullMessageRequest,
    PullResult,
    PullStatus,
    SendResult,
    SendStatus,
    SubscriptionData,
)

__all__ = [
    "ClientEvents",
    "ConsumeFromWhere",
    "HeartbeatData",
    "MQClientAPI",
    "MessageModel",
    "PullMessageRequest",
    "PullResult",
    "PullStatus",
    "SendResult",
    "SendStatus",
    "SubscriptionData",
]
