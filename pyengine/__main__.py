"""``python -m pyengine`` and the ``pyengine`` command; where the extra ``cli`` is missing, it says what to install."""

from __future__ import annotations

import importlib.util
import sys

from pyengine.errors import MissingExtraError


def main() -> None:
    """Run the command line; exits with 0 clean, 1 findings, 2 bad input."""
    missing = [name for name in ("typer", "rich") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"pyengine: {MissingExtraError('cli', ' and '.join(missing))}", file=sys.stderr)
        raise SystemExit(2)
    from pyengine.cli import app

    app(prog_name="pyengine")


if __name__ == "__main__":
    main()
