"""RocketMQ's delay levels, and whether a failed message is tried again or is a dead letter (spec rocketmq 6.2).

Levels are numbered from 1.
"""

from collections.abc import Iterable

from pyengine._engine.java.numbers import parsed_long
from pyengine.errors import ConfigurationError

DEFAULT_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"

UNITS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

# The level of the first retry where the consumer names none (AbstractSendMessageProcessor).
FIRST_RETRY_LEVEL = 3


class DelayLevels:
    """The broker's ``messageDelayLevel``: delays with the units s, m, h, d, separated by single blanks; blanks at the
    end are ignored, and a product beyond 64 bits wraps.

    Raises ConfigurationError for a value with which the broker does not start, and for blanks alone, which give no
    level. Source: ScheduleMessageService.parseDelayLevel.
    """

    __slots__ = ("_delays",)

    def __init__(self, text: str = DEFAULT_LEVELS) -> None:
        number = 0
        delays = []
        for item in text.rstrip(" ").split(" "):
            end = max(0, len(item) - 1)
            unit = UNITS.get(item[end:])
            try:
                number = parsed_long("delay", item[:end])
            except ValueError:
                unit = None
            if unit is None:
                raise ConfigurationError(
                    "messageDelayLevel", text, f"{item!r} is no delay", "numbers with s, m, h or d, as in '1s 5m 2h'"
                )
            delays.append((number * unit + 2**63) % 2**64 - 2**63)
        self._delays = tuple(delays)

    @property
    def delays(self) -> tuple[int, ...]:
        """The delay of each level, ms."""
        return self._delays

    def __len__(self) -> int:
        return len(self._delays)

    def clamp(self, level: int) -> int:
        """The level a message is stored with: at most the last one; 0 for none."""
        return max(0, min(level, len(self._delays)))

    def _delay(self, level: int) -> int:
        return self._delays[level - 1] if 1 <= level <= len(self._delays) else 1000

    def deliver_time(self, level: int, store_time: int) -> int:
        """When a message stored at ``store_time`` with this level is delivered, ms; 1 s for an unknown level."""
        return store_time + self._delay(level)

    def due_time(self, level: int, deliver_time: int, now: int) -> int:
        """The delivery time as it counts at ``now``: one further away than the level's delay (the clock was set back)
        is due at once."""
        return now if deliver_time > now + self._delay(level) else deliver_time

    def __reduce__(self) -> tuple[object, ...]:
        return _levels, (self.delays,)


def _levels(delays: Iterable[int]) -> DelayLevels:
    return DelayLevels(" ".join(f"{delay // 1000}s" for delay in delays))


def send_back(delay_level: int, reconsume_times: int, max_reconsume_times: int) -> int:
    """What becomes of a message that a consumer gives back: its delay level, -1 for the dead letters.

    delay_level: the consumer's wish; 0 leaves it to the broker, below 0 means dead letter. reconsume_times: how often
    it was given back before. Source: AbstractSendMessageProcessor.consumerSendMsgBack.
    """
    if reconsume_times >= max_reconsume_times or delay_level < 0:
        return -1
    return FIRST_RETRY_LEVEL + reconsume_times if delay_level == 0 else delay_level


def retry_is_dead(reconsume_times: int, max_reconsume_times: int, ordered: bool) -> bool:
    """True if a message sent to a retry topic goes to the dead letters instead.

    ordered: the group holds living queue locks. Source: SendMessageProcessor.handleRetryAndDLQ.
    """
    return ordered or reconsume_times > max_reconsume_times
