"""The selector language: text to tree, tree to program, and the program on one message."""
