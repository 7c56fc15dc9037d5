"""regex_translation: a pattern of java.util.regex as Java 17 reads it, written as a pattern of Python's ``re``.

Each construct is translated or refused: a pattern that Java refuses, or that ``re`` cannot express, raises
SelectorEvaluationError (text "": the caller fills it in).
"""


cdef enum Alphabet:        # of a subject; word boundaries are costly to express for all of Unicode
    ASCII_ONLY = 0
    WITHOUT_MARKS = 1      # no combining marks, and no digits but decimal ones: Java's word characters are Python's
    EVERYTHING = 2


# (compiled, capturing groups, group name -> number, whether another alphabet needs another translation), valid for
# subjects of one alphabet
cdef tuple translated(str text, int alphabet)
