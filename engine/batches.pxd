"""batches: messages as columns in, decisions as columns out.

A batch is no shortcut: each message is sent, and each wakeup is a round, as if they had come one by one; only the
crossing between Python and the core is paid once. ``prompt``: ids of the consumers that acknowledge after the round,
None all.
"""

from libc.stdint cimport int64_t

from pyengine._engine.rounds cimport Rounds


cdef tuple offer(Rounds queue, int64_t size, object groups, object group_sequences, object priorities,
                 object expirations, object matches, object arrivals, set prompt)
