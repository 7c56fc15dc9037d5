"""The broker: consume queues, long polling, locks, delay levels, committed offsets, log records."""
