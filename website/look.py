"""Look at the built site: ``python -m website.look FOLDER`` writes pictures of pages, as a telephone and a screen show.

It opens the files from the disk, in a Chromium without a network, searches for a word in both languages, and exits with
1 if a page is wider than its window, writes an error to its console or asks for anything that is not a file.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
SITE = ROOT / "out" / "site"
WIDTHS = (390, 1440)
PAGES = ("index", "zh/index", "tutorials/service", "tasks", "reference/activemq", "spec/activemq", "benchmarks",
         "rocketmq-interop", "zh/articles", "security")  # fmt: skip
SEARCHES = {"index": "prefetch", "zh/index": "队列"}


def foreign(address: str) -> bool:
    """Whether something is fetched that is not a file of the site."""
    return not address.startswith(("file:", "data:", "blob:"))


def found_by(page: Page, name: str, word: str) -> list[str]:
    """The titles that the site's search finds for a word."""
    page.goto(f"{(SITE / name).as_uri()}.html")
    box = page.locator("input.md-search__input").first
    box.evaluate("box => box.focus()")
    box.fill(word)
    box.press("End")  # the theme listens for a key that comes up
    page.wait_for_selector(".md-search-result__item", timeout=60_000, state="attached")
    return [title.strip() for title in page.locator(".md-search-result__item h1").all_inner_texts()]


def main() -> int:
    """Take the pictures; return how it went."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    wrong: list[str] = []
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-quic", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        for width in WIDTHS:
            page = browser.new_page(viewport={"width": width, "height": 900})
            page.on("pageerror", lambda error: wrong.append(f"an error of a script: {error}"))
            page.on("request", lambda asked: wrong.append(f"asks for {asked.url}") if foreign(asked.url) else None)
            for name in PAGES:
                if not (SITE / f"{name}.html").exists():
                    continue
                page.goto(f"{(SITE / name).as_uri()}.html")
                wide = page.evaluate("document.documentElement.scrollWidth")
                if wide > width:
                    wrong.append(f"{name} is {wide} pixels wide in a window of {width}")
                page.screenshot(path=folder / f"{name.replace('/', '-')}-{width}.png")
            for name, word in SEARCHES.items():
                titles = found_by(page, name, word)
                page.screenshot(path=folder / f"search-{name.replace('/', '-')}-{width}.png")
                print(f"{width}: {word} is found on {len(titles)} pages: {', '.join(titles[:4])}")
            page.close()
        browser.close()
    print(*wrong, sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
