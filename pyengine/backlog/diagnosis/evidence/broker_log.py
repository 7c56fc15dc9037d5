"""RocketMQ's broker.log without a line that tells why a group waits;
:mod:`~pyengine.backlog.diagnosis.evidence.client_log` reads the lines of its pulls."""

from __future__ import annotations

import re

from pyengine.backlog.diagnosis.evidence.model import Evidence, Source
from pyengine.backlog.diagnosis.evidence.needs import PROGRESS_TOO

# A line of one of the broker's own threads.
_BROKER = re.compile(
    r"^\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\S* +(?:DEBUG|INFO|WARN|ERROR) +(?:\[?PullMessageThread|SendMessageThread|"
    r"ClientManageThread|AdminBrokerThread|BrokerControllerScheduledThread|PullRequestHoldService|QueryMessageThread|"
    r"ConsumerManageThread|HeartbeatThread|EndTransactionThread|brokerOutApi_thread|NettyEventExecutor|"
    r"TransactionalMessageCheckService|AckMessageThread|PopLongPollingService|PopReviveService|BrokerFastFailure)",
    re.MULTILINE,
)


def recognises(text: str) -> bool:
    """True for a line of one of the broker's threads."""
    return _BROKER.search(text) is not None


def read(text: str, file: str, modified: int | None) -> Evidence:
    """Nothing but what it is."""
    times = () if modified is None else (modified,)
    return Evidence(sources=[Source(file, "RocketMQ's broker.log", times, needs=PROGRESS_TOO)])
