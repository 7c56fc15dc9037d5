"""What to bring too, of what is known and tells nothing of a backlog alone."""

from __future__ import annotations

from pyengine.backlog.findings import say

PROGRESS_TOO = say("give `mqadmin consumerProgress -g GROUP -s true` too, twice, a minute apart")
BROKER_OFFSETS_TOO = say(
    "it has no broker offsets: give `mqadmin topicStatus -t TOPIC` or consumerProgress of then too"
)
JOLOKIA_TOO = say("give a `read` of org.apache.activemq:type=Broker,* over Jolokia too, twice, a minute apart")
