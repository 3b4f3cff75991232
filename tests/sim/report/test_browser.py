"""A report in a real browser: what a reader clicks, types, zooms and prints."""

import base64
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait
from t3sim.report.folders import read_folder
from t3sim.report.output import write_report
from t3sim.report.page import report_html

from tests.support.browser import headless_chromium
from tests.support.report_folders import compare_folder, folder_of, run_folder, without_queues

pytestmark = pytest.mark.long  # a browser starts, and draws charts
SIZE = (1300, 900)
TAB = 'section[aria-labelledby="s1-timeline"] [role="tab"]'
"""A tab of the timeline; other blocks have tabs of the same names."""
QUEUES = ["DRAM queue (lines)", "slices (bursts)", "tracker (tokens)", "DMA (blocks)", "link queue (kB)"]


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    with headless_chromium() as driver:
        yield driver


@pytest.fixture(scope="module")
def reports(tmp_path_factory) -> dict[str, Path]:
    """A comparison, everything else in one file, and a run that was recorded without queues."""
    root = tmp_path_factory.mktemp("reports")
    folders = {"compare": [compare_folder(root / "compare", ("sequential", "t3-mca", "ideal-overlap"))]}
    folders["others"] = [
        folder_of(kind, root / kind) for kind in ("run", "model", "sweep", "sensitivity", "map", "reproduce")
    ]
    folders["sweep"] = [folder_of("sweep", root / "one-sweep")]
    folders["older"] = [without_queues(run_folder(root / "older"))]
    for name, found in folders.items():
        write_report(report_html([read_folder(folder) for folder in found]), root / f"{name}.html")
    return {name: root / f"{name}.html" for name in folders}


@pytest.fixture
def page(browser, reports) -> webdriver.Chrome:
    """The comparison, freshly opened with a light theme."""
    return opened(browser, reports["compare"])


def opened(browser: webdriver.Chrome, path: Path, width: int = SIZE[0], theme: str = "light") -> webdriver.Chrome:
    emulate(browser, theme=theme)
    metrics = {"width": width, "height": SIZE[1], "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(path.as_uri())
    WebDriverWait(browser, 60).until(lambda b: b.find_elements(By.CSS_SELECTOR, ".chart .main-svg"))
    return browser


def emulate(browser: webdriver.Chrome, *, theme: str = "light", media: str = "") -> None:
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def one(page: webdriver.Chrome, selector: str, text: str | None = None) -> WebElement:
    """The element that is seen, with that text."""
    found = [item for item in page.find_elements(By.CSS_SELECTOR, selector) if item.is_displayed()]
    return next(item for item in found if text is None or item.text == text)


def style(page: webdriver.Chrome, selector: str, name: str) -> str:
    return page.execute_script(
        "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]", selector, name
    )


def light(colour: str) -> float:
    """Mean of red, green and blue, 0 to 255."""
    return sum(map(float, re.findall(r"[\d.]+", colour)[:3])) / 3


def shown_range(page: webdriver.Chrome) -> list[float]:
    """Of the time axis of the timeline that is seen."""
    script = "return arguments[0].layout.xaxis.range.map(Number)"
    return page.execute_script(script, one(page, ".zooms"))


def click(page: webdriver.Chrome, selector: str, text: str) -> None:
    button = one(page, selector, text)
    page.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", button)
    button.click()


@pytest.mark.parametrize("name", ["compare", "others"])
@pytest.mark.parametrize(("width", "theme"), [(1300, "light"), (400, "dark")])
def test_it_opens_without_a_complaint_or_a_request(browser, reports, name, width, theme):
    browser.get_log("browser"), browser.get_log("performance")
    page = opened(browser, reports[name], width, theme)
    assert page.get_log("browser") == []
    log = " ".join(entry["message"] for entry in page.get_log("performance"))
    urls = set(re.findall(r'"url":"((?:https?|ftp|wss?):[^"]*)', log))
    assert urls == set(), "all that it shows is in the file"
    script = "const root = document.documentElement; return [root.scrollWidth, root.clientWidth]"
    needed, there = page.execute_script(script)
    assert needed == there <= width, "nothing sticks out"
    for chart in page.find_elements(By.CSS_SELECTOR, ".chart"):
        if chart.is_displayed():
            assert chart.find_elements(By.CSS_SELECTOR, ".main-svg"), chart.get_attribute("id")


def test_labels_of_bars_are_inside_their_chart(browser, reports):
    for width in (1300, 400):
        page = opened(browser, reports["compare"], width)
        script = """
            return [...document.querySelectorAll(".chart")].filter((chart) => chart.offsetParent).flatMap((chart) => {
              const frame = chart.getBoundingClientRect();
              return [...chart.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()])
                .filter(([, box]) => box.width && (box.left < frame.left - 1 || box.right > frame.right + 1))
                .map(([name]) => name);
            })"""
        assert page.execute_script(script) == []


def test_the_theme_button(page):
    button = one(page, "#theme")
    assert button.get_attribute("aria-pressed") == "false"
    assert light(style(page, "body", "backgroundColor")) > 200
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert light(style(page, "body", "backgroundColor")) < 60
    assert light(style(page, ".chart .xtick text", "fill")) > 180, "charts follow"
    button.click()
    assert light(style(page, ".chart .xtick text", "fill")) < 80


def test_the_theme_of_the_system(browser, reports):
    page = opened(browser, reports["compare"], theme="dark")
    assert light(style(page, "body", "backgroundColor")) < 60
    assert light(style(page, ".chart .xtick text", "fill")) > 180
    assert one(page, "#theme").get_attribute("aria-pressed") == "true"


def test_tabs_by_mouse_and_keyboard(page):
    click(page, TAB, "t3-mca")
    assert one(page, ".zooms").get_attribute("aria-label").startswith("t3-mca: all 8 GPUs")
    click(page, TAB, "GPU 3")
    assert one(page, ".zooms").get_attribute("aria-label").startswith("t3-mca, GPU 3 over")
    assert one(page, ".zooms").find_elements(By.CSS_SELECTOR, ".main-svg"), "it is drawn when it is first seen"
    focused = page.switch_to.active_element
    focused.send_keys(Keys.ARROW_RIGHT)
    assert page.switch_to.active_element.text == "GPU 4"
    page.switch_to.active_element.send_keys(Keys.END)
    assert page.switch_to.active_element.text == "GPU 7"
    page.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert page.switch_to.active_element.text == "all GPUs", "round"
    tabs = [tab for tab in page.find_elements(By.CSS_SELECTOR, TAB) if tab.is_displayed()]
    chosen = [tab.text for tab in tabs if tab.get_attribute("aria-selected") == "true"]
    assert chosen == ["t3-mca", "all GPUs"]
    assert [tab.text for tab in tabs if tab.get_attribute("tabindex") != "-1"] == chosen


def parts_of(page: webdriver.Chrome, block: str, selector: str) -> list[WebElement]:
    """What is seen in a block of the page."""
    section = next(
        item
        for item in page.find_elements(By.CSS_SELECTOR, "section.block")
        if item.find_element(By.CSS_SELECTOR, "h3").text == block
    )
    return [item for item in section.find_elements(By.CSS_SELECTOR, selector) if item.is_displayed()]


def chosen(page: webdriver.Chrome, block: str) -> list[str]:
    """What is chosen in a block, outside in."""
    return [item.get_attribute("aria-label") for item in parts_of(page, block, ".choice > .panel")]


def test_choosing_a_machine_changes_every_block_of_the_section(browser, reports):
    page = opened(browser, reports["sweep"])
    first, second = (f"machine link.gb_s=10, dma.block={block}" for block in ("tile", "column"))
    blocks = ("Time split", "DRAM traffic", "DRAM traffic over time", "Contention")
    assert [chosen(page, block)[0] for block in blocks] == [first] * 4
    (machines,) = parts_of(page, "Time split", "select")
    machines.send_keys(Keys.ARROW_DOWN)
    assert [chosen(page, block)[0] for block in blocks] == [second] * 4
    (_, sublayers) = parts_of(page, "DRAM traffic over time", "select")
    sublayers.send_keys(Keys.END)
    assert chosen(page, "DRAM traffic over time") == [second, "sublayer t-nlg op, TP 8"]
    for block in blocks:
        for chart in parts_of(page, block, ".chart"):
            assert chart.find_elements(By.CSS_SELECTOR, ".main-svg"), "it is drawn when it is first seen"
    (over_time,) = parts_of(page, "DRAM traffic over time", ".chart")
    titles = over_time.find_elements(By.CSS_SELECTOR, '[class^="g-y"][class$="title"] text')
    assert {item.text.partition("(")[0].strip() for item in titles} == {"sequential", "t3", "t3-mca"}
    (machines, _) = parts_of(page, "DRAM traffic over time", "select")
    machines.send_keys(Keys.HOME)
    assert chosen(page, "DRAM traffic over time") == [first, "sublayer t-nlg op, TP 8"], "so it is of every machine"
    (tester,) = page.find_elements(By.ID, "js-plotly-tester")
    assert tester.get_attribute("aria-hidden") == "true", "Plotly's own, which is off the page"
    assert page.get_log("browser") == []


def test_zoom_by_buttons(page):
    first, last = shown_range(page)
    click(page, "[data-zoom]", "Zoom in")
    near = shown_range(page)
    assert near == pytest.approx([first + (last - first) / 4, last - (last - first) / 4])
    assert one(page, ".shown").text == f"{near[0]:.4g} to {near[1]:.4g} us"
    click(page, "[data-zoom]", "Later")
    assert shown_range(page) == pytest.approx([(first + last) / 2, last])
    click(page, "[data-zoom]", "Later")
    assert shown_range(page)[1] == pytest.approx(last), "not beyond the end"
    click(page, TAB, "sequential")
    click(page, TAB, "GPU 0")
    assert shown_range(page) == pytest.approx([(first + last) / 2, last]), "other charts show the same time"
    click(page, "[data-zoom]", "All")
    assert shown_range(page) == pytest.approx([first, last])
    click(page, "[data-zoom]", "Zoom out")
    assert shown_range(page) == pytest.approx([first, last])


def rows_of(page: webdriver.Chrome, chart: WebElement) -> list[str]:
    """Titles of a chart's rows, from the top, each within its own row."""
    titles = chart.find_elements(By.CSS_SELECTOR, '[class^="g-y"][class$="title"] text')
    places = sorted(
        (title.rect["y"], title.rect["y"] + title.rect["height"], title.get_attribute("data-unformatted"))
        for title in titles
    )
    for (_, end, above), (begin, _, below) in pairwise(places):
        assert end <= begin + 1, f"{above} lies over {below}"
    return [text.replace("<br>", " ") for _, _, text in places]


def test_queues_are_tracks_that_zoom_with_the_others(page):
    click(page, TAB, "t3-mca")
    click(page, TAB, "GPU 0")
    chart = one(page, ".zooms")
    rows = ["CUs (%)", "DRAM (GB/s)", "link, updates (GB/s)", *QUEUES]
    assert rows_of(page, chart) == rows
    lines = chart.find_elements(By.CSS_SELECTOR, ".scatterlayer .trace .js-line")
    assert len([line for line in lines if line.is_displayed()]) >= 8 + 3
    click(page, "[data-zoom]", "Zoom in")
    script = "return arguments[1].map((axis) => arguments[0].layout[axis].range.map(Number))"
    ranges = page.execute_script(script, chart, ["xaxis", *(f"xaxis{row}" for row in range(2, len(rows) + 2))])
    assert all(found == pytest.approx(shown_range(page)) for found in ranges)


@pytest.mark.parametrize(("width", "legends"), [(1300, 4), (700, 1)])
def test_a_row_has_its_own_legend_where_there_is_room(browser, reports, width, legends):
    page = opened(browser, reports["compare"], width)
    click(page, TAB, "t3-mca")
    click(page, TAB, "GPU 0")
    chart = one(page, ".zooms")
    script = """return [...arguments[0].querySelectorAll(".infolayer > g[class^=legend]")].map((legend) => {
        const {top, bottom} = legend.getBoundingClientRect();
        return [top, bottom, [...legend.querySelectorAll("text")].map((entry) => entry.textContent)];
    })"""
    WebDriverWait(page, 20).until(lambda _: sum(len(item[2]) for item in page.execute_script(script, chart)) == 14)
    found = page.execute_script(script, chart)
    assert len(found) == legends
    assert found[0][2][:2] == ["GEMM reads", "GEMM writes"]
    if legends > 1:  # each between the plots of two rows
        assert [item[2][0] for item in found[1:]] == ["link out", "DRAM queue, largest", "compute at slices"]
        rows = page.execute_script(
            "return Object.keys(arguments[0]._fullLayout).filter((key) => /^yaxis\\d*$/.test(key)).map((key) => {"
            "const axis = arguments[0]._fullLayout[key], top = arguments[0].getBoundingClientRect().top;"
            "return [top + axis._offset, top + axis._offset + axis._length]; })", chart
        )  # fmt: skip
        for top, bottom, _ in found:
            assert all(bottom <= begin + 1 or top >= end - 1 for begin, end in rows), (top, bottom, rows)


def test_an_older_record_has_no_queues(browser, reports):
    page = opened(browser, reports["older"])
    click(page, TAB, "GPU 0")
    assert rows_of(page, one(page, ".zooms")) == ["CUs (%)", "DRAM (GB/s)", "link, updates (GB/s)"]


def test_zoom_by_dragging(page):
    chart = one(page, ".zooms")
    whole = shown_range(page)
    page.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", chart)
    plot = chart.find_element(By.CSS_SELECTOR, ".nsewdrag")
    width = plot.rect["width"]
    drag = ActionChains(page, duration=50).move_to_element_with_offset(plot, -width // 4, 0).click_and_hold()
    drag.move_by_offset(width // 4, 0).move_by_offset(width // 4, 0).release().perform()
    WebDriverWait(page, 10).until(lambda p: shown_range(p) != whole)
    quarter = (whole[1] - whole[0]) / 4
    assert shown_range(page) == pytest.approx([whole[0] + quarter, whole[1] - quarter], rel=0.02)
    assert not one(page, ".shown").text.startswith("0 to")
    ActionChains(page).double_click(plot).perform()
    WebDriverWait(page, 10).until(lambda p: shown_range(p) == pytest.approx(whole))


def test_the_keyboard_reaches_everything(page):
    page.switch_to.active_element.send_keys(Keys.TAB)
    skip = page.switch_to.active_element
    assert skip.get_attribute("class") == "skip" and skip.rect["x"] >= 0, "it is seen when it has the focus"
    skip.send_keys(Keys.ENTER)
    assert page.switch_to.active_element.get_attribute("id") == "content"
    seen = set()
    for _ in range(60):
        ActionChains(page).send_keys(Keys.TAB).perform()
        focused = page.switch_to.active_element
        seen.add(focused.get_attribute("role") or focused.get_attribute("data-zoom") or focused.tag_name)
        outline = page.execute_script("return getComputedStyle(arguments[0]).outlineStyle", focused)
        assert outline == "solid" or focused.tag_name == "body", focused.get_attribute("outerHTML")[:200]
    assert {"summary", "tab", "in", "all", "region"} <= seen
    one(page, "#theme").send_keys(Keys.SPACE)
    assert one(page, "#theme").get_attribute("aria-pressed") == "true"


def test_values_of_a_chart_open(page):
    figure = one(page, ".figure")
    summary = figure.find_element(By.TAG_NAME, "summary")
    table = figure.find_element(By.TAG_NAME, "table")
    assert not table.is_displayed()
    summary.send_keys(Keys.ENTER)
    assert table.is_displayed()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_paper_is_light_and_has_the_machine(browser, reports, theme):
    page = opened(browser, reports["compare"], theme=theme)
    emulate(page, theme=theme, media="print")
    for hidden in (".contents", "#theme", ".zoom", '[role="tablist"]', ".data", ".skip"):
        assert style(page, hidden, "display") == "none", hidden
    assert light(style(page, "body", "backgroundColor")) > 200
    emulate(page, theme=theme)
    page.execute_script("""
        window.before = null;
        addEventListener("beforeprint", () => {
          const text = document.querySelector(".chart .xtick text");
          window.before = {open: document.querySelectorAll(".folded[open]").length, ink: getComputedStyle(text).fill};
        });""")
    sheet: dict[str, Any] = page.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    assert base64.b64decode(sheet["data"]).startswith(b"%PDF-")
    before = page.execute_script("return window.before")
    assert before["open"] == 10, "every section of the machine"
    assert light(before["ink"]) < 80
    assert page.find_elements(By.CSS_SELECTOR, ".folded[open]") == []


def test_without_javascript_all_is_there(browser, reports):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(reports["compare"].as_uri())
        panels = browser.find_elements(By.CSS_SELECTOR, '[role="tabpanel"]')
        assert panels and all(panel.is_displayed() for panel in panels)
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
