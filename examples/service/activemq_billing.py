"""An ActiveMQ service over STOMP: orders of our region become invoices, one that cannot be read becomes a dead letter.

    python examples/service/activemq_billing.py                       # on a broker in this process
    python examples/service/activemq_billing.py broker.example:61613  # on your ActiveMQ: its STOMP connector

The service knows stomp.py and nothing of pyengine. Both print what was billed and what is a dead letter.
"""

from __future__ import annotations

import queue
import sys
import uuid

import stomp  # pip install stomp-py


class Billing(stomp.ConnectionListener):
    """Acknowledges what it billed, refuses what it cannot read."""

    def __init__(self, connection: stomp.Connection12, invoices: str) -> None:
        self.connection, self.invoices = connection, invoices

    def on_message(self, frame: stomp.utils.Frame) -> None:
        """An order."""
        try:
            self.connection.send(self.invoices, f"invoice for {int(frame.body)}", headers={"persistent": "true"})
            self.connection.ack(frame.headers["ack"])
        except ValueError:
            self.connection.nack(frame.headers["ack"])


def start(host: str, port: int, orders: str = "/queue/orders", invoices: str = "/queue/invoices") -> stomp.Connection12:
    """The service; ``disconnect()`` ends it."""
    connection = stomp.Connection12([(host, port)])
    connection.set_listener("billing", Billing(connection, invoices))
    connection.connect("billing", "secret", wait=True)
    wanted = {"selector": "region = 'EU'", "activemq.prefetchSize": "1"}
    connection.subscribe(orders, id="1", ack="client-individual", headers=wanted)
    return connection


class Inbox(stomp.ConnectionListener):
    """What comes to a queue."""

    def __init__(self) -> None:
        self.bodies: queue.Queue[str] = queue.Queue()

    def on_message(self, frame: stomp.utils.Frame) -> None:
        """A message."""
        self.bodies.put(frame.body)


def run(host: str, port: int) -> None:
    """Bill three orders, of which one is of another region and one cannot be read."""
    number = uuid.uuid4().hex[:8]  # a run has queues of its own
    orders, invoices = f"/queue/orders-{number}", f"/queue/invoices-{number}"
    service = start(host, port, orders, invoices)
    office = stomp.Connection12([(host, port)])
    office.set_listener("inbox", inbox := Inbox())
    office.connect("billing", "secret", wait=True)
    office.subscribe(invoices, id="1")
    office.subscribe("/queue/ActiveMQ.DLQ", id="2", headers={"selector": f"run = '{number}'"})
    for body, region in (("17", "EU"), ("18", "US"), ("many", "EU")):
        office.send(orders, body, headers={"region": region, "persistent": "true", "run": number})
    print("invoice:", inbox.bodies.get(timeout=30))
    print("dead letter:", inbox.bodies.get(timeout=30))
    service.disconnect()
    office.disconnect()


def main() -> None:
    """On the broker that the command line names, or on one in this process."""
    if sys.argv[1:]:
        host, port = sys.argv[1].rsplit(":", 1)
        run(host, int(port))
    else:
        from pyengine import activemq

        with activemq.Broker(transport_connectors=["stomp://127.0.0.1:0"]) as broker:
            run("127.0.0.1", broker.transport_connectors[0].port)


if __name__ == "__main__":
    main()
