"""The T3 unit as a design that tests itself: on a board, or in any simulator."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from t3hdl.config import T3Config
from t3hdl.interface.signatures import AXI
from t3hdl.unit import T3Unit

from . import gemm
from .axi_master import AxiMaster
from .channel import Channel
from .commands import CommandChecker
from .program import Parts, Run
from .reader import Reader
from .result_checker import ResultChecker
from .run_control import RunControl
from .sequencer import Sequencer
from .tracker.walk import Noise
from .traffic import CONTEXT, BackgroundReads, IncomingTraffic, LocalTraffic
from .update_counts import UPDATE_BITS


class SelfTest(wiring.Component):
    """Plays rounds of a small GEMM (:mod:`~t3fpga.selftest.gemm`) to a :class:`~t3hdl.unit.T3Unit` for ever, each from
    a seed of its own, and checks what it does.

    Parameters
    ----------
    config : the hardware configuration.
    clock_hz : of the domain ``sync``.
    baud : of the serial line, 8N1.
    debounce_cycles : how long the button must be still; default: 10 ms.
    failed_rounds : good rounds after a failed one until ``failed`` goes out; 128 are about a second at 115200 baud.

    Members
    -------
    button : In(1) : 1 = pressed, asynchronous. The next round is played with one incoming update less: it must fail.
    running : Out(1) : blinks while rounds come to an end.
    passed : Out(1) : the last round was good.
    failed : Out(1) : one of the last ``failed_rounds`` rounds was not.
    tx : Out(1) : serial line; a line of text per round (:mod:`~t3fpga.selftest.report`).

    Raises
    ------
    ValueError
        if the configuration cannot play the GEMM, or the clock cannot give the baud rate.
    """

    def __init__(
        self, *, config: T3Config, clock_hz: int, baud: int = 115200, debounce_cycles: int | None = None,
        failed_rounds: int = 128,
    ) -> None:  # fmt: skip
        gemm.check_fits(config)
        super().__init__({"button": In(1), "running": Out(1), "passed": Out(1), "failed": Out(1), "tx": Out(1, init=1)})
        self._unit = T3Unit(config=config)
        self._channels = [Channel(config=config) for _ in range(config.slices)]
        self._noise, self._runs = Noise(), RunControl()
        self._sequencer = Sequencer(config=config, parts=Parts.UNIT)
        self._axi = AxiMaster()
        self._local = LocalTraffic(config=config)
        self._incoming = IncomingTraffic(config=config)
        self._background = BackgroundReads(config=config)
        self._commands = CommandChecker(config=config, counters=config.slices, counted_bits=UPDATE_BITS)
        self._reader = Reader(config=config)
        self._failing: list[Any] = [self._local, self._sequencer, self._commands, self._reader]
        self._result_checker = ResultChecker(
            clock_hz=clock_hz,
            baud=baud,
            failed_rounds=failed_rounds,
            sources=len(self._failing),
            debounce_cycles=clock_hz // 100 if debounce_cycles is None else debounce_cycles,
        )

    def elaborate(self, platform: Any) -> Module:
        """Unit, memory channels, and what drives and checks them."""
        m = Module()
        m.submodules.unit = self._unit
        m.submodules.result_checker = result_checker = self._result_checker
        m.submodules.noise, m.submodules.runs = self._noise, self._runs
        m.submodules.sequencer = self._sequencer
        m.submodules.axi = self._axi
        for number, channel in enumerate(self._channels):
            m.submodules[f"channel_{number}"] = channel
        fresh: dict[str, Any] = {
            "local": self._local,
            "incoming": self._incoming,
            "background": self._background,
            "commands": self._commands,
            "reader": self._reader,
        }
        for name, part in fresh.items():  # nothing of a failed round reaches the next one
            m.submodules[name] = ResetInserter(result_checker.begin)(part)
        seeded: list[Any] = [self._sequencer, *fresh.values(), *self._channels]
        for part in seeded:
            m.d.comb += part.seed.eq(result_checker.seed)
        for sink, part in zip(result_checker.failures, self._failing, strict=True):
            m.d.comb += sink.eq(part.failure)
        m.d.comb += [
            getattr(self, name).eq(getattr(result_checker, name)) for name in ("running", "passed", "failed", "tx")
        ]
        m.d.comb += [
            result_checker.button.eq(self.button),
            result_checker.checksum.eq(self._reader.checksum),
            self._noise.load.eq(result_checker.begin),
            self._noise.seed.eq(result_checker.seed),
        ]
        self._connect_software(m)
        self._connect_memory(m)
        self._connect_traffic(m)
        self._connect_commands(m)
        self._connect_runs(m)
        return m

    def _connect_software(self, m: Module) -> None:
        sequencer, axi, result_checker = self._sequencer, self._axi, self._result_checker
        wiring.connect(m, sequencer.request, axi.request)
        for name, member in AXI.items():
            unit_end, axi_end = getattr(self._unit, name), getattr(axi, name)
            m.d.comb += unit_end.eq(axi_end) if member.flow == In else axi_end.eq(unit_end)
        m.d.comb += [
            sequencer.response_valid.eq(axi.response_valid),
            sequencer.response_error.eq(axi.response_error),
            sequencer.response_data.eq(axi.response_data),
            sequencer.begin.eq(result_checker.begin),
            result_checker.end.eq(sequencer.end),
            result_checker.report_valid.eq(sequencer.report_valid),
            result_checker.report.eq(sequencer.report),
        ]

    def _connect_memory(self, m: Module) -> None:
        """Each channel pauses at times of its own; its queue is as full as it says."""
        unit, noise = self._unit, self._noise.bits
        m.d.sync += [unit.now.eq(unit.now + 1), unit.nmc_flags.eq(0)]
        for number, channel in enumerate(self._channels):
            wiring.connect(m, unit.dram[number], channel.dram)
            low = 5 * number % 24
            m.d.comb += [
                channel.open.eq(noise[low] | noise[low + 3]),
                unit.occupancy[number].eq(noise[low + 4 : low + 8]),
                self._commands.updates[number].eq(channel.updates),
                self._reader.read_done[number].eq(channel.read_done),
                self._reader.read_data[number].eq(channel.read_data),
            ]
            with m.If(channel.flags.any()):
                m.d.sync += unit.nmc_flags.eq(channel.flags)
        m.d.sync += unit.nmc_uncorrectable.eq(Cat(channel.uncorrectable for channel in self._channels).any())

    def _connect_traffic(self, m: Module) -> None:
        """The stores use the first of the egress ports."""
        unit, local, noise = self._unit, self._local, self._noise.bits
        wiring.connect(m, local.store, unit.store[0])
        wiring.connect(m, unit.route[0], local.route)
        ports = {
            "compute_write": local.compute_write,
            "comm_write": self._incoming.comm_write,
            "compute_read": self._background.compute_read,
            "comm_read": self._reader.comm_read,
        }
        for name, streams in ports.items():
            for source, sink in zip(streams, getattr(unit, name), strict=True):
                wiring.connect(m, source, sink)
        m.d.comb += [
            local.noise.eq(noise[2:]),
            self._incoming.noise.eq(noise[13:]),
            self._background.noise.eq(noise[20:]),
        ]

    def _connect_commands(self, m: Module) -> None:
        unit, commands, reader = self._unit, self._commands, self._reader
        wiring.connect(m, unit.command, commands.command)
        m.d.comb += [
            unit.command_done_valid.eq(commands.done_valid),
            unit.command_done.eq(CONTEXT),
            reader.read_block.eq(commands.read),
            reader.block.eq(commands.block),
            commands.reading.eq(reader.busy),
        ]

    def _connect_runs(self, m: Module) -> None:
        """The memory is read when the last command is done."""
        runs, result_checker, commands, reader = self._runs, self._result_checker, self._commands, self._reader
        checking = Signal()
        working = [self._local.busy, self._incoming.busy, commands.busy, reader.busy, checking]
        m.d.comb += [
            runs.begin.eq(result_checker.begin),
            runs.run.eq(self._sequencer.run),
            runs.working.eq(Cat(working, *(channel.busy for channel in self._channels)).any()),
            self._sequencer.busy.eq(runs.busy),
            result_checker.timed.eq(runs.timed),
            self._local.zero.eq(runs.run[Run.ZERO]),
            self._local.play.eq(runs.run[Run.PLAY]),
            self._incoming.play.eq(runs.run[Run.PLAY]),
            self._incoming.drop.eq(result_checker.inject),
            commands.check.eq(runs.run[Run.CHECK]),
            self._background.enable.eq(self._local.busy),
            reader.read_all.eq(checking & ~commands.busy & ~reader.busy),
        ]
        with m.If(runs.run[Run.CHECK]):
            m.d.sync += checking.eq(1)
        with m.If(reader.read_all | result_checker.begin):
            m.d.sync += checking.eq(0)
        for channel in self._channels:
            m.d.comb += [
                channel.forget.eq(runs.forget),
                channel.block.eq(Mux(runs.forget, runs.forgotten, commands.block)),
            ]
