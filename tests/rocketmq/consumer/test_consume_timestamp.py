"""What java.text.SimpleDateFormat("yyyyMMddHHmmss") of OpenJDK 17 answers in UTC, lenient as it is."""

from __future__ import annotations

import time

import pytest

from pyengine.clock import ManualClock
from pyengine.errors import ConfigurationError
from pyengine.rocketmq import DefaultMQPushConsumer, parse_consume_timestamp

ANSWERS = [
    ("20240102030405", 1704164645000),
    ("20241399999999", 1744519239000),
    ("2024010203040", 1704164640000),
    ("20240102030405extra", 1704164645000),
    ("2024-01-02 03:04:05", 1701388923000),
    ("20240102030405.5", 1704164645000),
    ("-0240102030405", -62924676955000),
    ("99991231235959", 253402300799000),
    ("00010101000000", -62135769600000),
    ("15821004000000", -12219379200000),
    ("15821005000000", -12219292800000),
    ("15821014000000", -12218515200000),
    ("15821015000000", -12219292800000),
    ("15829901000000", -11986531200000),
    ("15819901000000", -12017203200000),
    (" 2024010203040", -55689391760000),
    ("20240102030405E2", 1704165140000),
    ("23E240102010405", 10517026605000),
    ("20340102030405E-4074277463", 4167267487000),
    ("2E840102030405", -6019000092743961464),
    ("20240102-∞30405", -7729235853795000),
    ("9-∞464006910", 5647390615470070000),
    ("∞20240102030405176", 6017484208120702464),
    ("\u0662\u0660\u0662\u06640102030405", 1704164645000),
    ("20240102NaN", None),
    ("", None),
    ("abc", None),
    ("2024", None),
    ("2024 ", None),
    ("20240102030", None),
    ("202401020304  ", None),
    ("2024010203040x", 1704164640000),
    ("-", None),
    ("2024--01020304", None),
]


@pytest.mark.parametrize(("text", "milliseconds"), ANSWERS)
def test_a_text_is_read_as_java_reads_it(text: str, milliseconds: int | None) -> None:
    assert parse_consume_timestamp(text) == milliseconds


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "America/New_York"])
def test_the_default_is_half_an_hour_ago_in_any_zone(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    consumer = DefaultMQPushConsumer("G", clock=ManualClock(now=1_700_000_000_999))
    assert consumer.consume_timestamp_millis() == 1_700_000_000_000 - 30 * 60_000
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("given", [None, 20240101000000, b"20240101000000"])
def test_what_is_no_text_is_named(given: object) -> None:
    with pytest.raises(
        ConfigurationError, match=r"^text=.*: must be a string; give yyyyMMddHHmmss, as '20240101000000'"
    ):
        parse_consume_timestamp(given)  # type: ignore[arg-type]
