from libc.stdint cimport int64_t

from pyengine._engine.message.conversion cimport destination_text, hidden_prefix
from pyengine._engine.message.body cimport Body, StreamBody
from pyengine._engine.message.message cimport Message

from datetime import timedelta

from pyengine.durations import whole_milliseconds
from pyengine.errors import InvalidMessageError


cdef class Outgoing:
    """The settings of one producer, and its headers.

    timestamps: messages get the time of the send. copies: a copy of the user's message is sent. keeps_untimed, without
    timestamps: False as since 5.18: a message loses its timestamp and expires by its time to live; True: it keeps its
    timestamp and does not expire.
    """

    def __cinit__(self, str producer_id, *, bint timestamps=True, bint copies=True, bint keeps_untimed=False):
        self.producer_id = producer_id
        self.persistent = True
        self.priority = 4
        self.timestamps = timestamps
        self.copies = copies
        self.keeps_untimed = keeps_untimed

    cdef int check_priority(self, object priority) except -1:
        if isinstance(priority, bool) or not isinstance(priority, int) or not 0 <= priority <= 9:
            raise InvalidMessageError("priority", priority, "not a priority", hint="give a value between 0 and 9")
        return priority

    cdef int64_t milliseconds(self, object given) except -1:
        cdef object life = whole_milliseconds(given) if isinstance(given, timedelta) else given
        if isinstance(life, bool) or not isinstance(life, int) or not 0 <= life < 10**18:
            hint = "a whole number of milliseconds, or a timedelta; 0 is for ever"
            raise InvalidMessageError("time_to_live_ms", given, "not a time to live", hint=hint)
        return life

    cdef bint is_persistent(self, object mode) except -1:
        if mode != "PERSISTENT" and mode != "NON_PERSISTENT":
            raise InvalidMessageError("delivery_mode", mode, "no such mode", hint="give PERSISTENT or NON_PERSISTENT")
        return mode == "PERSISTENT"

    cdef int address(self, Message message, str destination) except -1:
        # Most messages have the destination of the last one.
        if destination != self.given:
            self.destination = destination_text(destination, "destination")
            self.hidden = <int> hidden_prefix(self.destination)
            self.given = destination
        message._destination = self.destination
        message._destination_hidden = self.hidden
        return 0

    def set_priority(self, priority):
        """0 to 9. Raises InvalidMessageError."""
        self.priority = self.check_priority(priority)

    def set_time_to_live(self, life):
        """ms or a timedelta, 0 for ever. Raises InvalidMessageError."""
        self.time_to_live = self.milliseconds(life)

    def set_delivery_mode(self, mode):
        """PERSISTENT or NON_PERSISTENT. Raises InvalidMessageError."""
        self.persistent = self.is_persistent(mode)

    def prepare(self, given, str destination, int64_t now, *, delivery_mode=None, priority=None, time_to_live=None):
        """The message that is sent to a destination (qualified name): a copy, or a new one for a str or bytes.

        The user's message gets the headers too. None: the producer's setting. Raises InvalidMessageError.
        """
        return self.compose(
            given, destination, now, self.time_to_live if time_to_live is None else self.milliseconds(time_to_live),
            self.persistent if delivery_mode is None else self.is_persistent(delivery_mode),
            self.priority if priority is None else self.check_priority(priority))

    cdef Message compose(self, object given, str destination, int64_t now, int64_t life, bint persistent, int urgency):
        cdef Message message, sent
        if isinstance(given, Message):
            message = given
        else:
            message = Message.__new__(Message)
            message.body = (<Body>given).duplicate() if isinstance(given, Body) else given
        self.sent += 1
        message._persistent = persistent
        message._priority = urgency
        if self.timestamps or not self.keeps_untimed:
            message._timestamp = now if self.timestamps else 0
            message._expiration = now + life if life > 0 else 0
        else:
            message._expiration = 0
        message._redelivery_counter = 0
        message._producer_transaction_id = None       # only the broker sets one
        message._message_id = f"{self.producer_id}:{self.sent}"
        self.address(message, destination)
        message._broker_path = message._broker_path_text = None
        if message is not given or not self.copies:
            if isinstance(message._body, StreamBody):
                (<StreamBody>message._body).reset()
            return message
        sent = Message.__new__(Message)
        message.copy_into(sent)
        return sent

    def prepare_all(self, given, str destination, int64_t now, list prepared not None):
        """``prepare`` for many, appended to ``prepared``: those before one that raises are there."""
        for one in given:
            prepared.append(self.compose(one, destination, now, self.time_to_live, self.persistent, self.priority))

    def __reduce__(self):
        raise TypeError("the settings of a producer belong to its session and cannot be pickled")

    def _check(self):
        """Raise AssertionError if an invariant of the room does not hold."""
        assert 0 <= self.priority <= 9 and self.time_to_live >= 0 and self.sent >= 0
