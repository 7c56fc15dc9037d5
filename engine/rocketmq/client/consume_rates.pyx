"""Rates from samples: the last minute's and the last hour's, as the real client's statistics compute them."""

from libc.stdint cimport int64_t
from libc.string cimport memmove

from typing import NamedTuple

cdef int64_t SAMPLE_APART = 10_000
cdef int64_t HOUR_APART = 600_000
cdef int KEPT = 7


class RateSnapshot(NamedTuple):
    """Over the samples kept. sum: of values. tps: sum a second. times: calls. average: sum a call; 0 without calls."""

    sum: int = 0
    tps: float = 0.0
    times: int = 0
    average: float = 0.0


cdef object snapshot(Sample* samples, int count):
    if count == 0:
        return RateSnapshot()
    cdef int64_t total = samples[count - 1].value - samples[0].value
    cdef int64_t times = samples[count - 1].times - samples[0].times
    cdef int64_t span = samples[count - 1].when - samples[0].when
    cdef double average = total / <double>times if times > 0 else 0.0
    return RateSnapshot(total, total * 1000.0 / span if span else 0.0, times, average)


cdef class Rate:
    """One number that grows. The driver samples it every 10 s; the first sample stands for nothing 10 s before."""

    def add(self, int64_t value, int64_t times=1):
        """Count ``value`` more in ``times`` calls."""
        self.value += value
        self.times += times

    cdef int keep(self, Sample* samples, int count, int64_t now, int64_t apart) noexcept:
        if count == 0:
            samples[0] = Sample(now - apart, 0, 0)
            count = 1
        if count == KEPT:
            memmove(samples, samples + 1, (KEPT - 1) * sizeof(Sample))
            count -= 1
        samples[count] = Sample(now, self.times, self.value)
        return count + 1

    def sample(self, int64_t now):
        """Keep a sample for the minute, and one for the hour when 10 minutes have passed. now: ms."""
        self.minutes = self.keep(self.minute, self.minutes, now, SAMPLE_APART)
        if self.hours == 0 or now - self.hour[self.hours - 1].when >= HOUR_APART:
            self.hours = self.keep(self.hour, self.hours, now, HOUR_APART)

    def in_minute(self):
        """Over the last minute."""
        return snapshot(self.minute, self.minutes)

    def in_hour(self):
        """Over the last hour."""
        return snapshot(self.hour, self.hours)

    def _check(self):
        """Raise AssertionError unless the samples lie in the order of time."""
        cdef int i
        assert 0 <= self.minutes <= KEPT and 0 <= self.hours <= KEPT
        for i in range(1, self.minutes):
            assert self.minute[i - 1].when <= self.minute[i].when
        for i in range(1, self.hours):
            assert self.hour[i - 1].when <= self.hour[i].when

    def __reduce__(self):
        raise TypeError("a rate belongs to the consumer that counts it")


cpdef enum Stuck:
    NOT_STUCK = 0
    NOT_LOCKED = 1          # in order: the broker's lock is not held
    NOT_UNLOCKED = 2        # in order: given up, and unlocking failed
    NOT_CONSUMING = 3       # messages are cached and none was consumed for a minute


def stuck_by(info, now, *, bint orderly=False):
    """What keeps a process queue from being consumed (ConsumerRunningInfo.analyzeProcessQueue), a Stuck.

    info: its ProcessQueueInfo by the real field names. now: ms.
    """
    if orderly:
        if not info["locked"]:
            return Stuck.NOT_LOCKED
        return Stuck.NOT_UNLOCKED if info["droped"] and info["tryUnlockTimes"] > 0 else Stuck.NOT_STUCK
    if now - info["lastConsumeTimestamp"] > 60000 and info["cachedMsgCount"] > 0:
        return Stuck.NOT_CONSUMING
    return Stuck.NOT_STUCK


def why_stuck(info, now, *, bint orderly=False):
    """``stuck_by`` in the real client's words, or None."""
    stuck = stuck_by(info, now, orderly=orderly)
    if stuck == Stuck.NOT_LOCKED:
        return f"can't lock for a while, {now - info['lastLockTimestamp']}ms"
    if stuck == Stuck.NOT_UNLOCKED:
        return f"unlock {info['tryUnlockTimes']} times, still failed"
    if stuck == Stuck.NOT_CONSUMING:
        return f"can't consume for a while, maybe blocked, {now - info['lastConsumeTimestamp']}ms"
    return None
