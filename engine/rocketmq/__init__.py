"""RocketMQ: the push consumer's decisions (client) and the broker's (broker)."""
