"""``consume_timestamp`` as Java's lenient SimpleDateFormat("yyyyMMddHHmmss") reads it (spec rocketmq 4.6)."""

from pyengine.errors import ConfigurationError

FIELDS = (4, 2, 2, 2, 2, 2)
INT_MAX = 2147483647
CUTOVER = 577736  # 1582-10-15 as days since 0001-01-01 Gregorian, that day being 1


def wrapped(number: int, bits: int) -> int:
    """The number as Java's int or long keeps it."""
    half = 1 << (bits - 1)
    return (number + half) % (2 * half) - half


def digits_from(text: str, start: int, end: int) -> tuple[str, int]:
    """(decimal digits, where they end); a digit is one of any script."""
    found = []
    while start < end and text[start].isdecimal():
        found.append(int(text[start]))
        start += 1
    return "".join(map(str, found)), start


def number_at(text: str, start: int, end: int) -> tuple[int, int] | None:
    """What NumberFormat reads at ``start``: (the number as a Java int, where it ends), None if there is none.

    It takes a minus, digits of any script, an exponent ``E`` or ``E-``, ``NaN`` and the sign of infinity.
    """
    if text[start : min(end, start + 3)] == "NaN":
        return 0, start + 3
    negative = start < end and text[start] == "-"
    at = start + negative
    if at < end and text[at] == "\u221e":
        return (-INT_MAX - 1 if negative else INT_MAX), at + 1
    digits, at = digits_from(text, at, end)
    if not digits:
        return None
    exponent = 0
    if at < end and text[at] == "E":
        minus = at + 1 < end and text[at + 1] == "-"
        power, behind = digits_from(text, at + 1 + minus, end)
        if power and int(power) < 2**63:
            exponent, at = (-1 if minus else 1) * wrapped(int(power), 32), behind
            exponent = max(-400, min(400, exponent))
    number = int(digits) * 10**exponent if exponent >= 0 else int(digits) // 10**-exponent
    whole = exponent >= 0 or int(digits) % 10**-exponent == 0
    if negative:
        number = -number
    if whole and -(2**63) <= number < 2**63:
        return wrapped(number, 32), at
    return max(-INT_MAX - 1, min(INT_MAX, number)), at


def fixed_date(year: int, month: int, gregorian: bool) -> int:
    """Days before the first of a month (0 = January) plus one; year 0 is 1 BC."""
    past = year - 1
    days = 365 * past + past // 4 + (367 * (month + 1) - 362) // 12
    leap = year % 4 == 0
    if gregorian:
        days += past // 400 - past // 100
        leap = leap and (year % 100 != 0 or year % 400 == 0)
    else:
        days -= 2
    if month > 1:
        days -= 1 if leap else 2
    return days + 1


def parse_consume_timestamp(text: str) -> int | None:
    """Milliseconds since 1970 of the text read as a time of UTC; None where SimpleDateFormat gives up.

    Four digits of a year, two each of month, day, hour and minute, then all that follow as seconds; any part may be
    shorter or signed, and is carried over (month 13 is next January). What follows the seconds is ignored. The caller
    moves the answer to its time zone. Raises ConfigurationError for anything but a string.
    """
    if not isinstance(text, str):
        raise ConfigurationError("text", repr(text), "must be a string", "give yyyyMMddHHmmss, as '20240101000000'")
    values = []
    at = 0
    end = len(text)
    for position, width in enumerate(FIELDS):
        begin = at
        while at < end and text[at] in " \t":
            at += 1
        if at >= end:
            return None
        limit = end
        if position < 5:
            limit = begin + width
            if limit > end:
                return None
        found = number_at(text, at, limit)
        if found is None:
            return None
        number, at = found
        values.append(number)
    year, month, day, hour, minute, second = values
    # Days carry over before the calendar is chosen, and the year as written decides that too.
    more, time_of_day = divmod((hour * 60 + minute) * 60 + second, 86400)
    written = year
    month = wrapped(month - 1, 32)
    year, month = wrapped(year + month // 12, 32), month % 12
    days = fixed_date(year, month, True) + day - 1 + more
    if written < 1582 or days < CUTOVER:
        days = fixed_date(year, month, False) + day - 1 + more
    return wrapped(((days - 719163) * 86400 + time_of_day) * 1000, 64)
