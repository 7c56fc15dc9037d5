"""linked_list: an intrusive doubly linked list of array slots; a struct has ``previous`` and ``next`` side by side.

``links`` is the address of the first struct's ``previous``, ``size`` the size of a struct.
Invariants: ``count`` is the number of slots; the first slot's ``previous`` and the last one's ``next`` are -1; so are
``first`` and ``last`` of an empty list.
"""

from libc.stdint cimport int32_t


cdef struct Link:
    int32_t previous
    int32_t next


cdef struct Chain:
    int32_t first                # slots, -1 none
    int32_t last
    int32_t count


cdef inline Link* link_of(void* links, size_t size, int32_t slot) noexcept nogil:
    return <Link*> (<char*> links + slot * size)


cdef inline void start_chain(Chain* chain) noexcept nogil:
    chain.first = chain.last = -1
    chain.count = 0


cdef inline void append_slot(Chain* chain, void* links, size_t size, int32_t slot) noexcept nogil:
    cdef Link* link = link_of(links, size, slot)
    link.previous = chain.last
    link.next = -1
    if chain.last >= 0:
        link_of(links, size, chain.last).next = slot
    else:
        chain.first = slot
    chain.last = slot
    chain.count += 1


cdef inline void prepend_slot(Chain* chain, void* links, size_t size, int32_t slot) noexcept nogil:
    cdef Link* link = link_of(links, size, slot)
    link.previous = -1
    link.next = chain.first
    if chain.first >= 0:
        link_of(links, size, chain.first).previous = slot
    else:
        chain.last = slot
    chain.first = slot
    chain.count += 1


cdef inline void unlink_slot(Chain* chain, void* links, size_t size, int32_t slot) noexcept nogil:
    cdef int32_t previous = link_of(links, size, slot).previous, after = link_of(links, size, slot).next
    if previous >= 0:
        link_of(links, size, previous).next = after
    else:
        chain.first = after
    if after >= 0:
        link_of(links, size, after).previous = previous
    else:
        chain.last = previous
    chain.count -= 1
