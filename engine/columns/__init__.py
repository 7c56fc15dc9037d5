"""The same program on tables: typed Arrow columns, planned once, evaluated a chunk of rows at a time."""
