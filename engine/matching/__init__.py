"""What matches messages: the public Selector, and a consumer's selector as dispatch asks it."""
