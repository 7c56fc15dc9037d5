"""parser: selector text -> Tree, or InvalidSelectorError with the position; dialects "activemq" and "rocketmq".

It makes all checks that the real parsers make (spec activemq 1.2-1.6, rocketmq 8.2), so a Tree is a selector that its
broker accepts.

The parser has its own stack and does not recurse, so any text is safe on any thread. At most 1000 parentheses and
signs may be open at a time, and no Tree is deeper than ast.pxd says; beyond that: InvalidSelectorError. (The
broker's limit is its thread's stack: about 850 parentheses with 1 MiB, 25,000 with 8 MiB.) Time is linear in the
length of the text.
"""


from pyengine._engine.selector.ast cimport Term, Tree


cpdef Tree parse(str text, str dialect)
