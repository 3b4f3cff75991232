"""`t3 bench --scaling`: what a simulation of one GPU costs over the GPUs of the ring and over the tokens."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, StrMethodFormatter
from t3hdl.export.identity import hardware_identity

from t3sim.inputs.workload import custom_workload
from t3sim.run.plan import RunPlan
from t3sim.run.policies import Watch, run_policies
from t3sim.run.provenance import Provenance
from t3sim.run.request import RunRequest
from t3sim.run.sizes import Sizes

from .bench import compile_kernels
from .computer import computer

GPUS = tuple(1 << i for i in range(1, 7))
TOKENS = tuple(1024 << i for i in range(7))
AXES = {"gpus": "GPUs of the ring", "tokens": "tokens"}


@dataclass(frozen=True, kw_only=True)
class ScalingPoint:
    """One mirrored run of t3-mca: real time of its simulation, bytes of a GPU's state, and what it simulated."""

    axis: str
    value: int
    seconds: float
    state_bytes: int
    simulated_ns: float
    lines: int
    bursts: int
    evaluations: int | None


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """All points: over ``gpus`` for the workload's tokens, and over ``tokens`` for its GPUs. ``left_out``: sizes that
    the machine cannot run, each with the reason. ``hardware``: version and netlist that were measured; ``computer``:
    whose seconds these are, None in records from before it was kept."""

    points: tuple[ScalingPoint, ...]
    left_out: tuple[str, ...] = ()
    workload: str
    provenance: Provenance
    hardware: dict[str, str] | None = None
    computer: str | None = None

    @property
    def axes(self) -> tuple[str, ...]:
        """What it was measured over."""
        return tuple(AXES)

    def of(self, axis: str) -> list[ScalingPoint]:
        """The points of one axis, in order."""
        return [point for point in self.points if point.axis == axis]

    def to_record(self) -> dict:
        """What ``scaling.json`` holds."""
        return {"schema": 1, **asdict(self), "provenance": self.provenance.model_dump(mode="json")}


def measure_scaling(
    request: RunRequest, watch: Watch, gpus: Sequence[int] = GPUS, tokens: Sequence[int] = TOKENS
) -> Scaling:
    """Runs ``request`` with other numbers of GPUs and tokens (rows), on one thread, one mirrored GPU each.

    Raises ValueError for a GEMM that cannot be split like that, and if the machine runs none of the sizes.
    """
    request = replace(request, policy="t3-mca", mirror=True, threads=1)
    work = request.workload
    sizes = [("gpus", tp, custom_workload(work.m, work.n, work.k, tp)) for tp in gpus]
    sizes += [("tokens", m, custom_workload(m, work.n, work.k, work.tp)) for m in tokens]
    requests, left_out = [], []
    for axis, value, workload in sizes:
        try:
            requests.append((axis, value, replace(request, workload=workload)))
        except ValueError as error:  # the T3 hardware of this machine has no room for it
            left_out.append(f"{value} {axis}: {error}")
    if not requests:
        raise ValueError(left_out[0])
    compile_kernels(request, watch)
    points = tuple(_point(axis, value, asked, watch) for axis, value, asked in requests)
    return Scaling(
        points=points,
        left_out=tuple(left_out),
        workload=work.title,
        provenance=Provenance.of(request.machine),
        hardware=hardware_identity(),
        computer=computer(),
    )


def _point(axis: str, value: int, request: RunRequest, watch: Watch) -> ScalingPoint:
    result = run_policies(request, ("t3-mca",), watch)["t3-mca"]
    record, contention = result.record, result.record.contention
    assert contention is not None
    streams = (contention.compute, contention.communication)
    return ScalingPoint(
        axis=axis,
        value=value,
        seconds=result.wall.simulate,
        state_bytes=sum(Sizes.of(RunPlan(request), 0).memory.values()),
        simulated_ns=record.time_ns.total,
        lines=sum(stream.lines for stream in streams),
        bursts=sum(stream.bursts for stream in streams),
        evaluations=record.rtl.cycles_evaluated if record.rtl else None,
    )


def scaling_figure(scaling: Scaling) -> Figure:
    """Seconds, and memory of a GPU, over GPUs and over tokens; both axes logarithmic."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    figure.suptitle(f"Cost of simulating one GPU under t3-mca, {scaling.workload}", fontsize="medium")
    panels = figure.subplots(1, len(AXES))
    for panel, (axis, title) in zip(panels, AXES.items(), strict=True):
        points = scaling.of(axis)
        values = [point.value for point in points]
        panel.loglog(values, [point.seconds for point in points], marker="o", label="real time, s")
        panel.loglog(
            values, [point.state_bytes / 1e6 for point in points], marker="s", linestyle="--", label="state, MB"
        )
        panel.set_xlabel(title)
        panel.set_xticks(values, [f"{value}" for value in values])
        panel.minorticks_off()
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))  # less than a decade has numbers, too
        panel.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        panel.grid(alpha=0.3)
        panel.legend(fontsize="small")
    return figure
