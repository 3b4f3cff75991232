"""Every stored bit can be hit, exactly that bit is, and the parity over the state sees it."""

import json
import random
import re
from typing import Any

import pytest
from amaranth._toolchain.yosys import find_yosys
from amaranth.back import rtlil
from amaranth.hdl import Array, Cat, Fragment, Module, Signal
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out
from amaranth.sim import Simulator
from t3hdl.common.protected_register import protected_register
from t3hdl.common.ram import Ram
from t3hdl.common.state_parity import add_state_parity
from t3hdl.config import preset
from t3hdl.export.single_event_upsets import Stored, Upsettable, stored_words
from t3hdl.export.verilog import PARTS
from t3hdl.interface import register_map as regs


class Example(Component):
    """Registers written whole, in part and by index, a reset of their own, and memories of both latencies."""

    def __init__(self) -> None:
        super().__init__({"i": In(8), "seen": Out(64), "damaged": Out(1)})

    def elaborate(self, platform: Any) -> Fragment:
        m = Module()
        count = Signal(8, init=3)
        whole, parts, chosen = (Signal(8, name=name) for name in ("whole", "parts", "chosen"))
        kept = protected_register(m, 8, name="kept", protect=True)
        m.submodules.now = now = Ram(8, depth=4, latency=0)
        m.submodules.later = later = Ram(8, depth=4, write_through=True)
        m.d.sync += [
            count.eq(count + 1),
            parts[:4].eq(self.i),
            Array([parts[4:6], parts[6:8]])[self.i[0]].eq(self.i[1:3]),
            chosen.bit_select(self.i[:3], 1).eq(self.i[3]),
        ]
        with m.If(self.i[7]):
            m.d.sync += whole.eq(self.i)
            m.d.comb += kept.following.eq(self.i)
        for ram in (now, later):
            m.d.comb += [
                ram.write.eq(self.i[6]),
                ram.write_row.eq(self.i[:2]),
                ram.write_data.eq(self.i),
                ram.read.eq(self.i[5]),
                ram.read_row.eq(self.i[2:4]),
            ]
        m.d.comb += self.seen.eq(Cat(count, whole, parts, chosen, kept.value, now.data, later.data))
        return add_state_parity(m, platform, self.damaged)


def _trace(inputs: list[int], upsets: dict[int, tuple[int, int]], *, upsettable: bool = True) -> list[tuple[int, int]]:
    """(seen, damaged) in every cycle; ``upsets``: cycle -> word, bit."""
    example = Example()
    part = Upsettable(example) if upsettable else example
    trace = []

    async def drive(ctx: Any) -> None:
        for cycle, value in enumerate(inputs):
            ctx.set(example.i, value)
            if upsettable:
                word, bit = upsets.get(cycle, (0, 0))
                ctx.set(part.upset_word, word)
                ctx.set(part.upset_bit, bit)
            trace.append((ctx.get(example.seen), ctx.get(example.damaged)))
            await ctx.tick()

    simulator = Simulator(part)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    return trace


def _filled(rng: random.Random) -> list[int]:
    """Inputs that write every row of the memories, then anything."""
    return [0x40 | row for row in range(4)] + [rng.randrange(256) for _ in range(40)]


def test_without_an_upset_nothing_changes() -> None:
    inputs = _filled(random.Random(1))
    assert _trace(inputs, {}) == _trace(inputs, {}, upsettable=False)


def _word(name: str) -> Stored:
    return next(word for word in stored_words(Example()) if word.path.endswith(name))


SHOWN = {"count": 0, "whole": 8, "parts": 16, "chosen": 24, "data_0": 48}
"""Where a register is seen."""


@pytest.mark.parametrize("name", SHOWN)
def test_a_register_holds_one_wrong_bit_at_once_and_until_it_is_written(name: str) -> None:
    quiet = [*_filled(random.Random(2)), 0x20, 0, 0, 0]
    word, hit = _word(name), len(quiet) - 3
    for bit in range(word.bits):
        right, wrong = _trace(quiet, {}), _trace(quiet, {hit: (word.number, bit)})
        assert [seen for seen, _ in wrong[: hit + 1]] == [seen for seen, _ in right[: hit + 1]]
        if name != "count":  # which goes on from the wrong value
            assert wrong[hit + 1][0] ^ right[hit + 1][0] == 1 << SHOWN[name] + bit
        assert wrong[hit + 1][1] == (name != "data_0")  # the memory's owner must see to what it reads
        assert wrong[hit + 2][1] == 0


@pytest.mark.parametrize(("memory", "shown"), [("now", 40), ("later", 48)])
def test_a_row_holds_one_wrong_bit_until_it_is_written(memory: str, shown: int) -> None:
    fill, read, write = [0x40 | row for row in range(4)], 0x20 | 2 << 2, 0x40 | 2
    row = next(word for word in stored_words(Example()) if f"{memory}." in word.path and word.path.endswith("row_2"))
    inputs = [*fill, 0, 0, read, read, read, read, 0, write | read, read, read]
    right, wrong = _trace(inputs, {}), _trace(inputs, {6: (row.number, 5)})
    differ = [cycle for cycle in range(len(inputs)) if wrong[cycle][0] ^ right[cycle][0]]
    # Read at 7 to 9, seen at once or a cycle later; and until the write at 11 is seen.
    assert differ == ([7, 8, 9, 11] if memory == "now" else [8, 9, 10, 11])
    assert {wrong[cycle][0] ^ right[cycle][0] for cycle in differ} == {1 << shown + 5}


def test_an_upset_in_the_cycle_of_a_write_hits_what_is_written() -> None:
    (row,) = (word for word in stored_words(Example()) if "later." in word.path and word.path.endswith("row_1"))
    inputs = [*(0x40 | row for row in range(4)), 0x41 | 0x20 | 1 << 2, 0x20 | 1 << 2, 0, 0]
    right, wrong = _trace(inputs, {}), _trace(inputs, {4: (row.number, 3)})
    # A read of the cycle sees what is written, and only the next one the wrong bit.
    assert [w[0] ^ r[0] for w, r in zip(wrong, right, strict=True)] == [0, 0, 0, 0, 0, 0, 1 << 51, 1 << 51]


def test_check_bits_are_left_to_their_owner() -> None:
    word = _word("kept")
    wrong = _trace([0x80, *[0] * 6], {3: (word.number, 2)})
    assert [damaged for _, damaged in wrong] == [0] * 7
    assert len({seen >> 32 & 0xFF for seen, _ in wrong[1:]}) == 1


@pytest.mark.long
@pytest.mark.parametrize("protect", [True, False])
@pytest.mark.parametrize("name", ["tracker", "trigger"])
def test_the_places_are_all_flip_flops_and_memory_bits_of_the_netlist(name: str, protect: bool) -> None:
    def make() -> Component:
        return PARTS[name](preset("small", protect=protect))

    script = f"read_rtlil <<rtlil\n{rtlil.convert(make(), name='top')}\nrtlil\nproc -noopt; memory_collect; write_json"
    netlist = json.loads(find_yosys(lambda found: found >= (0, 40)).run(["-q", "-"], script, ignore_warnings=True))
    bits = 0
    for module in netlist["modules"].values():
        for cell in module["cells"].values():
            parameters = cell["parameters"]
            if cell["type"].startswith(("$dff", "$sdff", "$adff")):
                bits += int(parameters["WIDTH"], 2)
            elif cell["type"] == "$mem_v2":
                width, ports = int(parameters["WIDTH"], 2), int(parameters["RD_PORTS"], 2)
                clocked = parameters["RD_CLK_ENABLE"][-ports:].count("1")
                bits += width * (int(parameters["SIZE"], 2) + clocked)
    words = stored_words(make())
    assert sum(word.bits for word in words) == bits
    assert len({word.path for word in words}) == len(words)


KEPT = ("profile.written", "profile.parity", "quotas.")
"""What stays wrong when the part is disarmed."""
SECDED = r"\.data_0$|\.events\.entry_"
"""Words that are checked when they are used."""


@pytest.mark.parametrize("name", ["tracker", "trigger"])
def test_no_register_of_a_protected_part_is_without_a_check(name: str) -> None:
    """A bit of any register, hit while the part is idle, is corrected or detected within three cycles."""
    part = PARTS[name](preset("small", protect=True))
    top = Upsettable(part)
    rng = random.Random(3)
    words = [word for word in stored_words(PARTS[name](preset("small", protect=True))) if ".row_" not in word.path]
    words = [word for word in words if not word.path.startswith(KEPT) and not re.search(SECDED, word.path)]
    missed = []

    async def drive(ctx: Any) -> None:
        await ctx.tick().repeat(8)
        for word in rng.sample(words, 60):
            ctx.set(top.upset_word, word.number)
            ctx.set(top.upset_bit, rng.randrange(word.bits))
            await ctx.tick()
            ctx.set(top.upset_word, 0)
            assert not ctx.get(part.idle), word
            await ctx.tick().repeat(2)
            if not ctx.get(part.corrected | part.uncorrectable):
                missed.append(word.path)
            await disarm(ctx)

    async def disarm(ctx: Any) -> None:
        ctx.set(part.config_valid, 1)
        ctx.set(part.config, {"address": regs.CONTROL, "data": 1 << regs.Control["disarm"].offset})
        await ctx.tick()
        ctx.set(part.config_valid, 0)
        await ctx.tick().repeat(8)

    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    assert not missed


def test_a_memory_with_two_write_ports_is_refused() -> None:
    class Twice(Component):
        i: In(1)

        def elaborate(self, platform: Any) -> Module:
            m = Module()
            m.submodules.memory = memory = Memory(shape=1, depth=2, init=[])
            memory.write_port()
            memory.write_port()
            return m

    with pytest.raises(ValueError, match="one write port"):
        stored_words(Twice())


def test_ports_of_the_part_are_those_of_the_upsettable_one() -> None:
    part = PARTS["tracker"](preset("small"))
    top = Upsettable(part)
    assert top.load is part.load
    assert {*top.signature.members} - {*part.signature.members} == {"upset_word", "upset_bit"}
    Fragment.get(top, None)
