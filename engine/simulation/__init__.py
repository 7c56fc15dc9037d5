"""Queues and consumer groups under virtual time, driven by the very rules of the other wings."""
