"""Which brokers a consumer talks to: those that it was given, or those behind its name servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pyengine.clock import Clock, ManualClock, SystemClock
from pyengine.errors import ConfigurationError
from pyengine.rocketmq.consumer.parameters import default_consume_timestamp
from pyengine.rocketmq.remoting.cluster import shared_cluster
from pyengine.rocketmq.remoting.mq_client_api import MQClientAPI, plain_text
from pyengine.rocketmq.remoting.routes import name_servers
from pyengine.rocketmq.remoting.tls import tls_of
from pyengine.rocketmq.remoting.transport import local_address

if TYPE_CHECKING:
    import ssl


class Connecting(Protocol):
    """The parameters that name the cluster."""

    broker: MQClientAPI | None
    clock: Clock
    consumer_group: str
    consume_timestamp: str
    client_ip: str
    namesrv_addr: str | None
    rpc_hook: Any
    use_tls: bool
    ssl_context: ssl.SSLContext | None

    def check_network(self) -> None: ...
    def build_mq_client_id(self) -> str: ...
    def ext_fields(self) -> dict[str, str]: ...


def take_clock(parameters: Connecting) -> bool:
    """Check a new consumer's group, brokers and clock, and give it a clock; True if that is its own, to be closed.

    Raises ConfigurationError for a group, a broker or a clock that is none.
    """
    if parameters.consumer_group is not None:
        plain_text("consumer_group", parameters.consumer_group)
    if parameters.broker is not None and not callable(getattr(parameters.broker, "register_client", None)):
        raise ConfigurationError("broker", repr(parameters.broker), "no RocketMQ cluster", "give a rocketmq.Broker")
    if parameters.broker is not None and parameters.namesrv_addr:
        raise ConfigurationError("namesrv_addr", parameters.namesrv_addr, "there is a broker too", "give one of them")
    if parameters.clock is not None and not isinstance(parameters.clock, Clock):
        raise ConfigurationError("clock", repr(parameters.clock), "a clock of pyengine.clock is needed")
    own = parameters.clock is None and parameters.broker is None
    if parameters.clock is None:
        parameters.clock = SystemClock() if parameters.broker is None else parameters.broker.clock
    if parameters.consume_timestamp == "":
        parameters.consume_timestamp = default_consume_timestamp(parameters.clock.now())
    return own


def brokers_of(parameters: Connecting) -> MQClientAPI:
    """The brokers of a consumer that starts. Raises ConfigurationError for what a real cluster cannot be asked for."""
    if parameters.broker is not None:
        return parameters.broker
    parameters.check_network()
    addr, clock = parameters.namesrv_addr or "", parameters.clock
    if isinstance(clock, ManualClock):
        raise ConfigurationError("clock", repr(clock), "a real cluster goes by the system's time", "leave it out")
    if parameters.client_ip == "127.0.0.1":
        parameters.client_ip = local_address(name_servers(addr)[0])
    tls = tls_of(parameters.use_tls, parameters.ssl_context)
    return shared_cluster(addr, parameters.build_mq_client_id(), parameters.rpc_hook, tls, parameters.ext_fields())
