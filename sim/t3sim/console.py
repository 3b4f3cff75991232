"""What people see on the terminal: progress, and tables of results."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Table

from .request import CAUSE_TITLES, Progress
from .result import GemmRecord, Result

if TYPE_CHECKING:  # they take seconds to import
    from .bench import Bench
    from .reports.runner import Status
    from .validate_alu import Row as AluRow
    from .validate_hbm import Row

ESTIMATE_FROM = 0.05
"""Fraction of a run from which on its rate says something; before, kernels may have been compiled."""
LINE_SECONDS = 10.0
"""Least time between progress lines where there is no terminal."""
RUNS_SECONDS = 30.0
"""The same, for many runs that take minutes each."""


@contextmanager
def progress(console: Console, label: str) -> Iterator[Callable[[Progress], None]]:
    """A callback for the engine's progress: a bar on a terminal, else a line at the start and every ten seconds."""
    with _bar_or_lines(console, label, "started (a first run compiles for a minute or two)") as show:
        yield lambda now: show(now.simulated_ns, now.estimated_total_ns, _status(now))


@contextmanager
def case_progress(console: Console, label: str, total: int | None) -> Iterator[Callable[[int, float], None]]:
    """A callback for cases done and seconds so far, shown as :func:`progress` does; ``total`` is None if unknown."""
    with _bar_or_lines(console, label, "started (a first run compiles for some seconds)") as show:
        yield lambda cases, seconds: show(cases, total, _case_status(cases, total, seconds))


@contextmanager
def fault_progress(console: Console, total: int) -> Iterator[Callable[[int], None]]:
    """A callback for the number of finished runs of a fault campaign, shown as :func:`progress` does."""
    begin, first = time.monotonic(), None
    with _bar_or_lines(console, "faults", f"{total} runs (the first ones compile for a minute or two)") as show:

        def tell(done: int) -> None:
            nonlocal begin, first
            if first is None:  # what was finished before says nothing about the rate
                begin, first = time.monotonic(), done
            rate = (done - first) / max(time.monotonic() - begin, 1e-9)
            left = f", {rate:.0f} runs/s, about {_clock((total - done) / rate)} left" if rate else ""
            show(done, total, f"{done} of {total} runs{left}")

        yield tell


@contextmanager
def runs_progress(console: Console, label: str) -> Iterator[Callable[["Status"], None]]:
    """A callback for the state of many runs, shown as :func:`progress` does."""
    between = "\n  " if console.is_terminal else "; "
    first = "started (a first run compiles for a minute or two)"
    with _bar_or_lines(console, label, first, RUNS_SECONDS) as show:
        yield lambda now: show(now.cost_done, now.cost_total, between.join([_runs_status(now), *now.running]))


@contextmanager
def proof_progress(console: Console, label: str, total: int) -> Iterator[Callable[[int, int, float, str], None]]:
    """A callback for proofs done, failed ones, seconds so far, and the latest; shown as :func:`progress` does."""
    with _bar_or_lines(console, label, f"{total} proofs, each for one size") as show:
        yield lambda done, failed, seconds, latest: show(
            done, total, _proof_status(done, total, failed, seconds, latest)
        )


@contextmanager
def fpga_progress(console: Console, label: str, steps: int) -> Iterator[Callable[[str, str], None]]:
    """A callback for a step of a build and how far it is, nothing when it is over; shown as :func:`progress` does."""
    begin, done, running = time.monotonic(), 0, dict[str, str]()
    with _bar_or_lines(console, label, "started (synthesis takes minutes for a large preset)", RUNS_SECONDS) as show:

        def tell(step: str, phase: str) -> None:
            nonlocal done
            running[step] = phase
            if not phase:
                done += 1
                del running[step]
            latest = "; ".join(f"{name}: {now}" for name, now in list(running.items())) or f"{done} of {steps} steps"
            show(done, steps, f"{_clock(time.monotonic() - begin)}, {latest}")

        yield tell


@contextmanager
def _bar_or_lines(
    console: Console, label: str, first: str, every: float | None = None
) -> Iterator[Callable[[float, float | None, str], None]]:
    """Shows what is done, the total if known, and a text. Without a terminal the first line ends with ``first``, and
    the others are ``every`` seconds apart (by default LINE_SECONDS)."""
    if console.is_terminal:
        with Bar(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[status]}"), console=console,
            transient=True,
        ) as bar:  # fmt: skip
            task = bar.add_task(label, total=None, status="starting")
            yield lambda done, total, status: bar.update(task, total=total, completed=done, status=status)
        return
    console.print(f"{label}: {first}", highlight=False)
    last = time.monotonic()

    def print_line(done: float, total: float | None, status: str) -> None:
        nonlocal last
        if time.monotonic() - last >= (LINE_SECONDS if every is None else every):
            last = time.monotonic()
            console.print(f"{label}: {status}", highlight=False, soft_wrap=True)

    yield print_line


def _status(now: Progress) -> str:
    """Phase, simulated time, rate, and time to go."""
    parts = [now.phase, f"{now.simulated_ns / 1e3:.1f} us simulated"]
    if now.wall_seconds > 0 and now.simulated_ns > 0:
        rate = now.simulated_ns / now.wall_seconds
        parts.append(f"{rate / 1e3:.1f} us/s")
        if now.estimated_total_ns is not None and now.simulated_ns > ESTIMATE_FROM * now.estimated_total_ns:
            seconds = max(now.estimated_total_ns - now.simulated_ns, 0) / rate
            parts.append(f"about {_clock(seconds)} left")
    return ", ".join(parts)


def _case_status(cases: int, total: int | None, seconds: float) -> str:
    """Millions of cases, rate, and time to go."""
    parts = [f"{cases / 1e6:.1f} million cases"]
    if cases and seconds > 0:
        parts.append(f"{cases / seconds / 1e6:.1f} million/s")
        if total is not None:
            left = (total - cases) * seconds / cases
            parts.append(f"about {int(left // 60)}:{int(left % 60):02d} left")
    return ", ".join(parts)


def _proof_status(done: int, total: int, failed: int, seconds: float, latest: str) -> str:
    """Proofs done and failed, seconds, rate, and the latest that ended."""
    parts = [f"{done} of {total} done"]
    if failed:
        parts.append(f"{failed} not proven")
    parts += [_clock(seconds), f"{60 * done / max(seconds, 1e-3):.0f} per minute", f"last: {latest}"]
    return ", ".join(parts)


def _runs_status(now: "Status") -> str:
    """Runs done, running and failed, and time to go."""
    parts = [f"{now.done} of {now.total} runs done"]
    if now.failed:
        parts.append(f"{now.failed} failed")
    if (seconds := now.seconds_left) is not None:
        parts.append(f"about {_clock(seconds)} left")
    return ", ".join(parts)


def _clock(seconds: float) -> str:
    """Hours, minutes and seconds, without hours if there are none."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def tiling_text(gemm: GemmRecord) -> str:
    """The GEMM's workgroup tile and what follows from it, in one line."""
    return (
        f"GEMM: {gemm.workgroups} workgroups of {gemm.tile_rows} x {gemm.tile_cols} in {gemm.waves} "
        f"wave{'s' * (gemm.waves > 1)}, predicted {gemm.predicted_ns / 1e3:.1f} us"
    )


def result_table(results: Sequence[Result], speedups: Sequence[float | None]) -> Table:
    """Quantities down, policies across."""
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for result in results:
        table.add_column(result.policy, justify="right", no_wrap=True)

    def row(title: str, cell: Callable[[Result], object]) -> None:
        table.add_row(title, *("-" if (value := cell(result)) is None else str(value) for result in results))

    row("time (us)", lambda r: f"{r.time_ns.total / 1e3:.1f}")
    table.add_row("speedup over sequential", *("-" if value is None else f"{value:.3f}" for value in speedups))
    row("  GEMM (us)", lambda r: f"{r.time_ns.gemm / 1e3:.1f}")
    row("  reduce-scatter (us)", lambda r: f"{r.time_ns.reduce_scatter / 1e3:.1f}")
    row("  all-gather (us)", lambda r: f"{r.time_ns.all_gather / 1e3:.1f}")
    row("  exposed (us)", lambda r: f"{r.time_ns.exposed_communication / 1e3:.1f}")
    row("DRAM traffic per GPU (MB)", lambda r: f"{r.traffic_bytes_per_gpu.total / 1e6:.1f}")
    for cause, title in CAUSE_TITLES.items():
        row(f"  {title} (MB)", partial(_megabytes, cause))
    row("data check: elements", lambda r: r.data_check and r.data_check.elements)
    row("  mismatches", lambda r: r.data_check and r.data_check.mismatches)
    row("blocks by tile / by chunk", lambda r: r.blocks and f"{r.blocks.by_tile} / {r.blocks.by_chunk}")
    row("RTL cycles (millions)", lambda r: r.rtl and f"{r.rtl.cycles / 1e6:.2f}")
    row("  evaluated", lambda r: r.rtl and f"{r.rtl.cycles_evaluated / 1e6:.2f}")
    row("  skipped, idle", lambda r: r.rtl and f"{r.rtl.cycles_skipped / 1e6:.2f}")
    return table


def _megabytes(cause: str, result: Result) -> str:
    return f"{getattr(result.traffic_bytes_per_gpu, cause) / 1e6:.1f}"


def bench_tables(bench: "Bench") -> list[Table]:
    """What is held against targets; evaluations by event and what they sum to; evaluations by part and their time."""
    targets, events, parts = (Table(box=None, pad_edge=False) for _ in range(3))
    _columns(targets, "figure", "measured", "target", "")
    for row in bench.targets:
        sign = "<=" if row.ceiling else ">="
        targets.add_row(row.name, f"{row.measured:.3g}", f"{sign} {row.limit:g}", "ok" if row.ok else "MISS")
    _columns(events, "for each", "evaluations", "times", "sum")
    for cost in bench.costs:
        events.add_row(cost.event, f"{cost.per_event:.2f}", f"{cost.count}", f"{cost.evaluations:.0f}")
    others = bench.evaluations - sum(cost.evaluations for cost in bench.costs)
    events.add_row("all else (matcher, monitor, registers, NMC)", "", "", f"{others:.0f}")
    events.add_row(f"all ({bench.evaluated_share:.2%} of part-cycles)", "", "", f"{bench.evaluations}")
    _columns(parts, "part", "evaluations", "per s (Numba)", "per s (C)", "seconds")
    for part in bench.parts:
        parts.add_row(
            part.name, f"{part.evaluations}", f"{part.speed.in_numba:.3g}", f"{part.speed.in_c:.3g}",
            f"{part.seconds:.2f}",
        )  # fmt: skip
    parts.add_row("all", f"{bench.evaluations}", "", "", f"{bench.rtl_seconds:.2f}")
    share = f"{bench.rtl_share:.0%} of {bench.simulate_seconds:.2f}"
    parts.add_row("share of simulation", "", "", "", share)
    return [targets, events, parts]


def _columns(table: Table, first: str, *others: str) -> None:
    """Adds a column of names and columns of figures."""
    table.add_column(first, no_wrap=True)
    for title in others:
        table.add_column(title, justify="right", no_wrap=True)


def validation_table(rows: "Sequence[Row]") -> Table:
    """Cycles of model and reference for each trace."""
    table = Table(box=None, pad_edge=False)
    _columns(table, "trace", "requests", "model", "reference", "error", "")
    for row in rows:
        table.add_row(
            row.name, f"{row.requests}", f"{row.cycles}", f"{row.reference_cycles}", f"{row.error:+.2%}",
            "" if row.within else "OFF",
        )  # fmt: skip
    return table


def alu_table(rows: "Sequence[AluRow]") -> Table:
    """Cases of each check of the ALU, how many came out wrong, and how long it took."""
    table = Table(box=None, pad_edge=False)
    _columns(table, "check", "cases", "alone in a line", "differences", "seconds", "million/s")
    for row in rows:
        rate = row.cases / row.seconds / 1e6 if row.seconds else 0.0
        table.add_row(
            f"{row.dtype} {row.op}", f"{row.cases}", f"{row.alone}", f"{row.differences}", f"{row.seconds:.1f}",
            f"{rate:.2f}",
        )  # fmt: skip
    return table
