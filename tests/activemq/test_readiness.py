"""Sockets that are ready, by epoll and by the selector of systems that have none."""

from __future__ import annotations

import select
import selectors
import socket

import pytest

from pyengine.activemq.transport.readiness import Epoll, Readiness, Selected


@pytest.mark.parametrize("kind", [Epoll, Selected])
def test_targets_of_sockets_that_are_ready(kind: type[Readiness]) -> None:
    if kind is Epoll and not hasattr(select, "epoll"):
        pytest.skip("this system has no epoll")
    waited_for = kind()
    near, far = socket.socketpair()
    with near, far:
        waited_for.register(near, selectors.EVENT_READ, print)
        assert waited_for.poll(0) == []
        far.send(b"x")
        assert waited_for.poll(None) == [print]
        waited_for.modify(near, selectors.EVENT_WRITE, print)
        near.recv(1)
        assert waited_for.poll(5) == [print]
        waited_for.unregister(near)
        far.send(b"x")
        assert waited_for.poll(0) == []
    waited_for.close()
