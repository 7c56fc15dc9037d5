"""Recorded answers of the real brokers, replayed through the public API."""
