"""STOMP clients of others on the listening broker, and on the real one."""
