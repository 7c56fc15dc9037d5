"""The defaults of a push consumer's parameters that more than one part needs (DefaultMQPushConsumer 5.3)."""

CONSUME_THREADS = 20
MAX_RECONSUME_TIMES = 16  # times that a message is retried before it is a dead letter
CONSUME_TIMEOUT = 15  # minutes
CONSUME_MESSAGE_BATCH_MAX_SIZE = 1
CONSUME_CONCURRENTLY_MAX_SPAN = 2000  # offsets
PULL_THRESHOLD_FOR_QUEUE = 1000  # messages
PULL_THRESHOLD_SIZE_FOR_QUEUE = 100  # MiB
PULL_BATCH_SIZE = 32  # messages
PULL_BATCH_SIZE_IN_BYTES = 262144
SUSPEND_CURRENT_QUEUE_TIME = 1000  # ms
PULL_TIME_DELAY_WHEN_EXCEPTION = 1000  # ms
