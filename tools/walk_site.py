#!/usr/bin/env python3
"""Walk over every page of the built site in a browser, and say what a reader would stumble over.

    python3 tasks.py docs && python3 tools/walk_site.py site

Links that lead nowhere, pictures that do not load, errors on the console, requests to other hosts,
and pages that scroll sideways, at the width of a telephone and of a desk. Needs Playwright and
Chromium; without them it says so and ends well. `--pictures FOLDER` keeps a picture of each page.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

WIDTHS = (390, 1280)
_LOOK = """() => ({
  wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  links: [...document.querySelectorAll('a[href]')].map(
    a => new URL(a.getAttribute('href'), document.baseURI).href),
  ids: [...document.querySelectorAll('[id], a[name]')].map(e => e.id || e.name),
  lost: [...document.images].filter(i => i.loading !== 'lazy' && i.complete && !i.naturalWidth)
    .map(i => i.src),
  pictures: [...document.images].map(i => i.src),
})"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing: findings are what counts."""


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of the site, while it is served on this machine."""
    handler = functools.partial(_Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()


def pages_of(site: Path) -> list[str]:
    """Paths of all pages, the first page first."""
    found = [file.parent.relative_to(site).as_posix() for file in site.rglob("index.html")]
    return sorted("" if path == "." else f"{path}/" for path in found)


class _Listener:
    """What a page complains of while it is read."""

    def __init__(self, page: Any, address: str):
        self.at, self.found, self._address = "", [], address
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.say(f"script: {error}"))
        page.on("request", self._see)

    def say(self, what: str) -> None:
        """Keep a finding of this page."""
        self.found.append(f"{self.at}: {what}")

    def _hear(self, message: Any) -> None:
        if message.type == "error":
            self.say(f"console: {message.text}")

    def _see(self, request: Any) -> None:
        if not request.url.startswith((self._address, "data:", "blob:")):
            self.say(f"asks {request.url}")


def walk(site: Path, browser: Any, pictures: Path | None = None) -> list[str]:
    """Findings, a line each."""
    found: list[str] = []
    seen: dict[str, dict[str, Any]] = {}
    with served(site) as address:
        for width in WIDTHS:
            page = browser.new_page(viewport={"width": width, "height": 900})
            listener = _Listener(page, address)
            for path in pages_of(site):
                listener.at = path or "/"
                page.goto(urljoin(address, path), wait_until="load")
                seen[path] = looked = page.evaluate(_LOOK)
                if looked["wide"] > 0:
                    listener.say(f"scrolls sideways by {looked['wide']} at {width} pixels")
                for url in looked["lost"]:
                    listener.say(f"picture does not load: {url}")
                if pictures is not None:
                    name = path.strip("/").replace("/", "-") or "index"
                    page.screenshot(path=pictures / f"{name}-{width}.png", full_page=True)
            found += listener.found
            page.close()
        found += _dead_links(site, address, seen)
    return list(dict.fromkeys(found))


def _dead_links(site: Path, address: str, seen: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Links and pictures within the site that lead to no file, or to no place on a page."""
    for path, looked in seen.items():
        for url in (*looked["links"], *looked["pictures"]):
            whole, place = urldefrag(url)
            if not whole.startswith(address):
                continue
            target = unquote(urlsplit(whole).path).lstrip("/")
            file = site / target
            if file.is_dir():
                file /= "index.html"
            if not file.is_file():
                yield f"{path or '/'}: leads nowhere: {target}"
            elif place and target in seen and unquote(place) not in seen[target]["ids"]:
                yield f"{path or '/'}: no place {place} on {target or '/'}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("--pictures", type=Path, help="folder for a picture of each page")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        print("the site was not walked over: that needs Playwright and Chromium")
        return 0
    if options.pictures is not None:
        options.pictures.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        found = walk(options.site, browser, options.pictures)
        browser.close()
    for line in found:
        print(line)
    print(f"{len(pages_of(options.site))} pages at {len(WIDTHS)} widths, {len(found)} findings")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
