# cython: freethreading_compatible=True
"""See pattern_automaton.pxd."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from pyengine._engine.index.growing cimport Growing, growing
from pyengine._engine.java.value cimport Value
from pyengine._engine.selector.like cimport ANY_ONE, Pattern, pattern_matches


cdef bytes piece_of(const Pattern* pattern, bint* plain):
    cdef int segment, index, begin, best = 0, best_segment = -1, best_begin = 0
    cdef uint32_t element
    plain[0] = False
    for segment in range(pattern.count):
        begin = 0
        for index in range(pattern.segments[segment].count + 1):
            element = ANY_ONE
            if index < pattern.segments[segment].count:
                element = pattern.segments[segment].elements[index]
            if element == <uint32_t> ANY_ONE or 0xD800 <= element < 0xE000:
                if index - begin > best:
                    best, best_segment, best_begin = index - begin, segment, begin
                begin = index + 1
    if best == 0:
        return b""
    plain[0] = pattern.count == 1 and best == pattern.segments[0].count
    return "".join([
        chr(pattern.segments[best_segment].elements[index]) for index in range(best_begin, best_begin + best)
    ]).encode()


cdef inline uint64_t seat_of(uint64_t from_byte, int64_t room) noexcept nogil:
    cdef uint64_t hash = from_byte * <uint64_t> 0x9E3779B97F4A7C15
    return (hash ^ hash >> 32) & <uint64_t> (room - 1)


cdef class PatternAutomaton:
    def __cinit__(self):
        self.nodes = growing(sizeof(Node))
        self.patterns = growing(sizeof(TextPattern))
        self.transition_room = 64
        self.table = growing(sizeof(Transition))
        self.transitions = <Transition*> self.table.more(self.transition_room)
        (<Node*> self.nodes.more(1)).first = -1

    cdef int32_t child_of(self, int32_t node, uint8_t byte) noexcept nogil:
        """0: there is none."""
        cdef uint64_t from_byte = (<uint64_t> node << 8 | byte) + 1
        cdef uint64_t seat = seat_of(from_byte, self.transition_room)
        if node == 0:
            return self.roots[byte]
        while self.transitions[seat].from_byte and self.transitions[seat].from_byte != from_byte:
            seat = (seat + 1) & <uint64_t> (self.transition_room - 1)
        return <int32_t> self.transitions[seat].node

    cdef int lay_transition(self, int32_t node, uint8_t byte, int32_t child) except -1:
        cdef Growing old = self.table
        cdef Transition* former = self.transitions
        cdef int64_t index, room = self.transition_room
        cdef uint64_t seat
        if 2 * self.transition_count >= room:
            self.table = growing(sizeof(Transition))
            self.transitions = <Transition*> self.table.more(2 * room)
            self.transition_room = 2 * room
            for index in range(room):
                if former[index].from_byte:
                    seat = seat_of(former[index].from_byte, self.transition_room)
                    while self.transitions[seat].from_byte:
                        seat = (seat + 1) & <uint64_t> (self.transition_room - 1)
                    self.transitions[seat] = (<Transition*> old.items)[index]
        seat = seat_of((<uint64_t> node << 8 | byte) + 1, self.transition_room)
        while self.transitions[seat].from_byte:
            seat = (seat + 1) & <uint64_t> (self.transition_room - 1)
        self.transitions[seat].from_byte = (<uint64_t> node << 8 | byte) + 1
        self.transitions[seat].node = child
        self.transition_count += 1
        return 0

    cdef int add(self, bytes piece, int32_t id, bint at_start, bint at_end, const Pattern* pattern) except -1:
        cdef int32_t node = 0, child
        cdef uint8_t byte
        cdef Node* made
        cdef TextPattern* added
        for byte in piece:
            child = self.child_of(node, byte)
            if child == 0:
                child = <int32_t> self.nodes.size
                made = <Node*> self.nodes.more(1)
                made.first = -1
                made.byte = byte
                made.sibling = (<Node*> self.nodes.items)[node].child
                (<Node*> self.nodes.items)[node].child = child
                if node == 0:
                    self.roots[byte] = child
                else:
                    self.lay_transition(node, byte, child)
            node = child
        added = <TextPattern*> self.patterns.more(1)
        added.id = id
        added.length = <uint32_t> len(piece)
        added.at_start, added.at_end = at_start, at_end
        added.plain = pattern == NULL
        added.pattern = pattern
        added.next = (<Node*> self.nodes.items)[node].first
        (<Node*> self.nodes.items)[node].first = <int32_t> self.patterns.size - 1
        return 0

    cdef int finish(self) except -1:
        """The fails and links, nearest to the root first."""
        cdef Node* nodes = <Node*> self.nodes.items
        cdef Growing queue = growing(sizeof(int32_t))
        cdef int32_t* order = <int32_t*> queue.more(self.nodes.size)
        cdef int32_t node, child, fail
        cdef int64_t head = 0, tail = 1
        while head < tail:
            node = order[head]
            head += 1
            child = nodes[node].child
            while child:
                order[tail] = child
                tail += 1
                fail = nodes[node].fail
                if node:
                    while fail and not self.child_of(fail, nodes[child].byte):
                        fail = nodes[fail].fail
                    fail = self.child_of(fail, nodes[child].byte)
                nodes[child].fail = fail
                nodes[child].link = fail if nodes[fail].first >= 0 else nodes[fail].link
                child = nodes[child].sibling
        return 0

    cdef void find(self, const uint8_t* text, uint32_t length, const Value* value, Matched* matched) noexcept nogil:
        cdef const Node* nodes = <const Node*> self.nodes.items
        cdef const TextPattern* patterns = <const TextPattern*> self.patterns.items
        cdef const TextPattern* pattern
        cdef int32_t node = 0, child, ended, index
        cdef uint32_t at
        cdef uint64_t bit
        for at in range(length):
            child = self.child_of(node, text[at])
            while node and not child:
                node = nodes[node].fail
                child = self.child_of(node, text[at])
            node = child
            ended = node if nodes[node].first >= 0 else nodes[node].link
            while ended:
                index = nodes[ended].first
                ended = nodes[ended].link
                while index >= 0:
                    pattern = &patterns[index]
                    index = pattern.next
                    bit = <uint64_t> 1 << (pattern.id & 63)
                    if matched.tried[pattern.id >> 6] & bit or pattern.at_start and at + 1 != pattern.length or (
                            pattern.at_end and at + 1 != length):
                        continue
                    matched.tried[pattern.id >> 6] |= bit
                    matched.ids[matched.count] = pattern.id
                    matched.count += 1
                    if pattern.plain or pattern_matches(pattern.pattern, value):
                        matched.bits[pattern.id >> 6] |= bit
