"""Which memories of a netlist become distributed RAM on ECP5: the rules of ``MEMORIES``, by Yosys."""

from amaranth.back import rtlil
from amaranth.hdl import Module
from amaranth.lib.memory import Memory
from t3formal.prover.netlist import run_yosys
from t3fpga.build.build import MEMORIES


def test_only_a_memory_that_is_written_becomes_distributed_ram(tmp_path):
    """Yosys refuses the style for a table that is only read: it has no such RAM to map it to."""
    m = Module()
    table, memory = (Memory(shape=8, depth=16, init=range(16)) for _ in range(2))
    m.submodules.table, m.submodules.memory = table, memory
    write = memory.write_port()
    reads = [part.read_port(domain="comb") for part in (table, memory)]
    ports = [write.en, write.addr, write.data, *(port.addr for port in reads), *(port.data for port in reads)]
    (tmp_path / "memories.il").write_text(rtlil.convert(m, ports=ports))
    count = "select -assert-count 1 t:$mem_v2"
    run_yosys(
        f"read_rtlil memories.il\n{MEMORIES['ecp5']}\n{count} r:WR_PORTS=1 %i a:ram_style=distributed %i\n"
        f"{count} r:WR_PORTS=0 %i a:ram_style %d",
        tmp_path,
    )


def test_a_memory_as_deep_and_wide_as_the_tile_marks_does_not(tmp_path):
    m, ports = Module(), []
    for name, (width, depth) in {"marks": (64, 128), "narrower": (63, 128), "shorter": (64, 127)}.items():
        m.submodules[name] = memory = Memory(shape=width, depth=depth, init=[])
        write, read = memory.write_port(), memory.read_port(domain="sync")
        ports += [write.en, write.addr, write.data, read.en, read.addr, read.data]
    (tmp_path / "memories.il").write_text(rtlil.convert(m, ports=ports))
    count = "select -assert-count {} t:$mem_v2 a:ram_style=distributed %{}"
    run_yosys(
        f"read_rtlil memories.il\n{MEMORIES['ecp5']}\n{count.format(2, 'i')}\n{count.format(1, 'd')} r:WIDTH=64 %i",
        tmp_path,
    )
