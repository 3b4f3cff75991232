"""The trigger with inputs of few free bits, so that searches get far."""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Fragment, Module, Mux, Signal, Value
from amaranth.lib import data
from t3hdl.common.broadcast import control_written
from t3hdl.common.ram import Ram
from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import ChunkDone, TileDone
from t3hdl.trigger.descriptor_loader import DescriptorLoader
from t3hdl.trigger.trigger import Trigger

from ..prover.harness import Harness
from .naive_trigger_state import Chunk

_BITS = {"kind": 2, "row0": 1, "col0": 1, "row1": 2, "col1": 2, "row_shift": 1, "col_shift": 1, "row_blocks_log": 1,
         "last_block_row": 1, "last_block_col": 1, "tiles_inner": 2, "tiles_bottom": 2, "tiles_right": 2,
         "tiles_corner": 2, "context": 1}  # fmt: skip
"""Free low bits of the fields of a descriptor that matter; of the others, which only travel, one."""
_TIME = 8
"""Free bits of the time, which goes on by 0 or 1 per cycle: they do not wrap within the depth."""


def _narrow_chunk(harness: Harness, name: str) -> Value:
    """A descriptor with few free bits, constant; a field that only travels has its low bit in all bits."""
    words = []
    for word, layout in Chunk.members.items():
        for field, width in layout.members.items():
            free = Value.cast(harness.chosen(f"{name}_{word}_{field}", _BITS.get(field, 1)))
            words.append(Cat(free, Const(0, width - len(free))) if field in _BITS else free.replicate(width))
    return Cat(words)


def _writes(harness: Harness, dut: Any, *, watchdog: bool) -> None:
    """The first write arms context 0 at once; then CONTROL and QUOTA, or CONTROL and WATCHDOG, with few free bits."""
    control: Any = data.View(regs.Control, Signal(regs.Control.size, name="control_written"))
    quota: Any = data.View(regs.Quota, Signal(regs.Quota.size, name="quota_written"))
    action, bits = harness.free("action", 3), harness.free("data", 2)
    context = Mux(harness.first, 0, harness.free("context_written", 1))
    arms = harness.first | (action == 0)
    m, address, value = harness.m, Signal(16), Signal(64)
    m.d.comb += [control.context.eq(context), control.first.eq(harness.free("first", 1))]
    m.d.comb += [control.descriptors.eq(harness.free("descriptors", 2)), control.arm.eq(arms)]
    for number, name in enumerate(("abort", "disarm", "quiesce", "resume"), start=1):
        m.d.comb += control[name].eq(~arms & (action == number))
    m.d.comb += [quota.slots.eq(bits), quota.credits.eq(Mux(bits == 3, regs.NO_CREDIT_LIMIT, bits))]
    m.d.comb += [address.eq(regs.CONTROL), value.eq(control.as_value())]
    with m.If(~arms & (action > 4)):
        if watchdog:
            m.d.comb += [address.eq(regs.WATCHDOG), value.eq(bits)]
        else:
            m.d.comb += [address.eq(regs.QUOTA + (context << 3)), value.eq(quota.as_value())]
    harness.drive(dut.config, Cat(address, value))
    harness.drive(dut.config_valid, harness.first | harness.free("writes"))


def _writes_once(harness: Harness, dut: Any, descriptors: int) -> None:
    """Context 0 gets these descriptors in the first cycle, and one slot at a time in the second; then nothing."""
    control: Any = data.View(regs.Control, Signal(regs.Control.size, name="control_written"))
    quota: Any = data.View(regs.Quota, Signal(regs.Quota.size, name="quota_written"))
    m, second, write = harness.m, Signal(name="second_cycle"), Signal(80, name="write")
    m.d.sync += second.eq(harness.first)
    m.d.comb += [
        control.arm.eq(1), control.descriptors.eq(descriptors),
        quota.slots.eq(1), quota.credits.eq(regs.NO_CREDIT_LIMIT),
        write.eq(Mux(harness.first, Cat(Const(regs.CONTROL, 16), control), Cat(Const(regs.QUOTA, 16), quota))),
    ]  # fmt: skip
    harness.drive(dut.config, write)
    harness.drive(dut.config_valid, harness.first | second)


def legal_control(harness: Harness, dut: Any) -> None:
    """What ControlRegisters lets through."""
    control: Any = data.View(regs.Control, dut.config.data[: regs.Control.size])
    of_control = control_written(dut.config_valid, dut.config)
    arm, last = of_control & control.arm, control.first + control.descriptors
    contexts, active, overlaps = list(dut.context), Const(0, 1), Const(0, 1)
    for c, status in enumerate(contexts):
        start = Signal(7, name=f"window_start_{c}")
        with harness.m.If(arm & (control.context == c)):
            harness.m.d.sync += start.eq(control.first)
        held = status.armed & ~status.complete
        active = active | (held & (control.context == c))
        overlaps = overlaps | (held & (control.first < status.end) & (start < last))
    of_window = control.descriptors.any() & (last <= dut.parameters.descriptors)
    of_context = control.context < len(contexts)
    harness.assume("an arm names descriptors that there are", ~arm | of_window)
    harness.assume("an arm or abort names a context that there is", ~of_control | ~(arm | control.abort) | of_context)
    harness.assume("a context that is active is not armed", ~(arm & active))
    harness.assume("no two active contexts share a descriptor", ~(arm & overlaps))


class _GivenRows(Ram):
    """A memory that is never written: its rows are signals of the harness."""

    def __init__(self, rows: list[Value]) -> None:
        super().__init__(64, depth=len(rows))
        self._rows = rows

    def elaborate(self, platform: Any) -> Module:
        """As a memory of latency 1."""
        m = Module()
        with m.If(self.read):
            m.d.sync += self.data.eq(Array(self._rows)[self.read_row])
        return m


class _Loader(DescriptorLoader):
    """The loader with its descriptor table cut off; that it reads what was written is proven of the loader alone."""

    def __init__(self, *, config: T3Config, rows: list[Value]) -> None:
        super().__init__(config=config)
        self._rows = rows

    def _table(self, m: Module) -> Ram:
        m.submodules.table = table = _GivenRows(self._rows)
        m.d.comb += table.write.eq(0)
        return table


class NarrowTrigger(Trigger):
    """The trigger with its descriptor table cut off; ``rows`` is what is read of it.

    Its parts ``blocks``, ``lists``, ``issuer`` and ``contexts`` may be looked at, and the ``number`` of the descriptor
    that is loaded.
    """

    def __init__(self, *, config: T3Config, rows: list[Value]) -> None:
        super().__init__(config=config)
        Fragment.get(self._loader, None)  # it is replaced: Amaranth warns of parts that are made and not used
        self._loader = _Loader(config=config, rows=rows)
        self.blocks, self.lists, self.issuer, self.contexts = self._blocks, self._lists, self._issuer, self._contexts
        self.number = self._loader.number


def narrow_chunks(config: T3Config) -> tuple[list[Any], list[Value]]:
    """Descriptors that a table holds all the time, and the rows of that table."""
    chunks: list[Any] = [Signal(Chunk, name=f"chunk_{d}") for d in range(config.descriptors)]
    rows = [
        row for chunk in chunks for row in (*(Value.cast(chunk[word]) for word in Chunk.members), Const(0), Const(0))
    ]
    return chunks, rows


def narrow_trigger(
    config: T3Config, *, watchdog: bool = False, once: int = 0
) -> tuple[Harness, NarrowTrigger, list[Any]]:
    """A harness, the trigger in it, and the descriptors that its table holds all the time (:func:`narrow_inputs`)."""
    chunks, rows = narrow_chunks(config)
    dut = NarrowTrigger(config=config, rows=rows)
    harness = Harness(dut)
    narrow_inputs(harness, dut, chunks, watchdog=watchdog, once=once)
    return harness, dut, chunks


def narrow_inputs(
    harness: Harness, dut: NarrowTrigger, chunks: list[Any], *, watchdog: bool = False, once: int = 0
) -> None:
    """Drives the trigger's inputs, but for those that are of one bit.

    Context 0 is armed in the first cycle. Then come CONTROL writes, and those of WATCHDOG or else QUOTA; pulses and
    transfers in any cycle. With ``once`` it is armed with so many descriptors and gets one slot at a time, and there is
    no other write, no poison, no abort, no pulse of a slot that there is not: so searches get to a slot's second chunk.
    """
    m = harness.m
    now = Signal(_TIME, name="time")
    m.d.sync += now.eq(now + (1 if once else harness.free("passes", 1)))
    if once:
        _writes_once(harness, dut, once)
        harness.drive(dut.poison_valid, 0)
        harness.drive(dut.abort_busy, 0)
    else:
        _writes(harness, dut, watchdog=watchdog)
    harness.drive(dut.now, now)
    slots = 1 if once else dut.parameters.chunk_window.bit_length()
    tile: Any = data.View(TileDone, Signal(TileDone.size, name="tile"))
    m.d.comb += [tile.slot.eq(harness.free("tile_slot", slots)), tile.row.eq(harness.free("tile_row", 2))]
    m.d.comb += [tile.col.eq(harness.free("tile_col", 2)), tile.wf.eq(harness.free("tile_wf", 1))]
    chunk: Any = data.View(ChunkDone, Signal(ChunkDone.size, name="chunk"))
    m.d.comb += [chunk.slot.eq(harness.free("chunk_slot", slots)), chunk.overflowed.eq(harness.free("overflowed"))]
    harness.drive(dut.tile_done, tile)
    harness.drive(dut.chunk_done, chunk)
    harness.drive(dut.poison_slot, harness.free("poisoned_slot", slots))
    harness.drive(dut.command_done, harness.free("ended", 2))
    legal_control(harness, dut)
    for d, content in enumerate(chunks):
        m.d.comb += Value.cast(content).eq(_narrow_chunk(harness, f"descriptor_{d}"))
