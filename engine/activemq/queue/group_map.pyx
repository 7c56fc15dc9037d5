"""Owners of message groups (org.apache.activemq.broker.region.group, spec activemq 2.6)."""

from libc.stdint cimport INT32_MAX, INT64_MAX, int32_t, int64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memset

from pyengine._engine.serialization.codec cimport Reader, SharedValues, Writer
from pyengine._engine.serialization.renumbering cimport Numbering
from pyengine._engine.lowlevel.memory cimport allocate, resize
from pyengine._engine.serialization.codec cimport SharedValues

from pyengine._engine.java.hashing import hash_code
from pyengine._engine.serialization.codec import seal, unseal
from pyengine.errors import InvalidTopologyError, did_you_mean
from pyengine.errors import InvalidTopologyError, did_you_mean, unknown_arguments

_KINDS = ("simple", "bucket", "cached")
cdef int32_t FEW = 1024               # number of names below which unused ones are not looked for
_OPTIONS = {"simple": (), "bucket": ("bucketCount", "cacheSize"), "cached": ("cacheSize",)}


cdef int32_t bucket_of(object name, int32_t buckets) except -1:
    cdef int64_t number = hash_code(name if isinstance(name, str) else str(name))
    return <int32_t> ((-number if number < 0 else number) % buckets)


cdef int32_t* grown(int32_t* items, int64_t size) except NULL:
    return <int32_t*> resize(items, size * sizeof(int32_t))


cdef class GroupMap:
    """Group -> owner.

    factory: ``"cached"`` (default), ``"simple"`` or ``"bucket"``, with the broker's options as a query string:
    ``"cached?cacheSize=1024"``, ``"bucket?bucketCount=1024&cacheSize=64"``. Consumers are small non-negative ints.
    Raises InvalidTopologyError for anything else.
    """

    def __cinit__(self, str factory not None="cached", **unknown):
        if unknown:
            raise unknown_arguments("GroupMap", unknown, ("factory",))
        self.kind, _, query = factory.partition("?")
        if self.kind not in _KINDS:
            raise InvalidTopologyError(
                "unknown message group map", key="messageGroupMapFactoryType", value=factory,
                hint=did_you_mean(self.kind, _KINDS))
        options = {"bucketCount": 1024, "cacheSize": 64 if self.kind == "bucket" else 1024}
        for item in query.split("&") if query else ():
            name, _, text = item.partition("=")
            if name not in _OPTIONS[self.kind]:
                raise InvalidTopologyError(
                    f"unknown option {name!r} of the {self.kind} message group map", key="messageGroupMapFactoryType",
                    value=factory, hint=did_you_mean(name, _OPTIONS[self.kind]))
            try:
                options[name] = int(text)
            except ValueError:
                options[name] = -1
            if not (name == "bucketCount") <= options[name] < 2**31:
                raise InvalidTopologyError(
                    f"{name} must be a whole number, {int(name == 'bucketCount')} or more",
                    key="messageGroupMapFactoryType", value=factory)
        self.capacity = options["cacheSize"]
        self.buckets = options["bucketCount"]
        self.form = [SIMPLE, BUCKET, CACHED][_KINDS.index(self.kind)]
        self.factory = factory
        self.names = []
        self.handles = {}
        self.eldest = self.youngest = -1
        self.due = 2 * FEW
        if self.form == BUCKET:
            self.owner = grown(NULL, self.buckets)
            memset(self.owner, 0xFF, self.buckets * sizeof(int32_t))
            self.keys = self.buckets

    def __dealloc__(self):
        free(self.key)
        free(self.owner)
        free(self.elder)
        free(self.younger)
        free(self.shown)
        free(self.accessed)
        free(self.counts)
        free(self.number)

    cdef int32_t intern(self, object name) except -1:
        cdef object known
        cdef int32_t handle
        if self.hashed < self.size:
            self.hash_names()
        known = self.handles.get(name)
        if known is not None:
            return known
        handle = self.append(name)
        self.handles[name] = handle
        self.hashed = self.size
        return handle

    cdef int hash_names(self) except -1:
        # The table is filled when the first name is looked up.
        cdef int32_t handle
        for handle in range(self.hashed, self.size):
            self.handles[self.names[handle]] = handle
        self.hashed = self.size
        return 0

    cdef int reserve(self, int32_t room) except -1:
        self.key = grown(self.key, room)
        self.elder = grown(self.elder, room)
        self.younger = grown(self.younger, room)
        self.shown = grown(self.shown, room)
        self.accessed = <Moment*> resize(self.accessed, room * sizeof(Moment))
        if self.form != BUCKET:
            self.owner = grown(self.owner, room)
        if self.shared is not None:
            self.number = grown(self.number, room)
        self.room = room
        return 0

    cdef int share(self, SharedValues shared) except -1:
        cdef int32_t handle
        if shared is not None:
            self.number = grown(self.number, max(self.room, 1))
            for handle in range(self.size):
                self.number[handle] = -1
            self.shared = shared
        return 0

    cdef int32_t append(self, object name) except -1:
        cdef int32_t handle = self.size
        if handle == self.room:
            self.reserve(64 if self.room == 0 else 2 * self.room)
        self.key[handle] = bucket_of(name, self.buckets) if self.form == BUCKET else handle
        if self.form != BUCKET:
            self.owner[handle] = -1
            self.keys = handle + 1
        if self.shared is not None:
            self.number[handle] = -1
        self.shown[handle] = -1
        self.names.append(name)
        self.size = handle + 1
        return handle

    cdef int32_t append_number(self, int64_t number) except -1:
        cdef int32_t handle = self.append(self.shared.values[number])
        self.number[handle] = <int32_t> number
        return handle

    cdef int reserve_slots(self, int32_t slots) except -1:
        if slots > self.slots:
            self.counts = <int64_t*> resize(self.counts, slots * sizeof(int64_t))
            memset(self.counts + self.slots, 0, (slots - self.slots) * sizeof(int64_t))
            self.slots = slots
        return 0

    cdef void unlist(self, int32_t handle) noexcept nogil:
        if self.elder[handle] >= 0:
            self.younger[self.elder[handle]] = self.younger[handle]
        else:
            self.eldest = self.younger[handle]
        if self.younger[handle] >= 0:
            self.elder[self.younger[handle]] = self.elder[handle]
        else:
            self.youngest = self.elder[handle]
        self.listed -= 1

    cdef void enlist(self, int32_t handle) noexcept nogil:
        self.accessed[handle] = self.now
        self.elder[handle] = self.youngest
        self.younger[handle] = -1
        if self.youngest >= 0:
            self.younger[self.youngest] = handle
        else:
            self.eldest = handle
        self.youngest = handle
        self.listed += 1

    cdef int32_t touch(self, int32_t handle) noexcept nogil:
        cdef int32_t owner = self.owner[self.key[handle]]
        if self.form == CACHED and owner >= 0 or self.form == BUCKET and self.shown[handle] >= 0:
            self.unlist(handle)
            self.enlist(handle)
        return owner

    cdef int32_t assign(self, int32_t handle, int32_t slot) noexcept nogil:
        cdef int32_t key = self.key[handle]
        cdef int32_t forgotten = -1
        cdef bint known = self.owner[key] >= 0 if self.form == CACHED else self.shown[handle] >= 0
        self.owner[key] = slot
        self.counts[slot] += 1
        if self.form == SIMPLE:
            return -1
        self.shown[handle] = slot
        if known:
            self.unlist(handle)
        self.enlist(handle)
        if self.listed > self.capacity:
            forgotten = self.eldest
            self.unlist(forgotten)
            self.shown[forgotten] = -1
            if self.form == BUCKET:
                return -1
            self.loser = self.owner[forgotten]
            self.counts[self.loser] -= 1
            self.owner[forgotten] = -1
        return forgotten

    cdef int close(self, int32_t handle, int32_t slot) noexcept nogil:
        self.drop(handle)
        self.counts[slot] -= 1
        return 0

    cdef int32_t drop(self, int32_t handle) noexcept nogil:
        cdef int32_t key = self.key[handle]
        cdef int32_t owner = self.owner[key]
        if self.form == CACHED and owner >= 0 or self.form == BUCKET and self.shown[handle] >= 0:
            self.unlist(handle)
            self.shown[handle] = -1
        self.owner[key] = -1
        return owner

    cdef list drop_consumer(self, int32_t slot):
        cdef int32_t key
        cdef list lost = []
        for key in range(self.keys):
            if self.owner[key] == slot:
                lost.append(key)
        for number in lost:
            key = number
            if self.form == CACHED:
                self.unlist(key)
                self.shown[key] = -1
            self.owner[key] = -1
        if self.form == BUCKET:
            # The broker keeps the display entries of a consumer that left; here the slot is reused, so they are
            # dropped.
            for key in range(self.size):
                if self.shown[key] == slot:
                    self.unlist(key)
                    self.shown[key] = -1
        return lost

    cdef int drop_all(self) except -1:
        cdef int32_t index
        for index in range(self.keys):
            self.owner[index] = -1
        if self.form == CACHED:
            for index in range(self.size):
                self.shown[index] = -1
            self.eldest = self.youngest = -1
            self.listed = 0
            for index in range(self.slots):
                self.counts[index] = 0
        return 0

    cdef int renew(self) except -1:
        self.names.clear()
        self.handles.clear()
        self.hashed = 0
        if self.form == BUCKET:
            memset(self.owner, 0xFF, self.buckets * sizeof(int32_t))
        else:
            self.keys = 0
        self.size = self.listed = 0
        self.eldest = self.youngest = -1
        self.now.round = 0
        self.now.position = INT64_MAX
        if self.slots:  # without a slot there is no memory for memset
            memset(self.counts, 0, self.slots * sizeof(int64_t))
        return 0

    cdef int32_t* compact(self, const uint8_t* held) except? NULL:
        cdef int32_t handle, kept = 0
        cdef int32_t* moved
        cdef list names = []
        cdef dict handles = {}
        if self.lent:
            self.due = INT32_MAX
            return NULL
        moved = <int32_t*> allocate((self.size + 1) * sizeof(int32_t))
        try:
            for handle in range(self.size):
                if held != NULL and held[handle] or self.shown[handle] >= 0 or (
                        self.form != BUCKET and self.owner[handle] >= 0):
                    names.append(self.names[handle])
        except BaseException:
            free(moved)
            raise
        for handle in range(self.size):
            moved[handle] = -1
            if held != NULL and held[handle] or self.shown[handle] >= 0 or (
                    self.form != BUCKET and self.owner[handle] >= 0):
                moved[handle] = kept
                self.shown[kept] = self.shown[handle]
                self.elder[kept] = self.elder[handle]
                self.younger[kept] = self.younger[handle]
                self.accessed[kept] = self.accessed[handle]
                self.key[kept] = self.key[handle] if self.form == BUCKET else kept
                if self.form != BUCKET:
                    self.owner[kept] = self.owner[handle]
                if self.shared is not None:
                    self.number[kept] = self.number[handle]
                kept += 1
        handle = self.eldest = moved[self.eldest] if self.eldest >= 0 else -1
        while handle >= 0:
            self.elder[handle] = moved[self.elder[handle]] if self.elder[handle] >= 0 else -1
            self.younger[handle] = moved[self.younger[handle]] if self.younger[handle] >= 0 else -1
            self.youngest = handle
            handle = self.younger[handle]
        self.names = names
        self.handles = handles
        self.hashed = 0
        self.size = kept
        if self.form != BUCKET:
            self.keys = kept
        self.due = 2 * max(kept, FEW)
        return moved

    cdef int trim(self) except -1:
        if self.room > 4 * self.due:
            self.room = self.due
            self.reserve(self.due)
        return 0

    cdef bint precedes(self, Moment left, Moment right) noexcept nogil:
        return left.round < right.round or left.round == right.round and left.position < right.position

    cdef void advance(self, int32_t handle, Moment moment, int32_t cursor) noexcept nogil:
        cdef int32_t younger
        if cursor == handle:
            cursor = self.elder[handle]
        self.unlist(handle)
        while cursor >= 0 and self.precedes(moment, self.accessed[cursor]):
            cursor = self.elder[cursor]
        younger = self.younger[cursor] if cursor >= 0 else self.eldest
        self.accessed[handle] = moment
        self.elder[handle] = cursor
        self.younger[handle] = younger
        if cursor >= 0:
            self.younger[cursor] = handle
        else:
            self.eldest = handle
        if younger >= 0:
            self.elder[younger] = handle
        else:
            self.youngest = handle
        self.listed += 1

    cdef int32_t find(self, object name) except -2:
        # Its handle, -1 if it is not known.
        self.hash_names()
        known = self.handles.get(name)
        return -1 if known is None else known

    cdef int32_t settled(self, object name) except -1:
        # ``intern`` of a map without a queue: no handle is held elsewhere.
        if self.size >= self.due:
            free(self.compact(NULL))
            self.trim()
        return self.intern(name)

    def _slot(self, int consumer):
        if not 0 <= consumer < 2**24:
            raise InvalidTopologyError("a consumer is a number from 0 to 16777215", key="consumer", value=consumer)
        self.reserve_slots(consumer + 1)
        return consumer

    def get(self, object name):
        """Owner of a group, or None; counts as an access, as the broker's lookup does."""
        cdef int32_t handle = self.settled(name) if self.form == BUCKET else self.find(name)
        cdef int32_t owner = self.touch(handle) if handle >= 0 else -1
        return None if owner < 0 else owner

    def put(self, object name, int consumer):
        """Assign a group to a consumer and count it."""
        self.assign(self.settled(name), self._slot(consumer))

    def close_group(self, object name, int consumer):
        """The owner ends its group: the owner is forgotten and the consumer's count goes down."""
        self.close(self.settled(name), self._slot(consumer))

    def remove_group(self, object name):
        """Forget the owner of a group and return it (or None); the owner's count stays."""
        cdef int32_t owner = self.drop(self.settled(name))
        return None if owner < 0 else owner

    def remove_consumer(self, int consumer):
        """Forget every group of a consumer; its count stays."""
        self.drop_consumer(self._slot(consumer))

    def remove_all(self):
        """Forget every owner; only the cached map also sets the counts to zero."""
        self.drop_all()

    def count(self, int consumer):
        """Groups assigned to a consumer, as the broker counts them."""
        return self.counts[consumer] if 0 <= consumer < self.slots else 0

    def bucket(self, object name):
        """Bucket of a group name in a bucket map."""
        return bucket_of(name, self.buckets)

    def owners(self):
        """``{group name: consumer}``; a cached map's eldest first, a bucket map's as the broker displays them."""
        cdef int32_t handle
        cdef dict result = {}
        if self.form == SIMPLE:
            for handle in range(self.size):
                if self.owner[handle] >= 0:
                    result[self.names[handle]] = self.owner[handle]
            return result
        handle = self.eldest
        while handle >= 0:
            result[self.names[handle]] = self.shown[handle]
            handle = self.younger[handle]
        return result

    def __len__(self):
        cdef int32_t key, total = 0
        for key in range(self.keys):
            total += self.owner[key] >= 0
        return total

    def __reduce__(self):
        return _rebuild, (self.factory, write_groups(self))

    def _check(self):
        """Assert the invariants of group_map.pxd."""
        cdef int32_t handle, counted = 0, before = -1
        self.hash_names()
        assert len(self.names) == len(self.handles) == self.size
        for handle in range(self.size):
            assert self.handles[self.names[handle]] == handle
            assert 0 <= self.key[handle] < self.keys
            if self.shared is not None and self.number[handle] >= 0:
                assert self.shared.values[self.number[handle]] == self.names[handle]
        handle = self.eldest
        while handle >= 0:
            assert self.elder[handle] == before
            assert self.shown[handle] >= 0
            assert before < 0 or not self.precedes(self.accessed[handle], self.accessed[before])
            assert self.form != CACHED or self.shown[handle] == self.owner[handle]
            before = handle
            handle = self.younger[handle]
            counted += 1
        assert before == self.youngest
        assert counted == self.listed
        assert self.form == SIMPLE or self.listed <= self.capacity
        if self.form == CACHED:
            assert self.listed == len(self)


def _rebuild(factory, state):
    cdef GroupMap result = GroupMap(factory)
    read_groups(result, state)
    return result


# As bytes

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


cdef bytes write_groups(GroupMap groups):
    # A group map alone.
    cdef Writer writer = Writer()
    cdef Numbering slots = Numbering(groups.slots), names = Numbering(groups.size)
    cdef int32_t slot
    writer.count(groups.slots)
    for slot in range(groups.slots):
        slots.see(slot)
        writer.number(groups.counts[slot])
    put_groups(writer, groups, names, slots)
    return seal(MAGIC, VERSION, writer.content())


cdef int read_groups(GroupMap groups, bytes data) except -1:
    # Fill a new group map of the same kind.
    cdef Reader reader
    cdef int32_t slot
    start, end = unseal(MAGIC, VERSION, data)
    reader = Reader(data, start, end)
    groups.reserve_slots(<int32_t> reader.count(1 << 24))
    for slot in range(groups.slots):
        groups.counts[slot] = reader.number()
    get_groups(reader, groups, groups.slots)
    return 0
