"""The embedded broker: destinations, subscriptions, dead letters, what it tells and shows of them."""
