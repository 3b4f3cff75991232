"""Checks of the models and the hardware against what is known, and the speed of the simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Unpack

from t3sim.common.json_text import json_text
from t3sim.common.output import output_folder, write_atomically
from t3sim.inputs import arguments
from t3sim.inputs.machine.files import Machine, hardware_with, load_machine
from t3sim.inputs.workload import Workload, paper_shapes
from t3sim.run.policies import Watch
from t3sim.run.records import read_record
from t3sim.run.request import BACKENDS, Backend
from t3sim.validation.gpu_measure import RATES, check_rates, check_samples, measure
from t3sim.validation.gpu_record import GpuRecord
from t3sim.validation.gpu_torch import open_device

from .options import Options, requests_of, silent, usable_cores

if TYPE_CHECKING:  # they take seconds to import
    from t3sim.validation.alu import Check, Row
    from t3sim.validation.bench import Bench
    from t3sim.validation.gpu_model import GpuRow
    from t3sim.validation.hbm import Row as HbmRow
    from t3sim.validation.memory_rate.record import TrackerWaits
    from t3sim.validation.scaling import Scaling

OnCases = Callable[[int, float], None]
"""Called with the number of cases that are done, and the seconds so far."""
WatchCheck = Callable[["Check"], AbstractContextManager[OnCases]]
"""From a check of the ALU to a context that shows its progress."""


def validate_hbm(
    traces: str | Path | None = None,
    reference: str | Path | None = None,
    *,
    tolerance: float = 0.03,
    refresh: bool = True,
) -> list[HbmRow]:
    """The HBM model's time for traces beside that of a cycle-level DRAM simulator, a row for each.

    ``traces`` (.npz) and ``reference`` (.json): those of the package, or both of the user's. Raises ValueError for
    files that are not what they should be.
    """
    from t3sim.validation.hbm import validate

    arguments.instance("tolerance", tolerance, (int, float), "a number, as 0.03 for 3 %")
    given = arguments.path_of("traces", traces), arguments.path_of("reference", reference)
    if (given[0] is None) != (given[1] is None):
        raise ValueError("give both --traces and --reference, or neither")
    with resources.as_file(resources.files("t3sim.validation") / "reference") as folder:
        own = given[0] or folder / "hbm2_traces.npz", given[1] or folder / "hbm2_reference.json"
        return validate(*own, tolerance, refresh)


def validate_alu(
    cases: Iterable[str] | None = None,
    *,
    exhaustive: bool = False,
    random: int | None = None,
    dtype: str | None = None,
    op: str | None = None,
    seed: int = 0,
    alone_every: int | None = None,
    preset: str = "paper",
    settings: Sequence[str] = (),
    threads: int | None = None,
    watch: WatchCheck | None = None,
    out: str | Path | None = None,
) -> list[Row]:
    """Results and flags of the compiled NMC ALU against known ones, a row for each operation and dtype.

    Give one of ``cases`` (lines as Berkeley TestFloat's testfloat_gen prints them), ``exhaustive`` (every pair of a
    16-bit dtype) or ``random`` (every pair of special values and so many random pairs). ``alone_every``: one case in so
    many is repeated alone in its line. ``settings``: texts, as tracker_sets=512. Raises ValueError, and BuildError if
    the ALU cannot be compiled.
    """
    from t3sim.validation import alu

    sources = {"cases": cases is not None, "--exhaustive": exhaustive, "--random": random is not None}
    given = [name for name, is_given in sources.items() if is_given]
    if len(given) != 1:
        raise ValueError(f"give one of {', '.join(sources)}, not {' and '.join(given) or 'none'}")
    arguments.instance("cases", cases, (Iterable, NoneType), "lines of text, or None")
    arguments.instance("exhaustive", exhaustive, bool, "True or False")
    arguments.instance("dtype", dtype, (str, NoneType), "the name of a dtype, or None")
    arguments.instance("op", op, (str, NoneType), "the name of an operation, or None")
    arguments.instance("preset", preset, str, "the name of a preset")
    texts = arguments.items("settings", settings, str, "texts, as tracker_sets=512")
    config, seed = hardware_with(preset, texts), arguments.integer("seed", seed)
    threads = usable_cores() if threads is None else _at_least_1("threads", threads)
    alone_every = None if alone_every is None else _at_least_1("alone_every", alone_every)
    if exhaustive:
        made, checks = "every pair", alu.exhaustive_checks(config, op, dtype, alone_every)
    elif random is not None:
        count = arguments.integer("random", random)
        made = f"special values and {count:,} random pairs, seed {seed}"
        checks = alu.random_checks(config, op, dtype, count=count, seed=seed, every=alone_every)
    else:
        made, checks = "text", alu.text_check(config, op, dtype, _lines(() if cases is None else cases), alone_every)
    rows: list[Row] = []
    with output_folder(arguments.path_of("out", out)) as folder:
        for check in checks:
            with watch(check) if watch else nullcontext(_ignore) as show, alu.open_alu(config) as part:
                rows.append(alu.run(part, check, threads=threads, watch=show))
        if folder is not None:
            write_atomically(folder / "validate.json", json_text(alu.record(config, preset, made, rows)))
    return rows


def _lines(cases: Iterable[object]) -> Iterator[str]:
    """The cases one by one: they may be many. Raises ValueError at one that is no text."""
    for line in cases:
        arguments.instance("a line of cases", line, str, "a text")
        yield str(line)


def _at_least_1(name: str, value: object) -> int:
    found = arguments.integer(name, value)
    if found < 1:
        raise ValueError(f"{name} must be at least 1, not {found}")
    return found


def _ignore(cases: int, seconds: float) -> None:
    """Shows no progress."""


@dataclass(frozen=True, kw_only=True)
class GpuResult:
    """Times of the paper's GEMMs on a GPU; ``rows``: the model's beside them, empty if there was none to compare."""

    measured: GpuRecord
    rows: Sequence[GpuRow]


def validate_gpu(
    recorded: str | Path | None = None,
    *,
    machine: str | Path | None = None,
    settings: Mapping[str, object] | None = None,
    rates: Sequence[float] | None = None,
    samples: int | None = None,
    watch: Watch | None = None,
    on_shape: Callable[[int, int], None] | None = None,
    on_measured: Callable[[GpuRecord], None] | None = None,
    out: str | Path | None = None,
) -> GpuResult:
    """Times the paper's GEMMs on this CUDA GPU, alone and beside copies, and compares them with a ``machine``.

    ``recorded``: what was measured before (``gpu.json``) instead. ``rates``: of copies to and from the host, each way,
    in GB/s (0, 12, 24, 48); ``samples``: of which the median counts (5). ``on_shape``: called with how many GEMMs are
    measured, and of how many. What was measured is in ``out`` before the comparison begins, and given to
    ``on_measured``. Raises ValueError without PyTorch or a GPU, and for values that do not go together.
    """
    from t3sim.validation.gpu_model import compare

    changed = arguments.settings("settings", settings)
    _check_gpu(arguments.path_of("recorded", recorded), machine, changed, rates is not None or samples is not None)
    model = load_machine(machine, changed) if machine is not None else None  # refused before a long measurement
    target = arguments.path_of("out", out)

    def machine_with(more: dict[str, object]) -> Machine:
        assert machine is not None
        return load_machine(machine, changed | more)

    if recorded is not None:
        measured = read_record(Path(recorded), GpuRecord)
    else:
        chosen = check_rates(RATES if rates is None else arguments.items("rates", rates, (int, float), "GB/s"))
        count = check_samples(5 if samples is None else arguments.integer("samples", samples))
        with output_folder(target) as folder:
            measured = _measured(chosen, count, on_shape)
            if folder is not None:
                _write_gpu(folder, measured, [])
        if on_measured is not None:
            on_measured(measured)
    if model is None:
        return GpuResult(measured=measured, rows=[])
    with output_folder(target) as folder:
        rows = compare(measured, machine_with, watch or silent)
        if folder is not None:
            _write_gpu(folder, measured, rows, model)
    return GpuResult(measured=measured, rows=rows)


def _write_gpu(folder: Path, measured: GpuRecord, rows: Sequence[GpuRow], model: Machine | None = None) -> None:
    """Writes what was measured, the comparison with ``model``, and the picture of both."""
    from t3sim.study.drawing import save
    from t3sim.validation.gpu_model import comparison
    from t3sim.validation.gpu_picture import gpu_figure

    write_atomically(folder / "gpu.json", json_text(measured.model_dump(mode="json", by_alias=True)))
    if model is not None:
        write_atomically(folder / "validate.json", json_text(comparison(measured, model, rows)))
    save(gpu_figure(measured, rows), folder / "gpu")


def _check_gpu(
    recorded: Path | None, machine: str | Path | None, settings: Mapping[str, object], measures: bool
) -> None:
    """Refuses (ValueError) what would have no effect."""
    if recorded is not None and measures:
        raise ValueError("--from has what was measured: leave out --rates and --samples")
    if recorded is not None and machine is None:
        raise ValueError("--from needs --machine, the machine to compare with")
    if machine is None and settings:
        raise ValueError("--set is of a comparison: give --machine")


def _measured(rates: Sequence[float], samples: int, on_shape: Callable[[int, int], None] | None) -> GpuRecord:
    """What this computer's GPU takes for the paper's shapes."""
    shapes, device = paper_shapes(), open_device()
    tell = on_shape or _ignore
    tell(0, len(shapes))
    return measure(device, shapes, rates, samples, lambda done: tell(done, len(shapes)))


def validate_tracker(
    *,
    quick: bool = False,
    hardware: Backend = "golden",
    on_regime: Callable[[int, int], None] | None = None,
    out: str | Path | None = None,
) -> TrackerWaits:
    """Cycles in which an access waits for the tracker, a row for each regime, with the reason; of the paper's hardware
    with deeper token queues, too (``settings`` of a row).

    ``quick``: small hardware and the toy machine alone. ``on_regime``: called with how many regimes are measured, and
    of how many. Raises ValueError for another hardware, and BuildError if RTL cannot be compiled.
    """
    from t3sim.validation.memory_rate.contexts import CONTEXTS
    from t3sim.validation.memory_rate.measure import LARGE, SMALL, hardware_of, measure
    from t3sim.validation.memory_rate.regimes import REGIMES

    if hardware not in BACKENDS:
        raise ValueError(f"--hardware must be one of {', '.join(BACKENDS)}, not {hardware!r}")
    presets = SMALL if quick else (*LARGE, *SMALL)
    regimes = [regime for regime in REGIMES if not quick or regime.machine == "toy"]
    total, tell = len(hardware_of(presets)) * len(CONTEXTS) + len(regimes), on_regime or _ignore
    with output_folder(arguments.path_of("out", out)) as folder:
        tell(0, total)
        found = measure(hardware, presets, regimes, lambda done: tell(done, total))
        if folder is not None:
            write_atomically(folder / "tracker.json", json_text(found.model_dump(mode="json", by_alias=True)))
    return found


def bench(
    workload: Workload,
    *,
    ring: bool = False,
    watch: Watch | None = None,
    out: str | Path | None = None,
    **options: Unpack[Options],
) -> Bench:
    """How fast the co-simulation of ``workload`` under t3-mca is, on one thread, beside its targets.

    One GPU is mirrored unless ``mirror`` is False; with ``ring`` all GPUs are simulated besides, on one thread and on
    two. Raises ValueError for another hardware than "rtl", for other ``threads`` than 1 and without ``contention``,
    BuildError if the hardware cannot be compiled.
    """
    from t3sim.validation.bench import bench as measure_speed

    _check_fixed(options, threads=1, contention=True)
    mirrored: Options = {"mirror": True, **options}
    (request,) = requests_of(workload, ("t3-mca",), **mirrored)
    with output_folder(arguments.path_of("out", out)) as folder:
        result = measure_speed(request, watch or silent, ring)
        if folder is not None:
            write_atomically(folder / "bench.json", json_text(result.to_record()))
    return result


def _check_fixed(options: Options, **fixed: int) -> None:
    """Refuses (ValueError) options with other values than a benchmark has: it measures one thread, one mirrored GPU for
    scaling, and divides by the lines and bursts that contention accounting counts."""
    for name, value in fixed.items():
        if options.get(name, value) != value:
            raise ValueError(f"{name} must be {value!r}, not {options.get(name)!r}, in a benchmark: leave it out")


def bench_scaling(
    workload: Workload, *, watch: Watch | None = None, out: str | Path | None = None, **options: Unpack[Options]
) -> Scaling:
    """What simulating one GPU of ``workload`` under t3-mca costs: time and memory for 2 to 64 GPUs in the ring, and for
    1 K to 64 K tokens (rows). Raises ValueError for a GEMM that cannot be split like that, for ``threads``, and
    without ``contention`` or ``mirror``.
    """
    from t3sim.study.drawing import save
    from t3sim.validation.scaling import measure_scaling, scaling_figure

    _check_fixed(options, threads=1, contention=True, mirror=True)
    (request,) = requests_of(workload, ("t3-mca",), **options)
    with output_folder(arguments.path_of("out", out)) as folder:
        found = measure_scaling(request, watch or silent)
        if folder is not None:
            write_atomically(folder / "scaling.json", json_text(found.to_record()))
            save(scaling_figure(found), folder / "scaling")
    return found
