"""ast: a parsed selector as a tree of Terms, each with its position in the text.

Operators are kept as written (``<>`` is not yet NOT(=)); the compiler lowers them. Parentheses and unary plus have no
Term.
AND and OR are n-ary as in the broker: ``(a OR b) OR c`` and ``a OR b OR c`` are one OR of three, ``a OR (b OR c)`` is
not.

Depth: a Term's ``height`` is at most HEIGHT_LIMIT, counted as after lowering: ``<>``, BETWEEN, NOT BETWEEN, NOT LIKE
and IS NOT NULL count two, everything else one. Each step of ``a + b + c ..`` or ``a = b = c ..`` deepens by one; AND
and OR chains do not. A recursion over a Tree or its lowered form may rely on this limit: with 512 bytes a level it fits
on a stack of 256 KiB.
"""


cdef enum:
    HEIGHT_LIMIT = 500


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
    CAST            # terms: a bare property in a boolean position
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


# Constructors; they set ``height``, and the parser enforces the limit.
cdef Term leaf(int kind, int position, int java_type, object value)
cdef Term unary(int kind, int position, object value, Term operand)
cdef Term binary(int kind, Term left, Term right)
cdef Term several(int kind, list operands)          # AND, OR, BETWEEN, functions: one operand or more
cdef bint is_boolean(Term term) except -1           # a condition to the real parser; a bare property is not
