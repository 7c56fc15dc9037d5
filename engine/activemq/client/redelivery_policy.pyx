"""Back-off of redeliveries as the client computes it (org.apache.activemq.RedeliveryPolicy, spec activemq 2.12)."""

from libc.stdint cimport INT64_MAX

from pyengine._engine.java.value cimport java_text

from datetime import timedelta

from pyengine.durations import whole_milliseconds
from pyengine.errors import InvalidTopologyError, UnknownNameError, did_you_mean, unknown_arguments
from pyengine.whole_numbers import is_whole_number


cdef object in_milliseconds(object delay):
    # A timedelta in ms; other objects unchanged.
    return whole_milliseconds(delay) if isinstance(delay, timedelta) else delay


cdef int64_t long_of(double delay) noexcept:
    """Java's conversion to long: truncated, and saturated at the largest long, which C leaves undefined."""
    return <int64_t> delay if delay < 9223372036854775808.0 else INT64_MAX


cdef class RedeliveryPolicy:
    """When a message is delivered again, and when it is given up.

    Delays are ms, or a timedelta. maximum_redeliveries -1 is without limit; maximum_redelivery_delay -1 is without
    cap, and caps the back-off product only. The back-off multiplies the previous delay if that is above 0 and the
    multiplier above 1. pre_dispatch_check: a transacted consumer refuses a message on arrival if it was redelivered too
    often.
    """

    def __cinit__(self, *, object maximum_redeliveries=6, object initial_redelivery_delay=1000,
                  object redelivery_delay=1000, object use_exponential_back_off=False, object back_off_multiplier=5.0,
                  object maximum_redelivery_delay=-1, object use_collision_avoidance=False,
                  object collision_avoidance_percent=15, object pre_dispatch_check=True, **unknown):
        if unknown:
            raise unknown_arguments("RedeliveryPolicy", unknown, _FIELDS)
        initial_redelivery_delay = in_milliseconds(initial_redelivery_delay)
        redelivery_delay = in_milliseconds(redelivery_delay)
        maximum_redelivery_delay = in_milliseconds(maximum_redelivery_delay)
        for name, value, low, high in (
                ("maximumRedeliveries", maximum_redeliveries, -1, 2**31 - 1),
                ("initialRedeliveryDelay", initial_redelivery_delay, 0, 2**62),
                ("redeliveryDelay", redelivery_delay, 0, 2**62),
                ("maximumRedeliveryDelay", maximum_redelivery_delay, -1, 2**62),
                ("collisionAvoidancePercent", collision_avoidance_percent, 0, 127)):
            if not is_whole_number(value, low, high):
                raise InvalidTopologyError(f"must be a whole number from {low} to {high}", key=name, value=value)
        for name, value in (("useExponentialBackOff", use_exponential_back_off),
                            ("useCollisionAvoidance", use_collision_avoidance),
                            ("preDispatchCheck", pre_dispatch_check)):
            if not isinstance(value, bool):
                raise InvalidTopologyError("must be True or False", key=name, value=value)
        if (isinstance(back_off_multiplier, bool) or not isinstance(back_off_multiplier, (int, float))
                or back_off_multiplier != back_off_multiplier):
            raise InvalidTopologyError("must be a number", key="backOffMultiplier", value=back_off_multiplier)
        self.maximum_redeliveries = maximum_redeliveries
        self.initial_redelivery_delay = initial_redelivery_delay
        self.redelivery_delay = redelivery_delay
        self.use_exponential_back_off = use_exponential_back_off
        self.back_off_multiplier = back_off_multiplier
        self.maximum_redelivery_delay = maximum_redelivery_delay
        self.use_collision_avoidance = use_collision_avoidance
        self.collision_avoidance_percent = collision_avoidance_percent
        self.pre_dispatch_check = pre_dispatch_check

    cpdef int64_t next_delay(self, int64_t previous, double chance=0.5) except? -1:
        """Delay after ``previous``. chance: 0 <= chance < 1, the caller's random number for collision avoidance; 0.5
        changes nothing, a smaller or larger one shrinks or extends the delay by up to
        ``collision_avoidance_percent``."""
        cdef int64_t delay = self.redelivery_delay
        cdef double product
        if not 0 <= chance < 1:
            raise InvalidTopologyError("must be a number from 0 to below 1", key="chance", value=chance)
        if previous > 0 and self.use_exponential_back_off and self.back_off_multiplier > 1:
            product = previous * self.back_off_multiplier
            delay = long_of(product)
            if self.maximum_redelivery_delay != -1 and delay > self.maximum_redelivery_delay:
                delay = max(self.maximum_redelivery_delay, self.redelivery_delay)
        if self.use_collision_avoidance:
            delay = long_of(delay + delay * (2 * chance - 1) * self.collision_avoidance_percent / 100.0)
        return delay

    def delays(self, int count):
        """The first ``count`` delays of one message, without collision avoidance's chance."""
        cdef list result = []
        cdef int64_t delay = self.initial_redelivery_delay
        for _ in range(count):
            result.append(delay)
            delay = self.next_delay(delay)
        return result

    cpdef bint exhausted(self, int64_t redeliveries) except -1:
        """Whether a message with this redelivery counter (after the rollback) goes to the dead letters."""
        return self.maximum_redeliveries != -1 and redeliveries > self.maximum_redeliveries

    cdef str text(self):
        # The text of the real class, which is part of the cause of a dead letter.
        fields = (
            ("destination", "null"), ("collisionAvoidanceFactor", self.collision_avoidance_percent * 0.01),
            ("maximumRedeliveries", self.maximum_redeliveries),
            ("maximumRedeliveryDelay", self.maximum_redelivery_delay),
            ("initialRedeliveryDelay", self.initial_redelivery_delay),
            ("useCollisionAvoidance", self.use_collision_avoidance),
            ("useExponentialBackOff", self.use_exponential_back_off),
            ("backOffMultiplier", self.back_off_multiplier), ("redeliveryDelay", self.redelivery_delay),
            ("preDispatchCheck", self.pre_dispatch_check))
        return f"RedeliveryPolicy {{{', '.join([f'{name} = {java_text(value)}' for name, value in fields])}}}"

    def __setattr__(self, name, value):
        problem = "a RedeliveryPolicy cannot be changed" if name in _FIELDS else "no such attribute"
        hint = "give it where the policy is made" if name in _FIELDS else did_you_mean(name, _FIELDS)
        raise UnknownNameError(f"RedeliveryPolicy.{name}", value, problem, hint)

    def __reduce__(self):
        return _rebuild, ({name: getattr(self, name) for name in _FIELDS},)

    def __eq__(self, other):
        return isinstance(other, RedeliveryPolicy) and self.__reduce__() == other.__reduce__()

    def __hash__(self):
        return hash(tuple(getattr(self, name) for name in _FIELDS))

    def __repr__(self):
        return f"RedeliveryPolicy({', '.join(f'{name}={getattr(self, name)!r}' for name in _FIELDS)})"


_FIELDS = (
    "maximum_redeliveries", "initial_redelivery_delay", "redelivery_delay", "use_exponential_back_off",
    "back_off_multiplier", "maximum_redelivery_delay", "use_collision_avoidance", "collision_avoidance_percent",
    "pre_dispatch_check")


def _rebuild(fields):
    return RedeliveryPolicy(**fields)
