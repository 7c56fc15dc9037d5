"""Terms and Trees: see ast.pxd."""

cimport cython

from pyengine._engine.java.value cimport BOOLEAN, NULL_VALUE

cdef tuple NONE = ()


@cython.freelist(64)
@cython.no_gc           # built bottom up and never changed: no cycle can pass through it
cdef class Term:
    """One node of a Tree. It belongs to its Tree: pickle that, or the text."""

    def __init__(self, *args, **kwargs):
        raise TypeError("Terms are made by parse()")

    def __reduce__(self):
        raise TypeError("a Term belongs to its Tree; pickle the Tree")

    def __repr__(self):
        return f"<Term {TermKind(self.kind).name} at {self.position}>"


@cython.no_gc
cdef class Tree:
    """A selector that its broker accepts."""

    def __init__(self, *args, **kwargs):
        raise TypeError("Trees are made by parse()")

    def __repr__(self):
        return f"<Tree {self.dialect} {self.text!r}>"


cdef Term leaf(int kind, int position, int java_type, object value):
    cdef Term term = Term.__new__(Term)
    term.kind = kind
    term.position = position
    term.java_type = java_type
    term.height = 1
    term.value = value
    term.terms = NONE
    return term


cdef Term unary(int kind, int position, object value, Term operand):
    cdef Term term = Term.__new__(Term)
    term.kind = kind
    term.position = position
    term.height = operand.height + (2 if kind == IS_NOT_NULL or kind == NOT_LIKE else 1)
    term.value = value
    term.terms = (operand,)
    return term


cdef Term binary(int kind, Term left, Term right):
    cdef Term term = Term.__new__(Term)
    term.kind = kind
    term.position = left.position
    term.height = (left.height if left.height > right.height else right.height) + (2 if kind == NOT_EQUAL else 1)
    term.terms = (left, right)
    return term


cdef Term several(int kind, list operands):
    """AND, OR, BETWEEN and functions: any number of operands, at least one."""
    cdef Term term = Term.__new__(Term)
    cdef Term operand
    cdef int height = 0
    term.kind = kind
    term.terms = tuple(operands)
    for operand in operands:
        if operand.height > height:
            height = operand.height
    term.position = (<Term>operands[0]).position
    term.height = height + (2 if kind == BETWEEN or kind == NOT_BETWEEN else 1)
    return term


cdef bint is_boolean(Term term) except -1:
    """Whether the real parser treats ``term`` as a boolean expression (spec activemq 1.4); a bare property is not."""
    if term.kind == LITERAL:
        return term.java_type == BOOLEAN or term.java_type == NULL_VALUE
    if term.kind == FUNCTION:
        return term.value == "INLIST" or term.value == "REGEX"
    return not (term.kind == PROPERTY or ADD <= term.kind <= NEGATE)
