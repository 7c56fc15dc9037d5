"""A message: its headers and properties, one at a time or packed by the hundred thousand."""
