"""Mutants: the generated netlist of a part with one small mistake, chosen by Yosys, for benches and for proofs.

All mutants of a part share one netlist, with an input :data:`SELECT` more that says which of them is active (0: none).
The same mistake is made in the netlists of proofs: cells have names there and here that depend on the part alone.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from amaranth.back import rtlil
from t3hdl.config import T3Config
from t3hdl.export.module_sharing import share_modules
from t3hdl.export.verilog import PARTS

from .named_netlist import Contents, alike, contents, named, through

SELECT = "mutant"
"""The input that says which mutant is active."""
BITS = 10
"""Width of :data:`SELECT`."""

_CLOCK = ("clk", "CLK")


class NoPlaceError(Exception):
    """A harness contains none of the mutants."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One mistake: ``mode`` says what becomes of a bit of a cell's port.

    ``number`` : from 1, the value of :data:`SELECT`. ``module``, ``cell``, ``port`` : where, ``bits`` : which bit, and
    for ``cnot0`` and ``cnot1`` that of the port by whose value it is inverted. ``wire`` : what the bit is called, if
    it has a name.
    """

    number: int
    mode: str
    module: str
    cell: str
    port: str
    bits: tuple[int, ...]
    wire: str = ""

    def command(self, module: str, *, choose: bool = True) -> str:
        """The Yosys command that adds the mutant to ``module``, beside others, or without choice."""
        choice = f" -ctrl {SELECT} {BITS} {self.number}" if choose else ""
        return f"mutate{choice} {self._options(module)}"

    def __str__(self) -> str:
        """The Yosys command that makes the mutant alone."""
        return self.command(self.module, choose=False)

    def _options(self, module: str) -> str:
        control = f" -ctrlbit {self.bits[1]}" if len(self.bits) > 1 else ""
        where = f"-module {module} -cell {self.cell} -port {self.port}"
        return f"-mode {self.mode} {where} -portbit {self.bits[0]}{control}"


class Netlist:
    """A part's netlist, ``text``, its ``modules``, and its mutants.

    ``component`` is a name of :data:`~t3hdl.export.verilog.PARTS`, ``top`` the name of its module.
    """

    def __init__(self, component: str, config: T3Config) -> None:
        self.component, self.top = component, f"t3_{component}"
        part = PARTS[component](config)
        self.text = named(share_modules(rtlil.convert(part, name=self.top, emit_src=False)))
        self.modules = contents(self.text)

    def choose(self, count: int, seed: int) -> tuple[Mutant, ...]:
        """``count`` mutants, or as many as there are, spread evenly; the same for the same seed."""
        # More than needed, because mistakes in the clock are left out: it has no logic.
        lines = through(f"mutate -list {2 * count + 20} -seed {seed} -o out", self.text)
        found = [_options(line) for line in lines.splitlines()]
        kept = [options for options in found if options["port"] not in _CLOCK and self._has_name(options)]
        return tuple(_mutant(number, options) for number, options in enumerate(kept[:count], 1))

    def _has_name(self, options: dict[str, str]) -> bool:
        return "$auto$" not in options["cell"] and options["cell"] in self.modules[options["module"]].cells

    def mutated(self, mutants: Iterable[Mutant]) -> str:
        """The netlist as RTLIL, with :data:`SELECT` as one more input."""
        commands = "\n".join(mutant.command(mutant.module) for mutant in mutants)
        return through(f"{commands}\nwrite_rtlil out", self.text)

    def verilog(self, mutants: Iterable[Mutant]) -> str:
        """The same as Verilog."""
        return through("memory_collect\nopt_clean -purge\nwrite_verilog -noattr out", self.mutated(mutants))

    def patch(self, mutants: Iterable[Mutant], applied: set[int], *, choose: bool = True) -> Callable[[str], str]:
        """What adds the mutants to the netlist of a harness; ``applied`` gets the numbers of those that have a place.
        With ``choose`` it has :data:`SELECT` as one more input; else there should be one mutant, which is always there.

        A mutant has one if the harness has a module like its own, with the same cell; it is made in each of them. The
        patch raises NoPlaceError if none has.
        """

        def patched(text: str) -> str:
            harness = named(text)
            there = contents(harness)
            places = list(self._places(there, mutants))
            if not places:
                raise NoPlaceError
            applied.update(mutant.number for _, mutant in places)
            commands = [line for place in places for line in _commands(*place, there, choose)]
            return through("\n".join([*commands, "write_rtlil out"]), harness)

        return patched

    def _places(self, there: dict[str, Contents], mutants: Iterable[Mutant]) -> Iterator[tuple[str, Mutant]]:
        modules = {
            module: [name for name, other in there.items() if alike(here, other)]
            for module, here in self.modules.items()
        }
        for mutant in mutants:
            here = self.modules[mutant.module]
            for module in modules[mutant.module]:
                other = there[module]
                same = other.cells.get(mutant.cell) == here.cells[mutant.cell]
                if same and mutant.port in other.ports[mutant.cell]:
                    yield module, mutant


def _commands(module: str, mutant: Mutant, there: dict[str, Contents], choose: bool) -> Iterator[str]:
    """What adds the mutant, and gives a bit that it puts behind a flip-flop the initial value that was before it."""
    yield mutant.command(module, choose=choose)
    inside = there[module]
    if mutant.port == "Q" and mutant.cell in inside.states:
        value = inside.initial_bit(mutant.cell, mutant.bits[0])
        state = f"{module}/{mutant.cell} %co1:+[Q] {module}/w:$auto$mutate* %i {module}/a:init %d"
        yield from (f"select -set state {state}", f"setattr -set init 1'{value} @state")


def _options(line: str) -> dict[str, str]:
    """The options of a line that ``mutate -list`` writes."""
    words = line.split()[1:]
    return {name.removeprefix("-"): value for name, value in zip(words[::2], words[1::2], strict=True)}


def _mutant(number: int, options: dict[str, str]) -> Mutant:
    bits = tuple(int(options[name]) for name in ("portbit", "ctrlbit") if name in options)
    return Mutant(
        number=number,
        mode=options["mode"],
        module=options["module"],
        cell=options["cell"],
        port=options["port"],
        bits=bits,
        wire=f"{options['wire']} [{options['wirebit']}]" if "wire" in options else "",
    )
