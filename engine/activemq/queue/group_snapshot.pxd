"""group_snapshot: a group map as bytes, alone or in a queue's snapshot: groups and their owners, in the order of
access.

Unused names of groups are left out, so that handles of names change. Invariant: every number that is used as an index
is checked when it is read; SnapshotError has the byte.
"""

from libc.stdint cimport int32_t

from pyengine._engine.activemq.queue.group_map cimport GroupMap
from pyengine._engine.serialization.renumbering cimport Numbering
from pyengine._engine.serialization.codec cimport Reader, Writer


cdef enum:
    MOST = 0x3FFFFFFF            # slots, names, consumers in one snapshot


cdef int put_groups(Writer writer, GroupMap groups, Numbering names, Numbering slots) except -1
cdef int get_groups(Reader reader, GroupMap groups, int32_t slots) except -1
