"""The manual builds as a site without a warning, which works offline and whose links lead somewhere."""

import os
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tests.support.browser import headless_chromium

ROOT = Path(__file__).parents[2]
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src"}


class Links(HTMLParser):
    """What a page links, what it loads, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.linked: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.linked.append(values["href"])
        elif tag == "link" and values.get("rel") in ("stylesheet", "icon"):
            self.loaded.append(values["href"])
        elif LOADED.get(tag) in values:
            self.loaded.append(values[LOADED[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = (sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder)
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def test_every_page_of_the_manual_is_a_page_of_the_site(site):
    sources = [path for kind in ("*.md", "*.ipynb") for path in (ROOT / "docs").rglob(kind)]
    assert len(sources) > 30
    missing = [path for path in sources if not (site / path.relative_to(ROOT / "docs").with_suffix(".html")).exists()]
    assert missing == []


def test_every_link_leads_to_a_file_and_an_anchor(site):
    pages = {path: Links(path) for path in site.rglob("*.html") if path.name != "404.html"}
    lost = []
    for path, page in pages.items():
        for href in page.linked:
            parts = urlsplit(href)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or parts.fragment and target in pages:
                known = pages[target].anchors if target in pages else set()
                if not target.exists() or unquote(parts.fragment) not in known | {"__top", ""}:
                    lost.append(f"{path.relative_to(site)}: {href}")
    assert lost == []


def test_nothing_is_loaded_from_elsewhere(site):
    loaded = {name: path for path in site.rglob("*.html") for name in Links(path).loaded}
    assert [name for name in loaded if urlsplit(name).netloc] == []


@pytest.mark.long
def test_the_search_works_from_a_file(site):
    with headless_chromium() as browser:
        browser.get((site / "index.html").as_uri())
        browser.execute_script("document.querySelector('label[for=__search]').click()")
        box = _wait(browser, "input.md-search__input")[0]
        box.send_keys("watchdog")
        assert "Registers" in [found.text for found in _wait(browser, ".md-search-result__item h1")]


def _wait(browser: Any, selector: str) -> list[Any]:
    """What ``selector`` finds, as soon as it is there, within 20 s."""
    end = time.monotonic() + 20
    while not (found := browser.find_elements("css selector", selector)) and time.monotonic() < end:
        time.sleep(0.1)
    assert found, f"nothing is {selector}"
    return found
