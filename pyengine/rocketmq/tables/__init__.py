"""Answers about columns and lists: the owner of each queue, the group that takes each row."""
