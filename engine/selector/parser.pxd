"""parser: selector text -> Tree, or InvalidSelectorError with the position; dialects "activemq" and "rocketmq".

All checks that the real parsers make at parse time are made here (spec activemq 1.2-1.6, rocketmq 8.2), so a Tree that
exists is a selector its broker takes.

The parser keeps its own stack and never recurses, so text of any shape is safe on any thread. At most 1000 brackets
and signs may be open at a time, and no Tree is deeper than ast.pxd says; beyond that: InvalidSelectorError. (The
broker's limit is its thread's stack: about 850 brackets with 1 MiB, 25,000 with 8 MiB.) Time is linear in the length
of the text.
"""


from pyengine._engine.selector.ast cimport Term, Tree


cpdef Tree parse(str text, str dialect)
