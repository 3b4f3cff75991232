"""The memory wrapper: both latencies, reads beside writes, check bits, and its module in the Verilog."""

import gc
import re
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Cat, Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from t3hdl.common.ram import Ram
from t3hdl.export.verilog import write_verilog

Row = data.StructLayout({"low": 5, "high": 8})


class _Driver:
    """Reads and writes a memory."""

    def __init__(self, ctx: Any, ram: Ram) -> None:
        self.ctx, self.ram = ctx, ram

    async def step(self, *, write: tuple[int, int] | None = None, read: int | None = None) -> None:
        """A cycle with these accesses: (row, word), row."""
        row, word = write or (0, 0)
        self.ctx.set(self.ram.write, write is not None)
        self.ctx.set(self.ram.write_row, row)
        self.ctx.set(self.ram.write_data, Row.from_bits(word))
        self.read(read)
        await self.ctx.tick()
        self.ctx.set(self.ram.write, 0)
        self.read(None)

    def read(self, row: int | None) -> None:
        """The read port in this cycle."""
        self.ctx.set(self.ram.read, row is not None)
        self.ctx.set(self.ram.read_row, row or 0)

    def flip(self, row: int, *bits: int) -> None:
        """Upsets bits of what is stored."""
        stored = self.ram.content[row]
        self.ctx.set(stored, self.ctx.get(stored) ^ sum(1 << bit for bit in bits))

    @property
    def word(self) -> int:
        return self.ctx.get(self.ram.data).as_bits()

    @property
    def faults(self) -> tuple[int, int]:
        return self.ctx.get(self.ram.corrected), self.ctx.get(self.ram.uncorrectable)


def _run(scenario: Callable[[_Driver], Awaitable[None]], **parameters: Any) -> None:
    ram = Ram(Row, depth=6, **parameters)
    simulator = Simulator(ram)
    simulator.add_clock(1e-9)

    async def testbench(ctx: Any) -> None:
        await scenario(_Driver(ctx, ram))

    simulator.add_testbench(testbench)
    simulator.run()


@pytest.mark.parametrize("protect", [False, True])
def test_latency_1_holds_the_word_until_the_next_read(protect: bool) -> None:
    async def scenario(d: _Driver) -> None:
        assert d.ram.latency == 1
        for row in range(6):
            await d.step(write=(row, 1000 + row))
        await d.step(read=5)
        assert d.word == 1005
        await d.step(write=(5, 77))
        await d.step()
        assert d.word == 1005
        await d.step(read=5)
        assert d.word == 77

    _run(scenario, protect=protect)


@pytest.mark.parametrize("protect", [False, True])
def test_write_through(protect: bool) -> None:
    async def scenario(d: _Driver) -> None:
        await d.step(write=(2, 1))
        await d.step(write=(2, 2), read=2)
        assert d.word == 2
        await d.step(write=(3, 9), read=2)
        assert d.word == 2

    _run(scenario, protect=protect, write_through=True)


@pytest.mark.parametrize("protect", [False, True])
def test_latency_0_follows_the_row_and_the_writes_before(protect: bool) -> None:
    async def scenario(d: _Driver) -> None:
        assert d.ram.latency == 0
        await d.step(write=(1, 10))
        await d.step(write=(2, 20))
        d.read(1)
        assert d.word == 10
        d.read(2)
        assert d.word == 20
        d.ctx.set(d.ram.write, 1)
        d.ctx.set(d.ram.write_row, 2)
        d.ctx.set(d.ram.write_data, Row.from_bits(21))
        assert d.word == 20, "not before the next cycle"
        await d.ctx.tick()
        assert d.word == 21

    _run(scenario, latency=0, protect=protect)


@pytest.mark.parametrize("latency", [0, 1])
def test_flipped_bits_are_corrected_or_reported_while_the_word_is_there(latency: int) -> None:
    async def scenario(d: _Driver) -> None:
        async def read(row: int) -> None:
            if latency:
                await d.step(read=row)
            else:
                d.read(row)

        for row in range(3):
            await d.step(write=(row, 0x1234))
        d.flip(1, 7)
        d.flip(2, 0, 15)
        assert d.faults == (0, 0), "nothing was read"
        await read(0)
        assert (d.word, d.faults) == (0x1234, (0, 0))
        for _ in range(2):  # the stored bit stays wrong
            await read(1)
            assert (d.word, d.faults) == (0x1234, (1, 0))
        await read(2)
        assert d.faults == (0, 1)
        await d.step(write=(2, 0x0FED))
        await read(2)
        assert (d.word, d.faults) == (0x0FED, (0, 0))

    _run(scenario, latency=latency, protect=True)


def test_undefined_rows_are_no_fault_before_they_are_read() -> None:
    async def scenario(d: _Driver) -> None:
        for row in range(6):
            d.ctx.set(d.ram.content[row], 0b11)
        for latency_passes in range(3):
            assert d.faults == (0, 0), latency_passes
            await d.step()

    _run(scenario, protect=True)


@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"latency": 2}, "latency of a memory must be 0 or 1, not 2"),
        ({"latency": 0, "write_through": True}, "write_through needs a memory of latency 1, not 0"),
    ],
)
def test_illegal_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Ram(8, depth=4, **parameters)
    gc.collect()  # the memory that was never made, while nobody minds


class _User(wiring.Component):
    """Uses some bits of a memory, and ties others."""

    a: In(4)
    b: In(4)
    o: Out(3)

    def __init__(self, **parameters: Any) -> None:
        super().__init__()
        self._parameters = parameters

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.table = ram = Ram(Row, depth=6, **self._parameters)
        m.d.comb += [
            ram.write.eq(self.a[0]), ram.write_row.eq(5), ram.write_data.low.eq(self.a), ram.write_data.high.eq(self.b),
            ram.read.eq(1), ram.read_row.eq(Cat(self.b[3], self.a[1:3])), self.o.eq(ram.data.high[2:5]),
        ]  # fmt: skip
        return m


@pytest.mark.parametrize(("parameters", "module", "unused"), [
    ({}, "ram_sync_6x13", set()), ({"write_through": True}, "ram_through_6x13", set()),
    ({"latency": 0}, "ram_comb_6x13", {"read"}), ({"protect": True}, "ram_sync_6x19", set()),
])  # fmt: skip
def test_the_memory_is_a_module_of_its_own(parameters: dict[str, Any], module: str, unused: set[str]) -> None:
    text = write_verilog(_User(**parameters), "user")
    body = re.search(rf"(?ms)^module user__table__{module}\((.*?)^endmodule", text)
    assert body, re.findall(r"(?m)^module (\S+)\(", text)
    ports = {"clk", "rst", "write", "write_row", "write_data", "read", "read_row", "data"}
    assert set(re.findall(r"[^\s,]+", body[1].split(")")[0])) == ports - unused, "whatever is wired to them"
    assert "initial" not in text


_UNKNOWN = """
module bench;
  reg clk = 0, read = 0, write = 0;
  wire [12:0] sync, through, comb;
  {instances}
  task cycle; begin #1 clk = 1; #1 clk = 0; end endtask
  task show; $display("%b %b %b", sync, through, comb); endtask
  initial begin
    #1 show; read = 1; cycle; show; write = 1; cycle; write = 0; cycle; show;
  end
endmodule
"""


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog is missing: apt install iverilog")
@pytest.mark.parametrize(("init", "before"), [(False, "x" * 13), (True, "0" * 13)], ids=["unknown", "zeros"])
def test_memories_of_a_simulation_begin_with(tmp_path: Path, init: bool, before: str) -> None:
    """On request with zeros, rows and output registers; a write is seen after both."""
    kinds: dict[str, dict[str, Any]] = {"sync": {}, "through": {"write_through": True}, "comb": {"latency": 0}}
    texts, instances = [], ""
    for kind, parameters in kinds.items():
        texts.append(write_verilog(Ram(Row, depth=6, **parameters), f"{kind}_table", init_memories=init))
        ports = f".clk(clk), .rst(1'b0), .write(write), .write_row(3'd5), .write_data(13'd77), .data({kind})"
        instances += f"  {kind}_table {kind}_t ({ports}, .read(read), .read_row(3'd5));\n"
    (tmp_path / "bench.v").write_text("".join(texts) + _UNKNOWN.format(instances=instances))
    subprocess.run(["iverilog", "-g2005", "-o", "bench", "bench.v"], cwd=tmp_path, check=True)
    run = subprocess.run(["vvp", "-n", "bench"], cwd=tmp_path, check=True, capture_output=True, text=True)
    shown = [line.split() for line in run.stdout.splitlines()]
    assert shown == [[before] * 3, [before] * 3, [f"{77:013b}"] * 3]
