"""Whether a mutant is one: the part beside itself with a mistake, the same inputs to both, their outputs compared."""

from functools import partial
from pathlib import Path
from typing import Literal

from amaranth.back import rtlil
from amaranth.hdl import Cat, ClockDomain, ClockSignal, Const, Instance, Module, Signal, Value
from t3hdl.export.module_ports import CLOCK, RESET

from .abc import exclude_in_copies, search
from .aiger import Graph, input_bits
from .mutation import BITS, SELECT, Mutant, Netlist
from .named_netlist import Contents, through
from .netlist import compile_graphs

Answer = Literal["equivalent", "equivalent but for idle", "different", "unknown"]
"""*equivalent*: no run shows it, whatever the inputs. *equivalent but for idle*: only in ``idle`` and ``wake_at``.
*different*: some run shows it, perhaps one with inputs that no neighbour gives. *unknown*: time is up."""

_DIFFERS, _SLEEPS = "differs", "sleeps"
_PROMISE = ("idle", "wake_at")
_DEPTH = 24
"""Cycles in which a difference is looked for before equivalence is."""

# Both start with zeros where nothing is initialised: what a reset does not set is written before it is read.
_JOIN = """\
hierarchy -top top
proc
flatten
memory_map
setundef -zero -init
write_rtlil out
"""


class Comparison:
    """A part with its mutants beside itself, whole and each of its modules alone; graphs lie in ``folder``."""

    def __init__(self, netlist: Netlist, mutants: tuple[Mutant, ...], folder: Path) -> None:
        self._netlist, self._folder = netlist, folder
        self._mutated, self._mutants = netlist.mutated(mutants), {mutant.number: mutant for mutant in mutants}
        self._miters: dict[str, _Miter] = {}

    def compare(self, number: int, *, limit_s: int) -> Answer:
        """Whether a run shows mutant ``number``; each question may take ``limit_s`` seconds.

        The module that has the mistake is asked first: if its ports never show it, the part's do not. The other way
        round it does not hold, because a module inside a part does not get all inputs.
        """
        top, module = self._netlist.top, self._mutants[number].module
        if module != top and self._miter(module).ask(_DIFFERS, number, limit_s) == "never":
            return "equivalent"
        found = self._miter(top).ask(_DIFFERS, number, limit_s)
        if found != "never":
            return "different" if found == "reached" else "unknown"
        same = not self._miter(top).promises or self._miter(top).ask(_SLEEPS, number, limit_s) == "never"
        return "equivalent" if same else "equivalent but for idle"

    def _miter(self, module: str) -> "_Miter":
        if module not in self._miters:
            contents = self._netlist.modules[module]
            promise = _PROMISE if module == self._netlist.top and set(_PROMISE) <= contents.outputs.keys() else ()
            folder = self._folder / module
            folder.mkdir()
            text = through(_JOIN, _both(module, contents, promise) + self._mutated)
            self._miters[module] = _Miter(text, (_DIFFERS, _SLEEPS) if promise else (_DIFFERS,), folder)
        return self._miters[module]


class _Miter:
    """The graphs of a module beside itself with mistakes; ``promises`` : whether it says how long it may sleep."""

    def __init__(self, text: str, outputs: tuple[str, ...], folder: Path) -> None:
        self._folder, self.promises = folder, _SLEEPS in outputs
        compile_graphs(text, outputs, folder)
        self._graphs = {output: Graph(folder / f"{output}.aig") for output in outputs}
        self._bits = {output: input_bits(folder / f"{output}.map", SELECT) for output in outputs}

    def ask(self, output: str, number: int, limit_s: int) -> str:
        """``reached``, ``never`` or ``unknown``, as in :class:`~t3formal.prover.abc.Answer`."""
        values = {bit: bool(number >> place & 1) for place, bit in enumerate(self._bits[output])}
        self._graphs[output].write(self._folder / "one.aig", values)
        exclude = partial(exclude_in_copies, "one", self._folder, limit_s=limit_s)
        if exclude(thorough=False).outcome == "never":
            return "never"
        if search("one", self._folder, depth=_DEPTH, limit_s=limit_s).outcome == "reached":
            return "reached"
        return exclude(thorough=True).outcome


def _both(module: str, contents: Contents, promise: tuple[str, ...]) -> str:
    """RTLIL of a module with two instances of ``module``, of which one has the mutant that an input chooses.

    ``promise`` : outputs that are compared on their own.
    """
    m = Module()
    m.domains.sync = clock = ClockDomain()
    started, restart, select = Signal(), Signal(name="restart"), Signal(BITS, name=SELECT)
    m.d.sync += started.eq(1)
    own = {CLOCK: ClockSignal(), RESET: ~started | restart}
    inputs = {name: Signal(bits, name=name) for name, bits in contents.inputs.items() if name not in own}
    sides: list[dict[str, Signal]] = []
    for side, number in (("original", Const(0, BITS)), (SELECT, select)):
        sides.append({name: Signal(bits, name=f"{side}_{name}") for name, bits in contents.outputs.items()})
        driven = {**{name: value for name, value in own.items() if name in contents.inputs}, **inputs, SELECT: number}
        m.submodules[side] = Instance(
            module, *(("i", *item) for item in driven.items()), *(("o", *item) for item in sides[-1].items())
        )
    original, mutant = sides
    pairs = {name: original[name] != mutant[name] for name in original}
    told = [_while_valid(name, pair, original) for name, pair in pairs.items() if name not in promise]
    outputs = {_DIFFERS: Signal(name=_DIFFERS)}
    m.d.comb += outputs[_DIFFERS].eq(started & Cat(told).any())
    if promise:
        idle, wake_at = promise
        outputs[_SLEEPS] = Signal(name=_SLEEPS)
        m.d.comb += outputs[_SLEEPS].eq(started & (pairs[idle] | (original[idle] & pairs[wake_at])))
    free = [restart, select, *inputs.values(), *outputs.values(), clock.clk, clock.rst]
    return rtlil.convert(m, name="top", emit_src=False, ports=free)


def _while_valid(name: str, differs: Value, original: dict[str, Signal]) -> Value:
    """A difference that a neighbour can see: of a payload while it is valid, of everything else at any time."""
    stem, _, index = name.partition("__")  # an array's index comes last: update_done_valid__0
    pulse = f"{stem}_valid__{index}" if index else f"{stem}_valid"
    for valid in (f"{name.removesuffix('__payload')}__valid", pulse, f"{stem.split('_')[0]}_valid"):
        if valid in original:
            return differs & original[valid]
    return differs
