"""The push consumer and its parts: rebalancing, pulling, consuming, committing offsets."""
