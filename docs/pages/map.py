"""The page of the map: ``python -m docs.pages map`` writes ``docs/results/map-results.md`` from the maps beside it."""

from collections.abc import Collection
from pathlib import Path

from t3sim.report.provenance import map_command, shell
from t3sim.run.records import read_record
from t3sim.study.arbitration.gains import CAUSE, COLUMNS, rows, verdict
from t3sim.study.arbitration.record import PUBLISHED_PAIR, ArbitrationMap, Cell, MappedMachine, Place
from t3sim.study.arbitration.table import CAUSE_TITLES, nearest, reached
from t3sim.study.suite import OVERLAPPED

from docs.pages import RESULTS
from docs.pages.markdown import paragraph, table

PAGE = RESULTS / "map-results.md"
KEPT = RESULTS / "map"
"""A folder of ``t3 map --out`` for each machine that was mapped."""
KEPT_GAINS = RESULTS / "gains"
"""Folders of ``t3 map --axes none``: many GEMMs on the machine as it is."""
MOST = 10
"""Pairs and combinations that are shown, where arbitration is worth most."""

HEAD = """\
# Where arbitration pays: what was measured

[`t3 map`](../guides/map.md) on machines whose records are beside this page. *GEMM* is its time over the sequential
GEMM's; *worth* is the GEMM's time under t3 over that under t3-mca, *gain* the same of the whole sublayer; the other
speedups are over `sequential`. Waits of CUs are in percent of the sequential GEMM's time, under sequential → t3 →
t3-mca. Waits of streams are memory clocks at the memory slices for each line, the two longest, under t3 → t3-mca.

    t3 map --quick --set arbiter.mca=paper --out docs/results/map/paper
    t3 map --quick --set arbiter.mca=paper --machine paper-accelsim --sublayers fc2 \\
        --axes dispatch,starvation,threshold,compute --out docs/results/map/paper-accelsim
    python -m docs.pages map

measure all of it again, and write this page. What is here is the paper's rule of arbitration (`arbiter.mca = paper`),
on a tracker of four banks, as the hardware of the paper's machine had it then; it has eight now.
"""

GAINS = """\
The machine as it is, its arbiter by backlog, golden hardware, one GPU mirrored. *Gain* is the time of the sublayer
under t3 over that under t3-mca, in percent beyond 1. The bound is `ideal-overlap`: the sequential run's max(GEMM,
reduce-scatter) + all-gather. Near-memory reduction spares the reduce-scatter its reads, so a sublayer whose
reduce-scatter is the longer part may be below it. Worst first; measured by
"""
MEANING = """\
**The arbiter decides before the machine does.** The limit of 64 clocks and 16 lines guarantees communication 341
GB/s, a third of the memory: with it, or with a low threshold alone, {fc2} gains at most {fc2_mild} % on any
machine here. Called strict is an arbiter with a threshold of 10 lines that lets one line through after 1000
clocks. What it wins it can lose: it is strict after the GEMM, too, so on 32 channels the GEMM of {fc2} is
{memory_worth} % shorter than under t3, the all-gather {memory_gather} % longer, and the sublayer {memory_loss} %
longer. On `paper-accelsim` it is worth
{accelsim_worth} % at most, and gains {accelsim_gain} %.

**When you need MCA:** where the GEMM comes near the memory's limit, so that a slab that is late stalls the CUs,
and the reduce-scatter is the shorter part, a strict arbiter gains {fc2_strict} % on {fc2} on the machine as it is,
{fc2_queue} % with DRAM queues of 16 entries, {fc2_compute} % with twice the matrix rate, and {fc2_both} % with
both.

**When you do not:** where the GEMM tolerates the wait (two slabs prefetched: worth {fc2_prefetch} % of the GEMM)
or waits for its own stores (workgroups in lockstep: {fc2_lockstep} %), and above all where the reduce-scatter is
longer than the GEMM: {op} then takes {op_strict} % longer, because communication that was held back comes later. The
rule of the backlog (`arbiter.mca = backlog`), which this map led to, lets the two take turns there.
"""
"""A map of a changed arbiter may ask for other words."""

STRICT = ("starvation-rare", "threshold-10")
"""The changes of the strictest arbiter of the map."""
MACHINES = ("paper", "paper-accelsim")
FC2, OP = "t-nlg fc2 TP 8", "t-nlg op TP 8"


def _kept(folder: Path) -> dict[str, ArbitrationMap]:
    return {path.parent.name: read_record(path, ArbitrationMap) for path in sorted(folder.glob("*/map.json"))}


def page() -> str:
    """The text of :data:`PAGE`, from the maps that are kept."""
    maps = _kept(KEPT)
    sections = "".join(_section(name, record) for name, record in maps.items())
    bound = _bound(maps.values())
    return f"{HEAD}\n{_gains()}{sections}## When arbitration is needed\n\n{bound}{_meaning(maps.values())}"


def _gains() -> str:
    """Whether arbitration ever costs time: every GEMM on the machine as it is, the worst first."""
    records = _kept(KEPT_GAINS)
    if not records:
        return ""
    commands = "".join(
        f"    {shell(map_command(record, f'docs/results/gains/{name}'))}\n".replace("\n        ", "\n            ")
        for name, record in records.items()
    )
    parts = [f"## Does arbitration ever cost time?\n\n{GAINS}\n{commands}"]
    for name, record in records.items():
        parts += [
            paragraph(f"**{name}**: {verdict(record)}").rstrip("\n") + "\n",
            f"![Every GEMM, {name}](gains/{name}/gains.svg)\n",
            table(("GEMM", *(f"{title}:" for title in COLUMNS), CAUSE), rows(record)),
        ]
    return "\n".join(parts) + "\n"


def _section(name: str, record: ArbitrationMap) -> str:
    title = f"## Machine `{record.machine}`: {', '.join(record.titles)}\n\n"
    return title + _command(name, record) + "".join(_gemm(name, record, index) for index in range(len(record.gemms)))


def _command(name: str, record: ArbitrationMap) -> str:
    quick = "a quick map" if record.quick else "a whole map"
    settings = "".join(f", `{key}={value}`" for key, value in record.settings.items())
    text = paragraph(
        f"Measured: {len(record.machines)} machines ({quick}){settings}; {record.hardware} hardware, one GPU mirrored, "
        f"sources {record.sources}, {len(record.failures)} accounting identities broken. Record and pictures: "
        f"`docs/results/map/{name}`."
    )
    return f"{text}![Every GEMM on every machine]({_file(name, 'pairs')})\n\n"


def _file(name: str, picture: str) -> str:
    return f"map/{name}/{picture}.svg"


def _gemm(name: str, record: ArbitrationMap, index: int) -> str:
    """One GEMM: its changes one at a time, where arbitration is worth most, its picture."""
    title = record.titles[index]
    singles = [item for item in record.machines if len(item.changes) < 2]
    others = sorted((item for item in record.machines if len(item.changes) > 1), key=lambda m: -m.cells[index].worth)
    picture = f"worth-{title.lower().replace(' ', '-')}"
    heads = ("machine", "why", *HEADS)
    return (
        f"### {title}\n\n" + table(heads, (_row(item, index) for item in singles))
        + "\n" + paragraph(f"Pairs and combinations where arbitration is worth most, of {len(others)}:")
        + table(heads, (_row(item, index) for item in others[:MOST]))
        + f"\n![What arbitration is worth, {title}]({_file(name, picture)})\n\n"
    )  # fmt: skip


HEADS = (
    "GEMM, t3:", "GEMM, t3-mca:", "worth:", "t3:", "t3-mca:", "gain:", "ideal:", "wait for loads, %:", "for stores, %:",
    "compute waits, clocks a line:", "communication waits, clocks a line:",
)  # fmt: skip


def _row(machine: MappedMachine, index: int) -> tuple[str, ...]:
    cell = machine.cells[index]
    speedups = (cell.policies[name].speedup for name in OVERLAPPED)
    figures = (*cell.pair, cell.worth, *speedups, cell.gain, cell.ideal)
    stalls = (_stalls(cell, kind) for kind in ("loads", "stores"))
    return (
        f"`{machine.name}`", machine.why, *(f"{value:.3f}" for value in figures), *stalls,
        _causes(cell, "compute"), _causes(cell, "communication"),
    )  # fmt: skip


def _stalls(cell: Cell, kind: str) -> str:
    return " → ".join(f"{100 * policy.stalls[kind]:.1f}" for policy in cell.policies.values())


def _causes(cell: Cell, stream: str) -> str:
    """The two longest waits of a stream under t3, and under t3-mca."""
    texts = []
    for policy in OVERLAPPED:
        blocked = getattr(cell.policies[policy], stream).blocked
        first = sorted(blocked, key=lambda cause: -blocked[cause])[:2]
        texts.append(
            ", ".join(f"{CAUSE_TITLES[cause]} {blocked[cause]:.1f}" for cause in first if blocked[cause] >= 0.05)
        )
    return " → ".join(text or "nothing" for text in texts)


def _meaning(maps: Collection[ArbitrationMap]) -> str:
    """The sentences, with figures of FC-2 and OP on the paper's machine, and of Accel-Sim's."""
    places = {name: [place for item in maps if item.machine == name for place in item.places()] for name in MACHINES}
    cells = {(gemm, frozenset(machine.changes)): cell for machine, gemm, cell in places["paper"]}
    accelsim = [place.cell for place in places["paper-accelsim"]]

    def fc2(*changes: str) -> Cell:
        return cells[FC2, frozenset(changes)]

    memory = fc2(*STRICT, "memory-32")
    mild = max(cell.gain for (gemm, changes), cell in cells.items() if gemm == FC2 and not changes >= {*STRICT})
    figures = {
        "fc2_strict": fc2(*STRICT).gain, "fc2_compute": fc2(*STRICT, "compute-2048").gain,
        "fc2_queue": fc2(*STRICT, "queue-16").gain, "fc2_both": fc2(*STRICT, "compute-2048", "queue-16").gain,
        "fc2_prefetch": fc2(*STRICT, "prefetch-2").worth,
        "fc2_lockstep": fc2(*STRICT, "dispatch-stage", "release-performed").worth, "fc2_mild": mild,
        "memory_worth": 2 - 1 / memory.worth, "memory_gather": memory.policies["t3-mca"].all_gather,
        "memory_loss": 1 / memory.gain, "accelsim_worth": max(cell.worth for cell in accelsim),
        "accelsim_gain": max(cell.gain for cell in accelsim),
        "op_strict": 1 / cells[OP, frozenset(STRICT)].gain,
    }  # fmt: skip
    texts = {name: f"{100 * (value - 1):.1f}" for name, value in figures.items()} | {"fc2": FC2, "op": OP}
    return "\n".join(paragraph(part.format(**texts)).rstrip("\n") + "\n" for part in MEANING.split("\n\n"))


def _bound(maps: Collection[ArbitrationMap]) -> str:
    """Whether the published pair is in one of the maps, what is nearest to it, and what is the most that was found."""
    t3, mca = PUBLISHED_PAIR
    places = [(record, place) for record in maps for place in record.places()]
    close = nearest(place for _, place in places)
    found = {
        "The most that arbitration is worth": max(places, key=lambda item: item[1].cell.worth),
        "the least": min(places, key=lambda item: item[1].cell.worth),
        "the most that a sublayer gains": max(places, key=lambda item: item[1].cell.gain),
        "nearest to the pair": next(item for item in places if item[1] is close),
    }
    there = "is in the map" if reached([close]) else "lies nowhere in the map"
    text = "; ".join(f"{title}: {_place(*item)}" for title, item in found.items())
    return paragraph(
        f"The published pair, a GEMM {t3} times as long under t3 and {mca} under t3-mca (arbitration worth "
        f"{t3 / mca:.3f}), {there}. {text}."
    )


def _place(record: ArbitrationMap, place: Place) -> str:
    machine, gemm, cell = place
    t3, mca = cell.pair
    where = f"{gemm} on `{record.machine}` with `{machine.name}`"
    return f"worth {cell.worth:.3f}, gain {cell.gain:.3f}, a GEMM of {t3:.3f} and {mca:.3f} ({where})"
