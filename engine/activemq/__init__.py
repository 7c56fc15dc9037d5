"""ActiveMQ: queue, topic, region (both in the broker's terms) and client."""
