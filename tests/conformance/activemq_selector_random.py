"""activemq/selector_random: generated selectors and messages, recorded and replayed as activemq/selector."""

from tests.conformance.activemq_selector import identify, replay

__all__ = ["identify", "replay"]
