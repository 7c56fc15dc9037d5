"""The JMS client: what a session, its consumers and its producers do between the broker and their user."""
