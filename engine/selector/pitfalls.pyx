"""Advice on legal but surprising selectors: see pitfalls.pxd."""

from pyengine._engine.selector.ast cimport (
    ADD, BETWEEN, CAST, DIVIDE, EQUAL, GREATER, GREATER_EQUAL, IN, IS_NULL, LESS, LESS_EQUAL, LIKE, LITERAL, MULTIPLY,
    NEGATE, NOT, NOT_BETWEEN, NOT_EQUAL, NOT_IN, NOT_LIKE, PROPERTY, REMAINDER, SUBTRACT, Term, Tree,
)
from pyengine._engine.java.value cimport BIG_DECIMAL, BOOLEAN, DOUBLE, INT, LONG, STRING

cdef frozenset NEVER_NULL = frozenset((
    "JMSDeliveryMode", "JMSPriority", "JMSTimestamp", "JMSExpiration", "JMSRedelivered", "JMSXDeliveryCount",
    "JMSXGroupSeq", "JMSXGroupFirstForConsumer", "JMSActiveMQBrokerInTime", "JMSActiveMQBrokerOutTime",
    "JMSActiveMQBrokerPath",
))
# Type of each header in every message (spec activemq 1.7).
cdef dict KIND_OF_HEADER = {
    **dict.fromkeys((
        "JMSPriority", "JMSTimestamp", "JMSExpiration", "JMSXDeliveryCount", "JMSXGroupSeq", "JMSActiveMQBrokerInTime",
        "JMSActiveMQBrokerOutTime",
    ), "a number"),
    **dict.fromkeys(("JMSRedelivered", "JMSXGroupFirstForConsumer"), "TRUE or FALSE"),
    **dict.fromkeys((
        "JMSDeliveryMode", "JMSDestination", "JMSReplyTo", "JMSType", "JMSCorrelationID", "JMSMessageID", "JMSXGroupID",
        "JMSXProducerTXID", "JMSActiveMQBrokerPath",
    ), "a text"),
}
cdef dict HEADER_OF_SMALL = {name.lower(): name for name in (*KIND_OF_HEADER, "JMSXUserID")}
cdef frozenset MOMENTS = frozenset((
    "JMSTimestamp", "JMSExpiration", "JMSActiveMQBrokerInTime", "JMSActiveMQBrokerOutTime",
))
# Headers of JMS that ActiveMQ's selectors read as ordinary properties.
cdef frozenset UNSET = frozenset((
    "JMSDeliveryTime", "JMSXAppID", "JMSXConsumerTXID", "JMSXRcvTimestamp", "JMSXState",
))
cdef tuple DELIVERY_MODES = ("PERSISTENT", "NON_PERSISTENT")
cdef tuple DESTINATIONS = ("queue://", "topic://", "temp-queue://", "temp-topic://")
# As milliseconds these numbers are days of 1970; as seconds they are 1973 to 2286.
cdef object FIRST_SECOND = 100_000_000
cdef object LAST_SECOND = 10_000_000_000


cdef bint is_number(Term term) noexcept:
    return (term.kind == LITERAL and INT <= term.java_type <= DOUBLE) or (
        term.kind == NEGATE and (<Term>term.terms[0]).kind == LITERAL
    )


cdef bint can_be_null(Term term) except -1:
    return term.kind == PROPERTY and term.value not in NEVER_NULL


cdef object constant(Term term):
    """The value of a literal, or of a negated number; None for anything else."""
    if term.kind == LITERAL:
        return term.value
    if term.kind == NEGATE and is_number(term):
        return -(<Term>term.terms[0]).value
    return None


cdef str shown(object value):
    """A constant as a selector writes it."""
    if type(value) is bool:
        return "TRUE" if value else "FALSE"
    if type(value) is str:
        return "'" + value.replace("'", "''") + "'"
    return str(value)


cdef str kind_of(object value):
    if type(value) is bool:
        return "TRUE or FALSE"
    return "a text" if type(value) is str else "a number"


cdef bint meets(int kind, object left, object right) except -1:
    """Whether two numbers satisfy one of = <> < <= > >=."""
    if kind == EQUAL:
        return left == right
    if kind == NOT_EQUAL:
        return left != right
    if kind == LESS:
        return left < right
    if kind == LESS_EQUAL:
        return left <= right
    return left > right if kind == GREATER else left >= right


cdef int turned(int kind) noexcept:
    """The comparison with its sides exchanged."""
    if kind == LESS:
        return GREATER
    if kind == LESS_EQUAL:
        return GREATER_EQUAL
    if kind == GREATER:
        return LESS
    return LESS_EQUAL if kind == GREATER_EQUAL else kind


cdef bint begins(str name, str text) except -1:
    """Whether a header with a fixed prefix may begin with ``text``."""
    if name == "JMSMessageID":
        return text.startswith("ID:") or "ID:".startswith(text)
    if name == "JMSDestination" or name == "JMSReplyTo":
        # For a message that was sent to a composite it is the text of the composite.
        return "," in text or any(text.startswith(each) or each.startswith(text) for each in DESTINATIONS)
    return True


cdef str beginning(str name, str written):
    if name == "JMSMessageID":
        return f"JMSMessageID begins with ID: and {written} does not, so it never matches"
    return f"{name} begins with queue:// or topic:// and {written} does not, so it never matches"


cdef int of_header(Term term, str name, int kind, object value, bint convert, list found) except -1:
    """A header compared with a constant; kind as if the header stood on the left."""
    cdef str header = KIND_OF_HEADER.get(name)
    cdef str written = shown(value)
    if header is None:
        return 0
    if header != kind_of(value):
        if convert and (type(value) is str or header == "a text"):
            return 0
        if name == "JMSDeliveryMode":
            header = "'PERSISTENT' or 'NON_PERSISTENT'"
        if kind == EQUAL:
            found.append((term.position, f"{name} is {header} and never equals {written}"))
        elif kind == NOT_EQUAL:
            found.append((term.position, f"{name} is {header}, so <> {written} holds whatever it is"))
        else:
            found.append((term.position, f"{name} is {header} and has no order with {written}: never matches"))
    elif name == "JMSDeliveryMode" and value not in DELIVERY_MODES:
        if kind == EQUAL:
            found.append((term.position, f"{name} is 'PERSISTENT' or 'NON_PERSISTENT' and never equals {written}"))
        elif kind == NOT_EQUAL:
            found.append((
                term.position, f"{name} is 'PERSISTENT' or 'NON_PERSISTENT', so <> {written} holds whatever it is",
            ))
    elif type(value) is str and kind == EQUAL and not begins(name, value + "\0"):
        found.append((term.position, beginning(name, written)))
    elif name == "JMSPriority" and not any(meets(kind, each, value) for each in range(10)):
        found.append((term.position, "JMSPriority is a whole number of 0 to 9: never matches"))
    elif name == "JMSPriority" and kind == NOT_EQUAL and all(value != each for each in range(10)):
        found.append((term.position, f"JMSPriority is a whole number of 0 to 9, so <> {written} holds whatever it is"))
    elif name == "JMSXDeliveryCount" and value < 1 and (
        kind == EQUAL or kind == LESS or kind == LESS_EQUAL
    ) or name == "JMSXDeliveryCount" and value == 1 and kind == LESS:
        found.append((term.position, "JMSXDeliveryCount is 1 at the first delivery: never matches"))
    elif name in MOMENTS and FIRST_SECOND <= value < LAST_SECOND:
        found.append((term.position, f"{name} counts milliseconds since 1970 and {written} looks like seconds"))
    return 0


cdef bint is_arithmetic(Term term) noexcept:
    """Whether an expression is a number or null; + may also concatenate."""
    return SUBTRACT <= term.kind <= REMAINDER


cdef str hyphenated(Tree tree, Term term):
    """The text of a difference that looks like one name (order-id), otherwise None."""
    cdef Term left = <Term>term.terms[0]
    cdef Term right = <Term>term.terms[1]
    cdef str before
    if right.kind != PROPERTY:
        return None
    before = left.value if left.kind == PROPERTY else hyphenated(tree, left) if left.kind == SUBTRACT else None
    if before is None:
        return None
    before = f"{before}-{right.value}"
    return before if tree.text.startswith(before, term.position) else None


cdef bint goes_on(str text, Py_ssize_t end) except -1:
    """Whether a hyphen and another name follow, as after a-b in a-b-c."""
    return text[end:end + 1] == "-" and (text[end + 1:end + 2].isalpha() or text[end + 1:end + 2] in ("_", "$"))


cdef int of_pair(Tree tree, Term term, list found) except -1:
    """Two operands compared with = <> < <= > >=."""
    cdef Term left = <Term>term.terms[0]
    cdef Term right = <Term>term.terms[1]
    cdef bint activemq = tree.dialect == "activemq"
    if left.kind == NOT and (left.position == term.position):
        found.append((left.position, "NOT applies to the word after it, before any comparison; write NOT (x = 1)"))
    if (left.kind == LITERAL or is_number(left)) and can_be_null(right):
        if term.kind == NOT_EQUAL:
            found.append((term.position, f"true when {right.value} is missing; {right.value} <> ... is not"))
        elif term.kind == EQUAL:
            found.append((
                term.position,
                f"false, not unknown, when {right.value} is missing, so NOT makes it true; put the name first",
            ))
    elif term.kind == NOT_EQUAL and can_be_null(left) and can_be_null(right):
        found.append((
            term.position, f"true when {right.value} alone is missing, unknown when {left.value} alone is, "
            "false when both are",
        ))
    elif term.kind == EQUAL and can_be_null(left) and can_be_null(right):
        found.append((term.position, f"true when {left.value} and {right.value} are both missing"))
    if not activemq:
        if left.kind == LITERAL and left.java_type == BOOLEAN and right.kind == PROPERTY:
            found.append((term.position, "always raises when the property is there: write it with the property first"))
        if LESS <= term.kind <= GREATER_EQUAL and left.kind == PROPERTY and right.kind == PROPERTY:
            found.append((term.position, "both texts are read as numbers; raises, and so never matches, if one is not"))
        return 0
    if left.kind == PROPERTY and (value := constant(right)) is not None:
        of_header(term, left.value, term.kind, value, tree.convert, found)
    elif right.kind == PROPERTY and (value := constant(left)) is not None:
        of_header(term, right.value, turned(term.kind), value, tree.convert, found)
    for one, other in ((left, right), (right, left)):
        value = constant(<Term>other)
        if is_arithmetic(<Term>one) and type(value) in (str, bool) and not tree.convert:
            if (<Term>one).kind != SUBTRACT or hyphenated(tree, <Term>one) is None:
                found.append(((<Term>one).position, f"arithmetic gives a number and never equals {shown(value)}"))
    if right.kind == PROPERTY and not right.value.startswith("JMS") and left.kind != PROPERTY:
        if is_number(left):
            found.append((
                right.position, f"never equal or ordered when {right.value} is a byte or short"
                + (", raises when it is a float" if left.kind == LITERAL and left.java_type == DOUBLE else "")
                + "; put the name first",
            ))
    elif right.kind == PROPERTY and left.kind == PROPERTY and not right.value.startswith("JMS"):
        found.append((
            right.position, f"the types decide: a wider number never equals {right.value} as a byte or short",
        ))
    if tree.convert:
        if left.kind == LITERAL and left.java_type == BOOLEAN and right.kind == PROPERTY:
            found.append((term.position, "raises when the property is a text: put the property first"))
    if LESS <= term.kind <= GREATER_EQUAL and left.kind == PROPERTY and right.kind == PROPERTY:
        found.append((term.position, "two texts are ordered as texts: '10' is below '9'"))
    for side in (left, right):
        if (<Term>side).kind == LITERAL and (<Term>side).java_type == BIG_DECIMAL:
            found.append((
                (<Term>side).position, "an integer beyond Long is unequal to every number a message can hold",
            ))
    return 0


cdef int of_term(Tree tree, Term term, list found) except -1:
    cdef int kind = term.kind
    cdef Term first = <Term>term.terms[0] if term.terms else None
    cdef bint activemq = tree.dialect == "activemq"
    if activemq:
        if kind == PROPERTY:
            of_name(term, found)
        elif kind == LITERAL and (term.java_type == INT or term.java_type == LONG):
            of_octal(tree, term, found)
        elif kind == SUBTRACT and (name := hyphenated(tree, term)) is not None and not goes_on(
            tree.text, term.position + len(name)
        ):
            found.append((
                term.position,
                f"{name} is a subtraction, since no name has a hyphen: rename the property, "
                "or put blanks around - where a difference is meant",
            ))
    if EQUAL <= kind <= GREATER_EQUAL:
        of_pair(tree, term, found)
    elif kind == IS_NULL or kind == IS_NULL + 1:
        if first.kind == NOT and first.position == term.position:
            found.append((first.position, "NOT applies to the word after it; write NOT (x IS NULL) or x IS NOT NULL"))
        elif activemq and first.kind == PROPERTY and first.value in NEVER_NULL:
            found.append((first.position, f"{first.value} is never null"))
    elif kind == CAST:
        if activemq:
            if KIND_OF_HEADER.get(first.value) != "TRUE or FALSE":
                found.append((first.position, f"{first.value} alone is false unless it is a boolean true"))
        else:
            found.append((first.position, f"{first.value} alone is never true; write {first.value} = TRUE"))
    elif kind == BETWEEN or kind == NOT_BETWEEN:
        of_bounds(tree, term, found)
    elif kind == LIKE or kind == NOT_LIKE:
        if first.kind == NOT and first.position == term.position:
            found.append((first.position, "NOT applies to the word after it; write x NOT LIKE '...'"))
        elif activemq and first.kind == PROPERTY and KIND_OF_HEADER.get(first.value, "a text") != "a text":
            of_pattern(term, first.value, found)
        elif kind == NOT_LIKE and first.kind == PROPERTY:
            found.append((term.position, f"true when {first.value} is not a text"))
        elif activemq and kind == LIKE and first.kind == PROPERTY and first.value in KIND_OF_HEADER:
            of_pattern(term, first.value, found)
        elif activemq and is_arithmetic(first) and (first.kind != SUBTRACT or hyphenated(tree, first) is None):
            found.append((term.position, "arithmetic gives a number and LIKE knows only texts"))
        if term.value[1] is None and "\\" in term.value[0]:
            found.append((term.position, "a backslash escapes nothing here; add ESCAPE '\\'"))
        if "*" in term.value[0] and "%" not in term.value[0] and "_" not in term.value[0]:
            found.append((term.position, "* stands for itself; % stands for any text"))
    elif kind == NOT_IN and activemq:
        found.append((term.position, f"unknown, so no match, when {first.value} is missing or not a text"))
    elif kind == IN and activemq:
        header = KIND_OF_HEADER.get(first.value)
        if header == "a number" or header == "TRUE or FALSE":
            found.append((term.position, f"{first.value} is {header} and IN knows only texts: never matches"))
        for value in term.value:
            if first.value == "JMSDeliveryMode" and value not in DELIVERY_MODES:
                found.append((
                    term.position, f"{first.value} is 'PERSISTENT' or 'NON_PERSISTENT' and never equals {shown(value)}",
                ))
            elif not begins(first.value, value + "\0"):
                found.append((term.position, beginning(first.value, shown(value))))
    elif kind == DIVIDE or kind == REMAINDER:
        found.append((term.position, "division and remainder are done in double: 7 / 2 is 3.5"))
    elif ADD < kind <= MULTIPLY:
        for side in term.terms:
            if (<Term>side).kind == LITERAL and (<Term>side).java_type == STRING:
                found.append((
                    (<Term>side).position,
                    "a text has no arithmetic but text + value: raises unless the other side is null",
                ))
    return 0


cdef int of_name(Term term, list found) except -1:
    cdef str name = term.value
    cdef str meant
    if name[:3].upper() == "JMS":
        meant = HEADER_OF_SMALL.get(name.lower())
        if meant is not None and meant != name:
            found.append((term.position, f"{name} is not a header, since names are case-sensitive; write {meant}"))
        elif name in UNSET:
            found.append((term.position, f"ActiveMQ does not set {name}: it is null unless the sender sets a property"))
    return 0


cdef int of_octal(Tree tree, Term term, list found) except -1:
    cdef Py_ssize_t end = term.position
    cdef str text = tree.text
    while end < len(text) and "0" <= text[end] <= "7":
        end += 1
    written = text[term.position:end]
    if written.startswith("0") and int(written) != term.value and int(written, 8) == term.value:
        found.append((term.position, f"{written} is octal and means {term.value}; write it without the 0 in front"))
    return 0


cdef int of_pattern(Term term, str name, list found) except -1:
    """LIKE and NOT LIKE of a header."""
    cdef str header = KIND_OF_HEADER[name]
    cdef str pattern = term.value[0]
    cdef Py_ssize_t end = 0
    if header != "a text":
        if term.kind == LIKE:
            found.append((term.position, f"{name} is {header} and LIKE knows only texts: never matches"))
        else:
            found.append((term.position, f"{name} is {header} and NOT LIKE is true of all that is not a text"))
        return 0
    if term.value[1] is not None:
        return 0
    while end < len(pattern) and pattern[end] not in "%_":
        end += 1
    if not begins(name, pattern[:end] if end < len(pattern) else pattern + "\0"):
        found.append((term.position, beginning(name, shown(pattern))))
    return 0


cdef int of_bounds(Tree tree, Term term, list found) except -1:
    cdef Term subject = <Term>term.terms[0]
    cdef Term low = <Term>term.terms[1]
    cdef Term high = <Term>term.terms[2]
    if tree.dialect == "activemq" and subject.kind == PROPERTY and subject.value in KIND_OF_HEADER:
        bounds = [each for each in (constant(low), constant(high)) if each is not None]
        if KIND_OF_HEADER[subject.value] != "a number":
            if bounds and term.kind == BETWEEN:
                found.append((
                    term.position, f"{subject.value} is {KIND_OF_HEADER[subject.value]} and has no order with "
                    f"{shown(bounds[0])}: never matches",
                ))
        elif any(FIRST_SECOND <= each < LAST_SECOND for each in bounds) and subject.value in MOMENTS:
            found.append((
                term.position,
                f"{subject.value} counts milliseconds since 1970 and {shown(bounds[0])} looks like seconds",
            ))
        elif (
            subject.value == "JMSPriority" and term.kind == BETWEEN and len(bounds) == 2 and bounds[0] <= bounds[1]
            and not any(bounds[0] <= each <= bounds[1] for each in range(10))
        ):
            found.append((term.position, "JMSPriority is a whole number of 0 to 9: never matches"))
    if low.kind == LITERAL and high.kind == LITERAL and float(low.value) > float(high.value):
        found.append((low.position, "the lower bound is above the upper bound"))
    if tree.dialect == "rocketmq":
        if low.kind == LITERAL and high.kind == LITERAL and (low.java_type == DOUBLE) != (high.java_type == DOUBLE):
            found.append((
                low.position, "the property is read once as an integer and once as a number with a point; "
                "'19.5' raises: give both bounds a point",
            ))
    elif subject.kind == LITERAL or is_number(subject):
        for side in (low, high):
            if (<Term>side).kind == PROPERTY:
                found.append(((<Term>side).position, "never true when this property is a byte or short"))
    return 0


cpdef list surprises(Tree tree):
    """Legal constructs in ``tree`` that often do not mean what their author intends.

    Returns (position, text) pairs in the order of position; position is an index into ``tree.text``. The list
    does not change the answers of the selector. It is empty if this function finds no pitfall.
    """
    cdef list found = []
    cdef list waiting
    cdef Term term
    if tree is None:
        raise TypeError("surprises() takes a Tree")
    waiting = [tree.root]
    while waiting:
        term = <Term>waiting.pop()
        of_term(tree, term, found)
        waiting.extend(term.terms)
    if tree.end < len(tree.text):
        found.append((tree.end, f"everything from here on is ignored: {tree.text[tree.end:tree.end + 40]!r}"))
    found.sort()
    return found
