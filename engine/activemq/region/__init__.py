"""Queues in a broker's terms: message ids, subscriptions, virtual destinations, dead letters."""
