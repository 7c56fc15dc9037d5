"""One client of the brokers: what the consumers with one client id share (MQClientInstance, spec rocketmq 2.1, 4.1)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from typing import Any, Protocol

from pyengine._engine.rocketmq.client.pull_gate import PullRequest
from pyengine._engine.rocketmq.client.rebalance import RebalanceTimer
from pyengine.clock import Action, Clock, Timer, Worker
from pyengine.errors import IllegalStateError, RemotingError
from pyengine.processes import forget_at_fork
from pyengine.rocketmq.message import MessageExt
from pyengine.rocketmq.remoting.mq_client_api import ClientEvents, MQClientAPI, SubscriptionData
from pyengine.rocketmq.tables.allocation import MessageQueue
from pyengine.visible import logger

log = logger("pyengine.rocketmq")

PERSIST_FIRST = 10_000
HEARTBEAT_FIRST = 1_000
ROUTE_FIRST = 10
SAMPLING = 10_000


def write_log(lines: Iterable[tuple[str, str]]) -> None:
    """Log the core's lines, (level, text) each; what an error says stands on a second line, as the real client's."""
    for level, text in lines:
        line, _, problem = text.partition("\n")
        if problem:
            log.log(logging.getLevelNamesMapping()[level], "%s\n%s", line, problem)
        else:
            log.log(logging.getLevelNamesMapping()[level], "%s", line)


def settle(clock: Clock) -> None:
    """Under a manual clock, do what was asked of threads."""
    if clock.settles:
        clock.settle()


def call_later(clock: Clock, when: int, action: Action) -> Timer:
    """Have the clock run it at ``when``; never if the clock is closed, as that of a broker that is."""
    try:
        return clock.call_at(when, action)
    except IllegalStateError:
        return Timer(when, action)


def hand_over(worker: Worker, action: Callable[[], None]) -> bool:
    """Have a worker run it; False if the worker has stopped: then nothing is left to be done."""
    try:
        worker.submit(action)
    except IllegalStateError:
        return False
    return True


class Member(Protocol):
    """A consumer group's member as its client sees it. client: set by :func:`take_client`."""

    client: MQClientInstance | None

    @property
    def subscriptions(self) -> dict[str, SubscriptionData]: ...

    def pull_message(self, request: PullRequest) -> None: ...
    def try_rebalance(self) -> bool: ...
    def persist_consumer_offset(self) -> None: ...
    def send_heartbeat(self) -> bool: ...
    def update_topic_subscribe_info(self) -> None: ...
    def sample(self) -> None: ...
    def reset_offset(self, offsets: dict[MessageQueue, int]) -> None: ...
    def running_info(self, *, with_stacks: bool) -> dict[str, Any]: ...
    def offsets_of(self, topic: str) -> dict[MessageQueue, int]: ...
    def consume_directly(self, message: MessageExt) -> dict[str, Any] | None: ...


class Periodic:
    """Runs an action on a worker at a fixed rate, until it is stopped. Times are ms."""

    def __init__(self, clock: Clock, worker: Worker, first: int, period: int, action: Callable[[], None]) -> None:
        self._clock = clock
        self._worker = worker
        self._period = period
        self._action = action
        self._stopped = False
        self._when = clock.now() + first
        self._timer = clock.call_at(self._when, self._fire)  # which may fire before it is known here

    def stop(self) -> None:
        """Not once more."""
        self._stopped = True
        self._timer.cancel()

    def _fire(self) -> None:
        if self._stopped:
            return
        if hand_over(self._worker, self._run):
            # Earlier than ``when`` it is where the system's time was set back.
            self._when = min(self._when, self._clock.now()) + self._period
            self._timer = call_later(self._clock, self._when, self._fire)

    def _run(self) -> None:
        try:
            self._action()
        except Exception:
            log.exception("ScheduledTask exception")


class Delayed:
    """Actions that come to a worker after a delay each, until it is stopped. Times are ms."""

    def __init__(self, clock: Clock, worker: Worker) -> None:
        self._clock = clock
        self._worker = worker
        self._numbers = count()
        self._timers: dict[int, Timer] = {}  # that have not fired; by number, so that one goes at the cost of one

    @property
    def moments(self) -> list[int]:
        """When each is due, ms since 1970."""
        return [timer.when for timer in self._timers.values()]

    def add(self, delay: int, action: Callable[[], None]) -> None:
        """Have it run after ``delay``."""
        number = next(self._numbers)
        self._timers[number] = call_later(self._clock, self._clock.now() + delay, partial(self._come, number, action))

    def _come(self, number: int, action: Callable[[], None]) -> None:
        self._timers.pop(number, None)
        hand_over(self._worker, action)

    def stop(self) -> None:
        """None of them comes."""
        for timer in list(self._timers.values()):
            timer.cancel()
        self._timers.clear()


class PullMessageService:
    """One thread takes pull requests in turn; delayed ones come back to it (PullMessageService)."""

    def __init__(self, clock: Clock, members: dict[str, Member]) -> None:
        self._clock = clock
        self._members = members
        self._worker = clock.worker("PullMessageService")
        self._stopped = False

    def execute_pull_request_immediately(self, request: PullRequest) -> None:
        """Put it at the end of the line."""
        self.execute_task(lambda: self._pull(request))

    def execute_pull_request_later(self, request: PullRequest, delay: int) -> None:
        """Put it at the end of the line after ``delay`` ms."""
        if not self._stopped:
            call_later(self._clock, self._clock.now() + delay, lambda: self.execute_pull_request_immediately(request))

    def execute_task(self, task: Callable[[], None]) -> None:
        """Run something on the service's thread; nothing once it has stopped."""
        if not self._stopped:
            hand_over(self._worker, task)

    def close(self) -> None:
        """Stop; requests that wait are gone."""
        self._stopped = True
        self._worker.close()

    def _pull(self, request: PullRequest) -> None:
        if self._stopped:
            return
        member = self._members.get(request.consumer_group)
        if member is None:
            log.warning("No matched consumer for the PullRequest %s, drop it", request)
            return
        try:
            member.pull_message(request)
        except Exception:
            log.exception("Pull Message Service Run Method exception, %s", request)


class RebalanceService:
    """One thread rebalances all members: every 20 s, 1 s after an unbalanced run, and when woken (RebalanceService)."""

    def __init__(self, clock: Clock, members: dict[str, Member]) -> None:
        self._clock = clock
        self._members = members
        self._worker = clock.worker("RebalanceService")
        self._rules = RebalanceTimer(clock.now())
        self._lock = threading.Lock()
        self._running = False
        self._stopped = False
        self._timer = Timer(self._rules.due(), self._fire)

    def start(self) -> None:
        """Rebalance from now on."""
        with self._lock:
            self._schedule()

    def wakeup(self) -> None:
        """Rebalance as soon as the rules allow."""
        with self._lock:
            if self._stopped:
                return
            self._rules.wake(self._clock.now())
            if not self._running:
                self._schedule()

    def wakeup_later(self, delay: int) -> None:
        """Rebalance in ``delay`` ms."""
        call_later(self._clock, self._clock.now() + delay, self.wakeup)

    def close(self) -> None:
        """Stop after the run at hand."""
        with self._lock:
            self._stopped = True
            self._timer.cancel()
        self._worker.close()

    def _schedule(self) -> None:
        """Run at the time that is due; the lock is held."""
        self._timer.cancel()
        if self._rules.due() <= self._clock.now():
            self._begin()
        else:
            self._timer = call_later(self._clock, self._rules.due(), self._fire)

    def _fire(self) -> None:
        with self._lock:
            self._begin()

    def _begin(self) -> None:
        if not self._stopped and not self._running:
            self._running = hand_over(self._worker, self._run)

    def _run(self) -> None:
        with self._lock:
            allowed = not self._stopped and self._rules.run_now(self._clock.now())
        balanced = False
        try:
            if allowed:
                balanced = do_rebalance(self._members)
        finally:  # also where the user's interrupt ends the run, under a manual clock
            with self._lock:
                if allowed:
                    self._rules.ran(self._clock.now(), balanced)
                self._running = False
                if not self._stopped:
                    self._schedule()


def do_rebalance(members: dict[str, Member]) -> bool:
    """Rebalance every member of one client; True if all are balanced."""
    balanced = True
    for group, member in list(members.items()):
        try:
            balanced = member.try_rebalance() and balanced
        except Exception:
            log.exception("doRebalance exception (group %s)", group)
            balanced = False
    return balanced


class MQClientInstance:
    """A client: its id, its members by group, and the services they share. Made by :func:`take_client`.

    users: the members that have taken it and not released it.
    """

    def __init__(self, api: MQClientAPI, clock: Clock, client_id: str) -> None:
        self.api = api
        self.clock = clock
        self.client_id = client_id
        self.members: dict[str, Member] = {}
        self.users: set[Member] = set()
        self._periodic: list[Periodic] = []
        self._services: list[PullMessageService | RebalanceService | Worker] = []

    def start(self, route_interval: int, heartbeat_interval: int, persist_interval: int) -> None:
        """Start the services, with the intervals (ms) of the first consumer; a second call does nothing.

        Raises IllegalStateError for an interval below 1, where Java throws IllegalArgumentException.
        """
        if self._periodic:
            return
        for name, period in (
            ("poll_name_server_interval", route_interval),
            ("heartbeat_broker_interval", heartbeat_interval),
            ("persist_consumer_offset_interval", persist_interval),
        ):
            if period <= 0:
                raise IllegalStateError(f"{name} = {period}: a period of milliseconds above 0 is needed")
        self.pull_service = PullMessageService(self.clock, self.members)
        self._services.append(self.pull_service)
        self.rebalance_service = RebalanceService(self.clock, self.members)
        self._services.append(self.rebalance_service)
        self.rebalance_service.start()
        self.callbacks = self.clock.worker("NettyClientPublicExecutor_1")
        self._services.append(self.callbacks)
        self.scheduled = self.clock.worker("MQClientFactoryScheduledThread")
        self._services.append(self.scheduled)
        for first, period, action in (
            (ROUTE_FIRST, route_interval, self._update_routes),
            (HEARTBEAT_FIRST, heartbeat_interval, self._send_heartbeats),
            (PERSIST_FIRST, persist_interval, self._persist_offsets),
            (0, SAMPLING, self._sample),
        ):
            self._periodic.append(Periodic(self.clock, self.scheduled, first, period, action))
        self.register()
        log.info("the client factory [%s] start OK", self.client_id)

    def register(self) -> None:
        """Let the brokers reach this client."""
        self.api.register_client(
            self.client_id,
            ClientEvents(
                self._consumer_ids_changed,
                self._reset_offset,
                self._running_info,
                self._offsets,
                consume_directly=self._consume_directly,
            ),
        )

    def shutdown(self) -> None:
        """Stop the services, as many as were started, once no member is left."""
        if self.members:
            return
        was_started = bool(self._periodic)
        for periodic in self._periodic:
            periodic.stop()
        for service in self._services:
            service.close()
        try:
            self.api.disconnect(self.client_id)
        except Exception as error:
            log.warning("the connection of client %s cannot be ended", self.client_id, exc_info=error)
        if was_started:
            log.info("the client factory [%s] shutdown OK", self.client_id)

    def send_heartbeats(self) -> bool:
        """Tell the brokers of every member; True if they took all."""
        taken = [member.send_heartbeat() for member in list(self.members.values())]
        return all(taken)

    def check_in_broker(self) -> None:
        """Have the brokers look at what members want otherwise than by tags. Raises MQClientError if they cannot."""
        for group, member in list(self.members.items()):
            for subscription in list(member.subscriptions.values()):
                if subscription.expression_type != "TAG" and self.api.topic_subscribe_info(subscription.topic):
                    self.api.check_client(group, self.client_id, subscription)

    def answer(self, action: Callable[[], None]) -> None:
        """Run what a broker's answer leads to on the client's thread for that."""
        if not hand_over(self.callbacks, action):
            log.info("an answer came after the shutdown of client %s", self.client_id)

    def _send_heartbeats(self) -> None:
        self.send_heartbeats()

    def _update_routes(self) -> None:
        for group, member in list(self.members.items()):
            try:
                member.update_topic_subscribe_info()
            except RemotingError as error:
                log.warning("updateTopicRouteInfoFromNameServer Exception: %s (group %s)", error, group)

    def _persist_offsets(self) -> None:
        for member in list(self.members.values()):
            member.persist_consumer_offset()

    def _sample(self) -> None:
        for member in list(self.members.values()):
            member.sample()

    def _reset_offset(self, group: str, topic: str, offsets: dict[MessageQueue, int]) -> None:
        member = self.members.get(group)
        if member is None:
            log.warning("reset offset: the group %s is not in this client", group)
        else:
            member.reset_offset(offsets)

    def _running_info(self, group: str, with_stacks: bool) -> dict[str, Any] | None:
        member = self.members.get(group)
        return None if member is None else member.running_info(with_stacks=with_stacks)

    def _offsets(self, group: str, topic: str) -> dict[MessageQueue, int]:
        member = self.members.get(group)
        return {} if member is None else member.offsets_of(topic)

    def _consume_directly(self, group: str, message: MessageExt) -> dict[str, Any] | None:
        member = self.members.get(group)
        return None if member is None else member.consume_directly(message)

    def _consumer_ids_changed(self, group: str) -> None:
        log.info("receive broker's notification, the consumer group: %s changed, rebalance immediately", group)
        self.rebalance_service.wakeup()


_instances: dict[tuple[int, str], MQClientInstance] = {}
_instances_lock = threading.Lock()
_made = 0


def _forget_instances() -> None:
    """In a process that was forked: the clients are the parent's, and another thread may have held the lock."""
    global _instances_lock
    _instances.clear()
    _instances_lock = threading.Lock()


forget_at_fork(_forget_instances)


def take_client(member: Member, api: MQClientAPI, clock: Clock, client_id: str) -> None:
    """Give a member the client with this id at these brokers; the member gives it back with :func:`release`."""
    with _instances_lock:
        instance = _instances.get((id(api), client_id))
        if instance is None:
            instance = MQClientInstance(api, clock, client_id)
        member.client = instance  # first: after Ctrl-C the member knows what to release
        instance.users.add(member)
        _instances[id(api), client_id] = instance


def release(member: Member) -> None:
    """A member is done with its client; the last one stops it. Harmless the second time."""
    instance = member.client
    if instance is None:
        return
    with _instances_lock:
        instance.users.discard(member)
        last = not instance.users
        if last and _instances.get((id(instance.api), instance.client_id)) is instance:
            del _instances[id(instance.api), instance.client_id]
    if last:
        instance.shutdown()


def unique_instance_name(pid: int, clock: Clock) -> str:
    """``pid#nanoseconds``: what clustering makes of the instance name DEFAULT; no two in one process are equal."""
    global _made
    with _instances_lock:
        _made += 1
        return f"{pid}#{clock.now() * 1_000_000 + _made}"
