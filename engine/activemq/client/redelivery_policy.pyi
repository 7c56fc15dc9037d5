from datetime import timedelta
from typing import Never, Self

from typing_extensions import disjoint_base

@disjoint_base
class RedeliveryPolicy:
    maximum_redeliveries: int
    initial_redelivery_delay: int
    redelivery_delay: int
    use_exponential_back_off: bool
    back_off_multiplier: float
    maximum_redelivery_delay: int
    use_collision_avoidance: bool
    collision_avoidance_percent: int
    pre_dispatch_check: bool
    def __new__(
        cls,
        *,
        maximum_redeliveries: int = 6,
        initial_redelivery_delay: int | timedelta = 1000,
        redelivery_delay: int | timedelta = 1000,
        use_exponential_back_off: bool = False,
        back_off_multiplier: float = 5.0,
        maximum_redelivery_delay: int | timedelta = -1,
        use_collision_avoidance: bool = False,
        collision_avoidance_percent: int = 15,
        pre_dispatch_check: bool = True,
    ) -> Self: ...
    def next_delay(self, previous: int, chance: float = 0.5) -> int: ...
    def delays(self, count: int) -> list[int]: ...
    def exhausted(self, redeliveries: int) -> bool: ...
    def __setattr__(self, name: str, value: Never, /) -> None: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...
