"""The page of the map: ``python -m docs.pages map`` writes ``docs/results/map-results.md`` from the maps beside it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from t3sim.inputs.workload import CUSTOM
from t3sim.report.provenance import map_command, shell
from t3sim.run.records import read_record
from t3sim.study.arbitration.gains import COLUMNS, NEAR, rows, verdict
from t3sim.study.arbitration.record import ArbitrationMap, Cell, MappedMachine
from t3sim.study.arbitration.sentences import sentences
from t3sim.study.arbitration.table import CAUSE_TITLES, is_pair, most_of, stage_names
from t3sim.study.suite import OVERLAPPED

from docs.pages import RESULTS
from docs.pages.shared.kept import made_by
from docs.pages.shared.markdown import paragraph, table
from docs.pages.texts.map import CANDIDATES, COSTS, GAINS, HEAD, HOLD_OUT, MOST, NOISE, PAIRS, TAKE_HOME

PAGE = RESULTS / "map-results.md"
FILE = "map.json"
KEPT = RESULTS / "map"
"""A folder of ``t3 map --quick --out`` for each machine that was mapped."""
KEPT_PAIRS = RESULTS / "pairs"
"""Folders of ``t3 map`` with every pair of changes, on one GEMM."""
KEPT_GAINS = RESULTS / "gains"
"""Folders of ``t3 map --axes none``: many GEMMs on the machine as it is."""
KEPT_RULES = RESULTS / "rules"
"""Folders of ``t3 map --axes rule``: candidates for the rule of arbitration."""
KEPT_COSTS = RESULTS / "costs"
"""Folders of ``t3 map --axes cost``: what keeps GEMMs from their bound."""
EXTREMES = 8
"""Rows of either end."""
MOST_COSTS = 3
"""Costs that are named because they are the largest."""


def _kept(folder: Path) -> dict[str, ArbitrationMap]:
    return {path.parent.name: read_record(path, ArbitrationMap) for path in sorted(folder.glob(f"*/{FILE}"))}


def _made(folder: Path, records: Mapping[str, ArbitrationMap]) -> Iterator[str]:
    """Of each record that is not of today's simulator, a sentence that says so."""
    for name, record in records.items():
        yield from (f"`docs/results/{folder.name}/{name}`: {said}" for said in made_by(record, folder / name / FILE))


def take_home() -> tuple[list[str], list[str]]:
    """What a reader takes home of the maps and pairs that are kept: a sentence for each that is of an earlier version
    of the simulator; and those of the records."""
    kept, kept_pairs = _kept(KEPT), _kept(KEPT_PAIRS)
    made = [*_made(KEPT, kept), *_made(KEPT_PAIRS, kept_pairs)]
    maps, pairs = kept.values(), kept_pairs.values()
    of_pairs = (_with_machines(record, filter(is_pair, record.machines)) for record in pairs)
    return made, sentences([*maps, *of_pairs])


def page() -> str:
    """The text of :data:`PAGE`, from the maps that are kept."""
    maps = _kept(KEPT)
    made, said = take_home()
    items = "\n".join(f"- {sentence}" for sentence in said)
    parts = [
        HEAD,
        "\n\n".join(["## What to take home", *(paragraph(text).strip() for text in made), f"{TAKE_HOME}\n{items}\n"]),
        *_section("Does arbitration ever cost time?", GAINS, KEPT_GAINS, gains_of),
        *_section("Which rule", CANDIDATES, KEPT_RULES, _candidates),
        *_section("What else costs", COSTS, KEPT_COSTS, costs_of),
        *(_machine(name, record) for name, record in maps.items()),
        *_section("Pairs of changes", PAIRS.format(count=EXTREMES), KEPT_PAIRS, pairs_of),
    ]
    return "\n".join(parts)


def _section(title: str, text: str, folder: Path, make: Callable[[str, ArbitrationMap], str]) -> Iterator[str]:
    """A section on the records of a folder, each with the command that measures it; nothing without records."""
    records = _kept(folder)
    if not records:
        return
    yield f"## {title}\n\n{text}"
    for name, record in records.items():
        command = _command(record, f"docs/results/{folder.name}/{name}").replace("\n", "\n    ")
        yield f"    {command}\n"
        yield from _notes(record, folder / name / FILE)
        yield make(name, record)


def _notes(record: ArbitrationMap, path: Path) -> Iterator[str]:
    """A line of its own, if the record in ``path`` is not of today's simulator."""
    return (paragraph(text).removesuffix("\n") for text in made_by(record, path))


def _command(record: ArbitrationMap, out: str) -> str:
    """The command that measures a record. Raises ValueError if none does."""
    if (command := map_command(record, out)) is None:
        raise ValueError(f"{out} was measured by no command of t3 map: run the command that made it again")
    return shell(command)


def gains_of(name: str, record: ArbitrationMap) -> str:
    """Every GEMM on the machine as it is, the worst first; and how much a run changes for nothing."""
    picture = f"![Every GEMM, {name}](gains/{name}/gains.svg)"
    figures = table(("GEMM", *(f"{title}:" for title in COLUMNS)), rows(record))
    said = paragraph(f"**{verdict(record)}**")
    return "".join([said, *_hold_out(record), _noise(record), f"{picture}\n\n", figures])


def _hold_out(record: ArbitrationMap) -> Iterator[str]:
    """The verdict on the random GEMMs; nothing of a record without such."""
    drawn = [title for title, gemm in zip(record.titles, record.gemms, strict=True) if gemm.model == CUSTOM]
    if drawn:
        yield paragraph(HOLD_OUT.format(count=len(drawn), verdict=verdict(record, drawn)))


def _noise(record: ArbitrationMap) -> str:
    """How far apart the gains of single launches are, of the GEMMs that arbitration changes."""
    found = sorted(
        (100 * cell.spread, title)
        for title, cell in zip(record.titles, record.machines[0].cells, strict=True)
        if cell.launches > 1 and cell.differs
    )
    if not found:
        return ""
    (middle, _), (most, where) = found[len(found) // 2], found[-1]
    launches = record.machines[0].cells[0].launches
    return paragraph(
        NOISE.format(launches=launches, count=len(found), middle=f"{middle:.2f}", most=f"{most:.2f}", where=where)
    )


def _candidates(name: str, record: ArbitrationMap) -> str:
    """A row for each rule: what every GEMM gains, the worst of them, and how far from its bound one is at most."""
    heads = ("rule", "why", *(f"{title}:" for title in record.titles), "worst:", "most above the bound:")
    return table(heads, (_candidate(machine) for machine in record.machines))


def _candidate(machine: MappedMachine) -> tuple[str, ...]:
    gains = [100 * (cell.gain - 1) for cell in machine.cells]
    above = max(cell.above_bound for cell in machine.cells)
    shown = (f"{gain:+.1f}" for gain in (*gains, min(gains)))
    return (f"`{machine.name}`", machine.why, *shown, f"{100 * above:+.1f}")


def _with_machines(record: ArbitrationMap, machines: Iterable[MappedMachine]) -> ArbitrationMap:
    return record.model_copy(update={"machines": list(machines)})


def pairs_of(name: str, record: ArbitrationMap) -> str:
    """The heat maps, and the pairs at both ends."""
    pictures = sorted((KEPT_PAIRS / name).glob("worth-*.svg"))
    order = sorted(
        _with_machines(record, filter(is_pair, record.machines)).places(), key=lambda place: -place.cell.gain
    )
    ends = [*order[:EXTREMES], *order[EXTREMES:][-EXTREMES:]]
    figures = (
        (f"`{place.machine.name}`", place.gemm, *(f"{time:.3f}" for time in place.cell.pair),
         f"{100 * (place.cell.gain - 1):+.1f}")
        for place in ends
    )  # fmt: skip
    return "\n".join(
        [
            *(f"![{record.machine}, every pair of changes](pairs/{name}/{picture.name})\n" for picture in pictures),
            table(("changes", "GEMM", "GEMM, t3:", "GEMM, t3-mca:", "gain, %:"), figures),
        ]
    )


def costs_of(name: str, record: ArbitrationMap) -> str:
    """Of every GEMM that is not near its bound, how far it is from it, and how much less with each cost taken away."""
    base, *others = record.machines
    far = [index for index, cell in enumerate(base.cells) if cell.above_bound > NEAR]
    if not far:
        return paragraph("No GEMM is that far above its bound.")
    moved = {_cost(machine): [_moved(machine, base, index) for index in far] for machine in others}
    heads = ("GEMM", "t3:", "t3-mca:", *(f"{cost}:" for cost in moved))
    figures = (
        (record.titles[index], *map(_points, (_above_under_t3(base.cells[index]), base.cells[index].above_bound)),
         *(_points(points[row]) for points in moved.values()))
        for row, index in enumerate(far)
    )  # fmt: skip
    means = sorted((fmean(points), cost) for cost, points in moved.items())
    most = ", ".join(f"`{cost}` ({_points(mean)})" for mean, cost in means[:MOST_COSTS] if mean < 0)
    said = paragraph(MOST.format(changes=most)) if most else ""
    whys = "".join(f"- `{_cost(machine)}`: {_settings(machine)}. {machine.why}\n" for machine in others)
    return f"{table(heads, figures)}\n{said}{whys}"


def _cost(machine: MappedMachine) -> str:
    return machine.name.removeprefix("cost-")


def _settings(machine: MappedMachine) -> str:
    return ", ".join(f"`{key}={value}`" for key, value in machine.settings.items())


def _moved(machine: MappedMachine, base: MappedMachine, index: int) -> float:
    return machine.cells[index].above_bound - base.cells[index].above_bound


def _above_under_t3(cell: Cell) -> float:
    return cell.ideal / cell.policies["t3"].speedup - 1


def _points(fraction: float) -> str:
    return f"{100 * fraction:+.1f}"


def _machine(name: str, record: ArbitrationMap) -> str:
    """One machine: what arbitration gains under every change, and who waited for what on the machine as it is."""
    parts = [
        f"## Machine `{record.machine}`\n",
        _provenance(name, record),
        *_notes(record, KEPT / name / FILE),
        *_pictures(name),
        paragraph(
            "Gain of the sublayer, time under t3 over that under t3-mca, in percent beyond 1; behind the slash what "
            "the GEMM alone gains (*worth*). *Rule*: `arbiter.mca`:"
        ).rstrip("\n"),
        "",
        table(("machine", "why", "rule", *(f"{title}:" for title in record.titles)), map(_changed, _shown(record))),
        "The machine as it is:\n",
        table(("GEMM", *HEADS), (_row(*both) for both in zip(record.titles, record.machines[0].cells, strict=True))),
        *_waits(record),
    ]
    return "\n".join(parts)


def _pictures(name: str) -> Iterator[str]:
    """Those that the folder has."""
    for title, picture in (("What sublayers gain", "gain"), ("Every GEMM on every machine", "pairs")):
        if (KEPT / name / f"{picture}.svg").exists():
            yield f"![{title}](map/{name}/{picture}.svg)\n"


def _provenance(name: str, record: ArbitrationMap) -> str:
    settings = "".join(f", `{key}={value}`" for key, value in record.settings.items())
    pairs = sum(map(is_pair, record.machines))
    settings += f", of which {pairs} have two changes and are not in the table" if pairs else ""
    command = " ".join(_command(record, f"docs/results/map/{name}").replace("\\\n", "").split())
    return paragraph(
        f"`{command}`: {len(record.machines)} machines{settings}; {record.hardware} hardware, one GPU mirrored, "
        f"sources {record.sources}, {len(record.failures)} accounting identities broken."
    )


def _shown(record: ArbitrationMap) -> Iterator[MappedMachine]:
    """All but pairs of changes."""
    return (machine for machine in record.machines if not is_pair(machine))


def _changed(machine: MappedMachine) -> tuple[str, ...]:
    cells = (f"{100 * (cell.gain - 1):+.1f} / {100 * (cell.worth - 1):+.1f}" for cell in machine.cells)
    return (f"`{machine.name}`", machine.why, f"`{machine.rule}`", *cells)


HEADS = (
    "GEMM, t3:", "GEMM, t3-mca:", "t3:", "t3-mca:", "ideal:", "wait for loads, %:", "for stores, %:",
    "compute waits, clocks a line:", "communication waits, clocks a line:",
)  # fmt: skip


def _row(title: str, cell: Cell) -> tuple[str, ...]:
    speedups = (cell.policies[name].speedup for name in OVERLAPPED)
    figures = (f"{value:.3f}" for value in (*cell.pair, *speedups, cell.ideal))
    stalls = (_stalls(cell, kind) for kind in ("loads", "stores"))
    return (title, *figures, *stalls, _causes(cell, "compute"), _causes(cell, "communication"))


def _stalls(cell: Cell, kind: str) -> str:
    return " → ".join(f"{100 * policy.stalls[kind]:.1f}" for policy in cell.policies.values())


def _causes(cell: Cell, stream: str) -> str:
    """The two longest waits of a stream under t3, and under t3-mca."""
    return " → ".join(_longest(getattr(cell.policies[policy], stream).blocked) for policy in OVERLAPPED)


def _longest(blocked: Mapping[str, float]) -> str:
    first = sorted(blocked, key=lambda cause: -blocked[cause])[:2]
    return ", ".join(f"{CAUSE_TITLES[cause]} {blocked[cause]:.1f}" for cause in first if blocked[cause] >= 0.05) or (
        "nothing"
    )


def _waits(record: ArbitrationMap) -> Iterator[str]:
    """By stage, on the machine as it is; nothing of records from before that was kept."""
    cells = record.machines[0].cells
    if not all(policy.stages for cell in cells for policy in cell.policies.values()):
        return
    yield paragraph(
        "Which stream waited when, on the machine as it is: memory clocks at the memory slices for each line of the "
        "stream in the whole run, and what most of them were for; by stages of the GEMM, counted from 1."
    ).rstrip("\n")
    for title, cell in zip(record.titles, cells, strict=True):
        columns = [
            getattr(cell.policies[policy], stream).by_stage
            for stream in ("compute", "communication")
            for policy in OVERLAPPED
        ]
        names = stage_names(cell.policies["t3"].stages)
        heads = [f"{stream}, {policy}:" for stream in ("compute", "communication") for policy in OVERLAPPED]
        yield f"\n{title}:\n"
        yield table(("stages", *heads), _by_stage(names, columns))


def _by_stage(names: Sequence[str], columns: Sequence[Sequence[Mapping[str, float]]]) -> Iterator[tuple[str, ...]]:
    return ((name, *(most_of(column[row]) for column in columns)) for row, name in enumerate(names))
