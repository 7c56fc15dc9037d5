"""Rows in, messages out: sources, columns, shards, runs, and what a run counts."""
