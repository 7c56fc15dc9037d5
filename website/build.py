"""Build the site: ``python -m website.build`` writes out/site, which opens from the disk, and looks at every link."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from website.links import broken_links
from website.pages import PAGES, ROOT, sources_address, write_pages


def without_repetitions(site: Path) -> None:
    """Leave each page once in the index of the search: the Chinese tree has the English page where there is no other.

    The index is made in the reader's browser, and half of it takes half the time.
    """
    index = site / "search" / "search_index.json"
    found = json.loads(index.read_text("utf-8"))
    translated = {page.relative_to(PAGES).as_posix().replace(".zh.md", ".html") for page in PAGES.rglob("*.zh.md")}
    found["docs"] = [
        each
        for each in found["docs"]
        if not each["location"].startswith("zh/")
        or each["location"].removeprefix("zh/").partition("#")[0] in translated
    ]
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    index.write_text(text, "utf-8")
    index.with_suffix(".js").write_text(f"var __index = {text}", "utf-8")


def main() -> None:
    """Gather the pages, build strictly, check the links."""
    pages = write_pages()
    print(f"{sum(1 for _ in pages.rglob('*.md'))} pages in {pages.relative_to(ROOT)}", flush=True)
    environment = {
        "REPOSITORY_URL": sources_address(),
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "NO_MKDOCS_2_WARNING": "1",
    }
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet"], cwd=ROOT, env=environment, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    site = ROOT / "out" / "site"
    without_repetitions(site)
    if broken := broken_links(site):
        sys.exit("\n".join([*broken, f"{len(broken)} broken links in {site.relative_to(ROOT)}"]))
    print(f"open {site.relative_to(ROOT)}/index.html: every link leads somewhere, nothing is fetched from elsewhere")


if __name__ == "__main__":
    main()
