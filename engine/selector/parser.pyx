"""Operator-precedence parser of both selector dialects: see parser.pxd."""

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.unicode cimport PyUnicode_Substring

from pyengine._engine.selector.lexer cimport (
    ABOVE, AT_LEAST, AT_MOST, BELOW, CLOSE, COMMA, DASH, DECIMAL, DIFFERS, END, EQUALS, FLOATING, OPEN, PERCENT, PLUS,
    QUOTED, SLASH, STAR, WORD, WORD_AND, WORD_BETWEEN, WORD_CONTAINS, WORD_ENDSWITH, WORD_ESCAPE, WORD_FALSE, WORD_IN,
    WORD_IS, WORD_LIKE, WORD_NOT, WORD_NULL, WORD_OR, WORD_STARTSWITH, WORD_TRUE, WORD_XPATH, WORD_XQUERY, Lexer, Token,
)
from pyengine._engine.selector.literal cimport number
from pyengine._engine.selector.ast cimport (
    ADD, AND, BETWEEN, CAST, CONTAINS, DIVIDE, ENDS_WITH, EQUAL, FUNCTION, GREATER, GREATER_EQUAL, HEIGHT_LIMIT, IN,
    IS_NOT_NULL, IS_NULL, LESS, LESS_EQUAL, LIKE, LITERAL, MULTIPLY, NEGATE, NOT, NOT_BETWEEN, NOT_CONTAINS,
    NOT_ENDS_WITH, NOT_EQUAL, NOT_IN, NOT_LIKE, NOT_STARTS_WITH, OR, PROPERTY, REMAINDER, STARTS_WITH, SUBTRACT, XPATH,
    XQUERY, Term, Tree, binary, is_boolean, leaf, several, unary,
)
from pyengine._engine.java.value cimport BOOLEAN, DOUBLE, NULL_VALUE, STRING

import copyreg

from pyengine.errors import InvalidSelectorError, did_you_mean


cdef enum FrameKind:
    BRACKET
    ARGUMENTS       # of a function, until ")"
    PREFIX          # - NOT; + has no frame
    BINARY
    SEVERAL         # AND, OR
    LOW             # BETWEEN, before its AND
    HIGH            # BETWEEN, after its AND


cdef struct Frame:      # a construct that is not complete yet
    int kind            # FrameKind
    int precedence
    int term            # TermKind it becomes
    int position        # of its operator, parenthesis or name
    int count           # operands, or arguments so far


# Precedence of operators; a frame with 0 is closed only by its own parenthesis.
cdef enum:
    LOOSEST = 0
    BY_OR = 1
    BY_AND = 2
    BY_EQUALITY = 3
    BY_COMPARISON = 4
    BY_SUM = 5
    BY_PRODUCT = 6
    BY_PREFIX = 7

cdef enum:
    OPEN_LIMIT = 1000

cdef str CONVERT_PREFIX = "convert_string_expressions:"
cdef dict ARGUMENT_COUNTS = {  # name: least and most arguments (spec activemq 1.13)
    "INLIST": (2, 2), "MAKELIST": (1, 0x7FFFFFFF), "REGEX": (2, 2), "REPLACE": (3, 3), "SPLIT": (2, 3),
}

cdef class Parser:
    """One parse: operands and frames are the two stacks of an operator-precedence parser."""
    cdef Lexer lexer
    cdef Token token        # lookahead, not consumed yet
    cdef list operands      # Terms that wait for an operator
    cdef list names         # of the open function calls
    cdef Frame* frames
    cdef int depth          # frames in use
    cdef int room           # frames allocated
    cdef int ceiling        # the tightest operator that may follow the operand just completed
    cdef int open           # parentheses, signs and NOTs among the frames

    def __cinit__(self):
        self.frames = NULL
        self.operands = []

    def __init__(self, Lexer lexer not None):
        self.lexer = lexer

    def __dealloc__(self):
        PyMem_Free(self.frames)

    def __reduce__(self):
        raise TypeError("a Parser lives for one parse; pickle the Tree")

    # Errors. Each raises; the int result only lets callers return it.

    cdef int _refuse(self, int position, str problem, str expected="", str hint="") except -1:
        raise InvalidSelectorError(self.lexer.text, position, problem, expected=expected, hint=hint)

    cdef str _here(self):
        if self.token.kind == END:
            return "the selector ends too early" if self.lexer.text.strip() else "the selector is empty"
        return f"{self.lexer.text[self.token.start:self.token.end][:40]!r} cannot stand here"

    cdef int _unexpected(self, str expected, str hint="") except -1:
        return self._refuse(self.token.start, self._here(), expected, hint or self.lexer.usual_mistake(&self.token))

    # The stack of frames.

    cdef int _push(self, int kind, int precedence, int term, int position) except -1:
        cdef Frame* frames
        cdef int room
        if self.depth == self.room:
            room = max(16, 2 * self.room)
            frames = <Frame*>PyMem_Realloc(self.frames, room * sizeof(Frame))
            if frames == NULL:
                raise MemoryError()
            self.frames = frames
            self.room = room
        if kind <= PREFIX:
            self.open += 1
            if self.open > OPEN_LIMIT:
                self._refuse(
                    position, f"more than {OPEN_LIMIT} brackets and signs are open at once", "",
                    "take brackets away, or split the selector",
                )
        self.frames[self.depth] = Frame(kind, precedence, term, position, 1)
        self.depth += 1
        return 0

    cdef int _place(self, Term term) except -1:
        """Push a complete operand."""
        if term.height > HEIGHT_LIMIT:
            self._refuse(
                term.position, f"nested more than {HEIGHT_LIMIT} levels deep", "",
                "chains of AND and OR may have any length; other operators may not",
            )
        self.operands.append(term)
        return 0

    cdef Term _truth(self, Term term):
        """``term`` as a boolean: a property is cast, a term that cannot be boolean is refused."""
        cdef str hint = ""
        if term.kind == PROPERTY:
            return unary(CAST, term.position, None, term)
        if not is_boolean(term):
            if term.kind == LITERAL and term.java_type == STRING:
                hint = "compare it with something: name = 'text', or name IN ('a', 'b')"
            elif term.kind == LITERAL:
                hint = "compare it with something: name = 1 OR name = 2"
            elif term.kind == FUNCTION:
                hint = f"{term.value} yields no truth value; compare its result with something"
            else:
                hint = "compare it with something"
            self._refuse(term.position, "this is no condition: it can never be true or false", "a comparison", hint)
        return term

    cdef int _reduce(self, int precedence) except -1:
        """Reduce the frames that bind at least as tightly as ``precedence``, down to the nearest parenthesis."""
        cdef Frame* frame
        cdef Term left, right
        cdef list operands = self.operands
        cdef int first
        while self.depth:
            frame = &self.frames[self.depth - 1]
            if frame.precedence < precedence or frame.kind == BRACKET or frame.kind == ARGUMENTS:
                return 0
            if frame.kind == LOW:
                return self._unexpected("AND and the upper bound of BETWEEN")
            self.depth -= 1
            if frame.kind == PREFIX:
                self.open -= 1
                right = <Term>operands.pop()
                if frame.term == NOT:
                    self._place(unary(NOT, frame.position, None, self._truth(right)))
                elif frame.term == NEGATE:
                    self._place(unary(NEGATE, frame.position, None, right))
                else:
                    operands.append(right)
            elif frame.kind == BINARY:
                right = <Term>operands.pop()
                left = <Term>operands.pop()
                if EQUAL <= frame.term <= NOT_EQUAL:
                    self._check_equality(left, right)
                elif LESS <= frame.term <= GREATER_EQUAL:
                    self._check_order(left)
                    self._check_order(right)
                self._place(binary(frame.term, left, right))
            else:
                first = <int>len(operands) - frame.count
                if frame.kind == SEVERAL:
                    operands.append(self._truth(<Term>operands.pop()))
                else:
                    self._check_between(
                        <Term>operands[first], <Term>operands[first + 1], <Term>operands[first + 2], frame.term
                    )
                left = several(frame.term, operands[first:])
                del operands[first:]
                self._place(left)
        return 0

    # Checks of the real parsers (spec activemq 1.5, rocketmq 8.2).

    cdef int _check_equality(self, Term left, Term right) except -1:
        cdef Term side
        for side in (left, right):
            if side.kind == LITERAL and side.java_type == NULL_VALUE:
                self._refuse(side.position, "NULL cannot be compared", "a value", "write IS NULL or IS NOT NULL")
        if left.kind == LITERAL and right.kind == LITERAL and left.java_type == BOOLEAN and right.java_type != BOOLEAN:
            self._refuse(
                right.position, "a truth value on the left cannot be compared with this constant", "TRUE or FALSE",
            )
        return 0

    cdef int _check_order(self, Term term) except -1:
        cdef Term inner = term
        if term.kind == LITERAL:
            if term.java_type == STRING:
                self._refuse(
                    term.position, "a text constant cannot be ordered", "a number or a property",
                    "drop the quotes to compare numbers; = and <> compare texts",
                )
            elif term.java_type == NULL_VALUE or term.java_type == BOOLEAN:
                self._refuse(
                    term.position, f"{self._word_of(term)} cannot be ordered", "a number or a property",
                    "write IS NULL or IS NOT NULL" if term.java_type == NULL_VALUE else "write = or <>",
                )
        elif is_boolean(term):
            if term.kind == NOT:
                self._refuse(
                    term.position, "NOT applies to the name after it, not to the comparison", "a number or a property",
                    "NOT binds tighter than a comparison: write NOT (x > 1)",
                )
            if LESS <= term.kind <= GREATER_EQUAL:
                self._refuse(
                    inner.position, "a comparison cannot itself be ordered", "a number or a property",
                    "write 1 < x AND x < 3, or x BETWEEN 1 AND 3",
                )
            self._refuse(term.position, "a condition cannot be ordered", "a number or a property")
        return 0

    cdef str _word_of(self, Term term):
        return "NULL" if term.value is None else "TRUE" if term.value else "FALSE"

    cdef int _check_between(self, Term subject, Term low, Term high, int kind) except -1:
        self._check_order(subject)
        self._check_order(low)
        self._check_order(high)
        if not self.lexer.activemq and kind == BETWEEN and low.kind == LITERAL and high.kind == LITERAL:
            # Two Integers or Longs compare exactly, any other pair as doubles.
            if low.java_type == DOUBLE or high.java_type == DOUBLE:
                if float(high.value) >= float(low.value):
                    return 0
            elif high.value >= low.value:
                return 0
            self._refuse(low.position, "the lower bound of BETWEEN is above the upper bound", "", "exchange the bounds")
        return 0

    # Operands.

    cdef int _next(self) except -1:
        return self.lexer.advance(&self.token)

    cdef str _text_constant(self, str expected, str hint):
        cdef str value
        if self.token.kind != QUOTED:
            self._unexpected(expected, hint)
        value = self.lexer.quoted(&self.token)
        self._next()
        return value

    cdef Term _number(self):
        cdef int java_type = 0
        cdef object value = number(self.lexer, &self.token, &java_type)
        return leaf(LITERAL, self.token.start, java_type, value)

    cdef int _operand(self) except -1:
        """Consume tokens up to the end of one operand; prefixes and open parentheses become frames."""
        cdef int kind, start
        cdef str name
        while True:
            kind = self.token.kind
            start = self.token.start
            if kind == WORD:
                name = PyUnicode_Substring(self.lexer.text, start, self.token.end)
                self._next()
                if self.token.kind == OPEN and self.lexer.activemq:
                    if name not in ARGUMENT_COUNTS:
                        self._refuse(
                            start, f"there is no function {name[:40]!r}", "a function, or a name without a bracket",
                            did_you_mean(name.upper(), ARGUMENT_COUNTS),
                        )
                    self._push(ARGUMENTS, LOOSEST, FUNCTION, start)
                    self.frames[self.depth - 1].count = 0
                    if self.names is None:
                        self.names = []
                    self.names.append(name)
                    self._next()
                    continue
                self.operands.append(leaf(PROPERTY, start, 0, name))
                return 0
            elif kind == QUOTED:
                self.operands.append(leaf(LITERAL, start, STRING, self.lexer.quoted(&self.token)))
            elif DECIMAL <= kind <= FLOATING:
                self.operands.append(self._number())
            elif kind == WORD_TRUE or kind == WORD_FALSE:
                self.operands.append(leaf(LITERAL, start, BOOLEAN, kind == WORD_TRUE))
            elif kind == WORD_NULL:
                self.operands.append(leaf(LITERAL, start, NULL_VALUE, None))
            elif kind == WORD_XPATH or kind == WORD_XQUERY:
                self._next()
                name = self._text_constant("a text in single quotes", "write XPATH '//element'")
                self.operands.append(leaf(XPATH if kind == WORD_XPATH else XQUERY, start, 0, name))
                return 0
            else:
                if kind == OPEN:
                    self._push(BRACKET, LOOSEST, 0, start)
                elif kind == WORD_NOT:
                    self._push(PREFIX, BY_PREFIX, NOT, start)
                elif kind == DASH:
                    self._push(PREFIX, BY_PREFIX, NEGATE, start)
                elif kind == PLUS:
                    self._push(PREFIX, BY_PREFIX, -1, start)
                else:
                    return self._unexpected("a name, a number, a text, NOT or an opening bracket")
                self._next()
                continue
            self._next()
            return 0

    cdef int _call(self, Frame* frame) except -1:
        """Complete a function call at its closing parenthesis."""
        cdef str name = self.names.pop()
        cdef int least, most
        cdef int count = frame.count
        cdef Term term
        least, most = ARGUMENT_COUNTS[name]
        if not least <= count <= most:
            self._refuse(
                frame.position, f"{name} with {count} argument{'s' if count > 1 else ''}",
                f"{least} arguments" if least == most else f"{least} or {most} arguments",
            )
        term = several(FUNCTION, self.operands[len(self.operands) - count:])
        term.value = name
        term.position = frame.position
        del self.operands[len(self.operands) - count:]
        return self._place(term)

    # Operators after an operand.

    cdef int _member(self, int kind) except -1:
        cdef Term subject = <Term>self.operands.pop()
        cdef list texts = []
        cdef Term term
        self._next()
        if self.token.kind != OPEN:
            self._unexpected("an opening bracket", "write IN ('a', 'b')")
        while True:
            self._next()
            texts.append(self._text_constant(
                "a text in single quotes",
                "IN holds quoted texts only: name IN ('a', 'b'); for numbers write x = 1 OR x = 2",
            ))
            if self.token.kind == COMMA:
                continue
            if self.token.kind == CLOSE:
                break
            self._unexpected("a comma or a closing bracket")
        self._next()
        if subject.kind != PROPERTY:
            self._refuse(
                subject.position, "only a property can stand before IN", "a property name",
                "write NOT (x IN (...)) or x NOT IN (...)" if subject.kind == NOT else "write a comparison with =",
            )
        term = unary(kind, subject.position, tuple(texts), subject)
        return self._place(term)

    cdef int _like(self, int kind) except -1:
        cdef Term subject = <Term>self.operands.pop()
        cdef str pattern
        cdef str escape = None
        cdef int start
        self._next()
        pattern = self._text_constant(
            "a pattern in single quotes", "the pattern of LIKE is a constant text: name LIKE 'gold%'"
        )
        if self.token.kind == WORD_ESCAPE:
            self._next()
            start = self.token.start
            escape = self._text_constant("one character in single quotes", "write ESCAPE '\\'")
            if len(escape) != 1 or ord(escape) > 0xFFFF:
                self._refuse(
                    start, "ESCAPE takes exactly one character" if len(escape) != 1 else
                    "this character takes two UTF-16 units, ESCAPE takes one", "one character in single quotes",
                )
            if ord(escape) < 0x10:
                self._check_control_escape(pattern, escape, start)
        return self._place(unary(kind, subject.position, (pattern, escape), subject))

    cdef int _check_control_escape(self, str pattern, str escape, int start) except -1:
        """The broker's regular expression for a doubled escape below U+0010 is valid only if a hex digit follows."""
        cdef int index = 0
        while index < len(pattern):
            if pattern[index] == escape and pattern[index + 1:index + 2] in ("%", "_", escape):
                index += 2
                if pattern[index - 1] == escape and pattern[index:index + 1] not in tuple("0123456789abcdefABCDEF"):
                    self._refuse(
                        start, "the broker cannot escape a control character below U+0010 with itself", "",
                        "choose a printable ESCAPE character",
                    )
            else:
                index += 1
        return 0

    cdef int _search(self, int kind) except -1:
        cdef Term subject = <Term>self.operands.pop()
        cdef str text
        self._next()
        text = self._text_constant("a text in single quotes", "the text to look for is a constant: name CONTAINS 'x'")
        return self._place(unary(kind, subject.position, text, subject))

    cdef int _comparison(self, bint negated) except -1:
        """LIKE, IN, BETWEEN, RocketMQ's tests of strings, from the word on. 1: an operand follows, 0: complete."""
        cdef int kind = self.token.kind
        cdef int start = self.token.start
        self._reduce(BY_COMPARISON)
        if kind == WORD_LIKE:
            self._like(NOT_LIKE if negated else LIKE)
        elif kind == WORD_IN:
            self._member(NOT_IN if negated else IN)
        elif kind == WORD_CONTAINS:
            self._search(NOT_CONTAINS if negated else CONTAINS)
        elif kind == WORD_STARTSWITH:
            self._search(NOT_STARTS_WITH if negated else STARTS_WITH)
        elif kind == WORD_ENDSWITH:
            self._search(NOT_ENDS_WITH if negated else ENDS_WITH)
        elif kind == WORD_BETWEEN:
            self._push(LOW, BY_COMPARISON, NOT_BETWEEN if negated else BETWEEN, start)
            self._next()
            return 1
        else:
            return self._unexpected(
                "LIKE, IN or BETWEEN" if self.lexer.activemq else "IN, BETWEEN, CONTAINS, STARTSWITH or ENDSWITH",
                "write <> for 'differs from'; NOT stands before a condition" if kind == EQUALS else "",
            )
        self.ceiling = BY_COMPARISON
        return 0

    cdef int _binary(self, int precedence, int term) except -1:
        self._reduce(precedence)
        self._push(BINARY, precedence, term, self.token.start)
        self._next()
        return 1

    cdef int _logic(self, int precedence, int term) except -1:
        """AND or OR: joins the frame of the same word below, so that a chain is one Term."""
        cdef Frame* frame
        cdef Term left
        # Reduce what binds tighter than AND, for OR an AND too; a BETWEEN that waits for this AND stops the reduction.
        if term == AND:
            self._reduce(BY_SUM)
            if self.depth and self.frames[self.depth - 1].kind == LOW:
                self.frames[self.depth - 1].kind = HIGH
                self.frames[self.depth - 1].count = 3
                self._next()
                return 1
        self._reduce(precedence + 1)
        left = self._truth(<Term>self.operands.pop())
        frame = &self.frames[self.depth - 1] if self.depth else NULL
        if frame != NULL and frame.kind == SEVERAL and frame.term == term:
            self.operands.append(left)
            frame.count += 1
        else:
            self._push(SEVERAL, precedence, term, self.token.start)
            if left.kind == term:
                self.operands.extend(left.terms)
                self.frames[self.depth - 1].count = <int>len(left.terms)
            else:
                self.operands.append(left)
            self.frames[self.depth - 1].count += 1
        self._next()
        return 1

    cdef int _null_test(self) except -1:
        cdef int kind = IS_NULL
        cdef Term subject
        self._reduce(BY_EQUALITY)
        subject = <Term>self.operands.pop()
        self._next()
        if self.token.kind == WORD_NOT:
            kind = IS_NOT_NULL
            self._next()
        if self.token.kind != WORD_NULL:
            self._unexpected(
                "NULL" if kind == IS_NOT_NULL else "NULL or NOT NULL",
                "IS only asks for NULL; write x = TRUE or x = FALSE"
                if self.token.kind == WORD_TRUE or self.token.kind == WORD_FALSE else "",
            )
        self._next()
        self._place(unary(kind, subject.position, None, subject))
        self.ceiling = BY_EQUALITY
        return 0

    cdef int _close(self) except -1:
        """A closing parenthesis after an operand. 0: it closed one, 2: none was open."""
        cdef Frame* frame
        self._reduce(LOOSEST)
        if self.depth == 0:
            return 2
        frame = &self.frames[self.depth - 1]
        self.depth -= 1
        self.open -= 1
        if frame.kind == ARGUMENTS:
            frame.count += 1
            self._call(frame)
        self._next()
        self.ceiling = BY_PREFIX
        return 0

    cdef int _operator(self) except -1:
        """The token after an operand. 1: another operand follows, 0: the operand grew, 2: the expression ends."""
        cdef int kind = self.token.kind
        self._reduce(BY_PREFIX)
        if self.depth and self.frames[self.depth - 1].kind == ARGUMENTS and kind != CLOSE:
            if kind != COMMA:
                return self._unexpected(
                    "a comma or a closing bracket", "an argument that is computed needs brackets of its own: F((a + b))"
                )
            self.frames[self.depth - 1].count += 1
            self._next()
            return 1
        if kind == END:
            return 2
        if kind == WORD_AND:
            return self._logic(BY_AND, AND)
        if kind == WORD_OR:
            return self._logic(BY_OR, OR)
        if kind == CLOSE:
            return self._close()
        if kind == EQUALS:
            return self._binary(BY_EQUALITY, EQUAL)
        if kind == DIFFERS:
            return self._binary(BY_EQUALITY, NOT_EQUAL)
        if kind == WORD_IS:
            return self._null_test()
        # After IS NULL no tighter operator may follow, after LIKE, IN and BETWEEN no arithmetic.
        if self.ceiling < BY_COMPARISON:
            return 2
        if kind == BELOW:
            return self._binary(BY_COMPARISON, LESS)
        if kind == AT_MOST:
            return self._binary(BY_COMPARISON, LESS_EQUAL)
        if kind == ABOVE:
            return self._binary(BY_COMPARISON, GREATER)
        if kind == AT_LEAST:
            return self._binary(BY_COMPARISON, GREATER_EQUAL)
        if kind == WORD_NOT:
            self._reduce(BY_COMPARISON)
            self._next()
            return self._comparison(True)
        if kind == WORD_IN or kind == WORD_LIKE or kind == WORD_BETWEEN or kind >= WORD_CONTAINS:
            return self._comparison(False)
        if self.lexer.activemq and self.ceiling > BY_COMPARISON:
            if kind == PLUS:
                return self._binary(BY_SUM, ADD)
            if kind == DASH:
                return self._binary(BY_SUM, SUBTRACT)
            if kind == STAR:
                return self._binary(BY_PRODUCT, MULTIPLY)
            if kind == SLASH:
                return self._binary(BY_PRODUCT, DIVIDE)
            if kind == PERCENT:
                return self._binary(BY_PRODUCT, REMAINDER)
        return 2

    cdef Term run(self):
        cdef int step = 1
        self._next()
        while step != 2:
            if step == 1:
                self._operand()
                self.ceiling = BY_PREFIX
            step = self._operator()
        # RocketMQ does not check for the end of the text: a token that cannot follow ends the selector and is ignored.
        if self.token.kind != END and self.lexer.activemq:
            self._unexpected("an operator or the end" if self.open == 0 else "an operator or a closing bracket")
        self._reduce(LOOSEST)
        if self.depth:
            self._refuse(
                self.token.start, self._here(), "a closing bracket",
                f"the bracket at position {self.frames[self.depth - 1].position} is still open",
            )
        return self._truth(<Term>self.operands[0])


cpdef Tree parse(str text, str dialect):
    """The selector ``text`` as a Tree.

    text: the selector; for "activemq" it may start with ``convert_string_expressions:`` (spec activemq 1.10).
    dialect: "activemq" (ActiveMQ Classic's selectors) or "rocketmq" (RocketMQ's SQL92 filter).
    Raises InvalidSelectorError if the broker refuses the selector, and for nesting beyond the limits above
    (500 levels, 1000 open parentheses and signs); ValueError for another dialect.
    """
    cdef Tree tree = Tree.__new__(Tree)
    cdef Parser parser
    cdef int start = 0
    if text is None:
        raise TypeError("a selector is a str, not None")
    if dialect != "activemq" and dialect != "rocketmq":
        raise ValueError(f"unknown dialect {dialect!r}; known: 'activemq', 'rocketmq'")
    tree.text = text
    tree.dialect = dialect
    tree.convert = dialect == "activemq" and text.startswith(CONVERT_PREFIX)
    if tree.convert:
        start = <int>len(CONVERT_PREFIX)
    parser = Parser(Lexer(text, dialect == "activemq", start))
    tree.root = parser.run()
    tree.end = parser.token.start
    return tree


def _reduced(Tree tree not None):
    return parse, (tree.text, tree.dialect)


copyreg.pickle(Tree, _reduced)  # a Tree is made here only
