"""One point-to-point queue: its messages, consumers and groups, its dispatch rounds, and why a message waits."""
