"""How clients reach the broker: connectors that listen, and what they make of a client's bytes."""
