"""Where a cluster's topics and brokers lie, as its name servers say (MQClientInstance)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from pyengine._engine.rocketmq.client.validators import AUTO_CREATE_TOPIC, attached, suggested
from pyengine._engine.rocketmq.commands.bodies import read_body
from pyengine._engine.rocketmq.commands.headers import CODES, write_header
from pyengine._engine.rocketmq.commands.requests import MASTER, REQUEST_CODE_NOT_SUPPORTED
from pyengine._engine.wire.remoting import RemotingCommand
from pyengine.clock import Clock
from pyengine.dataclass import dataclass
from pyengine.errors import ConfigurationError, MQClientError, ProtocolError, RemotingError
from pyengine.rocketmq import message as names
from pyengine.rocketmq.broker.topic_config import READABLE, WRITABLE
from pyengine.rocketmq.remoting.channel import RemotingClient
from pyengine.rocketmq.remoting.mq_client_api import TOPIC_NOT_EXIST, plain_text
from pyengine.rocketmq.remoting.sending import DEFAULT_QUEUES
from pyengine.rocketmq.remoting.transport import parse_address
from pyengine.rocketmq.tables.allocation import MessageQueue
from pyengine.visible import logger

log = logger("pyengine.rocketmq")

SUCCESS = 0
NOT_FOUND_TOPIC = 10005
API_TIMEOUT = 3000  # ms
ROUTE_AGE = 30_000  # ms after which a sender asks for a topic's queues again


@dataclass(frozen=True, slots=True)
class Route:
    """Where a topic lies. fetched: when it was asked for, ms."""

    read_queues: tuple[MessageQueue, ...]
    write_queues: tuple[MessageQueue, ...]
    fetched: int


class BrokerAddress(NamedTuple):
    """One address; as the log shows it."""

    address: str
    broker_id: int
    name: str

    def __str__(self) -> str:
        return f"{self.name} {self.broker_id} {self.address}"


class Routes:
    """The routes of one client, asked of its name servers by ``remoting``.

    name_servers: asked one after another until one answers, which becomes the first. client_id: for the log.
    Safe from any thread.
    """

    def __init__(
        self,
        name_servers: list[str],
        remoting: RemotingClient,
        clock: Clock,
        client_id: Callable[[], str | None],
    ) -> None:
        self.name_servers = name_servers
        self._remoting = remoting
        self._clock = clock
        self._client_id = client_id
        self._lock = threading.Lock()
        self._routes: dict[str, Route] = {}
        self._brokers: dict[str, dict[int, str]] = {}  # name -> broker id -> address
        self._routed: dict[str, frozenset[str]] = {}  # topic -> addresses of the brokers in its last route

    # Topics

    def first_topic(self) -> str | None:
        """A topic whose route is known."""
        with self._lock:
            return next(iter(self._routes), None)

    def __contains__(self, topic: str) -> bool:
        return topic in self._routes

    def topic_subscribe_info(self, topic: str) -> list[MessageQueue] | None:
        """The queues that can be read, None of an unknown topic; the last known ones if no name server has any."""
        try:
            route = self._fetch(plain_text("topic", topic)) or self._kept(topic)
        except (RemotingError, MQClientError, ProtocolError) as error:
            route = self._routes.get(topic)
            if route is None and isinstance(error, RemotingError):
                raise
            log.warning("updateTopicRouteInfoFromNameServer Exception, %s: %s", topic, error)
        return None if route is None else list(route.read_queues)

    def publish_queues(self, topic: str) -> list[MessageQueue]:
        """The queues to send to. Raises MQClientError if there is none, RemotingError if no name server answers."""
        known = self._routes.get(plain_text("topic", topic))
        if known is not None and self._clock.now() - known.fetched < ROUTE_AGE and known.write_queues:
            return list(known.write_queues)
        try:
            route = self._fetch(topic) or self._kept(topic)
            if route is None and not topic.startswith((names.RETRY_GROUP_TOPIC_PREFIX, names.DLQ_GROUP_TOPIC_PREFIX)):
                route = self._fetch_default(topic)
        except RemotingError:
            if known is None or not known.write_queues:
                raise
            route = known
        if route is None or not route.write_queues:
            problem = suggested(f"No route info of this topic: {topic}")
            raise MQClientError(problem, NOT_FOUND_TOPIC)
        return list(route.write_queues)

    def _fetch(self, topic: str) -> Route | None:
        """What the name servers know of a topic, None for an unknown one. Raises RemotingError if none answers."""
        data = self._route_data(topic)
        if data is None:
            return None
        route = self._remember(topic, data, data["queueDatas"])
        with self._lock:
            before = self._routes.get(topic)
            self._routes[topic] = route
        if before is None or (before.read_queues, before.write_queues) != (route.read_queues, route.write_queues):
            log.info("the topic[%s] route info changed, old[%s] ,new[%s]", topic, before, route)
            log.info("topicRouteTable.put. Topic = %s, TopicRouteData[%s]", topic, route)
        return route

    def _kept(self, topic: str) -> Route | None:
        """The route of the last time, which the name servers do not know now; they are asked again when it is old."""
        with self._lock:
            route = self._routes.get(topic)
            if route is not None:
                route = self._routes[topic] = Route(route.read_queues, route.write_queues, self._clock.now())
        if route is not None:
            log.warning(
                "updateTopicRouteInfoFromNameServer, getTopicRouteInfoFromNameServer return null, Topic: %s. [%s]",
                topic,
                self._client_id(),
            )
        return route

    def _fetch_default(self, topic: str) -> Route | None:
        """A topic's queues as a send would make them (autoCreateTopicEnable)."""
        data = self._route_data(AUTO_CREATE_TOPIC)
        if data is None:
            return None
        queues = []
        for each in data["queueDatas"] or ():
            number = min(DEFAULT_QUEUES, each["readQueueNums"])
            queues.append({**each, "readQueueNums": number, "writeQueueNums": number})
        return self._remember(topic, data, queues)

    def _remember(self, topic: str, data: dict[str, Any], queue_datas: list[dict[str, Any]]) -> Route:
        brokers = {
            each["brokerName"]: dict(each["brokerAddrs"] or {})
            for each in data["brokerDatas"] or ()
            if each is not None
        }
        with self._lock:
            self._brokers.update(brokers)
            self._routed[topic] = frozenset(address for broker in brokers.values() for address in broker.values())
        readable, writable = [], []
        for each in sorted((each for each in queue_datas or () if each), key=lambda each: each["brokerName"] or ""):
            name = each["brokerName"]
            if each["perm"] & READABLE:
                readable += [MessageQueue(topic, name, i) for i in range(each["readQueueNums"])]
            if each["perm"] & WRITABLE and MASTER in brokers.get(name, ()):
                writable += [MessageQueue(topic, name, i) for i in range(each["writeQueueNums"])]
        return Route(tuple(readable), tuple(writable), self._clock.now())

    def _route_data(self, topic: str) -> dict[str, Any] | None:
        header = "GetRouteInfoRequestHeader"
        answer = self.ask_name_servers(CODES[header], write_header(header, {"topic": topic}))
        if answer.code == TOPIC_NOT_EXIST:
            return None
        if answer.code != SUCCESS or answer.body is None:
            raise MQClientError(attached(answer.remark or "", answer.code), answer.code)
        return read_body("TopicRouteData", answer.body)

    # Brokers

    def broker_addresses(self) -> list[BrokerAddress]:
        """Every broker that is known, each address once."""
        with self._lock:
            found = [
                BrokerAddress(address, broker_id, name)
                for name, listed in self._brokers.items()
                for broker_id, address in listed.items()
            ]
        return sorted({each.address: each for each in found}.values())

    def is_broker(self, address: str) -> bool:
        """Whether a broker has this address."""
        with self._lock:
            return any(address in broker.values() for broker in self._brokers.values())

    def forget_offline(self) -> None:
        """Forget brokers that no route names any more (MQClientInstance.cleanOfflineBroker)."""
        with self._lock:
            routed = {address for addresses in self._routed.values() for address in addresses}
            for name, listed in list(self._brokers.items()):
                left = {broker_id: address for broker_id, address in listed.items() if address in routed}
                for address in set(listed.values()) - routed:
                    log.info("the broker addr[%s %s] is offline, remove it", name, address)
                if left:
                    self._brokers[name] = left
                else:
                    del self._brokers[name]
                    log.info("the broker[%s] name's host is offline, remove it", name)

    def masters(self, topic: str) -> list[str]:
        """Addresses of the masters that have a topic. Raises MQClientError for an unknown one."""
        route = self._fetch(topic)
        if route is None:
            raise MQClientError(attached(f"No route info of this topic: {topic}"), NOT_FOUND_TOPIC)
        return [broker[MASTER] for broker in self._brokers_of(route) if MASTER in broker]

    def any_broker(self, topic: str) -> str:
        """The address of a broker that has the topic, a master if there is one (findBrokerAddrByTopic)."""
        route = self._routes.get(topic) or self._fetch(topic)
        found = [] if route is None else [broker for broker in self._brokers_of(route) if broker]
        if not found:
            raise MQClientError(attached(f"No route info of this topic: {topic}"))
        from random import choice  # it loads OpenSSL

        chosen = choice(found)
        return chosen.get(MASTER) or choice(list(chosen.values()))

    def _brokers_of(self, route: Route) -> list[dict[int, str]]:
        """Broker id -> address of each broker of a route, by their names."""
        brokers = {queue.broker_name for queue in route.read_queues + route.write_queues}
        with self._lock:
            return [self._brokers.get(name, {}) for name in sorted(brokers)]

    def broker(self, queue: MessageQueue) -> dict[int, str]:
        """Broker id -> address of a queue's broker. Raises MQClientError if no name server knows it."""
        found = self._brokers.get(queue.broker_name)
        if not found:
            self.topic_subscribe_info(queue.topic)
            found = self._brokers.get(queue.broker_name)
        if not found:
            raise MQClientError(attached(f"The broker[{queue.broker_name}] not exist"))
        return found

    def master(self, queue: MessageQueue) -> str:
        """The address of the master of a queue's broker. Raises MQClientError if there is none."""
        found = self.broker(queue)
        address = found.get(MASTER)
        if address is None:
            raise MQClientError(attached(f"The broker[{queue.broker_name}] not exist"))
        return address

    def known_master(self, broker_name: str) -> str | None:
        """The address of a broker's master, None if that is not known; no name server is asked."""
        with self._lock:
            return self._brokers.get(broker_name, {}).get(MASTER)

    # Name servers

    def ask_name_servers(self, code: int, fields: dict[str, str] | None = None) -> RemotingCommand:
        """The answer of the first that answers. Raises RemotingError if none does."""
        with self._lock:
            servers = list(self.name_servers)
        problems = []
        for address in servers:
            try:
                answer = self._remoting.invoke(address, self._remoting.command(code, fields), API_TIMEOUT)
            except RemotingError as error:
                log.warning("name server %s does not answer: %s", address, error)
                failure = error
                problems.append(str(error))
                continue
            if answer.code == REQUEST_CODE_NOT_SUPPORTED:
                answer.remark = f"{answer.remark}: {address} is not a name server; perhaps it is a broker"
            if address != servers[0]:
                log.info(
                    "new name server is chosen. OLD: %s , NEW: %s. namesrvIndex = %d",
                    servers[0],
                    address,
                    servers.index(address),
                )
            with self._lock:
                self.name_servers.remove(address)
                self.name_servers.insert(0, address)
            return answer
        if len(problems) == 1:
            raise failure
        raise RemotingError(failure.address, f"no name server answers: {'; '.join(problems)}") from failure


def name_servers(namesrv_addr: str) -> list[str]:
    """The addresses in ``host:port;host:port``, or behind ``http://`` (NameServerAddressUtils, an endpoint).
    Raises ConfigurationError, which names the one that is none.
    """
    text = plain_text("namesrv_addr", namesrv_addr).strip()
    if text.startswith("http://"):
        text = text.rpartition("/")[2]
    listed = [each.strip() for each in text.split(";") if each.strip()]
    for each in listed:
        parse_address("namesrv_addr", each)
    if not listed:
        raise ConfigurationError("namesrv_addr", repr(namesrv_addr), "no address", "give host:port;host:port")
    return list(dict.fromkeys(listed))
