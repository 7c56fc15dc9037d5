"""When a cron entry comes next, as ActiveMQ's CronParser finds it: five fields, in the machine's time zone.

It is that class step by step, with what it gets wrong: a step counts from 0 (``1-59/2`` is the even minutes), the
milliseconds of the time it is asked at stay, and a value that a field cannot have is not refused.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from pyengine._engine.message.cron_entry import FIELDS, HINT, fields_of
from pyengine.errors import ConfigurationError, shown

_FAR = 1 << 31
MINUTE = 60_000


class _Field:
    def __init__(self, ranges: list[range], name: str, start: int, end: int) -> None:
        self.name, self.start, self.end = name, start, end
        self.values = sorted(value for each in ranges for value in each)
        if not self.values:
            raise ValueError(f"{name} has no value")

    def next(self, current: int, working: datetime) -> int:
        """How far the next value is from the current one."""
        for value in self.values:
            if value > current:
                return value - current
        end = self.end
        if self.name == "DayOfMonth":
            from calendar import monthrange  # it takes time to import

            end = monthrange(working.year, working.month)[1] + 1
        return end + self.values[0] - self.start - current + (self.name in ("DayOfWeek", "Month"))


def next_time(entry: str, now: int) -> int:
    """The next time, ms, after ``now``. Raises ConfigurationError for what is not a cron entry."""
    if entry == "* * * * *":
        return (now + MINUTE) // MINUTE * MINUTE
    try:
        minutes, hours, days, months, weekdays = (
            _Field(ranges, *field) for ranges, field in zip(fields_of(entry), FIELDS, strict=True)
        )
    except ValueError as error:
        raise ConfigurationError("AMQ_SCHEDULED_CRON", shown(entry), f"not a cron entry: {error}", HINT) from error
    working = datetime.fromtimestamp(now / 1000).replace(second=0) + timedelta(minutes=1)

    def to_time(working: datetime) -> datetime:
        if working.minute not in minutes.values:
            working += timedelta(minutes=minutes.next(working.minute, working))
        return working

    def to_hour(working: datetime) -> datetime:
        if working.hour not in hours.values:
            working += timedelta(hours=hours.next(working.hour, working))
        return working

    def to_day(working: datetime) -> datetime:
        weekday = (working.weekday() + 1) % 7
        by_week = by_month = _FAR
        if weekday not in weekdays.values:
            by_week = weekdays.next(weekday, working)
        if working.day not in days.values:
            by_month = days.next(working.day, working)
        if by_week == by_month == _FAR:
            return working
        return (working + timedelta(days=min(by_week, by_month))).replace(hour=0, minute=0, second=0)

    working = to_day(to_hour(to_time(working)))
    if working.month not in months.values:
        ahead = working.month - 1 + months.next(working.month, working)
        year, month = working.year + ahead // 12, ahead % 12 + 1
        working = working.replace(year=year, month=month, day=1, hour=0, minute=0, second=0)
    working = to_time(to_hour(to_day(working)))
    return round(working.timestamp() * 1000)
