"""The JMS client: connections, sessions, consumers, producers, and their options."""
