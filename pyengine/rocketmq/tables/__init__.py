"""Answers about columns and lists: who owns which queue, which group takes which row."""
