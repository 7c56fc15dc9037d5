"""Finding out who got what, what waits, and why."""
