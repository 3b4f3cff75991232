"""The page of faults: ``python -m docs.pages faults`` writes ``docs/results/faults.md`` from the campaign beside it."""

from pathlib import Path

from t3sim.faults.outcome import Outcome
from t3sim.faults.report import VARIANTS, Record, table_cells
from t3sim.run.records import read_record

from docs.pages import RESULTS
from docs.pages.shared.hardware import measured_on
from docs.pages.shared.markdown import paragraph, table

PAGE = RESULTS / "faults.md"
KEPT = PAGE.parent / "faults" / "faults.json"
"""The file of ``t3 faults --out`` that is kept beside the page."""

_HEAD = """\
# Faults

`t3 faults` puts one fault into each of many small co-simulations, and tells what became of it. This page is written by
`python -m docs.pages faults` from `docs/results/faults/faults.json`, which a run of

    t3 faults --faults {count} --seed {seed} --out docs/results/faults

made; the plain system gets a tenth of the faults. The same command gives the same file, whatever the number of
workers (`--jobs`). Finished runs are kept in the cache folder, so an interrupted campaign goes on. `--classes` and
`--protect` / `--no-protect` choose a part; `t3 faults --repeat lost:17` runs one fault again and prints what it was and
what named it.

## What runs

{workload}: a ring of {gpus} GPUs on the `toy` machine, T3-MCA, compiled RTL in its `small` configuration. All lines
carry data; chunks are of unlike size and more tiles are open than the tracker has entries, so blocks fire tile by
tile and by chunk. It runs twice:

- **protected**: `protect` (SECDED, parity) and link retries (`link.retry`), see [the contract](../hardware/rules.md)
  and [models.md](../guides/models.md).
- **plain**: neither.

The trigger's watchdog waits for {patience:,} cycles. A run ends {tail} cycles after all GPUs have their results, or
after {limit:,} cycles.

## What is injected

One fault per run; GPU, place and cycle are drawn from the seed, the kind and the number of the fault alone.

- **Bit of the tracker, of the trigger**: any register bit and any bit of any memory row is inverted once, at any cycle
  of the run. A tool rebuilds the netlist with an exclusive OR before every stored bit
  (`t3hdl.export.single_event_upsets`), and a test counts its places against Yosys' flip-flops and memory bits: none is
  left out, however short it lives. Half of these faults are spread over bits; for the other half a register or memory
  is drawn first, so that small ones are hit, too.
- **Bit of the slices, of the token network, of the registers, of the NMC units**: likewise, but each in a bench of its
  own, because of an access the co-simulation's memory knows only the tag. Slices and token network carry the stores of
  two contexts to a tracker; the registers a driver's program and what it reads after it; an NMC unit updates of all
  types and operations. All that comes out is compared: accesses, tiles, chunks and counts; answers and broadcasts;
  lines and reports. Afterwards an error that the part reports is looked for, as a driver would.
- **Lost, repeated, reordered packet**: on the ring link, of the reduce-scatter and of the all-gather.
- **Stalled DMA engine**: it reads nothing from some cycle on, for a while or for ever.
- **Straggling GPU**: a clock or link of 5 to 80 %, a start up to 20 us late, or no start.
- **Wrong program**: one bit of a field of a RANGE, PROFILE or DESCRIPTOR register is written wrongly.
- **Foreign store**: a STORE, ADD, MIN or MAX of another context to a line of the tracked output.

## How a run is judged

Against the same run without the fault: every bit of every GPU's output, the DMA commands given, and the registers
UPDATES, DONE_MASK and CONTEXT; and where the time is the same also STATUS, TILES, TRIGGERS, PEAK_ENTRIES, OVERFLOWED,
PEAK_READY and COMMAND_STALL. A chunk that is reported complete before its last update is counted, and a block that is
read too early, are wrong, too. A run that only takes another time is right. A straggler alters the order of stores, and
with it how full the tables get: there those seven registers are not compared, as they may differ in a right run that
happens to end in the same cycles.

| outcome | |
|---|---|
| masked | correct result, no error reported |
| corrected | right, and `ERRORS.corrected` is set, or the link dropped or resent a packet |
| detected | something names it, as listed below |
| silent hang | it does not end, and nothing says why |
| silent corruption | it ends with a wrong result or count, and nothing says so |

What names a fault: `uncorrectable`, POISONED, STUCK (the watchdog), `unmatched`, `over_count`, `over_total`, a
violation, a DMA address outside the buffer, a refused register write, or a buffer that overflows.
"""

_NOT_COVERED = """\
## What this does not say

- Single faults: no two at a time, no stuck bits, no faults of gates, clocks or resets.
- Matchers are not hit here (`matcher.wrong-bit-is-told` is proven), nor is what `protect` does not cover
  ([integration](../guides/integration.md#protection-and-what-it-does-not-cover)).
- Credits and acknowledgements of the link are not hit, and its packets are not changed: a packet with a wrong check
  sum is a lost one.
- A legal but wrong program is the driver's to refuse; what the hardware does not notice of it is counted above.
- A detected fault is one that is reported. What it costs (an abort, the job run again) is not measured.
- A fault of an unused bit may be detected as well: the hardware does not know that the bit is unused.
"""


def read(path: Path) -> Record:
    """The record of a campaign. Raises ValueError if the file is missing, or none."""
    return read_record(path, Record)


def page() -> str:
    """The text of :data:`PAGE`, from the campaign that is kept. Raises ValueError as :func:`read`."""
    return text(read(KEPT))


def text(record: Record) -> str:
    """The page of this campaign."""
    from t3sim.faults.setup import LIMIT_CYCLES, TAIL_CYCLES, WATCHDOG_CYCLES

    count = max(sum(row.faults for row in record.rows_of(protected)) for protected in VARIANTS)
    head = _HEAD.format(
        count=count, seed=record.seed, workload=record.workload, gpus=record.gpus, patience=WATCHDOG_CYCLES,
        tail=TAIL_CYCLES, limit=LIMIT_CYCLES,
    )  # fmt: skip
    heads = ("system", "fault", "faults:", *(f"{outcome}:" for outcome in Outcome))
    return "".join(
        (
            f"{head}\n## Results\n\n{measured_on(record.hardware)}{_verdict(record)}",
            table(heads, table_cells(record)),
            _pictures(),
            "\n### What named the detected ones\n\n",
            table(("system", "fault", "named by"), _named(record)),
            f"{_silent(record)}\n{_NOT_COVERED}",
        )
    )


def _verdict(record: Record) -> str:
    return paragraph(
        f"{record.model_faults:,} single faults of what the protection is for (stored bits, packets of the link) were "
        f"put into the protected system. Silent hangs and corruptions among them: {len(record.broken)}."
    )


def _pictures() -> str:
    return "\n![Outcomes by class of fault](faults/faults.svg)\n"


def _named(record: Record) -> list[tuple[str, str, str]]:
    """Per row what named how many."""
    return [
        (VARIANTS[row.protected], row.fault, ", ".join(f"{name} {count:,}" for name, count in row.named.items()))
        for protected in VARIANTS
        for row in record.rows_of(protected)
        if row.named
    ]


def _silent(record: Record) -> str:
    """Which faults of the protected system were silent."""
    rows = [(f"`{item.kind}:{item.number}`", item.text, item.outcome) for item in record.silent if item.protected]
    if not rows:
        return ""
    return "\n### Silent ones with protection\n\n" + table(("fault", "what", "outcome"), rows)
