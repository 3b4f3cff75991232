"""The boards that the hardware is built for: device, pins, oscillator, target, and which configuration fits."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from amaranth.build import Attrs, Pins, PinsN, Resource
from amaranth.hdl import Elaboratable, Module
from amaranth.lib import io
from amaranth.lib.wiring import Component

from ..selftest.selftest import SelfTest
from ..selftest.tracker.tracker_only_test import TrackerOnlyTest
from ..selftest.tracker.tracker_test import TrackerTest

Pin = tuple[str, int] | tuple[str, int, str]
"""A resource of the platform by name and number, and a signal in it."""

UART: Pin = ("uart", 0, "tx")
"""The same on every board."""


@dataclass(frozen=True, kw_only=True)
class BoardTest:
    """What a board runs of a preset: ``design``, called with config, clock_hz, and the Fmax to be reached, at least the
    board's oscillator."""

    design: Callable[..., Component]
    target_mhz: float


@dataclass(frozen=True, kw_only=True)
class Board:
    """One board.

    Parameters
    ----------
    title : what the board is called.
    platform : module and class in amaranth-boards.
    speed_grade : of the device; part of its name for iCE40.
    tests : by the presets that are built for it, the default first.
    running, passed, failed : LEDs.
    button : injects a fault.
    button_text : where a user finds it.
    programmer : loads the bitstream, one of :data:`PROGRAMMERS`.
    held : outputs that stay at a level.
    added : resources that amaranth-boards does not list, such as a pin of a header.
    reset_is_button : the platform's reset button is ``button`` instead.
    """

    title: str
    platform: str
    speed_grade: str
    tests: Mapping[str, BoardTest]
    running: Pin
    passed: Pin
    failed: Pin
    button: Pin
    button_text: str
    programmer: str
    held: tuple[tuple[Pin, bool], ...] = ()
    added: tuple[Resource, ...] = ()
    reset_is_button: bool = False

    @property
    def presets(self) -> tuple[str, ...]:
        """Configurations that are built for it."""
        return tuple(self.tests)

    def test(self, preset: str) -> BoardTest:
        """What it runs of a preset; of one that is not built for it, the same as of the default."""
        return self.tests.get(preset, self.tests[self.presets[0]])

    def make_platform(self) -> Any:
        """A new platform, for one build. Raises ModuleNotFoundError without amaranth-boards."""
        module, name = self.platform.split(":")
        platform = getattr(importlib.import_module(module), name)()
        platform.add_resources(self.added)
        if self.reset_is_button:
            platform.default_rst = None
        return platform


class OnBoard(Elaboratable):
    """A board's test, connected to its LEDs, button and serial line.

    Parameters
    ----------
    board : whose pins they are.
    test : has ports button, running, passed, failed, tx.
    """

    def __init__(self, board: Board, test: Component) -> None:
        self._board = board
        self._test = test

    def elaborate(self, platform: Any) -> Module:
        """Only pins; the platform brings clock and reset."""
        m = Module()
        m.submodules.test = test = self._test
        ports: dict[tuple[str, int], Any] = {}

        def port(pin: Pin) -> Any:
            resource, signal = pin[:2], pin[2:]
            if resource not in ports:
                ports[resource] = platform.request(*resource, dir="-")
            return getattr(ports[resource], signal[0]) if signal else ports[resource]

        m.submodules.button_pin = button = io.Buffer("i", port(self._board.button))
        m.d.comb += test.button.eq(button.i)
        outputs = {name: getattr(self._board, name) for name in ("running", "passed", "failed")}
        for name, pin in {**outputs, "tx": UART}.items():
            m.submodules[f"{name}_pin"] = buffer = io.Buffer("o", port(pin))
            m.d.comb += buffer.o.eq(getattr(test, name))
        for number, (pin, level) in enumerate(self._board.held):
            m.submodules[f"held_{number}_pin"] = buffer = io.Buffer("o", port(pin))
            m.d.comb += buffer.o.eq(level)
        return m


PROGRAMMERS = {"openFPGALoader": "openfpgaloader", "iceprog": "fpga-icestorm"}
"""Programs that load a bitstream, and the Debian packages that bring them."""

BOARDS: dict[str, Board] = {
    "ulx3s": Board(
        title="ULX3S-85F",
        platform="amaranth_boards.ulx3s:ULX3S_85F_Platform",
        speed_grade="6",
        tests={
            "fpga": BoardTest(design=SelfTest, target_mhz=80),
            "fpga-all": BoardTest(design=SelfTest, target_mhz=75),
            "fpga-hx8k": BoardTest(design=TrackerTest, target_mhz=80),
        },
        running=("led", 1), passed=("led", 2), failed=("led", 0),
        button=("button_fire", 0), button_text="FIRE1",
        # Else the firmware of the board's ESP32 may take over the FPGA by JTAG.
        held=((("esp32", 0, "gpio0"), True),),
        programmer="openFPGALoader",
    ),
    "ecpix5": Board(
        title="ECPIX5-85F",
        platform="amaranth_boards.ecpix5:ECPIX585Platform",
        speed_grade="8",
        tests={
            "fpga": BoardTest(design=SelfTest, target_mhz=120),
            "fpga-all": BoardTest(design=SelfTest, target_mhz=100),
        },
        running=("rgb_led", 0, "b"), passed=("rgb_led", 0, "g"), failed=("rgb_led", 0, "r"),
        button=("rst", 0), button_text="the user button, which amaranth-boards takes as reset",
        reset_is_button=True,
        programmer="openFPGALoader",
    ),
    "icebreaker": Board(
        title="iCEBreaker",
        platform="amaranth_boards.icebreaker:ICEBreakerPlatform",
        speed_grade="UP",
        tests={"fpga-up5k": BoardTest(design=TrackerOnlyTest, target_mhz=12)},
        running=("led_g", 1), passed=("led_g", 0), failed=("led_r", 0),
        button=("button", 0), button_text="the user button",
        programmer="iceprog",
        added=(Resource("led_g", 1, Pins("1", dir="o", conn=("pmod", 2)), Attrs(IO_STANDARD="SB_LVCMOS")),),
    ),
    "hx8k": Board(
        title="iCE40HX8K-B-EVN",
        platform="amaranth_boards.ice40_hx8k_b_evn:ICE40HX8KBEVNPlatform",
        speed_grade="HX",
        tests={"fpga-up5k": BoardTest(design=TrackerOnlyTest, target_mhz=12)},
        running=("led", 0), passed=("led", 1), failed=("led", 2),
        button=("button", 0), button_text="pin 9 of header J2 (ball N16, pulled up), connected to ground",
        programmer="iceprog",
        added=(
            Resource(
                "button", 0, PinsN("9", dir="i", conn=("j", 2)), Attrs(IO_STANDARD="SB_LVCMOS", PULLUP=1)
            ),
        ),
    ),
}  # fmt: skip
"""By the name that ``t3 fpga --board`` takes."""
