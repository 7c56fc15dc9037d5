"""``python -m tests.differential``: scripts by the thousand. Exit code 1 if a difference was found."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tests.differential.campaign import run
from tests.differential.scripts import KINDS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--scripts", type=int, default=1000, help="how many of each kind")
    parser.add_argument("--seed", type=int, default=1000, help="of the first batch; each batch has the next one")
    parser.add_argument("--save", type=Path, help="append the shrunk cases to this file")
    parser.add_argument("--kinds", nargs="*", choices=KINDS, help="only scripts of these kinds")
    chosen = parser.parse_args()
    differ = 0
    for kind in chosen.kinds or KINDS:
        campaign = run(kind, number=chosen.scripts, first_seed=chosen.seed)
        for found in campaign.found:
            print(found)
            if chosen.save is not None:
                with chosen.save.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(found.case) + "\n")
        print(
            f"{kind}:",
            ", ".join(f"{n} {what}" for what, n in campaign.counts.items()),
            flush=True,
        )
        differ += campaign.counts["differ"]
    return 1 if differ else 0


if __name__ == "__main__":
    raise SystemExit(main())
