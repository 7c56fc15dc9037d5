"""character_classes: sets of Unicode code points, and the character classes of java.util.regex by name.

A set is a tuple of ranges (first, last), both inclusive, ascending, with gaps between: equal sets are equal tuples.
"""


cdef tuple union(tuple left, tuple right)
cdef tuple complement(tuple ranges)
cdef tuple intersection(tuple left, tuple right)
cdef tuple named_class(str name, bint ignore_case)    # of \p{name}; None if the name has no table
cdef tuple with_cases(tuple ranges, bint unicode)     # with the other case of every letter in it
cdef str class_text(tuple ranges)                     # as a character class of Python's ``re``, without flags
