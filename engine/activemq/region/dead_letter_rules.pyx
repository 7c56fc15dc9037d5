"""Dead-letter strategies of broker.region.policy, and broker.util.RedeliveryPlugin (spec activemq 2.13)."""

from pyengine._engine.activemq.topic.message_audit cimport Audit, producer_and_number

cdef int DESTINATIONS = 10_000      # whose audits an individual strategy keeps


cdef tuple audited(str message_id):
    # An id without a number counts as a producer of its own.
    producer, number = producer_and_number(message_id)
    return (message_id, 0) if producer is None else (producer, number)


cdef class DeadLetterRule:
    """One strategy with its audit; destinations that share the strategy share both.

    form: "shared" (to ``names["dead_letter_queue"]``), "individual" (``names``: queue_prefix, topic_prefix,
    queue_suffix, topic_suffix, and "queue" or "topic" for queue_kind and topic_kind), "discarding". audit: None for no
    audit. audit_apart: each destination has an audit of its own, made like ``audit``, so that each copy of a message
    that went to several is moved (individual strategies since 5.18).
    """

    def __init__(self, str form not None, *, bint process_non_persistent=False, bint process_expired=True,
                 Audit audit=None, bint audit_apart=False, dict names=None):
        if form not in ("shared", "individual", "discarding"):
            raise ValueError(f"form = {form!r}: must be 'shared', 'individual' or 'discarding'")
        self.form = form
        self.process_non_persistent = process_non_persistent
        self.process_expired = process_expired
        self.audit = audit
        self.apart = {} if audit_apart else None
        self.names = names or {}

    def __reduce__(self):
        raise TypeError("a dead-letter rule belongs to one broker and is not copied")

    cdef Audit audit_of(self, str destination):
        cdef Audit audit
        if self.apart is None:
            return self.audit
        audit = self.apart.pop(destination, None)
        if audit is None:
            audit = Audit(self.audit.depth, self.audit.producers)
            if len(self.apart) >= DESTINATIONS:
                del self.apart[next(iter(self.apart))]
        self.apart[destination] = audit
        return audit

    def destination(self, str message_id not None, str destination not None, *, bint persistent, bint expired,
                    str carries=None, str subscription=None):
        """Where the message goes, as ``queue://NAME``, or None: it is dropped.

        destination: the qualified name of the queue or topic it was on. carries: the destination the message itself
        names (None: the same): a dead letter never goes to its own queue, and the kind of the message's destination
        decides which prefix applies. subscription: key of the durable subscription it failed at, if the name must
        contain it.
        """
        cdef bint known = False
        cdef str target
        carries = carries or destination
        if self.audit is not None and self.form != "discarding":
            producer, number = audited(message_id)
            known = self.audit_of(carries).was_recorded(producer, number)
        if self.form == "discarding" or known:
            return None
        if not persistent and not self.process_non_persistent:
            return None
        if expired and not self.process_expired:
            return None
        if self.form == "shared":
            target = self.names["dead_letter_queue"]
        else:
            name = destination.partition("://")[2]
            side = "queue" if carries.partition("://")[0].endswith("queue") else "topic"
            target = f"{self.names[side + '_kind']}://{self.names[side + '_prefix']}{name}"
            if subscription is not None:
                target += "." + subscription
            target += self.names[side + "_suffix"]
        return None if target == carries else target

    def forgive(self, str message_id not None, str destination not None):
        """Remove the message of that destination from the audit."""
        if self.audit is not None:
            producer, number = audited(message_id)
            self.audit_of(destination).forget(producer, number)

    def _check(self):
        """Assert the invariants of the audits."""
        if self.audit is not None:
            self.audit._check()
        for audit in (self.apart or {}).values():
            (<Audit>audit)._check()
        assert len(self.apart or ()) <= DESTINATIONS


def resend_delay(object policy not None, int redeliveries, list chances not None):
    """The delay (ms) after which a message with this number of redeliveries is sent again, or None: not again.

    policy: a RedeliveryPolicy. chances: a random number from 0 to 1 for each further step of the back-off.
    """
    if 0 <= policy.maximum_redeliveries <= redeliveries:
        return None
    delay = policy.initial_redelivery_delay
    for step in range(redeliveries):
        delay = policy.next_delay(delay, chances[step])
    return delay
