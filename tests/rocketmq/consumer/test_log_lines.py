"""Every line that a consumer logs names its group, and the client or the queue where there is one."""

from __future__ import annotations

import ast
import logging
from pathlib import Path

import pytest

from pyengine import rocketmq
from pyengine.clock import ManualClock

CONSUMER = Path(rocketmq.__file__).parent / "consumer"
# What says whose line it is: the group, a request or a client's id, which say the group, or the file of its offsets.
NAMED = {"group", "_group", "request", "client_id", "path", "_name"}
OF_NOBODY = {
    "ScheduledTask exception",  # of a client, with all of its groups
}


def lines() -> list[tuple[str, str, set[str]]]:
    """Where, text and names of the arguments of each call of the logger."""
    found = []
    for path in sorted(CONSUMER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("log.warning", "log.error", "log.exception"):
                names = {
                    each.id if isinstance(each, ast.Name) else each.attr
                    for argument in node.args[1:]
                    for each in ast.walk(argument)
                    if isinstance(each, ast.Name | ast.Attribute)
                }
                found.append((f"{path.name}:{node.lineno}", ast.literal_eval(node.args[0]), names))
    return found


@pytest.mark.parametrize(("where", "text", "names"), lines(), ids=lambda each: each if isinstance(each, str) else "")
def test_a_line_of_a_consumer_names_its_group(where: str, text: str, names: set[str]) -> None:
    assert names & NAMED or text in OF_NOBODY, f"{where}: {text!r} does not say whose line it is"


def test_a_failed_lock_and_a_failed_allocation_name_group_and_queue(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(rocketmq.AllocateMessageQueueAveragely):
        def allocate(self, *given: object) -> list[rocketmq.MessageQueue]:
            raise ValueError("no")

    clock = ManualClock()
    with caplog.at_level(logging.WARNING, logger="pyengine.rocketmq"), rocketmq.Broker(clock=clock) as broker:
        broker.create_topic("orders", 1)
        consumer = rocketmq.DefaultMQPushConsumer("billing", broker=broker, allocate_message_queue_strategy=Broken())
        consumer.subscribe("orders")
        consumer.register_message_listener(lambda messages, context: None)
        with consumer:
            clock.advance(3_000)
    assert any("ex: no (group billing, topic orders)" in line for line in caplog.messages), caplog.messages
