"""Selector.surprises: advice on legal selectors, and none on plain ones."""

from __future__ import annotations

import pyengine


def test_surprises_have_a_position_and_an_advice() -> None:
    assert pyengine.Selector("a = 1").surprises == []
    ((position, advice),) = pyengine.Selector("JMSPriority IS NULL").surprises
    assert position == 0
    assert "never null" in advice


def test_a_text_is_another_selector_in_another_dialect() -> None:
    ours = pyengine.Selector("a", "activemq").surprises
    theirs = pyengine.Selector("a", "rocketmq").surprises
    assert ours
    assert theirs
    assert ours != theirs
    assert pyengine.Selector("a").surprises == ours


def test_a_header_that_is_always_true_or_false_may_stand_alone() -> None:
    for text in ("JMSRedelivered", "NOT JMSRedelivered", "a = 1 AND NOT JMSXGroupFirstForConsumer"):
        assert pyengine.Selector(text).surprises == []
    for text in ("vip", "JMSType"):
        assert [advice for _, advice in pyengine.Selector(text).surprises] == [
            f"{text} alone is false unless it is a boolean true"
        ]
