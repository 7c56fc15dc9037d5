"""Whether a broker may be used: not once it is closed, nor as the copy in a forked process."""

from __future__ import annotations

from pyengine.errors import MQClientError
from pyengine.rocketmq.broker.broker_files import BrokerFiles


class NodeState:
    """Open or closed. files: the broker's folder, which belongs to the process that opened it; None: in memory."""

    def __init__(self, name: str, files: BrokerFiles | None) -> None:
        self.closed = False
        self.files = files
        self._name = name

    def check_open(self) -> None:
        """Raise MQClientError once the broker is closed, and in a forked process for the copy of one that keeps files:
        nothing would be kept or delivered.
        """
        if self.closed:
            raise MQClientError(f"the broker[{self._name}] is closed")
        if self.files is not None and not self.files.are_ours:
            raise MQClientError(
                f"the broker[{self._name}] lives in the process that opened {self.files.folder}: send there"
            )
