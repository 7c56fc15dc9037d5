"""RocketMQ clients of any language on the embedded brokers: a name server and brokers that listen on TCP."""
