"""building: how a segment is made of subscriptions: its points, its order, its buckets.

What a bucket says of an entry is what the requirement's own leaf answers on the bucket's values (program.leaf_truth),
so no rule of comparison stands here.
"""

from pyengine._engine.segment cimport Segment


cdef Segment segment_of(list subscriptions, bint errors_count)     # moves them into it
