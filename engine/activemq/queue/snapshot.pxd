"""snapshot: the state of a queue as bytes, and a queue restored from them.

Written are the settings, the consumers with their credit, the owners of groups in their order of access, every message
with its place, and what the caller has not fetched yet. Derived state is not written: the index over the waiting
messages, open consumers, unused names of groups. Deferred look-ups of groups are computed first (see
pending_messages.pxd), so rounds count from 0 again in the queue that is read. Ids of consumers, handles of messages and
bits of selectors stay valid; handles of group names do not.

Invariant: every number that is used as an index is checked when it is read; SnapshotError has the byte.
"""

from pyengine._engine.activemq.queue.rounds cimport Rounds
from pyengine._engine.serialization.codec cimport SharedValues


cdef bytes write_queue(Rounds rounds, object save, SharedValues shared)
cdef int read_queue(Rounds rounds, object reader) except -1
