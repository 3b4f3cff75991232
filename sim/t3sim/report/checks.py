"""What each run checked about itself: output elements, accounting identities, tracker, evaluations of the RTL."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from t3sim.common.units import COUNTS, unit_of
from t3sim.run.result import Result

from .figures import SERIES, stacked
from .parts import DASH, Block, Card, Cell, Chart, Item, Mark, Table, Text, Tone, count, plural

Labelled = Sequence[tuple[str, Result]]
"""Results with the names that they have in a report, each name once."""

CLOSED_FORM = "bytes of the {} equal their closed form"
IDENTITIES: Mapping[str, str] = MappingProxyType({
    "gemm_write_closed_form": CLOSED_FORM.format("GEMM's writes"),
    "rs_read_closed_form": CLOSED_FORM.format("reduce-scatter's reads"),
    "rs_write_closed_form": CLOSED_FORM.format("reduce-scatter's writes"),
    "ag_read_closed_form": CLOSED_FORM.format("all-gather's reads"),
    "ag_write_closed_form": CLOSED_FORM.format("all-gather's writes"),
    "wall_is_compute_exposed_idle": "on every GPU, computing + exposed communication + idle = its time",
    "requests_all_answered": "nothing is left in memory",
    "dram_lines_match_bytes": "DRAM moved as many lines as the requests carried bytes for",
    "updates_counted_are_updates_sent": "updates that the unit counted = updates that were sent",
    "tiles_counted_are_tiles_mapped": "tiles that the unit counted = tiles of its tracked chunks",
    "triggers_are_blocks_mapped": "triggers = DMA commands = blocks that the driver mapped",
    "dma_reads_see_all_counted_updates": "no DMA read a line before its last update was performed",
    "no_hardware_error": "no T3 unit reports an error",
})  # fmt: skip
"""Identity -> what holds, as docs/guides/results.md explains it."""
FEW = 8
"""Runs that get a column each; of more, the verdicts are counted."""


def check_cards(results: Sequence[Result]) -> list[Card]:
    """Data check, identities and hardware at a glance."""
    elements = sum(item.data_check.elements for item in results if item.data_check)
    wrong = sum(item.data_check.mismatches for item in results if item.data_check)
    verdicts = [value for item in results for value in item.identities.values()]
    broken, held, unseen = (sum(value is kind for value in verdicts) for kind in (False, True, None))
    cycles = sum(item.rtl.cycles for item in results if item.rtl)
    unit = unit_of(COUNTS, [cycles])
    clocks = f"{unit.text(cycles)} {unit.name.removesuffix('s')} part-cycles".replace("  ", " ")
    return [
        Card(title="Data check", value=f"{count(wrong)} differ" if elements else "none", tone=_tone(wrong, elements),
             note=f"of {count(elements)} output elements, compared bit by bit" if elements else
             "no run here carried data"),
        Card(title="Accounting identities", value=f"{count(held)} hold", tone=_tone(broken, held + broken),
             note=f"{count(broken)} broken, {count(unseen)} not observed"),
        Card(title="T3 hardware", value="compiled Verilog" if cycles else "golden model",
             note=clocks if cycles else "cycle-exact, in Python"),
    ]  # fmt: skip


def _tone(wrong: int, seen: int) -> Tone:
    return "bad" if wrong else "good" if seen else ""


def checks_block(results: Labelled) -> Block:
    """Data check and identities of every run."""
    return Block(title="Data check and identities", items=[_data_table(results), _identity_table(results)])


def _data_table(results: Labelled) -> Table | Text:
    rows = [
        (name, count(check.elements), Mark(count(check.mismatches), "bad" if check.mismatches else "good"))
        for name, result in results
        if (check := result.data_check)
    ]
    if not rows:
        return Text(text="No run here carried data: computed policies and mirrored rings have none to check.")
    return Table(
        caption="Output elements compared bit by bit with the reference reduction",
        head=("run", "elements", "mismatches"), rows=rows,
    )  # fmt: skip


def _identity_table(results: Labelled) -> Table:
    names = list(dict.fromkeys(name for _, result in results for name in result.identities))
    if len(results) <= FEW:
        shown = [(name, result.identities) for name, result in results if result.identities]
        return Table(
            caption="Accounting identities: what independent parts of the simulation counted must agree",
            head=("identity", *(name for name, _ in shown)),
            rows=[
                (IDENTITIES.get(name, name), *(_verdict(found, name) for _, found in shown)) for name in names
            ],
        )  # fmt: skip
    return Table(
        caption=f"Accounting identities of {plural(len(results), 'run')}",
        head=("identity", "hold", "broken", "not observed", "broken in"),
        rows=[(IDENTITIES.get(name, name), *_counts(results, name)) for name in names],
        prose=(4,),
    )


def _verdict(found: Mapping[str, bool | None], name: str) -> Cell:
    if name not in found:
        return DASH
    return {True: Mark("✓ holds", "good"), False: Mark("✗ broken", "bad"), None: Mark("not observed")}[found[name]]


def _counts(results: Labelled, name: str) -> tuple[Cell, ...]:
    held, unseen = (sum(result.identities.get(name, "") is kind for _, result in results) for kind in (True, None))
    broken = [label for label, result in results if result.identities.get(name) is False]
    where = ", ".join(broken[:3]) + (f" and {len(broken) - 3} more" if len(broken) > 3 else "")
    return count(held), Mark(count(len(broken)), "bad" if broken else "good"), count(unseen), where or DASH


def hardware_block(results: Labelled) -> Block:
    """What the T3 hardware did: the tracker's counts, and how often the compiled parts were evaluated."""
    items: list[Item] = []
    tracked = [(name, result) for name, result in results if result.tracker]
    items.append(_tracker_table(tracked) if tracked else Text(text="No run here tracks its output: no policy of T3."))
    compiled = [(name, result) for name, result in results if result.rtl]
    if compiled:
        items.append(_evaluations(compiled))
    else:
        items.append(
            Text(text="The T3 hardware was the golden model, so no compiled Verilog was evaluated; `--hardware rtl` "
                 "runs the compiled Verilog in the same cycles.")
        )  # fmt: skip
    return Block(title="Tracker and RTL evaluations", items=items)


def _tracker_table(results: Labelled) -> Table:
    fields: dict[str, Callable[[Result], object]] = {
        "updates counted (lines)": lambda r: r.tracker and r.tracker.updates,
        "wavefront tiles complete": lambda r: r.tracker and r.tracker.tiles,
        "DMA triggers": lambda r: r.tracker and r.tracker.triggers,
        "blocks fired by tile": lambda r: r.blocks and r.blocks.by_tile,
        "blocks fired by chunk": lambda r: r.blocks and r.blocks.by_chunk,
        "peak tracker entries": lambda r: r.tracker and r.tracker.peak_entries,
        "overflowed chunks": lambda r: r.tracker and r.tracker.overflowed_chunks,
    }
    return Table(
        caption="What the tracker counted and fired, summed over the simulated GPUs",
        head=("run", *fields),
        rows=[(name, *(_number(get(result)) for get in fields.values())) for name, result in results],
    )


def _number(value: object) -> str:
    return count(value) if isinstance(value, int) else DASH


def _evaluations(results: Labelled) -> Chart:
    """Evaluated cycles by part; of many runs their sum."""
    records = [(name, result.rtl) for name, result in results if result.rtl]
    if len(records) > FEW:
        name = f"all {len(records)} runs"
        sums = {part: sum(rtl.evaluated_by_part.get(part, 0) for _, rtl in records) for part in _parts(results)}
        cycles = sum(rtl.cycles for _, rtl in records)
        shown = {name: (sums, cycles)}
    else:
        shown = {name: (rtl.evaluated_by_part, rtl.cycles) for name, rtl in records}
    parts = [part for part in _parts(results) if any(found.get(part) for found, _ in shown.values())]
    unit = unit_of(COUNTS, (sum(found.values()) for found, _ in shown.values()))
    title = unit.title("part-cycles evaluated")
    shares = [f"{sum(found.values()) / cycles:.2%} of all" if cycles else "" for found, cycles in shown.values()]
    return Chart(
        title="Evaluations of the compiled Verilog, by part",
        summary="Clock cycles in which a part of the T3 unit had work and was evaluated; the others are skipped, "
        "because an idle part changes nothing. " + "; ".join(
            f"{name}: {share}" for name, share in zip(shown, shares, strict=True)) + ".",
        figure=stacked(
            list(shown),
            {part: [found.get(part, 0) / unit.size for found, _ in shown.values()] for part in parts},
            {part: SERIES[index % len(SERIES)] for index, part in enumerate(parts)}, title, shares,
        ),
        table=Table(
            caption="Part-cycles of the compiled Verilog: all instances of all parts on all simulated GPUs",
            head=("", *shown),
            rows=[
                ("all", *(count(cycles) for _, cycles in shown.values())),
                ("skipped, idle", *(count(cycles - sum(found.values())) for found, cycles in shown.values())),
                ("evaluated", *(count(sum(found.values())) for found, _ in shown.values())),
                *((f"evaluated: {part}", *(count(found.get(part, 0)) for found, _ in shown.values()))
                  for part in parts),
            ],
        ),
    )  # fmt: skip


def _parts(results: Labelled) -> list[str]:
    return list(dict.fromkeys(part for _, result in results if result.rtl for part in result.rtl.evaluated_by_part))
