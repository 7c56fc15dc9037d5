"""broker.region.virtual: VirtualTopicInterceptor, CompositeDestinationFilter (spec activemq 4.4)."""

from libc.stdint cimport int64_t

from pyengine._engine.matching.selector cimport Selector
from pyengine._engine.java.value cimport TRUE


cdef class Forwarding:
    """A composite queue or topic: which of its destinations get a copy, and whether the message stays too.

    filters: for each destination a Selector, or None for everything.
    """

    def __init__(self, object filters not None, *, bint forward_only=True, bint send_when_not_matched=False):
        self.filters = tuple(filters)
        self.forward_only = forward_only
        self.send_when_not_matched = send_when_not_matched

    def __reduce__(self):
        return Forwarding._rebuild, (self.filters, self.forward_only, self.send_when_not_matched)

    @staticmethod
    def _rebuild(filters, forward_only, send_when_not_matched):
        return Forwarding(filters, forward_only=forward_only, send_when_not_matched=send_when_not_matched)

    def route(self, object message):
        """``(indexes of the destinations that match, whether the message itself goes on)``. A selector that cannot be
        evaluated does not match."""
        cdef list matching = []
        cdef int index = 0
        for selector in self.filters:
            if selector is None or (<Selector?> selector).outcome(message) == TRUE:
                matching.append(index)
            index += 1
        if self.send_when_not_matched:
            return matching, not matching
        return matching, not self.forward_only


def consumer_queues(str prefix not None, str topic not None, str postfix not None):
    """The pattern of the queues that a virtual topic feeds."""
    return prefix + topic + postfix


cdef bint fits(str pattern, Py_ssize_t at, str text, Py_ssize_t place) except -1:
    """``*`` in the pattern is anything without a dot, a zero anything."""
    cdef Py_UCS4 sign
    if at == len(pattern):
        return place == len(text)
    sign = pattern[at]
    if sign != u"*" and sign != 0:
        return place < len(text) and text[place] == sign and fits(pattern, at + 1, text, place + 1)
    while not fits(pattern, at + 1, text, place):
        if place == len(text) or (sign and text[place] == u"."):
            return False
        place += 1
    return True


def maps(str prefix not None, str queue not None, str postfix not None):
    """Whether MappedQueueFilter intercepts a queue whose name overlaps the pattern (interceptMappedDestination)."""
    return fits(prefix + "\0" + postfix, 0, queue, 0)


cdef int64_t compare_to(str one, str other) except? -1:
    """String.compareTo: the difference of the first differing UTF-16 units, otherwise of the lengths."""
    ours, theirs = [memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H") for text in (one, other)]
    for a, b in zip(ours, theirs):
        if a != b:
            return a - b
    return <int64_t> len(ours) - <int64_t> len(theirs)


def lets_in(str asked not None, bint asked_is_pattern, str queue not None, bint queue_is_pattern):
    """Whether MappedQueueFilter accepts a consumer of ``asked``, which covers the queue (addSubscription).

    It compares the two destinations and requires 0, or 1 for a queue that is not a pattern: a pattern that covers the
    other counts 1, any other name its distance.
    """
    return asked == queue or (not queue_is_pattern and (asked_is_pattern or compare_to(asked, queue) == 1))


def feeds(str prefix not None, str queue not None):
    """Whether a queue that the pattern covers is meant: its name starts with the part before the first ``.*``."""
    cdef Py_ssize_t star = prefix.find(".*")
    return star < 0 or prefix.startswith("*") or queue.startswith(prefix[:star])
