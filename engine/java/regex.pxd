"""regex: java.util.regex of Java 17 on Python's ``re``, with patterns from regex_translation.

Every character class becomes an explicit set of code points, so that no answer depends on a flag of Python's.
"""


cdef class JavaPattern:
    cdef readonly str text
    cdef readonly int groups              # capturing groups
    cdef readonly dict names              # group name -> number
    cdef list by_alphabet                 # compiled, by alphabet of the subject; None until needed
    cdef object compiled(self, str subject)


cdef JavaPattern compile_pattern(str text)     # from a cache of 100, as the broker's
cdef bint finds(JavaPattern pattern, str subject) except -1                         # Matcher.find
cdef str replace_all(JavaPattern pattern, str subject, object replacement)          # String.replaceAll
cdef list split(JavaPattern pattern, str subject, int limit)                        # String.split
