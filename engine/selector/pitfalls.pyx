"""Advice on legal but surprising selectors: see pitfalls.pxd."""

from pyengine._engine.selector.ast cimport (
    ADD, BETWEEN, CAST, DIVIDE, EQUAL, GREATER_EQUAL, IN, IS_NULL, LESS, LIKE, LITERAL, MULTIPLY, NEGATE, NOT,
    NOT_BETWEEN, NOT_EQUAL, NOT_IN, NOT_LIKE, PROPERTY, REMAINDER, Term, Tree,
)
from pyengine._engine.java.value cimport BIG_DECIMAL, BOOLEAN, DOUBLE, INT, STRING

cdef frozenset NEVER_NULL = frozenset((
    "JMSDeliveryMode", "JMSPriority", "JMSTimestamp", "JMSExpiration", "JMSRedelivered", "JMSXDeliveryCount",
    "JMSXGroupSeq", "JMSXGroupFirstForConsumer", "JMSActiveMQBrokerInTime", "JMSActiveMQBrokerOutTime",
    "JMSActiveMQBrokerPath",
))


cdef bint is_number(Term term) noexcept:
    return (term.kind == LITERAL and INT <= term.java_type <= DOUBLE) or (
        term.kind == NEGATE and (<Term>term.terms[0]).kind == LITERAL
    )


cdef bint can_be_null(Term term) except -1:
    return term.kind == PROPERTY and term.value not in NEVER_NULL


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
    if EQUAL <= kind <= GREATER_EQUAL:
        of_pair(tree, term, found)
    elif kind == IS_NULL or kind == IS_NULL + 1:
        if first.kind == NOT and first.position == term.position:
            found.append((first.position, "NOT applies to the word after it; write NOT (x IS NULL) or x IS NOT NULL"))
        elif activemq and first.kind == PROPERTY and first.value in NEVER_NULL:
            found.append((first.position, f"{first.value} is never null"))
    elif kind == CAST:
        if activemq:
            found.append((first.position, f"{first.value} alone is false unless it is a boolean true"))
        else:
            found.append((first.position, f"{first.value} alone is never true; write {first.value} = TRUE"))
    elif kind == BETWEEN or kind == NOT_BETWEEN:
        of_bounds(tree, term, found)
    elif kind == LIKE or kind == NOT_LIKE:
        if first.kind == NOT and first.position == term.position:
            found.append((first.position, "NOT applies to the word after it; write x NOT LIKE '...'"))
        elif kind == NOT_LIKE and first.kind == PROPERTY:
            found.append((term.position, f"true when {first.value} is not a text"))
        if term.value[1] is None and "\\" in term.value[0]:
            found.append((term.position, "a backslash escapes nothing here; add ESCAPE '\\'"))
        if "*" in term.value[0] and "%" not in term.value[0] and "_" not in term.value[0]:
            found.append((term.position, "* stands for itself; % stands for any text"))
    elif kind == NOT_IN and activemq:
        found.append((term.position, f"unknown, so no match, when {first.value} is missing or not a text"))
    elif kind == IN and activemq:
        if first.value in ("JMSPriority", "JMSTimestamp", "JMSExpiration", "JMSXDeliveryCount", "JMSXGroupSeq"):
            found.append((term.position, f"{first.value} is a number and IN knows only texts: never matches"))
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


cdef int of_bounds(Tree tree, Term term, list found) except -1:
    cdef Term subject = <Term>term.terms[0]
    cdef Term low = <Term>term.terms[1]
    cdef Term high = <Term>term.terms[2]
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
    """Legal forms in ``tree`` that often mean something else than their writer thinks.

    Returns (position, text) pairs in the order of position; position is an index into ``tree.text``. Nothing here
    changes what the selector answers. Empty for a selector whose meaning holds no trap known to this function.
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
