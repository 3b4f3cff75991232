"""The tables of ``t3 reproduce`` for the terminal."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from rich.console import Group, RenderableType
from rich.text import Text

from t3sim.common.fitted_table import FittedTable
from t3sim.common.units import BYTES, TIMES, unit_of
from t3sim.run.request import Policy
from t3sim.run.result import Result

from .evaluation import Evaluation, geomean, nmc_gain
from .layer.operators import PHASES
from .reproduction import FigureRecord, model_pairs
from .suite import BASELINE, FULL_RING_TP, OVERLAPPED, TP_8_16, TP_32, TP_64, Point, Variant

Maker = Callable[[Evaluation], RenderableType]
GEOMEAN = "geomean"


def _table(
    title: str, first: str, columns: Sequence[str], rows: Iterable[Sequence[str]], text: Sequence[str] = ()
) -> RenderableType:
    """A title and a table of names and figures; columns without a title, and those called ``text``, are text."""
    table = FittedTable(first, *columns, text=text)
    for row in rows:
        table.add_row(*row)
    return Group(Text(title, style="bold"), table)


def figures_table(figures: Sequence[FigureRecord]) -> RenderableType:
    """Published, measured by both rules of arbitration, band and verdict; a miss is written in capitals."""
    rows = []
    for item in figures:
        digits = 2 if item.unit == "x" else 1
        ours = ("-" if value is None else f"{value:.{digits}f}" for value in (item.measured, item.own_rule))
        verdict = item.verdict.upper() if item.verdict == "outside" else item.verdict
        rows.append((item.title, f"{item.published:g}", *ours, item.unit, item.limits("{:g}".format), verdict))
    columns = ("paper", "here", "by our rule", "unit", "band", "")
    title = "published and measured; t3-mca by the paper's rule of arbitration, and by this project's"
    return _table(title, "figure", columns, rows, text=("unit", "band"))


def _sublayers(points: Sequence[Point], title: str, columns: Mapping[str, tuple[Policy, Variant]]) -> Maker:
    """Time split of the sequential policy and speedups, with their geometric means; ``columns``: title -> of what."""

    def make(e: Evaluation) -> RenderableType:
        times = [e.record(point, "sequential").time_ns for point in points]
        unit = unit_of(TIMES, (time.total for time in times))
        rows = []
        for point, time in zip(points, times, strict=True):
            gains = (e.speedup(point, *where) for where in columns.values())
            split = (time.gemm, time.reduce_scatter, time.all_gather)
            rows.append((point.title, *map(unit.text, split), *(f"{gain:.3f}" for gain in gains)))
        means = (geomean(e.speedups(points, *where)) for where in columns.values())
        rows.append((GEOMEAN, "", "", "", *(f"{mean:.3f}" for mean in means)))
        return _table(title, "sublayer", (*map(unit.title, ("GEMM", "RS", "AG")), *columns), rows)

    return make


def _mca(e: Evaluation) -> RenderableType:
    """What the arbiter is worth, and which stream waited how long, for what; t3 and t3-mca in one cell."""
    rows = []
    for point in TP_8_16:
        t3, mca = (e.record(point, policy) for policy in OVERLAPPED)
        gains = (e.speedup(point, *where) for where in (*LARGE.values(), *OWN_RULE.values()))
        cells = (_pair(cause, t3, mca) for cause in MCA_CAUSES.values())
        rows.append((point.title, *(f"{gain:.3f}" for gain in gains), *cells))
    title = "what the arbiter is worth, and why (t3 -> t3-mca)"
    return _table(title, "sublayer", ("ideal", *OVERLAPPED, *OWN_RULE, *MCA_CAUSES), rows)


def _pair(cause: Callable[[Result], float], t3: Result, mca: Result) -> str:
    before, after = cause(t3), cause(mca)
    digits = 0 if max(before, after) >= 100 else 1
    return f"{before:.{digits}f} -> {after:.{digits}f}"


def _stall(kind: str) -> Callable[[Result], float]:
    def share(result: Result) -> float:
        assert result.contention is not None
        return 100 * result.contention.cu_stall_ns[kind] / result.time_ns.gemm

    return share


def _wait(stream: str) -> Callable[[Result], float]:
    return lambda result: float(getattr(result.contention, stream).mean_wait_ns)


def _blocked(stream: str, by: str) -> Callable[[Result], float]:
    """Memory clocks that the head of a stream was held, for each line of the stream."""

    def cycles_per_line(result: Result) -> float:
        part = getattr(result.contention, stream)
        return float(getattr(part, f"blocked_by_{by}_cycles") / max(1, part.lines))

    return cycles_per_line


MCA_CAUSES: Mapping[str, Callable[[Result], float]] = MappingProxyType(
    {
        "CUs wait for loads, % of GEMM": _stall("loads"),
        "for stores, %": _stall("stores"),
        "compute waits, ns/line": _wait("compute"),
        "behind comm., clocks/line": _blocked("compute", "other_stream"),
        "full queue, clocks/line": _blocked("compute", "full_queue"),
        "tracker, clocks/line": _blocked("compute", "tracker"),
        "comm. waits, ns/line": _wait("communication"),
        "behind compute, clocks/line": _blocked("communication", "other_stream"),
        "threshold, clocks/line": _blocked("communication", "threshold"),
    }
)
"""Columns of the arbiter's table, from a run's record."""


def _traffic(e: Evaluation) -> RenderableType:
    """Bytes of t3-mca for each byte of sequential, by cause; RS reads and writes follow closed forms exactly."""
    causes = {
        "GEMM reads": ("gemm_read",),
        "RS reads": ("rs_read",),
        "GEMM+RS writes": ("gemm_write", "rs_write"),
        "AG": ("ag_read", "ag_write"),
        "all": ("total",),
    }
    totals = [e.record(point, "sequential").traffic_bytes_per_gpu.total for point in TP_8_16]
    unit = unit_of(BYTES, totals)
    rows = []
    for point, total in zip(TP_8_16, totals, strict=True):
        ratios = (e.traffic_ratio(point, names) for names in causes.values())
        rows.append((point.title, unit.text(total), *(f"{ratio:.3f}" for ratio in ratios)))
    means = (geomean(e.traffic_ratio(point, names) for point in TP_8_16) for names in causes.values())
    rows.append((GEOMEAN, "", *(f"{mean:.3f}" for mean in means)))
    title = "DRAM data movement by cause, t3-mca relative to sequential"
    return _table(title, "sublayer", (unit.title("sequential"), *causes), rows)


def _nmc(e: Evaluation) -> RenderableType:
    policies: tuple[Policy, ...] = (BASELINE, "sequential-nmc")
    times = [[e.record(point, policy, mirror=True).time_ns.reduce_scatter for policy in policies] for point in TP_8_16]
    unit = unit_of(TIMES, (time for both in times for time in both))
    rows = [
        (point.title, *map(unit.text, both), f"{nmc_gain(e, point):.3f}")
        for point, both in zip(TP_8_16, times, strict=True)
    ]
    title = "reduce-scatter alone, with near-memory reduction (one GPU mirrored)"
    return _table(title, "sublayer", (unit.title("CUs"), unit.title("NMC"), "gain"), rows)


def _baseline(e: Evaluation) -> RenderableType:
    policies: tuple[Policy, ...] = (BASELINE, "sequential-pipelined", "t3-mca")
    times = [[e.record(point, policy, mirror=True).time_ns for policy in policies] for point in TP_8_16]
    unit = unit_of(TIMES, (time.reduce_scatter for plain, piped, _ in times for time in (plain, piped)))
    rows = [
        (
            point.title,
            unit.text(plain.reduce_scatter),
            unit.text(piped.reduce_scatter),
            f"{plain.total / mca.total:.3f}",
            f"{piped.total / mca.total:.3f}",
        )
        for point, (plain, piped, mca) in zip(TP_8_16, times, strict=True)
    ]
    columns = (unit.title("RS, bulk ring"), unit.title("RS, pipelined"), "t3-mca over bulk", "over pipelined")
    return _table("against a pipelined ring as the baseline (one GPU mirrored)", "sublayer", columns, rows)


def _mirror(e: Evaluation) -> RenderableType:
    policies: tuple[Policy, ...] = (BASELINE, "t3-mca")
    points = [point for point in TP_8_16 if point.tp == FULL_RING_TP]
    unit = unit_of(TIMES, (e.record(point, BASELINE).time_ns.total for point in points))
    rows = []
    for point in points:
        cells = [point.title]
        for policy in policies:
            ring, one = (e.record(point, policy, mirror=mirror).time_ns.total for mirror in (False, True))
            cells += [unit.text(ring), f"{one / ring - 1:+.2%}"]
        rows.append(cells)
    columns = (unit.title("sequential, ring"), "mirrored", unit.title("t3-mca, ring"), "mirrored")
    return _table("one GPU mirrored against all GPUs of the ring", "sublayer", columns, rows)


def _tracker(e: Evaluation) -> RenderableType:
    rows = []
    for point in TP_8_16:
        cells = [point.title]
        variants: tuple[Variant, ...] = ("base", "fit")
        base = e.record(point, "sequential", mirror=True).time_ns.total
        for variant in variants:
            result = e.record(point, "t3-mca", variant, mirror=True)
            assert result.blocks is not None and result.tracker is not None
            cells += [
                f"{base / result.time_ns.total:.3f}",
                f"{result.blocks.by_tile} / {result.blocks.by_chunk}",
                f"{result.tracker.overflowed_chunks}",
            ]
        rows.append(cells)
    columns = ("paper: t3-mca", "by tile / chunk", "overflows", "paper-fit: t3-mca", "by tile / chunk", "overflows")
    return _table("tracker of the paper's size, and one that never overflows", "sublayer", columns, rows)


def _cus(e: Evaluation) -> RenderableType:
    policies: tuple[Policy, ...] = ("ideal-overlap", *OVERLAPPED)
    variants: tuple[Variant, ...] = ("base", "cus")
    rows = [
        (point.title, *(f"{e.speedup(point, policy, variant):.3f}" for variant in variants for policy in policies))
        for point in TP_8_16
    ]
    means = (geomean(e.speedups(TP_8_16, policy, variant)) for variant in variants for policy in policies)
    rows.append((GEOMEAN, *(f"{mean:.3f}" for mean in means)))
    columns = (*policies, *(f"2x CUs: {policy}" for policy in policies))
    return _table("a GPU with twice the CUs", "sublayer", columns, rows)


def _end_to_end(e: Evaluation) -> RenderableType:
    kinds = [(model, tp, phase) for model, tp in model_pairs(e) for phase in PHASES]
    unit = unit_of(TIMES, (e.model_time(*kind).total_ns(BASELINE) for kind in kinds))
    rows = []
    for model, tp, phase in kinds:
        plain, fused = e.model_time(model, tp, phase), e.model_time(model, tp, phase, "fused")
        rows.append((
            f"{model} TP {tp} {phase}", unit.text(plain.total_ns(BASELINE)), f"{plain.sublayer_share:.0%}",
            f"{plain.communication_share:.0%}", f"{plain.overlap_limit:.3f}",
            *(f"{plain.speedup(policy):.3f}" for policy in OVERLAPPED), f"{fused.speedup('t3-mca'):.3f}",
        ))  # fmt: skip
    columns = (unit.title("time"), "sublayers", "communication", "at most", *OVERLAPPED, "t3-mca, fused attention")
    return _table("whole models", "model", columns, rows)


def _of_base(*policies: Policy) -> dict[str, tuple[Policy, Variant]]:
    return {policy: (policy, "base") for policy in policies}


OWN_RULE: Mapping[str, tuple[Policy, Variant]] = MappingProxyType({"t3-mca, our rule": ("t3-mca", "backlog")})
LARGE = _of_base("ideal-overlap", *OVERLAPPED)
SPLIT = _of_base("ideal-overlap", "ideal-overlap-nmc", *OVERLAPPED)
TABLE_MAKERS: Mapping[str, Maker] = MappingProxyType(
    {
        "sublayers": _sublayers(TP_8_16, "sublayers at TP 8 and 16: speedups over sequential", {**SPLIT, **OWN_RULE}),
        "mca": _mca,
        "traffic": _traffic,
        "nmc": _nmc,
        "baseline": _baseline,
        "mirror": _mirror,
        "tracker": _tracker,
        "tp32": _sublayers(TP_32, "sublayers at TP 32", {**LARGE, **OWN_RULE}),
        "tp64": _sublayers(TP_64, "sublayers at TP 64", LARGE),
        "cus": _cus,
        "end-to-end": _end_to_end,
    }
)
"""Table -> what prints it."""
