"""A headless Chromium, or Chrome, for pages that people look at."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

INSTALL = "apt install chromium chromium-driver (pip install selenium)"


@contextmanager
def headless_chromium() -> Iterator[Any]:
    """The driver of a browser that logs what a page writes to its console and asks the network; skips the test if
    there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason=f"Selenium is missing: {INSTALL}")
    programs = [shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")]
    if None in programs:
        pytest.skip(f"Chromium is missing: {INSTALL}")
    options = webdriver.ChromeOptions()
    options.binary_location = programs[0]
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "window-size=1280,900"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(programs[1]))
    try:
        yield driver
    finally:
        driver.quit()
