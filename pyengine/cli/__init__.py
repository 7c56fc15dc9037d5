"""The command line, thin over the rest. Exit codes: 0 clean, 1 findings, 2 bad input."""

from pyengine.cli.app import app

__all__ = ["app"]
