"""The table of boards: presets, pins, held pins, and what the manual and the page of results say of them."""

import gc
import re

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from click.testing import CliRunner
from t3fpga.build.platforms import BOARDS, PROGRAMMERS, UART, OnBoard
from t3hdl.config import PRESETS

from docs.pages import GUIDES
from docs.pages import boards as boards_page
from docs.pages.__main__ import main as pages

from .board_builds import NEEDS_EXTRA, RECORD, t3

MANUAL = (GUIDES / "boards.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", BOARDS)
def test_board(name):
    board = BOARDS[name]
    assert set(board.presets) <= set(PRESETS) and board.programmer in PROGRAMMERS
    text = t3("fpga", "--help").output
    assert name in text[text.index("--board") : text.index("--preset")]


@NEEDS_EXTRA
@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
@pytest.mark.parametrize("name", BOARDS)
def test_pins_of_board(name):
    """Every pin exists, no two are one, and the design takes the board's clock and presets."""
    board = BOARDS[name]
    platform = board.make_platform()
    groups = {}
    for pin in (board.running, board.passed, board.failed, board.button, UART, *(pin for pin, _ in board.held)):
        groups.setdefault(pin[:2], []).append(pin[2:])
    for resource, signals in groups.items():
        port = platform.request(*resource, dir="-")
        assert len(set(signals)) == len(signals)
        assert all(hasattr(port, signal[0]) if signal else len(port) == 1 for signal in signals)
    for preset, test in board.tests.items():
        assert test.target_mhz * 1e6 >= platform.default_clk_frequency
        test.design(config=PRESETS[preset], clock_hz=round(platform.default_clk_frequency))
    gc.collect()  # designs that are only made end while the warning is off


@NEEDS_EXTRA
def test_a_pin_is_held():
    """At the ball and the level that the board says: GPIO0 of the ULX3S' ESP32."""

    class Test(wiring.Component):
        button: In(1)
        running: Out(1)
        passed: Out(1)
        failed: Out(1)
        tx: Out(1)

        def elaborate(self, platform):
            return Module()

    board = BOARDS["ulx3s"]
    files = board.make_platform().prepare(OnBoard(board, Test()), "top", emit_src=False).files
    assert 'LOCATE COMP "esp32_0__gpio0__io" SITE "L2"' in files["top.lpf"]
    pin = files["top.il"].split("module \\top.held_0_pin\n")[1].split("\nend\n")[0]
    assert re.search(r"connect \\o(\$\d+)? 1'1\n", pin)


@pytest.mark.parametrize("name", BOARDS)
def test_the_manual_lists_the_board(name):
    board = BOARDS[name]
    (row,) = (line for line in MANUAL.splitlines() if line.startswith(f"| `{name}` | {board.title} |"))
    presets = ", ".join(f"`{preset}`" for preset in board.presets)
    leds = " | ".join(" ".join(map(str, getattr(board, lamp))) for lamp in ("running", "passed", "failed"))
    designs = ", ".join(dict.fromkeys(f"`{test.design.__name__}`" for test in board.tests.values()))
    assert row.endswith(f"| {designs} | {presets} | {leds} | {board.button_text} |")


def test_the_page_without_records_names_what_makes_them(monkeypatch, tmp_path):
    monkeypatch.setattr(boards_page, "KEPT", tmp_path)
    result = CliRunner().invoke(pages, ["boards"])
    assert result.exit_code == 2 and "has no record: make fpga" in result.stderr


def test_page():
    before = RECORD | {"fmax_mhz": {"1": 10.0}, "median_fmax_mhz": 10.0}
    best = RECORD | {"target_mhz": 21}
    text = boards_page.text([RECORD, best], [before], ["ULX3S-85F `fpga`"])
    assert (
        "| iCEBreaker | iCE40UP5K, UP | `fpga-up5k` | `TrackerOnlyTest` | 2,500 (47%) | 2,000 (38%) | 15 (50%) | 0 |"
        in text
    )
    assert "| 20.5, 21.2, 19.0 | 20.5 | 12 | met |" in text and "| tracker | 1,500 / 1,200 + 15 RAM |" in text
    assert "**Not built for this hardware yet**: ULX3S-85F `fpga`." in text
    today, _, before = text.partition("## Before bursts")
    assert "| 10.0 | 10.0 | 12 | **missed** |" in before and "| 12 | **missed** |" not in today
    assert "| 20.5, 21.2, 19.0 | 20.5 | 21 | met by the fastest seed, **missed** by the median |" in today
    assert "iCEBreaker 5,000 (95%)" in text and "`tracker.a` 47.0" in text
