"""interpreter: the truth or value of a node on one row, with the broker's three-valued logic as it is implemented.

Rules: spec activemq 1.8, rocketmq 8.3. Under evaluate() AND and OR stop at a definite answer only; under matches() AND
stops at the first child that is not TRUE. The errors of children that are not reached make both visible. The recursion
is as deep as the tree (ast.HEIGHT_LIMIT).
"""

from libc.stdint cimport int32_t

from pyengine._engine.selector.program cimport Node
from pyengine._engine.java.value cimport Scratch, Value


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
