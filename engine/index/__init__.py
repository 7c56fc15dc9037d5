"""Which of many subscriptions match a message, without evaluating each of them."""
