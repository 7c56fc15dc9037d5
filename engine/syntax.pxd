"""syntax: selector text -> tree of Terms, or InvalidSelectorError with the position; the dialects are "activemq" and
"rocketmq".

Surface forms are kept (``<>`` is not yet NOT(=)); a later room lowers them. All checks that the real parsers make at
parse time are made here (spec activemq 1.2-1.6, rocketmq 8.2), so a tree that exists is a selector its broker takes.

Depth. The parser keeps its own stack and never recurses, so text of any shape is safe on any thread. A Tree is at
most 500 Terms deep (``Term.height``), counted as after lowering: ``<>``, BETWEEN, NOT BETWEEN, NOT LIKE, IS NOT NULL count two,
a cast counts one. Each ``a + b + c ..`` or ``a = b = c ..`` deepens by one a step, AND and OR chains do not. At most 1000
brackets and signs may be open at a time. Beyond either limit: InvalidSelectorError. (The broker's limit is its
thread's stack: about 850 brackets with 1 MiB, 25,000 with 8 MiB.) A recursion over a Tree or its lowered form may
rely on 500 levels, which leaves 512 bytes a level on a 256 KiB stack.

AND and OR are n-ary as in the broker: ``(a OR b) OR c`` and ``a OR b OR c`` are one OR of three; ``a OR (b OR c)`` is not.
Brackets and unary plus leave no Term.
"""


cpdef enum TermKind:
    LITERAL         # value: None, bool, int, float, str; java_type says byte .. BIG_DECIMAL
    PROPERTY        # value: name
    AND             # terms: two or more, left to right
    OR              # terms: two or more, left to right
    NOT             # terms: 1
    EQUAL           # terms: left, right
    NOT_EQUAL
    LESS
    LESS_EQUAL
    GREATER
    GREATER_EQUAL
    IS_NULL         # terms: 1
    IS_NOT_NULL
    BETWEEN         # terms: subject, low, high
    NOT_BETWEEN
    IN              # terms: property; value: tuple of str
    NOT_IN
    LIKE            # terms: subject; value: (pattern, escape or None)
    NOT_LIKE
    ADD             # terms: left, right
    SUBTRACT
    MULTIPLY
    DIVIDE
    REMAINDER
    NEGATE          # terms: 1
    CAST            # terms: a bare property standing where a boolean must stand
    FUNCTION        # value: name; terms: arguments
    XPATH           # value: text
    XQUERY          # value: text
    CONTAINS        # terms: subject; value: str (rocketmq)
    NOT_CONTAINS
    STARTS_WITH
    NOT_STARTS_WITH
    ENDS_WITH
    NOT_ENDS_WITH


cdef class Term:
    cdef readonly int kind          # TermKind
    cdef readonly int position      # where its first operand or word starts in the text; brackets do not count
    cdef readonly int height        # Terms on the longest way down, counted as after lowering
    cdef readonly int java_type     # JavaType of a LITERAL, else 0
    cdef readonly object value
    cdef readonly tuple terms


cdef class Tree:
    cdef readonly str text          # as given
    cdef readonly str dialect
    cdef readonly bint convert      # convert_string_expressions: was given
    cdef readonly Term root
    cdef readonly int end           # rocketmq: where the ignored rest of the text starts; len(text): none


cpdef Tree parse(str text, str dialect)
