"""A part's Verilog with its assertions, compiled by Verilator, and driven from Python; failures are counted."""

import ctypes
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from t3hdl.config import T3Config
from t3hdl.export.assertions import assertions
from t3hdl.export.verilog import PARTS, write_verilog
from t3hdl.interface.words import WordMap, word_map
from t3sim.hardware.rtl.build import NOT_GATED
from t3sim.hardware.rtl.toolchain import find_toolchain
from t3sim.hardware.rtl.wrapper import wrapper

_VERILATOR_FLAGS = (
    "--cc",
    "--assert",
    "--no-timing",
    "--quiet",
    "--prefix",
    "V",
    "--Mdir",
    ".",
    "-Wno-lint",
    "-Wno-SYMRSVDWORD",
)
_COMPILER_FLAGS = (
    "-std=c++17", "-O0", "-fPIC", "-shared", "-DVERILATOR=1", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE=0",
    "-DVL_TIME_CONTEXT", "-Wl,--gc-sections", "-pthread",
)  # fmt: skip
# A whole clock cycle: the inputs settle, then both edges.
_CLOCK = """\
inline void clock(Part& part, bool) {
    part.model.eval();
    part.model.rootp->clk = 1;
    part.model.eval();
    part.model.rootp->clk = 0;
    part.model.eval();
}
"""
_CONTROL = """
static V& model_of(intptr_t state) {{ return reinterpret_cast<Part*>(state)->model; }}
PART void part_faults(intptr_t state, uint32_t on) {{ model_of(state).rootp->{top}__DOT__faults = on; }}
PART int part_failures(intptr_t state) {{ return model_of(state).contextp()->errorCount(); }}
PART void part_go_on(intptr_t state) {{ model_of(state).contextp()->errorLimit(1 << 30); }}
"""


@dataclass(frozen=True)
class CheckedLibrary:
    """The shared library of a part and its assertions, and the words of its ports."""

    path: Path
    words: WordMap


@dataclass(frozen=True)
class Fault:
    """A wire that is wrong on demand: ``instance`` gets ``value`` at input ``port``; ``{right}`` is what is right."""

    instance: str
    port: str
    value: str

    def built_into(self, text: str, top: str, number: int) -> str:
        """The Verilog in which bit ``number`` of ``faults`` in module ``top`` chooses the wrong value."""
        start = text.index(f" {self.instance} (\n")
        at = text.index(f".{self.port}(", start) + len(self.port) + 2
        end = text.index(")", at)
        right = text[at:end]
        return f"{text[:at]}{top}.faults[{number}] ? {self.value.format(right=right)} : {right}{text[end:]}"


def checked_library(config: T3Config, part: str, folder: Path, faults: Sequence[Fault] = ()) -> CheckedLibrary:
    """Compiles a part with its assertions and faults in ``folder``."""
    tools, component, name = find_toolchain(), PARTS[part](config), f"t3_{part}"
    words = word_map(component.signature)
    verilog = write_verilog(component, name)
    for number, fault in enumerate(faults):
        verilog = fault.built_into(verilog, name, number)
    declared = "  reg [31:0] faults /*verilator public_flat_rw*/ = 0;\n"
    head, brace, body = verilog.partition(f"module {name}(")
    ports, end, body = body.partition(";\n")
    (folder / f"{name}.v").write_text(head + brace + ports + end + declared + body)
    (folder / "assertions.sv").write_text(assertions(config, {name: component}))
    tools.verilate([*_VERILATOR_FLAGS, "--top-module", name, f"{name}.v", "assertions.sv"], folder)
    sources = ["verilated.cpp", "verilated_threads.cpp", *sorted(path.name for path in folder.glob("V*.cpp"))]
    text = wrapper(words, sources, NOT_GATED)
    head, clock, tail = text.partition("inline void clock(Part& part, bool rouse) {")
    assert clock, "the wrapper's clock has another name"
    text = head + _CLOCK + tail.partition("}\n")[2] + _CONTROL.format(top=name)
    (folder / "part.cpp").write_text(text)
    includes = [f"-I{tools.include}", f"-I{tools.include}/vltstd"]
    tools.compile([*_COMPILER_FLAGS, *includes, "part.cpp", "-o", "part.so"], folder)
    return CheckedLibrary(folder / "part.so", words)


class CheckedPart:
    """A part with its assertions: ports by name, one clock cycle per step."""

    def __init__(self, library: CheckedLibrary) -> None:
        self._words = library.words
        self._library = ctypes.CDLL(str(library.path))
        self._library.part_new.restype = ctypes.c_ssize_t
        self._handle = ctypes.c_ssize_t(self._library.part_new())
        self._library.part_go_on(self._handle)
        self._in = (ctypes.c_uint64 * max(1, self._words.input_words))()
        self._out = (ctypes.c_uint64 * self._words.output_words)()
        self._library.part_reset(self._handle, ctypes.c_ssize_t(0), self._out)

    @property
    def failures(self) -> int:
        """Assertions that have failed."""
        return self._library.part_failures(self._handle)

    def __getitem__(self, name: str) -> int:
        word, bits = self._words.outputs[name]
        value = sum(self._out[word + k] << 64 * k for k in range(-(-bits // 64)))
        return value & (1 << bits) - 1

    def __setitem__(self, name: str, value: int) -> None:
        word, bits = self._words.inputs[name]
        for k in range(-(-bits // 64)):
            self._in[word + k] = value >> 64 * k & (1 << 64) - 1

    def fault(self, number: int) -> None:
        """From now on this fault is there."""
        self._library.part_faults(self._handle, ctypes.c_uint32(1 << number))

    def step(self) -> None:
        """One clock cycle."""
        self._library.part_step(self._handle, self._in, self._out)

    def free(self) -> None:
        """Forget the instance."""
        self._library.part_free(self._handle)


class Traffic:
    """A :class:`CheckedPart` of a whole unit with requesters, a memory, a DMA engine and an AXI4-Lite master.

    ``send`` holds what waits at each stream input, ``got`` what each stream output gave. ``gap`` is the probability
    that a requester pauses before an item, ``accept`` that an output's taker is ready in a cycle, ``finish`` that the
    DMA engine reports a command in a cycle.
    """

    def __init__(self, part: CheckedPart, config: T3Config, seed: int) -> None:
        self.part, self.random = part, random.Random(seed)
        slices = range(config.slices)
        inputs = [
            f"{port}.{s}" for port in ("compute_read", "compute_write", "comm_read", "comm_write") for s in slices
        ]
        self.send: dict[str, list[int]] = {name: [] for name in (*inputs, "store.0")}
        self.got: dict[str, list[int]] = {name: [] for name in (*(f"dram.{s}" for s in slices), "route.0", "command")}
        self.gap, self.accept, self.finish = 0.0, 1.0, 0.1
        self._offered: dict[str, bool] = dict.fromkeys(self.send, False)
        self.now, self._contexts_due = 0, []

    def step(self, cycles: int = 1, **inputs: int) -> None:
        """Clock cycles, in which the other inputs have these values."""
        for name, value in inputs.items():
            self.part[name] = value
        for _ in range(cycles):
            self._cycle()

    def _cycle(self) -> None:
        part = self.part
        taken = []
        for name, items in self.send.items():
            self._offered[name] = bool(items) and (self._offered[name] or self.random.random() >= self.gap)
            part[f"{name}.valid"] = int(self._offered[name])
            part[f"{name}.payload"] = items[0] if self._offered[name] else 0
            if self._offered[name] and part[f"{name}.ready"]:
                taken.append(name)
        for name, items in self.got.items():
            ready = self.random.random() < self.accept
            part[f"{name}.ready"] = int(ready)
            if ready and part[f"{name}.valid"]:
                items.append(part[f"{name}.payload"])
                if name == "command":
                    self._contexts_due.append(items[-1] >> 6 & 15)
        done = bool(self._contexts_due) and self.random.random() < self.finish
        part["command_done_valid"] = int(done)
        if done:
            part["command_done"] = self._contexts_due.pop(0)
        part["now"] = self.now
        part.step()
        self.now += 1
        for name in taken:
            self.send[name].pop(0)
            self._offered[name] = False

    def write(self, address: int, data: int, strobe: int = 255) -> int:
        """An AXI4-Lite write by a privileged manager; returns the response."""
        self.step(axi_awvalid=1, axi_awaddr=address, axi_awprot=1, axi_wvalid=1, axi_wdata=data, axi_wstrb=strobe)
        self.step(axi_awvalid=0, axi_wvalid=0)
        return self._answer("b")

    def read(self, address: int) -> tuple[int, int]:
        """An AXI4-Lite read; returns response and data."""
        self.step(axi_arvalid=1, axi_araddr=address)
        self.step(axi_arvalid=0)
        return self._answer("r"), self._data

    def _answer(self, channel: str) -> int:
        for _ in range(20):
            if self.part[f"axi_{channel}valid"]:
                break
            self.step()
        response = self.part[f"axi_{channel}resp"]
        self._data = self.part["axi_rdata"]
        self.step(self.random.randrange(3))
        self.step(**{f"axi_{channel}ready": 1})
        self.step(**{f"axi_{channel}ready": 0})
        return response

    def drain(self, cycles: int = 200) -> None:
        """Until everything is sent, or nothing moves any more, and some cycles more."""
        for _ in range(2000):
            if not any(self.send.values()):
                break
            self.step()
        self.step(cycles)
