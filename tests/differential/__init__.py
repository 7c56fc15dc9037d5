"""The real ActiveMQ and pyengine get the same random scripts; every difference is shrunk to a minimal one."""
