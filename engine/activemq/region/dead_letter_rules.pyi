from collections.abc import Mapping
from typing import Literal

from typing_extensions import disjoint_base

from pyengine._engine.activemq.client.redelivery_policy import RedeliveryPolicy
from pyengine._engine.activemq.topic.message_audit import Audit

@disjoint_base
class DeadLetterRule:
    form: str
    process_non_persistent: bool
    process_expired: bool
    def __init__(
        self,
        form: Literal["shared", "individual", "discarding"],
        *,
        process_non_persistent: bool = False,
        process_expired: bool = True,
        audit: Audit | None = None,
        audit_apart: bool = False,
        names: Mapping[str, str] | None = None,
    ) -> None: ...
    def destination(
        self,
        message_id: str,
        destination: str,
        *,
        persistent: bool,
        expired: bool,
        carries: str | None = None,
        subscription: str | None = None,
    ) -> str | None: ...
    def forgive(self, message_id: str, destination: str) -> None: ...
    def _check(self) -> None: ...

def resend_delay(policy: RedeliveryPolicy, redeliveries: int, chances: list[float]) -> int | None: ...
