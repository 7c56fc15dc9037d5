"""Many messages in one call, through the very rounds that one message goes through; see batches.pxd."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t

from pyengine._engine.pending cimport Message
from pyengine._engine.rounds cimport Handout, Rounds

from pyengine.errors import InvalidMessageError


def column(str field, values, int64_t size, dtype):
    """One column of a batch, contiguous and of the right width, or InvalidMessageError."""
    array = np.asarray(values)
    if array.shape != (size,):
        raise InvalidMessageError(field, array.shape, f"must have one value a message ({size})")
    if array.dtype.kind not in "iu":
        raise InvalidMessageError(field, array.dtype, "must be an array of integers")
    if array.dtype != dtype and size and (array.max() > np.iinfo(dtype).max or array.min() < np.iinfo(dtype).min):
        raise InvalidMessageError(field, int(array.max()), f"must fit {np.dtype(dtype).name}")
    return np.ascontiguousarray(array, dtype=dtype)


cdef tuple offer(Rounds queue, int64_t size, object groups, object group_sequences, object priorities,
                 object expirations, object matches, object arrivals, set prompt):
    cdef int64_t row, index, first = queue.next_sequence, now = 0, after
    cdef int32_t number, words = 0, slot
    cdef const int32_t[::1] group = None if groups is None else column("groups", groups, size, np.int32)
    cdef const int32_t[::1] part = None
    if group_sequences is not None:
        part = column("group_sequences", group_sequences, size, np.int32)
    cdef const int32_t[::1] urgency = None if priorities is None else column("priorities", priorities, size, np.int32)
    cdef const int64_t[::1] until = None if expirations is None else column("expirations", expirations, size, np.int64)
    cdef const int64_t[::1] at_time = None if arrivals is None else column("arrivals", arrivals, size, np.int64)
    cdef const uint64_t[:, ::1] bits = None
    cdef uint64_t none = 1
    cdef Message* it
    if matches is not None:
        matches = np.asarray(matches)
        matches = matches.reshape(-1, 1) if matches.ndim == 1 else matches
        if matches.dtype != np.uint64 or matches.ndim != 2 or matches.shape[0] != size:
            raise InvalidMessageError("matches", matches.dtype, "must be uint64 with one row a message")
        bits = np.ascontiguousarray(matches)
        words = min(bits.shape[1], queue.consumers.word_count)
    elif queue.consumers.predicate_count > 1:
        raise InvalidMessageError("matches", None, "is needed because a consumer of this queue has a selector")
    if group is not None and size and (
            np.max(group) >= queue.groups.size or np.min(group) < -1):
        raise InvalidMessageError("groups", int(np.max(group)), "is no group handle", hint="see intern_groups")
    consumers = np.full(size, -1, np.int64)
    cdef int64_t[::1] got = consumers
    cdef Handout* given = NULL
    queue.out_size = 0
    for row in range(size):
        number = queue.pending.allot()
        it = &queue.pending.at[number]
        it.group = group[row] if group is not None else -1
        it.group_sequence = part[row] if part is not None else 0
        it.priority = min(9, max(0, urgency[row])) if urgency is not None else 4
        it.expiration = until[row] if until is not None else 0
        it.connection = -1
        if words:
            queue.pending.at[number].match = queue.consumers.class_for_words(&bits[row, 0], words)
        else:
            queue.pending.at[number].match = queue.consumers.class_for_words(&none, 1)
        if at_time is not None:
            now = at_time[row]
        queue.accept(number)
        after = queue.out_size
        while queue.rounds_due > 0:
            index = queue.out_size
            if not queue.round(now):
                break
            if not queue.stirred:   # nothing changed, so nothing is left to change for the rounds still due
                queue.rounds_due = 0
            if prompt is None or prompt:
                for index in range(index, queue.out_size):
                    given = &queue.out[index]
                    if given.handle >= 0 and not queue.consumers.at[given.slot].browser and (
                            prompt is None or given.consumer in prompt):
                        slot = given.slot
                        queue.complete(slot, given.message)
                        queue.consumers.contract(slot, 1)
                        queue.refresh(slot)
                        queue.rounds_due += 2
        for index in range(after, queue.out_size):
            if queue.out[index].sequence >= first:
                got[queue.out[index].sequence - first] = queue.out[index].consumer
    sequences, order = np.empty(queue.out_size, np.int64), np.empty(queue.out_size, np.int64)
    cdef int64_t[::1] which = sequences, whom = order
    for index in range(queue.out_size):
        which[index] = queue.out[index].sequence
        whom[index] = queue.out[index].consumer
    queue.out_size = 0
    return consumers, sequences, order
