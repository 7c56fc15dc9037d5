"""``python -m tests.rocketmq.live``: long random scripts for a real broker and ours. Exit code 1 if they differ."""

from __future__ import annotations

import argparse
import logging
import tempfile
from contextlib import closing
from itertools import islice
from pathlib import Path

from pyengine import rocketmq
from tests.rocketmq.live.real import Real
from tests.rocketmq.live.scripts import TOPICS, differences, patiently, start


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.rocketmq.live", description=__doc__)
    parser.add_argument("--operations", type=int, default=20_000, help="how many in all, 1000 a cluster")
    parser.add_argument("--seed", type=int, default=1, help="of all scripts")
    chosen = parser.parse_args()
    logging.getLogger("pyengine.rocketmq").setLevel(logging.CRITICAL)
    found = 0
    for script, played in enumerate(range(0, chosen.operations, 1000)):
        count = min(1000, chosen.operations - played)
        with tempfile.TemporaryDirectory(prefix="pyengine-rocketmq-") as name:
            home = Path(name)
            with rocketmq.Broker(home / "ours") as broker:
                for topic, queues in TOPICS.items():
                    broker.create_topic(topic, queues)
            (home / "ours" / "broker-a").rename(home / "store")
            with closing(Real(home)) as real:
                start(real, home, home / "store")
                patiently(lambda: real.ask("topics", topic="One"))
                for text in islice(differences(real, count, chosen.seed * 1_000_000 + script), 3):
                    found += 1
                    print(text)
    print(f"{chosen.operations} operations, {found} differences")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
