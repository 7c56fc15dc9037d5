"""Scheduled delivery: messages that ask to be sent later, or again and again (SchedulerBroker and its JobScheduler).

A message with AMQ_SCHEDULED_DELAY, AMQ_SCHEDULED_PERIOD or AMQ_SCHEDULED_CRON waits here, in the broker's store if it
has one, and comes to its destination when its time has come.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict

from pyengine._engine.message.message import Message
from pyengine.activemq.broker.cron import next_time
from pyengine.activemq.broker.services import BrokerServices
from pyengine.clock import Clock
from pyengine.dataclass import dataclass
from pyengine.destinations import Destination, destination_of
from pyengine.errors import JMSError
from pyengine.visible import logger

LOG = logger("pyengine.activemq")
CRON, PERIOD, DELAY, REPEAT, JOB = (
    f"AMQ_SCHEDULED_{name}" for name in ("CRON", "PERIOD", "DELAY", "REPEAT", "ID")
)  # fmt: skip
MANAGEMENT = "ActiveMQ.Scheduler.Management"
KEPT_IN = "queue://ActiveMQ.Scheduler.Jobs"  # the name under which a store keeps them; there is no such destination
KEPT_AS = "pyengineJob"
GRID = 500  # ms; a job's time starts at the next multiple of it
MOST_REPEATS = 1000


@dataclass(slots=True)
class Job:
    """A message that waits. destination: as text. due: ms. repeat: how often it comes after the next time, -1 for
    ever."""

    job_id: str
    destination: str
    due: int
    cron: str
    delay: int
    period: int
    repeat: int


def asks_for_scheduler(message: Message) -> bool:
    """Whether a message is one for the scheduler."""
    exists = message.property_exists
    return (exists(DELAY) or exists(PERIOD) or exists(CRON)) and not exists(JOB)


class Scheduler:
    """The jobs of one broker, and of its store."""

    def __init__(
        self, services: BrokerServices, started: int, send: Callable[[Destination, Message, int], None]
    ) -> None:
        self._services = services
        self._started = started  # ms
        self._send = send  # on from here: neither plugins nor the scheduler see the message again
        self._store = store = services.store
        self._number = 0
        self._sent = 0
        self._jobs: dict[int, dict[str, tuple[Job, Message]]] = {}  # by the time when they are due, ms
        self._sequences: dict[str, int] = {}
        if store is not None and KEPT_IN in store.destinations():
            for kept in store.load(store.destination(KEPT_IN), (-1, -1), -1):
                job = Job(**json.loads(str(kept.message.get_string_property(KEPT_AS))))
                self._sequences[job.job_id] = kept.sequence
                self._number = max(self._number, int(job.job_id.rpartition(":")[2]))
                self._wait(job, kept.message)

    def manage(self, destination: Destination, message: Message, now: int) -> bool:
        """What a message to the management destination asks for; False for one that goes elsewhere."""
        if not destination.name.lower().startswith(MANAGEMENT.lower()):
            return False
        action = message.properties().get("AMQ_SCHEDULER_ACTION")
        begin, end = 0, 1 << 63
        if message.property_exists("ACTION_START_TIME") and message.property_exists("ACTION_END_TIME"):
            begin = message.get_long_property("ACTION_START_TIME")
            end = message.get_long_property("ACTION_END_TIME")
        found = [each for due in sorted(self._jobs) if begin <= due <= end for each in self._jobs[due].values()]
        if action == "BROWSE" and message.reply_to is not None:
            for job, kept in found:
                self._show(job, kept, destination_of(message.reply_to, "queue"), now)
        elif action == "REMOVEALL":
            for job, _ in found:
                self._forget(job)
        elif action == "REMOVE" and message.property_exists(JOB):
            wanted = message.get_string_property(JOB)
            for job, _ in found:
                if job.job_id == wanted:
                    self._forget(job)
        return True

    def _show(self, job: Job, kept: Message, where: Destination, now: int) -> None:
        shown = self._copy(job, kept)
        shown.persistent, shown.type = False, "Advisory"
        shown.original_destination = job.destination
        self._send(where, shown, now)

    def schedule(self, destination: Destination, message: Message, now: int) -> None:
        """Keep a message until it is due. Raises JMSError for more than 1000 repeats, InvalidMessageError and
        ConfigurationError for what is not a number or a cron entry."""
        exists = message.property_exists
        cron = message.get_string_property(CRON) if exists(CRON) else None
        repeat = message.get_int_property(REPEAT) if exists(REPEAT) else 0
        if repeat > MOST_REPEATS:
            raise JMSError("The scheduled repeat value is too large")
        delay = message.get_long_property(DELAY) if exists(DELAY) else 0
        period = message.get_long_property(PERIOD) if exists(PERIOD) else 0
        producer = (message.message_id or f"ID:{self._services.name}").rpartition(":")[0]
        self._begin(producer, str(destination), message, cron or "", delay, period, repeat, now)

    def _begin(
        self,
        producer: str,
        destination: str,
        message: Message,
        cron: str,
        delay: int,
        period: int,
        repeat: int,
        now: int,
    ) -> None:
        start = (now + GRID) // GRID * GRID
        due = (next_time(cron, start) if cron else start) + (delay if delay > 0 else period)
        self._number += 1
        job = Job(f"{producer}:{self._number}", destination, due, cron, delay, period, repeat)
        self._keep(job, message)
        self._wait(job, message)

    def _keep(self, job: Job, message: Message) -> None:
        if self._store is None:
            return
        self._drop(job)
        kept = message.copy()
        kept.set_string_property(KEPT_AS, json.dumps(asdict(job)))
        number = self._store.destination(KEPT_IN)
        self._sequences[job.job_id] = self._store.add(number, kept)

    def _drop(self, job: Job) -> None:
        sequence = self._sequences.pop(job.job_id, None)
        if sequence is not None and self._store is not None:
            self._store.remove(self._store.destination(KEPT_IN), sequence)

    def _wait(self, job: Job, message: Message) -> None:
        together = self._jobs.get(job.due)
        if together is None:
            together = self._jobs[job.due] = {}
            due = job.due
            self._services.call_at(due, lambda: self._run(due))
        together[job.job_id] = job, message

    def _forget(self, job: Job) -> None:
        self._jobs.get(job.due, {}).pop(job.job_id, None)
        self._drop(job)

    def _run(self, due: int) -> None:
        """Send what is due, and plan what comes again."""
        now = self._services.clock.now()
        for _, (job, message) in sorted(self._jobs.pop(due, {}).items()):
            again = next_time(job.cron, now) if job.cron else now + job.period
            if not (job.cron and job.repeat):
                self._send(destination_of(job.destination, "queue"), self._due(job, message, now), now)
            else:  # each time of the entry begins a row of its own
                producer = job.job_id.rpartition(":")[0]
                args = job.delay, job.period, job.repeat
                self._begin(producer, job.destination, message, "", *args, now)
            if job.cron or job.repeat:
                job.due = again
                if not job.cron:
                    job.repeat = max(job.repeat - 1, -1)
                self._keep(job, message)
                self._wait(job, message)
            else:
                self._drop(job)

    def _copy(self, job: Job, kept: Message) -> Message:
        message = kept.copy()
        properties = message.properties()
        kinds = message.property_types()
        message.clear_properties()
        for name, value in properties.items():
            if name not in (CRON, PERIOD, DELAY, REPEAT, KEPT_AS):
                if kinds[name] == "object":
                    message.set_object_property(name, value)
                else:
                    message.set_property(name, value)  # type: ignore[arg-type]
        message.set_string_property("scheduledJobId", job.job_id)
        self._sent += 1
        message.message_id = f"ID:{self._services.name}-scheduler:{self._started}:{self._sent}"
        return message

    def _due(self, job: Job, kept: Message, now: int) -> Message:
        """The message as it is sent: with an id of its own if it may come again, and its life from now on."""
        message = self._copy(job, kept)
        if not (job.repeat or job.cron):
            message.message_id = kept.message_id
        if message.timestamp > 0 and message.expiration > 0:
            life = message.expiration - message.timestamp
            if life + now > message.expiration:
                if life > 0:
                    message.expiration = life + now
                message.timestamp = now
        return message


@dataclass(slots=True)
class Scheduled:
    """A step of a transaction: a message that the scheduler gets at commit."""

    scheduler: Scheduler
    clock: Clock
    destination: Destination
    message: Message

    @property
    def together(self) -> None:
        """It is applied by itself."""

    def commit(self) -> None:
        """The scheduler gets it."""
        self.scheduler.schedule(self.destination, self.message, self.clock.now())

    def rollback(self) -> None:
        """It goes nowhere."""
