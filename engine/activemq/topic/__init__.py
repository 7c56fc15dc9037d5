"""A broker's topics: subscriptions, fan-out, recovery of old messages, eviction, slow consumers."""
