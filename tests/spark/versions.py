"""Every version of Spark that companies run, each in an environment of its own with what its release names.

    python -m tests.spark.versions                  # all of them
    python -m tests.spark.versions 3.5 newest

An environment is made below build/ with this interpreter, which the compiled core needs, asked everything
(``tests.spark.connect --classic``) and removed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# What the releases name as the least, and the extra "spark" of ours; 3.5 was released before numpy 2.
VERSIONS = {
    "3.5": ("pyspark>=3.5,<3.6", "pandas>=2.2,<2.3", "pyarrow>=18,<19", "numpy<2"),
    "4.0": ("pyspark>=4.0,<4.1", "pandas>=2.2,<2.3", "pyarrow>=18,<20"),
    "4.1": ("pyspark>=4.1,<4.2", "pandas>=2.2,<3", "pyarrow>=18,<23"),
    "newest": ("pyspark", "pandas>=2.2,<3", "pyarrow"),
}


def ask(version: str) -> bool:
    """Whether a version answers everything."""
    place = ROOT / "build" / f"spark-{version}"
    shutil.rmtree(place, ignore_errors=True)
    try:
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        python = place / "bin" / "python"
        wanted = (*VERSIONS[version], "pytest", "rich", "typer")
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted], check=True)
        print(f"== Spark {version}", flush=True)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": str(python)}
        asked = [python, "-m", "tests.spark.connect", "--classic"]
        return subprocess.run(asked, cwd=ROOT, env=environment, check=False).returncode == 0
    finally:
        shutil.rmtree(place, ignore_errors=True)


def main(versions: list[str]) -> int:
    failed = [version for version in versions or VERSIONS if not ask(version)]
    print(f"does not answer: {', '.join(failed)}" if failed else "all of them answer")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
