# cython: freethreading_compatible=True
"""Delay levels and the fate of a failed message (spec rocketmq 6.2, 10.3)."""

from libc.stdint cimport int64_t, uint64_t

from pyengine._engine.java.numbers cimport parsed_long

from pyengine.errors import ConfigurationError

DEFAULT_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"

cdef dict UNITS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

# The level of the first retry where the consumer names none (AbstractSendMessageProcessor).
cdef int64_t FIRST_RETRY_LEVEL = 3


cdef class DelayLevels:
    """The broker's ``messageDelayLevel``: delays with the units s, m, h, d, separated by single blanks; trailing blanks
    are ignored, and a product beyond 64 bits wraps.

    Raises ConfigurationError for a value with which the broker does not start, and for blanks alone, which give no
    level. Source: ScheduleMessageService.parseDelayLevel.
    """

    def __cinit__(self, str text not None=DEFAULT_LEVELS):
        cdef int64_t number = 0
        cdef Py_ssize_t end
        cdef list delays = []
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
            delays.append(<int64_t>(<uint64_t>number * <uint64_t>unit))
        self.delays = tuple(delays)

    def __len__(self):
        return len(self.delays)

    def clamp(self, int64_t level):
        """The level a message is stored with: at most the last one; 0 for none."""
        return max(<int64_t>0, min(level, <int64_t>len(self.delays)))

    cdef int64_t delay(self, int64_t level) except? -1:
        return self.delays[level - 1] if 1 <= level <= <int64_t>len(self.delays) else 1000

    def deliver_time(self, int64_t level, int64_t store_time):
        """When a message stored at ``store_time`` with this level is delivered, ms; 1 s for an unknown level."""
        return store_time + self.delay(level)

    def due_time(self, int64_t level, int64_t deliver_time, int64_t now):
        """The delivery time as it counts at ``now``: one further away than the level's delay (the clock was set back)
        is due at once."""
        return now if deliver_time > now + self.delay(level) else deliver_time

    def __reduce__(self):
        return _levels, (self.delays,)


def _levels(delays):
    return DelayLevels(" ".join(f"{delay // 1000}s" for delay in delays))


def send_back(int64_t delay_level, int64_t reconsume_times, int64_t max_reconsume_times):
    """What becomes of a message that a consumer gives back: its delay level, -1 for the dead letters.

    delay_level: the consumer's wish; 0 leaves it to the broker, below 0 means dead letter. reconsume_times: how often
    it was given back before. Source: AbstractSendMessageProcessor.consumerSendMsgBack.
    """
    if reconsume_times >= max_reconsume_times or delay_level < 0:
        return -1
    return FIRST_RETRY_LEVEL + reconsume_times if delay_level == 0 else delay_level


def retry_is_dead(int64_t reconsume_times, int64_t max_reconsume_times, bint ordered):
    """True if a message sent to a retry topic goes to the dead letters instead.

    ordered: the group holds living queue locks. Source: SendMessageProcessor.handleRetryAndDLQ.
    """
    return ordered or reconsume_times > max_reconsume_times
