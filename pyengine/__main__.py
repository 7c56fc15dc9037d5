"""``python -m pyengine`` and the ``pyengine`` command; without the extra ``cli`` it prints what to install."""

from __future__ import annotations

import importlib.util
import os
import sys

from pyengine.errors import MissingExtraError


def main() -> None:
    """Run the command line; exits with 0 clean, 1 findings, 2 bad input."""
    missing = [name for name in ("typer", "rich") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"pyengine: {MissingExtraError('cli', ' and '.join(missing))}", file=sys.stderr)
        raise SystemExit(2)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the process that started this; no stream may close it again (below)
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, closefd=False))
    if not os.environ.get("COLUMNS", "1").strip("0"):  # a terminal of unknown width, in which nothing would be shown
        del os.environ["COLUMNS"]
    try:
        from pyengine.cli.app import app, serve
        from pyengine.cli.outlet import that_may_be_left
    except KeyboardInterrupt:
        print("pyengine: interrupted", file=sys.stderr)
        raise SystemExit(130) from None

    sys.stdout, sys.stderr = that_may_be_left(sys.stdout), that_may_be_left(sys.stderr)
    if sys.argv[1:2] == ["serve"]:  # whose clients wait: without the options of all other commands
        serve(sys.argv[2:], prog_name="pyengine serve")
    else:
        app(prog_name="pyengine")


if __name__ == "__main__":
    main()
