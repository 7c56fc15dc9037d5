"""A queue as bytes; see snapshot.pxd."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport INT32_MAX, INT64_MAX, int32_t, int64_t

from pyengine._engine.lowlevel.memory cimport allocate_zeros
from pyengine._engine.lowlevel.linked_list cimport Chain
from pyengine._engine.activemq.queue.consumer_list cimport Consumer, ConsumerList
from pyengine._engine.activemq.queue.group_map cimport MOST, GroupMap, get_groups, put_groups
from pyengine._engine.activemq.queue.message_cursors cimport MessageCursors
from pyengine._engine.activemq.queue.message_slots cimport (
    IN_FLIGHT, NOWHERE, REMOVED, STORED, STRANDED, WAITING, Message, MessageSlots,
)
from pyengine._engine.serialization.renumbering cimport Numbering
from pyengine._engine.activemq.queue.pending_messages cimport PendingMessages
from pyengine._engine.activemq.queue.queue_state cimport CURSORS, Totals
from pyengine._engine.activemq.queue.rounds cimport Rounds
from pyengine._engine.serialization.codec cimport Reader, SharedValues, Writer

from pyengine._engine.matching.selector import Selector
from pyengine._engine.serialization.codec import seal, unseal

cdef bytes MAGIC = b"PYEQ"
cdef int VERSION = 2

cdef int HAS_EXPIRATION = 1, HAS_GROUP = 2, HAS_PRIORITY = 4, HAS_CONNECTION = 8, HAS_REDELIVERIES = 16, HAS_BODY = 32
cdef int HAS_CLASS = 64, IS_FIRST = 128, IS_ACKNOWLEDGED = 256, HAS_ERROR = 512, IS_REMOVED = 1024, HAS_SEQUENCE = 2048
cdef int IS_TRANSIENT = 4096
cdef int FLAGS = 8191


cdef bytes write_queue(Rounds rounds, object save, SharedValues shared):
    cdef Writer writer = Writer()
    cdef MessageSlots messages = rounds.messages
    cdef Numbering names = Numbering(rounds.groups.size), classes = Numbering(rounds.consumers.class_count)
    cdef Numbering slots = Numbering(rounds.consumers.slots)
    cdef int32_t message, slot
    writer.save = save
    writer.shared = shared
    rounds.pending.settle()
    for slot in range(rounds.consumers.slots):
        if rounds.consumers.at[slot].live:
            slots.see(slot)
    for message in range(messages.slots):
        if messages.at[message].whereabouts != NOWHERE:
            classes.see(messages.at[message].match)
            if messages.at[message].group >= 0:
                names.see(messages.at[message].group)
    put_settings(writer, rounds)
    put_rounds(writer, rounds)
    put_consumers(writer, rounds, slots)
    put_groups(writer, rounds.groups, names, slots)
    put_classes(writer, rounds.consumers, classes)
    put_browsers(writer, rounds, slots)
    put_messages(writer, rounds, names, classes, slots)
    return seal(MAGIC, VERSION, writer.content())


cdef int read_queue(Rounds rounds, object reader) except -1:
    cdef Reader source = reader
    try:
        get_rounds(source, rounds)
        get_consumers(source, rounds)
        get_groups(source, rounds.groups, rounds.consumers.slots)
        classes = get_classes(source, rounds.consumers)
        get_browsers(source, rounds)
        get_messages(source, rounds, classes)
    except (OverflowError, TypeError, UnicodeError) as error:
        raise source.refuse("a value does not fit its place") from error
    if source.position != source.end:
        raise source.refuse("something follows the end of the queue")
    return 0


def settings_of(bytes data not None, object load=None, SharedValues shared=None):
    """``(reader, settings)`` of a sealed queue: the keyword arguments it was made with, and a reader behind them."""
    start, end = unseal(MAGIC, VERSION, data)
    cdef Reader reader = Reader(data, start, end, load)
    reader.shared = shared
    cdef int64_t flags
    cdef dict settings = {"max_page_size": reader.value(), "max_browse_page_size": reader.value()}
    flags = reader.count(127)
    settings["use_consumer_priority"] = bool(flags & 1)
    settings["strict_order_dispatch"] = bool(flags & 2)
    settings["prioritized_messages"] = bool(flags & 4)
    settings["lazy_dispatch"] = bool(flags & 8)
    settings["use_prefetch_extension"] = bool(flags & 16)
    settings["all_consumers_exclusive_by_default"] = bool(flags & 32)
    settings["cursor"] = list(CURSORS)[reader.count(len(CURSORS) - 1)]
    settings["selector_errors"] = "exact" if flags & 64 else "no_match"
    settings["consumers_before_dispatch_starts"] = reader.count(INT32_MAX)
    settings["time_before_dispatch_starts"] = reader.count(INT32_MAX)
    settings["message_group_map_factory_type"] = reader.text()
    return reader, settings


cdef int put_settings(Writer writer, Rounds rounds) except -1:
    writer.value(rounds.state.max_page_size)
    writer.value(rounds.state.max_browse_page_size)
    writer.count(rounds.consumers.use_consumer_priority | rounds.state.strict_order_dispatch << 1
                 | rounds.state.prioritized_messages << 2 | rounds.state.lazy_dispatch << 3
                 | rounds.consumers.use_prefetch_extension << 4 | rounds.consumers.all_exclusive << 5
                 | (rounds.state.selector_errors == "exact") << 6)
    writer.count(list(CURSORS).index(rounds.state.cursor))
    writer.count(rounds.state.consumers_before_dispatch_starts)
    writer.count(rounds.state.time_before_dispatch_starts)
    return writer.text(rounds.groups.factory)


# The rounds themselves, and what the caller has not fetched

cdef int put_rounds(Writer writer, Rounds rounds) except -1:
    cdef Totals totals = rounds.state.totals
    writer.count(rounds.state.rounds_due)
    writer.count(rounds.state.flagged)
    writer.count(rounds.echo | rounds.extra << 1 | rounds.stirred << 2 | rounds.first_consumer << 3)
    writer.count(rounds.state.next_sequence)
    writer.number(rounds.latch)
    writer.number(rounds.start_at)
    for total in (totals.enqueues, totals.dequeues, totals.dispatched, totals.expired, totals.rounds, totals.tries,
                  totals.selector_errors):
        writer.count(total)
    writer.value(tuple(rounds.state.connections))
    writer.count(len(rounds.state.transactions or ()))
    for name, parts in (rounds.state.transactions or {}).items():
        writer.value(name)
        writer.value(tuple(parts))
    writer.value(tuple(rounds.state.removed or ()))
    return writer.value(tuple(rounds.state.failed or ()))


cdef int get_rounds(Reader reader, Rounds rounds) except -1:
    cdef int64_t flags, _
    rounds.state.rounds_due = reader.count(INT64_MAX)
    rounds.state.flagged = reader.count(INT64_MAX)
    flags = reader.count(15)
    rounds.echo = flags & 1
    rounds.extra = flags >> 1 & 1
    rounds.stirred = flags >> 2 & 1
    rounds.first_consumer = flags >> 3
    rounds.state.next_sequence = reader.count(INT64_MAX)
    rounds.latch = reader.number()
    rounds.start_at = reader.number()
    rounds.state.totals.enqueues = reader.count(INT64_MAX)
    rounds.state.totals.dequeues = reader.count(INT64_MAX)
    rounds.state.totals.dispatched = reader.count(INT64_MAX)
    rounds.state.totals.expired = reader.count(INT64_MAX)
    rounds.state.totals.rounds = reader.count(INT64_MAX)
    rounds.state.totals.tries = reader.count(INT64_MAX)
    rounds.state.totals.selector_errors = reader.count(INT64_MAX)
    rounds.state.connections = {name: number for number, name in enumerate(reader.value())}
    rounds.state.transactions = {}
    for _ in range(reader.count(MOST)):
        name = reader.value()
        rounds.state.transactions[name] = list(reader.value())
    rounds.state.removed = list(reader.value())
    rounds.state.failed = list(reader.value())
    return 0


# Consumers

cdef int put_consumers(Writer writer, Rounds rounds, Numbering slots) except -1:
    cdef ConsumerList consumers = rounds.consumers
    cdef GroupMap groups = rounds.groups
    cdef int32_t index, slot
    cdef bint limited
    cdef Consumer* consumer
    cdef int64_t before = 0
    writer.value(tuple(consumers.targets))
    questions = tuple(consumers.questions)
    if all(asked is None or asked[0] is None or type(asked[0]) is Selector for asked in questions):
        writer.common(questions)
    else:                                # selectors of the caller's own, which need save=
        writer.value(questions)
    writer.count(slots.used)
    for slot in range(consumers.slots):
        consumer = &consumers.at[slot]
        if not consumer.live:
            continue
        writer.number(consumer.id - before)
        before = consumer.id
        writer.count(consumer.predicate)
        writer.number(consumer.connection)
        writer.number(consumer.target)
        writer.number(consumer.priority)
        writer.number(consumer.prefetch)
        writer.number(consumer.elsewhere)
        writer.number(consumer.extension)
        writer.count(consumer.enqueued)
        writer.count(consumer.dispatched)
        writer.count(consumer.dequeued)
        writer.count(consumer.pull_mark)
        writer.number(groups.counts[slot])
        limited = consumer.browse_limit != (rounds.state.max_browse_page_size or 0)
        writer.count(consumer.exclusive | consumer.browser << 1 | consumer.slow << 2
                     | (consumer.extends != consumers.use_prefetch_extension) << 3 | limited << 4)
        if limited:
            writer.number(consumer.browse_limit)
    writer.count(consumers.next_id)
    for index in range(consumers.size):
        writer.count(slots.see(consumers.order[index]))
    writer.count(slots.see(consumers.elected) + 1 if consumers.elected >= 0 else 0)
    writer.count(slots.see(consumers.displaced) + 1 if consumers.displaced >= 0 else 0)
    writer.count(consumers.paused | consumers.sorted << 1 | consumers.counts_matter << 2)
    return writer.value(tuple(consumers.slowed or ()))


cdef int get_consumers(Reader reader, Rounds rounds) except -1:
    cdef ConsumerList consumers = rounds.consumers
    cdef int32_t slot, predicate
    cdef int64_t _, place, size, flags, id = 0, connections = len(rounds.state.connections), targets
    cdef Consumer* consumer
    consumers.targets = {name: number for number, name in enumerate(reader.value())}
    targets = len(consumers.targets)
    for number, question in enumerate(reader.value()):
        if number == 0:
            if question != (None, -1):
                raise reader.refuse("the first question of a queue asks nothing")
            continue
        predicate = consumers.append_predicate()
        if question is not None:
            if type(question) is not tuple or len(question) != 2:
                raise reader.refuse("a question is no selector with a connection")
            connection = question[1]
            if type(connection) is not int or not -1 <= connection < connections:
                raise reader.refuse("a question names a connection that is not there")
            consumers.set_question(predicate, question[0], connection)
    size = reader.count(MOST)
    for _ in range(size):
        id += reader.number()
        if id < 0 or id in consumers.slot_of:
            raise reader.refuse("two consumers have one id")
        predicate = <int32_t> reader.count(consumers.predicate_count - 1)
        if consumers.questions[predicate] is None:
            raise reader.refuse("a consumer asks a question that is not there")
        consumers.next_id = id
        slot = consumers.settle_in(predicate, <int32_t> within(reader, -1, connections - 1))
        consumer = &consumers.at[slot]
        consumer.target = <int32_t> within(reader, -1, targets - 1)
        consumer.priority = <int> within(reader, -128, 127)
        consumer.prefetch = <int32_t> within(reader, -INT32_MAX - 1, INT32_MAX)
        consumer.elsewhere = reader.number()
        consumer.extension = reader.number()
        consumer.enqueued = reader.count(INT64_MAX)
        consumer.dispatched = reader.count(INT64_MAX)
        consumer.dequeued = reader.count(INT64_MAX)
        consumer.pull_mark = reader.count(INT64_MAX)
        rounds.groups.counts[slot] = reader.number()
        flags = reader.count(31)
        consumer.exclusive = flags & 1
        consumer.browser = flags >> 1 & 1
        consumer.extends ^= flags >> 3 & 1
        limit = within(reader, -1, INT32_MAX) if flags & 16 else rounds.state.max_browse_page_size or 0
        consumer.browse_limit = <int32_t> limit
        consumer.slow = flags >> 2 & 1     # a wish until the messages are in: see get_messages
    consumers.next_id = reader.count(INT64_MAX)
    restored = set()
    for place in range(size):
        slot = <int32_t> reader.count(size - 1)
        if slot in restored:
            raise reader.refuse("a consumer stands in the order twice")
        restored.add(slot)
        consumers.order[place] = slot
    consumers.size = <int32_t> size
    consumers.elected = <int32_t> reader.count(size) - 1
    consumers.displaced = <int32_t> reader.count(size) - 1
    flags = reader.count(7)
    consumers.paused = flags & 1
    consumers.sorted = flags >> 1 & 1
    consumers.counts_matter = flags >> 2
    consumers.slowed = list(reader.value())
    return 0


cdef int64_t within(Reader reader, int64_t low, int64_t high) except? -1:
    cdef int64_t number = reader.number()
    if not low <= number <= high:
        raise reader.refuse(f"{number} stands where {low} to {high} can")
    return number


cdef int put_classes(Writer writer, ConsumerList consumers, Numbering classes) except -1:
    # Classes that ask for the same, since a selector left, become one.
    cdef int32_t match
    cdef dict numbers = {}
    for match in range(consumers.class_count):
        if classes.at[match]:
            asked = (consumers.bits_of(match), consumers.classes[match].target)
            classes.at[match] = numbers.setdefault(asked, len(numbers)) + 1
    writer.count(len(numbers))
    for bits, target in numbers:
        writer.value(bits)
        writer.number(target)
    return 0


cdef list get_classes(Reader reader, ConsumerList consumers):
    # Two classes of the old queue may ask for the same, so a class is found by its place in this list.
    cdef int64_t _
    cdef int32_t target
    cdef list classes = []
    for _ in range(reader.count(MOST)):
        bits = reader.value()
        target = <int32_t> within(reader, -1, len(consumers.targets) - 1)
        if type(bits) is not int or bits < 0 or bits >> consumers.predicate_count:
            raise reader.refuse("a message matches a selector that is not there")
        classes.append(consumers.class_for(bits, target))
    return classes


# Browsers

cdef int put_browsers(Writer writer, Rounds rounds, Numbering slots) except -1:
    writer.value(tuple([slots.see(slot) for slot in rounds.browsers or ()]))
    writer.count(len(rounds.browsed or ()))
    for slot, pages in (rounds.browsed or {}).items():
        writer.count(slots.see(slot))
        writer.value(tuple(sorted(pages)))
    return 0


cdef int get_browsers(Reader reader, Rounds rounds) except -1:
    cdef int64_t _, slot
    rounds.browsers, rounds.browsed = list(reader.value()), {}
    for _ in range(reader.count(rounds.consumers.slots)):
        slot = reader.count(rounds.consumers.slots - 1)
        rounds.browsed[slot] = set(reader.value())
    for number in rounds.browsers:
        if number not in rounds.browsed:
            raise reader.refuse("a browser is no consumer")
    return 0


# Messages

cdef int put_messages(Writer writer, Rounds rounds, Numbering names, Numbering classes, Numbering slots) except -1:
    cdef MessageSlots messages = rounds.messages
    cdef MessageCursors cursors = rounds.cursors
    cdef int32_t message, other, slot, step, first, generation
    cdef int tier
    cdef int64_t run
    writer.count(messages.slots)
    writer.count(cursors.pages)
    message = messages.vacant
    while message >= 0:                  # runs of free slots, each a step up or down
        first = message
        run = 1
        step = 0
        while True:
            other = messages.at[message].next
            if other < 0 or step == 0 and other - message not in (1, -1) or step and other - message != step:
                break
            step = other - message
            run += 1
            message = other
        writer.count(run << 1 | (step < 0))
        writer.count(first)
        message = other
    writer.count(0)
    message = 0
    while message < messages.slots:       # runs of equal generations
        generation = messages.at[message].generation
        first = message
        while message < messages.slots and messages.at[message].generation == generation:
            message += 1
        writer.count(message - first)
        writer.count(generation)
    writer.count(cursors.served)
    for tier in range(20):
        if tier % 10 == 0 or rounds.state.prioritized_messages:
            put_chain(writer, rounds, &cursors.cursor[tier], names, classes)
    for slot in range(rounds.consumers.slots):
        if rounds.consumers.at[slot].live:
            put_chain(writer, rounds, &rounds.consumers.at[slot].held, names, classes)
    for tier in range(20 if rounds.state.prioritized_messages else 2):
        put_chain(writer, rounds, &rounds.pending.window[tier], names, classes)
    writer.count(rounds.state.stranded)
    for message in range(messages.slots):
        if messages.at[message].whereabouts == STRANDED:
            put_message(writer, messages, message, 0, 0, names, classes)
    return 0


cdef int put_chain(Writer writer, Rounds rounds, Chain* chain, Numbering names, Numbering classes) except -1:
    cdef int32_t message = chain.first, before = 0
    cdef int64_t sequence = 0
    writer.count(chain.count)
    while message >= 0:
        put_message(writer, rounds.messages, message, before, sequence, names, classes)
        before = message
        sequence = rounds.messages.at[message].sequence
        message = rounds.messages.at[message].next
    return 0


cdef int put_message(Writer writer, MessageSlots messages, int32_t message, int32_t before, int64_t sequence,
                     Numbering names, Numbering classes) except -1:
    cdef Message* sent = &messages.at[message]
    cdef int32_t match = classes.at[sent.match] - 1
    cdef int flags = (
        (HAS_EXPIRATION if sent.expiration else 0) | (HAS_GROUP if sent.group >= 0 else 0)
        | (HAS_PRIORITY if sent.priority != 4 else 0) | (HAS_CONNECTION if sent.connection >= 0 else 0)
        | (HAS_REDELIVERIES if sent.redeliveries else 0) | (HAS_BODY if sent.body != NULL else 0)
        | (HAS_CLASS if match else 0) | (IS_FIRST if sent.group_first else 0)
        | (IS_ACKNOWLEDGED if sent.acknowledged else 0) | (HAS_ERROR if sent.errors else 0)
        | (IS_REMOVED if sent.whereabouts == REMOVED else 0) | (HAS_SEQUENCE if sent.group_sequence else 0)
        | (IS_TRANSIENT if sent.transient else 0))
    writer.number(<int64_t> message - before)
    writer.number(sent.sequence - sequence)
    writer.count(flags)
    writer.number(sent.paged - sent.sequence)
    if flags & HAS_EXPIRATION:
        writer.number(sent.expiration)
    if flags & HAS_GROUP:
        writer.count(names.see(sent.group))
    if flags & HAS_SEQUENCE:
        writer.number(sent.group_sequence)
    if flags & HAS_PRIORITY:
        writer.count(sent.priority)
    if flags & HAS_CONNECTION:
        writer.count(sent.connection)
    if flags & HAS_REDELIVERIES:
        writer.number(sent.redeliveries)
    if flags & HAS_CLASS:
        writer.count(match)
    if flags & HAS_BODY:
        writer.value(<object> sent.body)
    return 0


cdef int get_messages(Reader reader, Rounds rounds, list classes) except -1:
    cdef MessageSlots messages = rounds.messages
    cdef MessageCursors cursors = rounds.cursors
    cdef ConsumerList consumers = rounds.consumers
    cdef int64_t slots = reader.count(MOST), run, message, end, count, _
    cdef int32_t slot, last = -1, step
    cdef int tier
    cdef bint slow
    if slots > max(64, 2 * rounds.state.next_sequence):
        raise reader.refuse("there are more places than messages were sent")
    cursors.pages = reader.count(INT64_MAX)
    if slots:
        messages.at = <Message*> allocate_zeros(slots, sizeof(Message))
        messages.slots = <int32_t> slots
    while True:
        run = reader.count(INT64_MAX)
        if run == 0:
            break
        step = -1 if run & 1 else 1
        message = reader.count(slots - 1)
        for _ in range(run >> 1):
            if not 0 <= message < slots or messages.at[message].bucket:
                raise reader.refuse("a place is free twice")
            if last < 0:
                messages.vacant = <int32_t> message
            else:
                messages.at[last].next = <int32_t> message
            messages.at[message].next = messages.at[message].bucket = -1
            last = <int32_t> message
            message += step
    message = 0
    while message < slots:
        end = message + reader.count(slots - message)
        if end == message:
            raise reader.refuse("a run of places is empty")
        count = reader.count(0x3FFFFFFF)
        for message in range(message, end):
            messages.at[message].generation = <int32_t> count
        message = end
    cursors.served = <int> reader.count(1)
    for tier in range(20):
        if tier % 10 == 0 or rounds.state.prioritized_messages:
            get_chain(reader, rounds, classes, tier, STORED, -1)
    for slot in range(consumers.slots):
        get_chain(reader, rounds, classes, 0, IN_FLIGHT, slot)
    for slot in range(consumers.slots):
        slow = consumers.at[slot].slow
        consumers.at[slot].slow = 0
        consumers.refresh(slot)
        if slow and not consumers.at[slot].filled:
            raise reader.refuse("a consumer is slow and has credit")
        if slow:
            consumers.at[slot].slow = 1
            consumers.unmarked -= 1
    for tier in range(20 if rounds.state.prioritized_messages else 2):
        get_chain(reader, rounds, classes, tier, WAITING, -1)
    get_chain(reader, rounds, classes, 0, STRANDED, -1)
    for message in range(slots):
        if messages.at[message].bucket == 0 and messages.at[message].whereabouts == NOWHERE:
            raise reader.refuse("a place is neither free nor taken")
    return 0


cdef int get_chain(Reader reader, Rounds rounds, list classes, int tier, int whereabouts, int32_t slot) except -1:
    cdef MessageSlots messages = rounds.messages
    cdef MessageCursors cursors = rounds.cursors
    cdef PendingMessages pending = rounds.pending
    cdef Message* sent
    cdef int64_t _, message = 0, sequence = 0, flags, place
    for _ in range(reader.count(messages.slots)):
        if whereabouts == STRANDED:
            message = sequence = 0
        message += reader.number()
        if not 0 <= message < messages.slots or messages.at[message].bucket or (
                messages.at[message].whereabouts != NOWHERE):
            raise reader.refuse("two messages have one place")
        sent = &messages.at[message]
        sequence += reader.number()
        messages.clear(<int32_t> message)
        sent.sequence = sequence
        flags = reader.count(FLAGS)
        sent.paged = reader.number() + sequence
        sent.expiration = reader.number() if flags & HAS_EXPIRATION else 0
        sent.group = <int32_t> reader.count(rounds.groups.size - 1) if flags & HAS_GROUP else -1
        sent.group_sequence = <int32_t> within(reader, -INT32_MAX - 1, INT32_MAX) if flags & HAS_SEQUENCE else 0
        sent.priority = <unsigned char> reader.count(9) if flags & HAS_PRIORITY else 4
        sent.connection = <int32_t> reader.count(len(rounds.state.connections) - 1) if flags & HAS_CONNECTION else -1
        sent.redeliveries = <int32_t> within(reader, -INT32_MAX - 1, INT32_MAX) if flags & HAS_REDELIVERIES else 0
        place = reader.count(len(classes) - 1) if flags & HAS_CLASS else 0
        if not classes:
            raise reader.refuse("a message has no class")
        sent.match = classes[place]
        sent.transient = (flags & IS_TRANSIENT) != 0
        sent.group_first = (flags & IS_FIRST) != 0
        sent.acknowledged = (flags & IS_ACKNOWLEDGED) != 0
        sent.errors = (flags & HAS_ERROR) != 0
        if flags & HAS_BODY:
            body = reader.value()
            Py_INCREF(body)
            sent.body = <PyObject*> body
        if whereabouts == STORED:
            if cursors.cursor_of(<int32_t> message) != &cursors.cursor[tier]:
                sent.whereabouts = STRANDED
                raise reader.refuse("a message stands among those of another priority or delivery mode")
            cursors.store(<int32_t> message)
        elif whereabouts == STRANDED:
            sent.whereabouts = STRANDED
            rounds.state.stranded += 1
        elif whereabouts == IN_FLIGHT:
            sent.whereabouts = REMOVED if flags & IS_REMOVED else IN_FLIGHT
            sent.consumer = slot
            messages.link(&rounds.consumers.at[slot].held, <int32_t> message)
            rounds.state.in_flight += sent.whereabouts == IN_FLIGHT
        else:
            sent.whereabouts = STRANDED    # so that its body is not lost if ``wait`` raises
            if pending.tier(<int32_t> message, not tier & 1) != tier:
                raise reader.refuse("a message stands among those of another priority")
            pending.wait(<int32_t> message, not tier & 1, False)
    return 0
