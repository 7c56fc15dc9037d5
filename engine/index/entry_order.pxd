"""entry_order: an order of entries in which neighbours ask about the same slots, and there for values that are near.

A line of entries that all ask about some slots is refused as a whole by most messages, and nothing else of it is read.
The generators give way between pieces of the work, and return what they have made.

    positions_of(size, entries, slots, upper, bounds): of each entry and each of the slots most asked about: 0, nothing
    is asked, else a place in the order of the bounds. ``entries``, ``slots``, ``upper`` (whether it is only bounded
    above) and ``bounds`` are arrays with an item for each requirement; an entry has one at most of a slot.

    clustered(members, positions, first): ``members`` (entries) in such an order; the place of the first in the segment
    is ``first``. Clusters fill whole lines, and smaller ones within them whole words.
"""
