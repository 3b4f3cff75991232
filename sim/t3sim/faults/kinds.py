"""The faults of a campaign: what each kind does to a run, drawn by seed and number alone."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from t3hdl.export.single_event_upsets import Stored
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import LINE_BITS
from t3hdl.interface.words import WORD_BYTES

from t3sim.collective.driver import Driver
from t3sim.common.ratio import CLOCK_LARGEST, ratio
from t3sim.engine.state import DMA, NEVER_CYCLE
from t3sim.engine.t3unit.unit import TRACKER_PART, TRIGGER_PART
from t3sim.engine.t3unit.words import TRACKER, TRIGGER
from t3sim.run.plan import movers

from .foreign import draw_store, inject_foreign_store
from .links import KINDS, link_fault
from .setup import GPUS, UPSETTABLE, FaultSetup, FaultSystem, Injection

_PLACE = {"tracker": (TRACKER, TRACKER_PART), "trigger": (TRIGGER, TRIGGER_PART)}


@dataclass(frozen=True)
class InjectionSites:
    """What faults are drawn from: the run without a fault, and the stored words of the parts.

    ``cycles``: length of that run. ``windows``: per GPU the packets sent at the end of each window; ``writes``: per GPU
    its program.
    """

    cycles: int
    windows: tuple[tuple[int, ...], ...]
    writes: tuple[tuple[tuple[int, int], ...], ...]
    stored: Mapping[str, tuple[Stored, ...]]
    groups: Mapping[str, tuple[tuple[Stored, ...], ...]]


def group_of(word: Stored) -> str:
    """The register, or the memory that a word is a row of."""
    memory, _, row = word.path.rpartition(".row_")
    return memory if row.isdigit() else word.path


@dataclass(frozen=True)
class Drawn:
    """A fault: what it is in a word or two, for the table and for people, and its effect."""

    label: str
    text: str
    injection: Injection


Draw = Callable[[random.Random, FaultSetup, InjectionSites], Drawn]


def draw_bit(rng: random.Random, setup: FaultSetup, sites: InjectionSites) -> Drawn:
    """A stored bit is inverted once. Every second time first a register or memory is chosen, then a bit in it."""
    gpu, cycle = rng.randrange(GPUS), rng.randrange(1, sites.cycles)
    everything = [(part, word) for part in UPSETTABLE for word in sites.stored[part]]
    if rng.random() < 0.5:
        part = rng.choice(UPSETTABLE)
        word = rng.choice(rng.choice(sites.groups[part]))
    else:
        ((part, word),) = rng.choices(everything, [word.bits for _, word in everything])
    bit = rng.randrange(word.bits)
    injection = Injection(events=((cycle, partial(upset, setup, gpu, part, word.number, bit)),))
    return Drawn(f"bit of the {part}", f"GPU {gpu}, cycle {cycle}, {part}.{word.path} bit {bit}", injection)


def upset(setup: FaultSetup, gpu: int, part: str, word: int, bit: int, system: FaultSystem) -> None:
    """The part is evaluated in this cycle, idle or not, with the upset on its ports."""
    kind, slot = _PLACE[part]
    target = system.gpus[gpu]
    base = int(target.words[2 * kind])
    inputs = setup.hardware.parts[part].words.inputs
    ports = [base + inputs[name][0] for name in ("upset_word", "upset_bit")]
    target.words[ports] = word, bit
    target.part_wake[slot] = target.wakes["unit_cycle"] = system.now
    system.advance_to(system.now + 1)
    target.words[ports] = 0


def draw_link(kind: str, rng: random.Random, setup: FaultSetup, sites: InjectionSites) -> Drawn:
    """A packet is lost, arrives twice, or behind the one after it."""
    gpu = rng.randrange(GPUS)
    packet, watch = link_fault(kind, rng, gpu, sites.windows[gpu])
    return Drawn(f"{kind} packet", f"GPU {gpu}, packet {packet}", Injection(watch=watch))


def draw_dma(rng: random.Random, setup: FaultSetup, sites: InjectionSites) -> Drawn:
    """The DMA engine reads nothing for a while, or ever again."""
    gpu, cycle = rng.randrange(GPUS), rng.randrange(sites.cycles)
    length = 0 if rng.random() < 0.5 else rng.randrange(1, 3 * sites.cycles)

    def stall(system: FaultSystem) -> None:
        system.gpus[gpu].movers["buffer_lines"][DMA] = 0

    def resume(limit: int, system: FaultSystem) -> None:
        system.gpus[gpu].movers["buffer_lines"][DMA] = limit
        system.gpus[gpu].movers["wake_cycle"][DMA] = system.now

    limit = movers(setup.plan, gpu)[DMA]["buffer_lines"]
    events = ((cycle, stall), *(((cycle + length, partial(resume, limit)),) if length else ()))
    return Drawn("stalled DMA engine", f"GPU {gpu}, cycle {cycle}, for {length or 'ever'}", Injection(events=events))


def draw_straggler(rng: random.Random, setup: FaultSetup, sites: InjectionSites) -> Drawn:
    """A GPU is slow in computing, in starting, on its link, or never starts."""
    gpu, how = rng.randrange(GPUS), rng.choice(("clock", "start", "link", "dead"))
    factor = rng.uniform(0.05, 0.8)
    later = rng.randrange(1, 20_000)

    def prepare(system: FaultSystem) -> None:
        gemm, link = system.gpus[gpu].gemm, system.gpus[gpu].link
        if how == "clock":
            _scale(gemm, ("clock_num", "clock_den"), factor)
        elif how == "link":
            _scale(link, ("byte_ps_den", "byte_ps_num"), factor)
        else:
            gemm["launch_cycle"] = NEVER_CYCLE if how == "dead" else gemm["launch_cycle"] + later

    amount = {"start": f"{later} cycles late", "dead": "never starts"}.get(how, f"{how} x {factor:.2f}")
    return Drawn("straggling GPU", f"GPU {gpu}, {amount}", Injection(prepare=prepare, retimed=True))


def _scale(model: np.void, names: tuple[str, str], factor: float) -> None:
    """Multiplies a rate in the record of a model, numerator and denominator, with a factor in thousandths."""
    rate = Fraction(int(model[names[0]]), int(model[names[1]])) * Fraction(round(factor * 1000), 1000)
    rate = ratio(rate, CLOCK_LARGEST)
    for name, value in zip(names, (rate.numerator, rate.denominator), strict=True):
        model[name] = value


def draw_program(rng: random.Random, setup: FaultSetup, sites: InjectionSites) -> Drawn:
    """A bit of a range, of the profile or of a descriptor is programmed wrongly."""
    gpu = rng.randrange(GPUS)
    index, address = rng.choice(
        [(index, address) for index, (address, _) in enumerate(sites.writes[gpu]) if address in _FIELDS]
    )
    name, first, width = rng.choice(_FIELDS[address])
    bit = first + rng.randrange(width)

    def alter(number: int, driver: Driver) -> None:
        if number == gpu:
            driver.writes[index] = (address, driver.writes[index][1] ^ 1 << bit)

    return Drawn("wrong program", f"GPU {gpu}, register {address:#x} {name}, bit {bit}", Injection(alter=alter))


def draw_foreign(rng: random.Random, setup: FaultSetup, sites: InjectionSites) -> Drawn:
    """Another context writes to the tracked output."""
    gpu, cycle, grid = rng.randrange(GPUS), rng.randrange(sites.cycles), setup.plan.grid
    store = draw_store(rng, grid.lines, (grid.rows, grid.cols), setup.config.contexts)
    text = f"GPU {gpu}, cycle {cycle}, context {store.context}, op {store.op}, line {store.line}"
    event = (cycle, partial(inject_foreign_store, gpu=gpu, store=store))
    return Drawn("foreign store", text, Injection(events=(event,)))


def _fields() -> dict[int, list[tuple[str, int, int]]]:
    """Per register: name, first bit and bits of its fields."""
    found = {regs.RANGE_BASE: [("base", 0, LINE_BITS)], regs.RANGE_LIMIT: [("limit", 0, LINE_BITS)]}
    layouts = {regs.RANGE_ATTRIBUTES: regs.RangeAttributes}
    for number in range(regs.PROFILE_COUNT):
        found[regs.PROFILE + number * regs.PROFILE_STRIDE] = [("lines", 0, 16)]
    for number in range(regs.DESCRIPTOR_COUNT):
        for word, layout in enumerate(regs.DESCRIPTOR_LAYOUTS):
            layouts[regs.DESCRIPTOR + number * regs.DESCRIPTOR_STRIDE + WORD_BYTES * word] = layout
    for address, layout in layouts.items():
        found[address] = [(str(name), item.offset, item.width) for name, item in layout]
    return found


_FIELDS = _fields()
DRAWS: Mapping[str, Draw] = {
    "bits": draw_bit,
    **{kind: partial(draw_link, kind) for kind in KINDS},
    "dma": draw_dma,
    "straggler": draw_straggler,
    "program": draw_program,
    "foreign": draw_foreign,
}
"""The kinds of faults by name."""
