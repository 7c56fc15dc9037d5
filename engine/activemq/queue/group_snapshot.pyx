"""Owners of groups as bytes; see group_snapshot.pxd."""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.queue.group_map cimport BUCKET, CACHED, SIMPLE, GroupMap
from pyengine._engine.serialization.renumbering cimport Numbering
from pyengine._engine.serialization.codec cimport Reader, SharedValues, Writer

from pyengine._engine.serialization.codec import seal, unseal

cdef bytes MAGIC = b"PYEG"
cdef int VERSION = 2


cdef int put_groups(Writer writer, GroupMap groups, Numbering names, Numbering slots) except -1:
    cdef int32_t handle, key, owned = 0, before = -1
    cdef bint by_name = groups.form != BUCKET
    for handle in range(groups.size):
        if by_name and groups.owner[handle] >= 0:
            names.see(handle)
    handle = groups.eldest
    while handle >= 0:
        names.see(handle)
        handle = groups.younger[handle]
    names.sort()
    writer.count(names.used)
    for handle in range(groups.size):
        if names.at[handle]:
            if groups.shared is not None and groups.shared is writer.shared and groups.number[handle] >= 0:
                writer.common_number(groups.number[handle])
                continue
            name = groups.names[handle]
            if type(name) is str:
                writer.common(name)
            else:
                writer.value(name)
    for key in range(groups.keys):
        owned += groups.owner[key] >= 0
    writer.count(owned)
    for key in range(groups.keys):
        if groups.owner[key] >= 0:
            handle = names.at[key] - 1 if by_name else key
            writer.count(handle - before - 1)
            writer.count(slots.see(groups.owner[key]))
            before = handle
    writer.count(groups.listed)
    handle = groups.eldest
    while handle >= 0:
        writer.count(names.see(handle))
        if not by_name:
            writer.count(slots.see(groups.shown[handle]))
        handle = groups.younger[handle]
    return 0


cdef int get_groups(Reader reader, GroupMap groups, int32_t slots) except -1:
    cdef int64_t _, index, number, owned, key = -1, named = reader.count(reader.end - reader.position)
    cdef int32_t handle, slot
    cdef bint by_name = groups.form != BUCKET
    cdef SharedValues shared = reader.shared
    groups.share(shared)
    if named:
        groups.reserve(<int32_t> named + 16)
    if shared is not None:
        shared.begin()
    for index in range(named):
        number = reader.common_number()
        if number < 0:
            if groups.intern(reader.value()) != index:
                raise reader.refuse("a group is named twice")
        elif shared.noted(number):
            raise reader.refuse("a group is named twice")
        else:
            shared.note(number, groups.append_number(number))
    owned = reader.count(groups.keys)
    for _ in range(owned):
        key += 1 + reader.count(MOST)
        if key >= groups.keys:
            raise reader.refuse("a group that is not there has an owner")
        groups.owner[key] = <int32_t> reader.count(slots - 1)
    for _ in range(reader.count(groups.capacity if groups.form != SIMPLE else 0)):
        handle = <int32_t> reader.count(groups.size - 1)
        if groups.shown[handle] >= 0:
            raise reader.refuse("a group is listed twice")
        slot = groups.owner[handle] if by_name else <int32_t> reader.count(slots - 1)
        if slot < 0:
            raise reader.refuse("a listed group has no owner")
        groups.shown[handle] = slot
        groups.enlist(handle)
    if groups.form == CACHED and groups.listed != owned:
        raise reader.refuse("a group with an owner is not listed")
    return 0


def write_groups(GroupMap groups not None):
    """A group map alone, as bytes."""
    cdef Writer writer = Writer()
    cdef Numbering slots = Numbering(groups.slots), names = Numbering(groups.size)
    cdef int32_t slot
    writer.count(groups.slots)
    for slot in range(groups.slots):
        slots.see(slot)
        writer.number(groups.counts[slot])
    put_groups(writer, groups, names, slots)
    return seal(MAGIC, VERSION, writer.content())


def read_groups(GroupMap groups not None, bytes data not None):
    """Fill a new group map of the same kind."""
    cdef Reader reader
    cdef int32_t slot
    start, end = unseal(MAGIC, VERSION, data)
    reader = Reader(data, start, end)
    groups.reserve_slots(<int32_t> reader.count(1 << 24))
    for slot in range(groups.slots):
        groups.counts[slot] = reader.number()
    get_groups(reader, groups, groups.slots)
