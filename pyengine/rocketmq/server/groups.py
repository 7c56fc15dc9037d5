"""The settings of consumer groups at a broker (SubscriptionGroupManager)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from pyengine._engine.rocketmq.commands.bodies import read_body, write_body
from pyengine.errors import MQBrokerError
from pyengine.rocketmq.remoting.mq_client_api import NO_PERMISSION

SYSTEM_GROUPS = (
    "TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY", "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER", "CID_RMQ_SYS_TRANS",
)  # fmt: skip


class SubscriptionGroups:
    """The groups of one broker; one that is asked for is made (autoCreateSubscriptionGroup). Safe from any thread.

    kept: SubscriptionGroupWrapper of the time before. keep: called with it at each change.
    """

    def __init__(self, kept: dict[str, Any], keep: Callable[[dict[str, Any]], None]) -> None:
        self._lock = threading.Lock()
        self._keep = keep
        self._configs = {group: _plain(group) for group in SYSTEM_GROUPS}
        self._configs.update(kept.get("subscriptionGroupTable") or {})

    def __contains__(self, group: str) -> bool:
        with self._lock:
            return group in self._configs

    def names(self) -> list[str]:
        """Every group."""
        with self._lock:
            return list(self._configs)

    def find(self, group: str) -> dict[str, Any]:
        """The group's SubscriptionGroupConfig."""
        with self._lock:
            found = self._configs.get(group)
            if found is not None:
                return found
            config = self._configs[group] = _plain(group)
        self._keep(self.as_wrapper())
        return config

    def update(self, config: dict[str, Any]) -> None:
        """Set it (updateSubGroup)."""
        with self._lock:
            self._configs[config["groupName"]] = config
        self._keep(self.as_wrapper())

    def delete(self, group: str) -> None:
        """Forget it."""
        with self._lock:
            self._configs.pop(group, None)
        self._keep(self.as_wrapper())

    def check_consumes(self, group: str) -> None:
        """Raise MQBrokerError for a group that may not consume."""
        if not self.find(group)["consumeEnable"]:
            raise MQBrokerError(NO_PERMISSION, f"subscription group no permission, {group}")

    def as_wrapper(self) -> dict[str, Any]:
        """SubscriptionGroupWrapper."""
        with self._lock:
            return {"subscriptionGroupTable": dict(self._configs)}


def _plain(group: str) -> dict[str, Any]:
    """The default settings of a group."""
    config = read_body("SubscriptionGroupConfig", write_body("SubscriptionGroupConfig", {"groupName": group}))
    assert config is not None
    return config
