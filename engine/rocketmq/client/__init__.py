"""The push consumer: allocation, rebalance, pull, process queue, consuming, offsets."""
