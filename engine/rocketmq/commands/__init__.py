"""What RocketMQ's clients and brokers tell each other: headers, bodies and stored messages, as values and as bytes."""
