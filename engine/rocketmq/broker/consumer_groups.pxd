"""consumer_groups: the members of a broker's consumer groups and what each group subscribes to (ConsumerManager).

Members are kept in the order in which they joined. Invariants: no group is empty; ``clients`` has who is in a group.
"""

from libc.stdint cimport int64_t


cdef class Group:
    cdef dict members           # client id -> ms of its last heartbeat
    cdef dict subscriptions     # topic -> (version, subscription)
    cdef bint broadcasting      # as in the last heartbeat; members are not notified of changes

    cdef list to_be_told(self)


cdef class ConsumerGroups:
    cdef dict groups            # group -> Group
    cdef dict clients           # client id -> in how many groups it is
    cdef readonly int64_t expiry    # ms without a heartbeat until a member is gone
