"""How a topic lies on a broker."""

from __future__ import annotations

from typing import Any

from pyengine.attributes import frozen
from pyengine.dataclass import dataclass

READABLE, WRITABLE, INHERITED = 4, 2, 1  # bits of a perm (PermName)
READ_WRITE = READABLE | WRITABLE


@frozen
@dataclass(frozen=True, slots=True)
class TopicConfig:
    """A topic's queues on one broker (TopicConfig): how many can be read and written, and what is allowed.

    perm: bits READABLE, WRITABLE and INHERITED. order: whether its messages are kept in order. sys_flag: of units.
    """

    read_queues: int
    write_queues: int
    perm: int = READ_WRITE
    order: bool = False
    sys_flag: int = 0

    @property
    def queues(self) -> int:
        """How many queues there are, read or written."""
        return max(self.read_queues, self.write_queues)

    def describe(self, topic: str) -> str:
        """As the real class prints itself."""
        bits = ((READABLE, "R"), (WRITABLE, "W"), (INHERITED, "X"))
        perm = "".join(letter if self.perm & bit else "-" for bit, letter in bits)
        return (
            f"TopicConfig [topicName={topic}, readQueueNums={self.read_queues}, writeQueueNums={self.write_queues}, "
            f"perm={perm}, topicFilterType=SINGLE_TAG, topicSysFlag={self.sys_flag}, "
            f"order={'true' if self.order else 'false'}, attributes={{}}]"
        )

    def entry(self, topic: str) -> dict[str, Any]:
        """The topic's entry in topicConfigTable, in files and answers."""
        return {
            "attributes": {},
            "order": self.order,
            "perm": self.perm,
            "readQueueNums": self.read_queues,
            "topicFilterType": "SINGLE_TAG",
            "topicName": topic,
            "topicSysFlag": self.sys_flag,
            "writeQueueNums": self.write_queues,
        }
