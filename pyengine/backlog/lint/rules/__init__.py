"""Traps in configurations: queues and their consumers, a broker's policies, a push consumer's parameters."""
