"""How large the hardware is, and how deep: ``python -m docs.pages area`` writes the page again, after a change."""

import json
from dataclasses import replace
from functools import cache

from amaranth.hdl import Shape
from t3hdl.config import PRESETS, T3Config
from t3hdl.export.depth import BUDGET, budget
from t3hdl.export.synthesis import Area, area, yosys_version
from t3hdl.export.verilog import PARTS, write_verilog
from t3hdl.interface.parts import TABLE
from t3hdl.tracker.entry_table import entry_layout
from t3sim.validation.memory_rate.record import DEEPER

from docs.pages import REFERENCE, RESULTS
from docs.pages.shared.markdown import paragraph, table
from docs.pages.shared.sizes import Design, digest_of, kept_sizes, measure

PAGE = REFERENCE / "area.md"
KEPT = RESULTS / "area" / "measured.json"
"""Sizes of all parts on the page."""
_BEFORE = RESULTS / "area" / "before.json"
"""Parts of ``paper`` before accesses were bursts: the Verilog that its commit wrote, measured by today's ``area``."""
SHOWN = ("paper", "paper-fit", "small", "fpga")
"""Presets on the page; those that are cut to the size of one FPGA are measured there."""
HELD = ("paper", "paper-fit")
"""Presets that are held against the budget."""
PAPER_BYTES = 19_000
"""The paper's tracker: 256 entries of 8 wavefronts."""

_HEAD = """\
# Area

What each part comes to, before a technology is chosen: two-input gates, flip-flops, and memories, which stay macros
with one read and one write port (each is a module of its own in the Verilog). Yosys {version} counts, with
`abc -g gates`. `python -m docs.pages area` writes this page, and keeps each size with a digest of the Verilog that it
is of (`docs/results/area/measured.json`), which a test compares with the hardware. The unit's row is the sum of its
parts. It leaves out the little logic between them: ORs of faults, counts and the first of refusals, and `idle` and
`wake_at`, the earliest of all slices. Nor is that logic in *depth*. Each bank group of the memory has one `nmc`;
`crossing` is needed only for a host bus with a clock of its own.

*Depth* is the longest way from a register, a memory or an input to the next one, in gates, of a second netlist: of the
same logic, mapped for few gates in a row (`abc -g gates -script "+strash;if,-g;st;balance;map"`) as a synthesis for a
clock would, with as many gates as its own column says. A memory without a clock counts one gate for each bit of its
address. What depth is held against is [below](#depth-and-budget).
"""

_REASONS = """\
The paper does not say what its bits are. Entries and marks are fewer for three reasons. An entry holds no address: a
tile is named by its place in the output, and the output's addresses are kept once, in the ranges of slices and egress.
It holds no threshold: that comes from one profile of {profile} numbers for all tiles. And {index} bits of the tile's
name are the number of its set. On the other side, context and epoch in the tag and the marks of overflow are in no
entry of the paper: they let several jobs and two uses of an output be in flight, and lose nothing on an overflow. With
the profiles and what is kept for live chunks, most of it once in each of {banks} banks so that all may count in every
cycle, the tracker has {more:.0%} more than the paper's."""

_COLUMNS = (
    "part", "instances:", "gates:", "flip-flops:", "memories:", "memory bits:", "depth:", "gates at this depth:",
)  # fmt: skip

_BUDGET = """\
A budget says how many gates may be in a row if a part is to reach 1 GHz: {budget}, 25 ps for each with its share of
register and wires, for every part (`hdl/t3hdl/export/depth.py`). That is an assumption: no technology was chosen, and
nothing was placed. A part that is above its budget has no reason yet to run at 1 GHz. The verdict is that of the
presets for an accelerator, {presets}; `small` is made for proofs and simulation, its ALU of {small} stages included."""


_PROTECT = """\
The presets have no `protect`. With it memories have check bits, and every register has check bits or shares a parity.
That is logic behind what a register takes, so that it also makes ways longer. Of `paper`, without it and with it:"""


_BEFORE_TEXT = """\
Of `paper`, an instance of each part in hardware {version} (commit {commit}), the last before accesses were bursts that
carry their epoch and a tile counted once, and today. The Verilog of then was measured as that of today is. Slices,
leaves and roots carry epochs and the lines of bursts. The tracker has {banks} banks instead of {banks_before}, with
{roots} roots of the token network instead of {roots_before}, and counts lines that overflow by chunk, so that no access
of a GEMM waits for it. The trigger has the tile marks, and counts the backlog by which slices arbitrate. The NMC unit
has {stages} stages instead of {stages_before}. The budget of depth is younger than the hardware of then. Depths that
were quoted for the hardware of then, 63 gates in the slice, 72 in the NMC unit, 70 in the tracker, 88 in the matcher
and 90 in the trigger, are not comparable. *Depth* in this table is that of the netlist mapped for few gates in a row,
on both sides of an arrow, and the budget has been held against that netlist since there is one. Mapped for few gates
instead (`abc -g gates` alone), the Verilog of then has 63 in a row in the slice, 75 in the NMC unit, 79 in the matcher
and 97 in the trigger; the tracker was not mapped so."""


_QUEUES = """\
Short bursts of two contexts can fill the token queues of `paper`, of {depth} tokens, and then wait: at the memory's
rate, and in one regime at their sources' rate, too ([tracker
waits](../results/tracker-waits.md#deeper-token-queues)). With deeper ones, one of the {slices} slices, and
the unit with them. Tracker and registers hold numbers that grow with the depth, too; they were not measured."""


def instances(config: T3Config) -> dict[str, int]:
    """Instances of each part in the unit; 0 for parts outside it. Without parts that are made of parts alone."""
    wholes = {name for name, part in TABLE.items() if part.wires}
    return {
        name: part.count(config)
        for name, part in TABLE.items()
        if name not in wholes and (part.within not in TABLE or part.within in wholes)
    }


def designs() -> list[Design]:
    """Every part of every configuration on the page, once; elaborating them takes minutes."""
    configs = [*(PRESETS[name] for name in SHOWN), replace(PRESETS["paper"], protect=True)]
    deeper = {_design(config, "slice") for config in with_deeper_queues(PRESETS["paper"])}
    return sorted({_design(config, name) for config in configs for name in instances(config)} | deeper)


def page() -> str:
    """The text of :data:`PAGE`. Parts that changed since :data:`KEPT` was written are measured, and kept there.

    Takes minutes, or most of an hour if all parts changed. Raises SynthesisError if Yosys is missing, and ValueError
    if what is kept cannot be read.
    """
    measure(designs(), KEPT)
    paper = PRESETS["paper"]
    sections = [_HEAD.format(version=yosys_version())]
    sections += [f"## {name}\n\n{sizes_table(PRESETS[name])}" for name in SHOWN]
    return "\n".join(
        [
            *sections,
            depth_section(),
            protect_section(paper),
            queues_section(paper),
            before_section(paper),
            tracker_section(paper),
        ]
    )


def depth_section() -> str:
    """The depth of every part in every preset that is shown, against its budget."""
    rows: list[tuple[object, ...]] = []
    for name in instances(PRESETS["paper"]):
        depths = [_size(PRESETS[shown], name).depth for shown in SHOWN]
        most, deepest = budget(name), max(_size(PRESETS[shown], name).depth for shown in HELD)
        rows.append((name, *depths, most, _verdict(deepest, most)))
    presets = " and ".join(f"`{name}`" for name in HELD)
    text = _BUDGET.format(budget=BUDGET, presets=presets, small=PRESETS["small"].nmc_latency)
    heads = ("part", *(f"{name}:" for name in SHOWN), "budget:", "")
    return f"## Depth and budget\n\n{paragraph(text)}{table(heads, rows)}"


def protect_section(plain: T3Config) -> str:
    """What protection comes to in each part that has any, and in the unit."""
    protected, rows, sums = replace(plain, protect=True), [], [Area(), Area()]
    for name, number in instances(plain).items():
        sizes = [_size(config, name) for config in (plain, protected)]
        sums = [total + one * number for total, one in zip(sums, sizes, strict=True)]
        if sizes[0] != sizes[1]:
            most = budget(name)
            rows.append((name, *_pairs(sizes), str(most), _verdict(sizes[1].depth, most)))
    heads = ("part", "gates:", "flip-flops:", "memory bits:", "depth:", "budget:", "")
    rows.append(("**unit**", *_pairs(sums), "", ""))
    return f"## What `protect` costs\n\n{paragraph(_PROTECT)}{table(heads, rows)}"


def with_deeper_queues(plain: T3Config) -> list[T3Config]:
    """The configurations of :func:`queues_section` beside the plain one."""
    return [replace(plain, token_queue=depth) for depth in DEEPER]


def queues_section(plain: T3Config) -> str:
    """What a slice comes to with deeper token queues."""
    unit = sum(_size(plain, name).gates * number for name, number in instances(plain).items())
    rows, before = [], _size(plain, "slice").gates
    for config in (plain, *with_deeper_queues(plain)):
        one = _size(config, "slice")
        depth = (one.depth, budget("slice"))
        more = (one.gates - before) * plain.slices
        whole = f"{unit + more:,} (+{more / unit:.0%})" if more else f"{unit:,}"
        rows.append((config.token_queue, f"{one.gates:,}", f"{one.flip_flops:,}", *depth, _verdict(*depth), whole))
    heads = ("`token_queue`:", "gates:", "flip-flops:", "depth:", "budget:", "", "gates of the unit:")
    text = _QUEUES.format(depth=plain.token_queue, slices=plain.slices)
    return f"## Deeper token queues\n\n{paragraph(text)}{table(heads, rows)}"


def before_section(config: T3Config) -> str:
    """The parts of the hardware before bursts, and of that of today."""
    before = json.loads(_BEFORE.read_text(encoding="utf-8"))
    rows, sums = [], [Area(), Area()]
    for name, number in instances(config).items():
        sizes = [Area(**before["parts"][name]), _size(config, name)]
        numbers = [before["instances"].get(name, number), number]
        sums = [total + one * count for total, one, count in zip(sums, sizes, numbers, strict=True)]
        rows.append((name, *_pairs(sizes)))
    rows.append(("**unit**", *_pairs(sums)))
    text = _BEFORE_TEXT.format(
        version=before["version"], commit=before["commit"], banks=config.tracker_banks,
        banks_before=before["tracker_banks"], stages=config.nmc_latency, stages_before=before["nmc_latency"],
        roots=config.roots, roots_before=before["instances"]["root"],
    )  # fmt: skip
    heads = ("part", "gates:", "flip-flops:", "memory bits:", "depth:")
    return f"## Before bursts\n\n{paragraph(text)}{table(heads, rows)}"


def _verdict(depth: int, most: int) -> str:
    return "met" if depth <= most else f"**missed** by {depth - most}"


def _pairs(sizes: list[Area]) -> list[str]:
    fields = ("gates", "flip_flops", "memory_bits", "depth")
    return [" -> ".join(f"{getattr(size, field):,}" for size in sizes) for field in fields]


def sizes_table(config: T3Config) -> str:
    """A row per part, one instance each, and the sum of all instances in the unit."""
    rows: list[tuple[str, ...]] = []
    total = Area()
    for name, number in instances(config).items():
        one = _size(config, name)
        total += one * number
        rows.append(_row(name, str(number or ""), one))
    return table(_COLUMNS, [*rows, _row("**unit**", "", total)])


def _size(config: T3Config, name: str) -> Area:
    """Of one instance of a part: what is kept, or measured now."""
    design = _design(config, name)
    return kept_sizes(KEPT).get(digest_of(design)) or area(*design)


@cache
def _design(config: T3Config, name: str) -> Design:
    """Of a part."""
    top = f"t3_{name}"
    return write_verilog(PARTS[name](config), top), top


def _row(name: str, number: str, size: Area) -> tuple[str, ...]:
    values = (size.gates, size.flip_flops, size.memories, size.memory_bits, size.depth, size.fast_gates)
    return name, number, *(f"{value:,}" for value in values)


def tracker_section(config: T3Config) -> str:
    """The tracker's memory beside the paper's."""
    fields = {str(name): Shape.cast(place.shape).width for name, place in entry_layout(config)}
    entry, entries = sum(fields.values()), config.tracker_sets * config.tracker_ways
    marks = config.tracker_sets * config.descriptors
    memories = _size(config, "tracker").memory_bits
    rest = memories - entries * entry - marks
    title = f"one wavefront's entry: valid {fields['valid']}, tag {fields['tag']}, count {fields['count']}"
    rows = [
        (title, entry, ""),
        _memory(f"entries: {config.tracker_sets} sets x {config.tracker_ways} ways", entries * entry),
        _memory(f"marks of overflow: {config.tracker_sets} sets x {config.descriptors} chunks", marks),
        _memory("both", entries * entry + marks),
        _memory("lines pending, addends and descriptor, and counts of live chunks; profiles", rest),
        _memory("all memories of the tracker", memories),
        _memory("the paper", PAPER_BYTES * 8),
    ]
    reasons = paragraph(
        _REASONS.format(
            profile=4 * config.wavefronts,
            index=config.set_bits,
            banks=config.tracker_banks,
            more=memories / (PAPER_BYTES * 8) - 1,
        )
    )
    return f"""\
## The tracker's memory beside the paper's

The paper gives its tracker 256 entries, one per workgroup, and 19 KB: 76 bytes per entry, or 76 bits for each of a
workgroup's 8 wavefronts. Here:

{table(("", "bits:", "bytes:"), rows)}
{reasons.rstrip()}

Not in this sum: the bounds by which a tile's live chunk is found, which are flip-flops, and the blocks and descriptors
of the trigger, which stand for the paper's DMA table.
"""


def _memory(title: str, bits: int) -> tuple[str, ...]:
    return title, f"{bits:,}", f"{bits // 8:,}"
