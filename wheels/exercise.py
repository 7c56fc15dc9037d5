"""What every installed wheel must do: run by the Python of an environment that holds the wheel and nothing else."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import pickle
import tempfile
import threading
from pathlib import Path

import numpy as np

import pyengine
from pyengine import activemq, rocketmq
from pyengine.clock import ManualClock


def live_activemq(folder: str) -> None:
    """A message goes through a durable broker, its sessions and a listener on a thread of its own."""
    with activemq.Broker(folder) as broker:
        factory = activemq.ConnectionFactory("vm://localhost", broker=broker)
        with factory.create_connection() as connection:
            session = connection.create_session(activemq.SESSION_TRANSACTED)
            session.create_producer("orders").send(pyengine.Message({"price": 250}, body="tea"))
            session.commit()
            heard = threading.Event()
            consumer = connection.create_session().create_consumer("orders", "price > 100")
            consumer.message_listener = lambda message: heard.set()
            assert heard.wait(20), "the listener of a live session was not called"


def live_rocketmq() -> None:
    """A message goes from a producer to a push consumer."""
    clock = ManualClock()
    seen: list[bytes] = []
    broker = rocketmq.Broker(clock=clock)
    broker.create_topic("orders", 4)
    consumer = rocketmq.DefaultMQPushConsumer("billing", broker=broker)
    consumer.subscribe("orders", rocketmq.sql("price > 100"))

    def listen(messages: list[rocketmq.MessageExt], context: object) -> rocketmq.ConsumeConcurrentlyStatus:
        seen.extend(message.body for message in messages)
        return rocketmq.ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer.register_message_listener(listen)
    consumer.start()
    rocketmq.Producer(broker).send("orders", b"tea", properties={"price": "250"})
    clock.advance(30_000)
    consumer.shutdown()
    assert seen == [b"tea"], f"the push consumer got {seen}"


def main() -> None:
    """Exercise the installed package; an assertion or exception says what is missing."""
    here = Path(pyengine.__file__).resolve()
    assert "site-packages" in here.parts, f"not an installed package: {here}"
    assert importlib.util.find_spec("engine") is None, "the wheel claims the top-level name engine"
    files = importlib.metadata.files("pyengine-dispatch") or []
    top = {file.parts[0] for file in files if ".dist-info" not in file.parts[0] and ".." not in file.parts}
    top -= {"__pycache__"}  # pip compiles the module for pytest beside it
    assert top == {"pyengine", "pyengine_pytest.py"}, f"top-level names in the wheel: {top}"
    assert not [file for file in files if file.suffix in {".c", ".pyx"}], "sources in the wheel"
    assert any(file.name == "py.typed" for file in files)

    selector = pyengine.Selector("region = 'EU' AND price > 100")
    assert selector.matches({"region": "EU", "price": 250})
    assert not selector.matches(pyengine.Message(properties={"region": "EU", "price": 99.5}))
    columns = {"region": np.array(["EU", "US", "EU"]), "price": np.array([250.0, 300.0, 50.0])}
    assert selector.mask(columns).tolist() == [True, False, False]
    assert pickle.loads(pickle.dumps(selector)) == selector
    refused = None
    try:
        pyengine.Selector("region == 'EU'")
    except pyengine.InvalidSelectorError as error:
        refused = error.position
    assert refused is not None, "== must be refused"
    with tempfile.TemporaryDirectory() as folder:
        live_activemq(folder)
    live_rocketmq()
    print(f"pyengine-dispatch {importlib.metadata.version('pyengine-dispatch')}: the wheel works")


if __name__ == "__main__":
    main()
