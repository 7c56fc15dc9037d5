"""snapshot: everything a queue carries from one event to the next, as bytes, and a queue made of them again.

Written are the settings, the consumers with their credit, the owners of groups in their order of access, every message
with its place, and what the caller has not fetched yet. Derived state is not written: the index over the waiting
messages, open consumers, unused names of groups. Look-ups of groups that were not made yet are reckoned first (see
pending_messages.pxd), so rounds count from 0 again in the queue that is read. Ids of consumers, handles of messages and
bits of selectors stay what they are; handles of group names do not.

Invariants: what is read is checked where it could lead out of an array; SnapshotError says at which byte.
"""

from pyengine._engine.activemq.queue.rounds cimport Rounds
from pyengine._engine.serialization.codec cimport SharedValues


cdef bytes write_queue(Rounds queue, object save, SharedValues shared)
cdef int read_queue(Rounds queue, object reader) except -1
