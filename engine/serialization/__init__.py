"""State as bytes: numbers, texts and values, and the sealed frame around them."""
