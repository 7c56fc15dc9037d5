"""What would go wrong: traps of configurations, with proofs."""

from pyengine.backlog.lint.checks import lint, lint_broker, lint_consumer, lint_consumers, lint_spring

__all__ = [
    "lint",
    "lint_broker",
    "lint_consumer",
    "lint_consumers",
    "lint_spring",
]
