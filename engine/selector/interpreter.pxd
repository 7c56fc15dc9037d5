"""interpreter: the truth or value of a node on one row, with the broker's three-valued logic as it is implemented.

Rules: spec activemq 1.8, rocketmq 8.3. AND and OR under evaluate() stop at a definite answer only; under matches() AND
stops at the first child that is not TRUE. Both are visible through the errors of children not reached. Recursion is as
deep as the tree (ast.HEIGHT_LIMIT).
"""

from libc.stdint cimport int32_t

from pyengine._engine.selector.program cimport Leaf, Node, Program
from pyengine._engine.java.value cimport Scratch, Value


cdef class Regex:
    """The pattern of a REGEX that is a constant. It is compiled when it is first asked: only then the broker refuses
    one, and importing this room imports no regular expressions."""
    cdef str text
    cdef object pattern       # JavaPattern
    cdef object search        # of an ASCII string
    cdef int compile(self) except -1


# Truth of a node as evaluate() answers.
cdef int truth_of(
    const Node* nodes, const int32_t* children, int node, const Value* values, void* body, Scratch* scratch
) noexcept nogil
# TRUE, FALSE or RAISED as matches() answers.
cdef int match_node(
    const Node* nodes, const int32_t* children, int node, const Value* values, void* body, Scratch* scratch
) noexcept nogil
# Truth of the AND or OR of a node's children from ``first`` on.
cdef int rest_truth(
    const Node* nodes, const int32_t* children, int node, int first, const Value* values, void* body, Scratch* scratch
) noexcept nogil
# Truth of the whole selector on one row, values by slot (absent: NULL_VALUE; defaults are the caller's business): as
# evaluate() answers, and as matches() answers (TRUE, FALSE or RAISED). ``body``: borrowed PyObject* for XPATH, or NULL.
# Without the GIL unless needs_gil. scratch.problem says why RAISED.
cdef int evaluate_values(Program program, const Value* values, void* body, Scratch* scratch) noexcept nogil
cdef int match_values(Program program, const Value* values, void* body, Scratch* scratch) noexcept nogil
# Truth of one node (columns: what they do not vectorise), and of a GENERAL or REST leaf.
cdef int node_truth(Program program, int node, const Value* values, void* body, Scratch* scratch) noexcept nogil
cdef int general_truth(
    Program program, const Leaf* leaf, const Value* values, void* body, Scratch* scratch
) noexcept nogil
