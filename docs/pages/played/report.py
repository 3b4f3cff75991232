"""The pictures of reports in docs/guides: ``python -m docs.pages.played.report`` runs what they show, and takes them.

Needs Chromium and its driver (``apt install chromium chromium-driver``). The run is that of the tutorial for readers of
the paper; it takes some minutes, or seconds if the simulator is compiled.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from docs.pages import GUIDES

RUN = "compare --model t-nlg --sublayer fc2 --tp 8 --mirror --hardware golden"
SHOWN = "t3-mca"
"""Policy of the timeline."""
WIDTH, HEIGHT = 1200, 1620
DRAW_SECONDS = 60


def reported(folder: Path) -> Path:
    """The report of RUN, made in ``folder``."""
    out = folder / "t-nlg-fc2"
    for arguments in ([*RUN.split(), "--out", str(out)], ["report", str(out)]):
        subprocess.run([sys.executable, "-m", "t3sim", *arguments], check=True, stdout=subprocess.DEVNULL)
    return out / "report.html"


def take_pictures(report: Path) -> None:
    """Writes report.png, the first screen, and report-timeline.png, one GPU over time."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "hide-scrollbars", "force-prefers-reduced-motion"):
        options.add_argument(f"--{argument}")
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        metrics = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        driver.get(report.as_uri())
        wait = WebDriverWait(driver, DRAW_SECONDS)
        wait.until(lambda page: page.find_elements(By.CSS_SELECTOR, ".chart .main-svg"))
        driver.save_screenshot(GUIDES / "report.png")
        (tab,) = driver.find_elements(By.XPATH, f"//section[h3='Timeline']//button[.='{SHOWN}']")
        driver.execute_script("arguments[0].click()", tab)
        driver.execute_script("document.querySelector('.top').style.position = 'static'")  # else it lies on the chart
        (figure,) = driver.find_elements(By.XPATH, f"//figure[figcaption='{SHOWN}, GPU 0 over time']")
        wait.until(lambda _: figure.find_elements(By.CSS_SELECTOR, ".main-svg"))
        driver.execute_script("arguments[0].scrollIntoView({behavior: 'instant'})", figure)
        figure.screenshot(str(GUIDES / "report-timeline.png"))
    finally:
        driver.quit()


@click.command()
def main() -> None:
    """Run what the pictures show, and take them."""
    with TemporaryDirectory() as folder:
        take_pictures(reported(Path(folder)))
    click.echo(f"written: {os.path.relpath(GUIDES / 'report.png')}, {os.path.relpath(GUIDES / 'report-timeline.png')}")


if __name__ == "__main__":
    main()
