"""pitfalls: legal selectors that do not mean what they seem to mean (spec activemq 1.15, rocketmq 8.2, 8.3)."""

from pyengine._engine.selector.ast cimport Tree


cpdef list surprises(Tree tree)
