"""Evidence: what the files that people have on their hands say about brokers, groups, clients and threads."""

from pyengine.backlog.evidence.model import (
    ClientState,
    ConsumeRates,
    DestinationState,
    Evidence,
    FlowControlState,
    GroupSettings,
    GroupState,
    OffsetState,
    ProcessQueueState,
    Remark,
    StreamProgress,
    SubscriptionState,
    ThreadDump,
    ThreadState,
    TopicSettings,
)
from pyengine.backlog.evidence.reading import read_files, read_text, read_what_can_be

__all__ = [
    "ClientState",
    "ConsumeRates",
    "DestinationState",
    "Evidence",
    "FlowControlState",
    "GroupSettings",
    "GroupState",
    "OffsetState",
    "ProcessQueueState",
    "Remark",
    "StreamProgress",
    "SubscriptionState",
    "ThreadDump",
    "ThreadState",
    "TopicSettings",
    "read_files",
    "read_text",
    "read_what_can_be",
]
