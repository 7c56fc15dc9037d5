"""Java's values as the brokers compute with them: numbers, strings, comparison, hash codes, regular expressions."""
