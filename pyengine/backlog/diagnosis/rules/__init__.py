"""Rules: evidence in, findings out. One function a rule; its docstring is its definition."""
