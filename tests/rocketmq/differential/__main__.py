"""``python -m tests.rocketmq.differential``: operations by the million. Exit code 1 if a difference was found."""

from __future__ import annotations

import argparse
import logging

from tests.rocketmq.differential.campaign import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.rocketmq.differential", description=__doc__)
    parser.add_argument("--operations", type=int, default=1_000_000, help="how many in all")
    parser.add_argument("--seed", type=int, default=1, help="of all traces")
    chosen = parser.parse_args()
    logging.getLogger("pyengine.rocketmq").setLevel(logging.CRITICAL)
    campaign = run(operations=chosen.operations, seed=chosen.seed)
    for found in campaign.found:
        print(found)
    print(f"{campaign.operations} operations:", ", ".join(f"{n} {what}" for what, n in campaign.counts.items()))
    print(f"{len(campaign.found)} differences")
    return 1 if campaign.found else 0


if __name__ == "__main__":
    raise SystemExit(main())
